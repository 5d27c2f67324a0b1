"""Which pages answer a question by its words and by an embedder's closeness together, under the score that is asked.

`score@5` is the weighted sum of features, `score@1` BM25 alone. Where closeness is at hand it is added: a page's share
of the best of them, and its closeness times the weight it has
(`vmstore.relevance.closeness`); pages that no word finds come in by their closeness alone.
`rrf@1` fuses the rankings by tags, by BM25 and by closeness. Without an embedder both do with what there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from vmstore.core.page import PageType
from vmstore.errors import InputError
from vmstore.relevance import rrf
from vmstore.relevance.words import Analyzer
from vmstore.search.rank import BM25, RankedPage, asked, ranked
from vmstore.search.rank import SCORES as WORD_SCORES
from vmstore.views.branch import Branch

if TYPE_CHECKING:
    from vmstore.relevance.closeness import Closeness
    from vmstore.search.moment import MomentTexts
    from vmstore.search.naive import NaiveTexts

SCORES = (*WORD_SCORES, rrf.SCORE)
CANDIDATES = 200  # of each ranking that are fused, where fewer answers are wanted
Moments = Sequence[tuple[Branch, int]]


def answers(
    texts: MomentTexts | NaiveTexts,
    moments: Moments,
    question: str,
    limit: int | None = None,
    *,
    closeness: Closeness | None = None,
    score: str | None = None,
) -> list[RankedPage]:
    """The pages that answer a question, best first; InputError for a score there is none of, or a question without
    a word where no closeness helps.
    """
    if score is not None and score not in SCORES:
        raise InputError(f"there is no score {score!r:.40}; there are {', '.join(SCORES)}")
    by = WORD_SCORES[0] if score is None else BM25 if score == rrf.SCORE else score
    if closeness is None and score != rrf.SCORE:
        return ranked(texts, question, limit, by)
    few = None if limit is None else max(limit, CANDIDATES)
    try:
        by_words = ranked(texts, question, few, by)
    except InputError:  # it has no word
        if closeness is None:
            raise
        by_words = []
    near = [] if closeness is None else [int(row) for row in closeness.nearest(few or texts.count)]
    if score == rrf.SCORE:
        found = _fused(texts, moments, question, [hit.row for hit in by_words], near)
        pages = [
            page._replace(score=found[page.row].score, parts=found[page.row].parts)
            for page in _pages(texts, by_words, found)
        ]
    else:
        assert closeness is not None, "there is something to add"
        pages = added(texts, by_words, near, closeness, by == BM25)
    return sorted(pages, key=lambda hit: (-hit.score, hit.session, hit.page))[:limit]


def _pages(
    texts: MomentTexts | NaiveTexts, by_words: Sequence[RankedPage], wanted: Iterable[int]
) -> Iterator[RankedPage]:
    """The pages of rows, as they were ranked by words where they were; others without a score."""
    rows: Any = list(wanted)
    known = {hit.row: hit for hit in by_words}
    columns, lanes = texts.columns(rows), texts.lanes(rows)
    place = (columns.session, columns.page, columns.version, columns.position)
    for row, lane, *page in zip(rows, lanes, *place, strict=True):
        session, number, version, position = map(int, page)
        yield known.get(row) or RankedPage(0.0, row, int(lane), session, number, version, position, {})


def added(
    texts: MomentTexts | NaiveTexts,
    by_words: Sequence[RankedPage],
    near: Sequence[int],
    closeness: Closeness,
    from_zero: bool = False,
) -> list[RankedPage]:
    """The sum of both, with closeness among what it is made of.

    BM25 begins at zero, other scores a quarter of their range below the worst: who is found by words has a share.
    """
    scores = [hit.score for hit in by_words] or [1.0]
    least = 0.0 if from_zero else min(scores) - max(max(scores) - min(scores), 1.0) / 4
    range_ = max(scores) - least or 1.0
    found = {hit.row for hit in by_words}
    rows = list(dict.fromkeys([*(hit.row for hit in by_words), *near]))
    pages = []
    for page, value in zip(_pages(texts, by_words, rows), map(float, closeness.of(rows)), strict=True):
        gain = closeness.weight * value
        share = (page.score - least) / range_ if page.row in found else 0.0
        parts = {name: (feature, added / range_) for name, (feature, added) in page.parts.items()}
        pages.append(page._replace(score=share + gain, parts={**parts, "closeness": (value, gain)}))
    return pages


def _fused(
    texts: MomentTexts | NaiveTexts, moments: Moments, question: str, by_words: Sequence[int], near: Sequence[int]
) -> dict[int, rrf.FusedRank[int]]:
    """What was fused, by row."""
    tagged, frequency, resolved = _tags(texts, moments)
    wanted = _tags_asked(frequency, question, texts.analyzer)
    overlapping = {row: tags & wanted for row, tags in tagged.items() if tags & wanted}
    by_tags = rrf.tag_overlap(sorted(wanted), overlapping, frequency, texts.count)
    hubs = {row: min(frequency[tag] for tag in tags) / texts.count for row, tags in overlapping.items()}
    lifted = {row for row, tags in overlapping.items() if tags & resolved}
    return {one.key: one for one in rrf.fused(by_tags, by_words, near, hubs=hubs, resolved=lifted)}


def _tags_asked(known: Counter[str], question: str, rules: Analyzer) -> set[str]:
    """The tags all of whose words a question has."""
    try:
        terms = {*asked(question, rules)}
    except InputError:
        return set()
    found = set()
    for tag in known:
        own = {term for form in rules.forms(tag.rpartition(":")[2].replace("-", " ")) for term in form.terms}
        if own and own <= terms:
            found.add(tag)
    return found


def _tags(texts: MomentTexts | NaiveTexts, moments: Moments) -> tuple[dict[int, set[str]], Counter[str], set[str]]:
    """The tags of each row that has any, how many rows have each, and those that a claim has."""
    by_page: dict[tuple[int, int], set[str]] = {}
    claims: set[tuple[int, int]] = set()
    for number, (lane, position) in enumerate(moments):
        for stretch in reversed(lane.upto(position)):
            for page, tag, held in lane.db.execute(_TAGS, (stretch.session, stretch.high)):
                own = by_page.setdefault((number, page), set())
                own.add(tag) if held else own.discard(tag)
            claims.update((number, page) for (page,) in lane.db.execute(_CLAIMS, (stretch.session, stretch.high)))
    if not by_page:
        return {}, Counter(), set()
    rows: Any = list(range(texts.count))
    places = zip(map(int, texts.lanes(rows)), map(int, texts.columns(rows).page), strict=True)
    tagged = {row: tags for row, place in enumerate(places) if (tags := by_page.get(place))}
    frequency = Counter(tag for tags in tagged.values() for tag in tags)
    return tagged, frequency, {tag for place in claims for tag in by_page.get(place, ())}


_TAGS = "SELECT page, tag, held FROM tags WHERE session = ? AND position <= ? ORDER BY position"
_CLAIMS = f"SELECT page FROM pages WHERE type = {int(PageType.CLAIM)} AND session = ? AND page <= ?"
