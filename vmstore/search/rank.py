"""How well pages answer a question, with the counts and lengths of the texts in force at the moment.

`score@5`, and those before it down to `score@2`, is a weighted sum of the features of `vmstore.relevance`. `score@1`
is BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009) with k1 = 1.2 and b = 0.75; the weight of
a word is Lucene's, which is never negative.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from vmstore.errors import InputError
from vmstore.relevance.excerpt import has
from vmstore.relevance.query import WordQuery, parse_query
from vmstore.relevance.words import Analyzer

if TYPE_CHECKING:
    from vmstore.relevance.weights import Ranked
    from vmstore.search.moment import MomentTexts
    from vmstore.search.naive import NaiveTexts

SCORES = ("score@5", "score@4", "score@3", "score@2", "score@1")
SCORE, BM25 = SCORES[0], SCORES[-1]
OF_FEATURES = SCORES[:-1]
NO_WORDS = "no-words"  # the code of the refusal of a query that asks for nothing
Parts = dict[str, tuple[float, float]]
ScoredParts = tuple[int, float, Parts]
READ = 64  # texts that are looked into at once where a query requires or excludes something
K1 = 1.2
B = 0.75
_PLACE = frozenset({"session", "page", "version", "position"})
FEW = 16  # postings to as many times the texts: so few are sorted, and no number is kept for each text


class RankedPage(NamedTuple):
    """A page that answers a question: its score, its row, in which lane, what is in force of it."""

    score: float
    row: int
    lane: int
    session: int
    page: int
    version: int
    position: int
    parts: Parts
    """What each feature adds to the score, by name: its value, and that times its weight."""


def asked(query: str, analyzer: Analyzer) -> list[str]:
    """The terms of a query, each once: stop words where it has no other; InputError where it has no word."""
    forms = analyzer.forms(query)
    terms = [term for form in forms for term in form.terms] or [term for form in forms for term in form.stops]
    if not terms:
        raise InputError(f"{query!r} has no word to search for; a word has letters or digits", code=NO_WORDS)
    return list(dict.fromkeys(terms))


def ranked(
    texts: MomentTexts | NaiveTexts, query: str, limit: int | None = None, score: str = SCORE
) -> list[RankedPage]:
    """The pages that answer a query, best first, by a score that is named; InputError where it asks for nothing."""
    if score not in SCORES:
        raise InputError(f"there is no score {score!r}; there are {', '.join(SCORES)}")
    if score == BM25:
        return by_words(texts, query, limit)
    asked(query, texts.analyzer)
    parsed = parse_query(query, texts.analyzer)
    strict = parsed.required or parsed.excluded
    found = scored_rows(texts, parsed, None if strict else limit, score)
    rows = [(one.row, one.score, one.parts) for one in found.rows]
    return _pages(texts, list(islice(_strict(texts, rows, parsed), limit)) if strict else rows[:limit])


def by_words(texts: MomentTexts | NaiveTexts, query: str, limit: int | None = None) -> list[RankedPage]:
    """The pages that hold a term of the query, best first, by BM25: `score@1`."""
    lists = [texts.postings(term) for term in asked(query, texts.analyzer)]
    weights = [word_weight(texts.count, len(rows)) for rows, _ in lists]
    mean = texts.words / texts.count if texts.words else 1.0
    if hasattr(texts, "lengths"):
        rows, scores = _summed(texts, lists, weights, mean, limit)
    else:
        rows, scores = _summed_plainly(texts, lists, weights, mean)
    hits = _pages(texts, [(row, float(score), {}) for row, score in zip(rows, scores, strict=True)])
    hits.sort(key=lambda hit: (-hit.score, hit.session, hit.page))
    return hits[:limit]


def word_weight(count: int, having: int) -> float:
    """What a word weighs that so many of some texts have."""
    return math.log(1 + (count - having + 0.5) / (having + 0.5))


def _pages(texts: Any, rows: Sequence[ScoredParts]) -> list[RankedPage]:
    """Rows with what is known of them."""
    places = rows_array(texts, [int(row) for row, _, _ in rows])
    columns = texts.columns(places, _PLACE)
    lanes, pages = (
        texts.lanes(places),
        zip(columns.session, columns.page, columns.version, columns.position, strict=True),
    )
    return [
        RankedPage(score, int(row), int(lane), int(session), int(page), int(version), int(position), parts)
        for (row, score, parts), lane, (session, page, version, position) in zip(rows, lanes, pages, strict=True)
    ]


def rows_array(texts: Any, rows: Sequence[int]) -> Any:
    """Rows as texts take them: an array, or a list where they have no numpy."""
    if not hasattr(texts, "lengths"):
        return rows
    import numpy as np

    return np.array(rows, np.int64)


def _strict(texts: Any, rows: Sequence[ScoredParts], query: WordQuery) -> Iterator[ScoredParts]:
    """The rows whose text has what is required and nothing that is excluded, read some at a time."""
    rules = texts.analyzer
    for first in range(0, len(rows), READ):
        some = rows[first : first + READ]
        for row, text in zip(some, texts.texts(rows_array(texts, [row for row, _, _ in some])), strict=True):
            if all(any(has(text, one, rules) for one in group) for group in query.required) and not any(
                has(text, one, rules) for one in query.excluded
            ):
                yield row


def answering(texts: MomentTexts | NaiveTexts, query: str) -> int:
    """How many pages hold a term of the query."""
    lists = [texts.postings(term)[0] for term in asked(query, texts.analyzer)]
    if not hasattr(texts, "lengths"):
        return len({row for rows in lists for row in rows})
    import numpy as np

    if FEW * sum(map(len, lists)) < texts.count:
        return len(np.unique(np.concatenate(lists)))
    has = np.zeros(texts.count, bool)  # a place for each text takes less time than ordering what many of them have
    for rows in lists:
        has[rows] = True
    return int(np.count_nonzero(has))


def scored_rows(texts: Any, query: WordQuery, limit: int | None, version: str = SCORE) -> Ranked:
    """The rows that answer best by a score of features: with numpy, or without it the same."""
    if hasattr(texts, "lengths"):
        from vmstore.relevance.score import score
    else:
        from vmstore.relevance.naive import score
    return score(texts, query, limit=limit, version=version)


def _summed(
    texts: Any, lists: Sequence[tuple[Any, Any]], weights: Sequence[float], mean: float, limit: int | None
) -> tuple[Any, Any]:
    """The rows that have any of the terms, each with its score; of the best alone where there is a limit."""
    import numpy as np

    gains = []
    for (rows, counts), weight in zip(lists, weights, strict=True):
        norm = K1 * (1 - B + B * texts.lengths(rows) / mean)
        gains.append(weight * counts * (K1 + 1) / (counts + norm))
    if FEW * sum(map(len, gains)) < texts.count:
        found, places = np.unique(np.concatenate([rows for rows, _ in lists]), return_inverse=True)
        scores = np.bincount(places, np.concatenate(gains), len(found))
    else:
        all_scores = np.zeros(texts.count)
        for (rows, _), gain in zip(lists, gains, strict=True):
            all_scores[rows] += gain
        found = np.flatnonzero(all_scores).astype(np.int32)
        scores = all_scores[found]
    if limit is not None and len(found) > limit:
        best = scores >= np.partition(scores, len(found) - limit)[len(found) - limit]
        found, scores = found[best], scores[best]
    return found, scores


def _summed_plainly(
    texts: Any, lists: Sequence[tuple[Any, Any]], weights: Sequence[float], mean: float
) -> tuple[list[int], list[float]]:
    """The same without numpy."""
    scores: dict[int, float] = {}
    for (rows, counts), weight in zip(lists, weights, strict=True):
        for row, count, length in zip(rows, counts, texts.columns(rows).length, strict=True):
            norm = K1 * (1 - B + B * length / mean)
            scores[row] = scores.get(row, 0.0) + weight * count * (K1 + 1) / (count + norm)
    return list(scores), list(scores.values())
