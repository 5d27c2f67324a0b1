"""Why a search answers what it does: what was looked for among how many texts, and what each answer's score is made of.

Nothing is scored again: features are those that the score was summed from, words those that it looked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from vmstore.core.address import page_name
from vmstore.core.text.explanation import AskedWord, FeatureShare, MatchedWord, SearchExplanation
from vmstore.errors import InputError
from vmstore.relevance.measures import NEAR
from vmstore.relevance.naive import sitting
from vmstore.relevance.query import AskedKind, AskedPhrase, Wanted, WordQuery, parse_query
from vmstore.relevance.question import PART_WEIGHT, Needle, question_of
from vmstore.relevance.weights import ScoredWord
from vmstore.search.rank import BM25, K1, OF_FEATURES, SCORE, B, RankedPage, asked, rows_array, scored_rows, word_weight

FLOOR = "floor"
SEEN = 1e-6  # a share of a score that is less is rounding
HOW = {
    AskedKind.WORD: "stem",
    AskedKind.STOP: "stop word",
    AskedKind.IDENTIFIER: "whole",
    AskedKind.PATH: "whole",
    AskedKind.HASH: "prefix",
    AskedKind.PREFIX: "prefix",
    AskedKind.SIGNS: "signs",
    AskedKind.EITHER: "either",
}
PART, TYPO, ALIKE = "part", "typo", "alike"


class HitReasons(NamedTuple):
    """Why one page answers: what its score is made of, by feature, and which asked words it has or stands near."""

    features: dict[str, FeatureShare]
    words: list[MatchedWord]


def explained(
    texts: Any, query: str, hits: Sequence[RankedPage], limit: int | None, score: str | None, vectors: str | None
) -> tuple[SearchExplanation, list[HitReasons]]:
    """Explains the answers of a search, which was asked with the same limit and score."""
    score = SCORE if score is None else score
    parsed = parse_query(query, texts.analyzer)
    words = _looked_for(texts, parsed, limit, score)
    hows = _hows(parsed, words)
    asked_words = [_asked_word(one, how) for one, how in zip(words, hows, strict=True)]
    looked_for = {one.needle.text for one in words}
    needles = question_of(parsed, 0).needles if score in OF_FEATURES else ()
    speakers = [needle.text for needle in needles if needle.text not in looked_for]
    required = [" OR ".join(map(_as_typed, group)) for group in parsed.required]
    mean = texts.words / texts.count if texts.count else 0.0
    excluded = [_as_typed(one) for one in parsed.excluded]
    about = SearchExplanation(score, texts.count, mean, asked_words, required, excluded, speakers, vectors)
    matches = list(_matches(texts, words, hows, [hit.row for hit in hits], NEAR if score in OF_FEATURES else 0))
    return about, [
        HitReasons(parts, each)
        for parts, each in zip(_features(texts, words, hits, mean, score == BM25), matches, strict=True)
    ]


def _looked_for(texts: Any, parsed: WordQuery, limit: int | None, score: str) -> tuple[ScoredWord, ...]:
    """The words as the score looked for them."""
    if score in OF_FEATURES:
        return scored_rows(texts, parsed, None if parsed.required or parsed.excluded else limit, score).words
    try:
        terms = asked(parsed.raw, texts.analyzer)
    except InputError:  # it has no word
        return ()
    counts = [len(texts.postings(term)[0]) for term in terms]
    return tuple(
        ScoredWord(Needle(term, (term,)), count, word_weight(texts.count, count))
        for term, count in zip(terms, counts, strict=True)
    )


def _hows(parsed: WordQuery, words: Sequence[ScoredWord]) -> list[str]:
    """How each word is looked for."""
    by_text = {word.text: word for word in parsed.words}
    found = []
    for one in words:
        word = by_text.get(one.needle.text)
        if word is None:
            found.append(PART if one.needle.weight == PART_WEIGHT else HOW[AskedKind.WORD])
        elif not word.prefixes and not {*word.terms} & {*one.needle.terms}:
            found.append(TYPO)
        else:
            found.append(HOW[word.kind])
    return found


def _asked_word(one: ScoredWord, how: str) -> AskedWord:
    alike = {term: round(share, 6) for term, share in one.needle.likes}
    return AskedWord(one.needle.text, how, [*one.needle.terms], one.texts, round(one.weight, 6), alike)


def _as_typed(wanted: Wanted) -> str:
    return f'"{wanted.text}"' if isinstance(wanted, AskedPhrase) else wanted.text


def _features(
    texts: Any, words: Sequence[ScoredWord], hits: Sequence[RankedPage], mean: float, by_words: bool
) -> Iterator[dict[str, FeatureShare]]:
    """What each score is made of, the greatest shares first; they add up to it."""
    own = _bm25(texts, words, hits, mean or 1.0) if by_words else [{} for _ in hits]
    for hit, gains in zip(hits, own, strict=True):
        parts = dict(hit.parts)
        rest = hit.score - sum(adds for _, adds in parts.values())
        total = sum(adds for _, adds in gains.values())
        parts.update({name: (value, adds * rest / total) for name, (value, adds) in gains.items()} if total else {})
        rest = hit.score - sum(adds for _, adds in parts.values())
        if abs(rest) > SEEN:  # beside closeness a score counts from below the worst
            parts[FLOOR] = (1.0, rest)
        order = sorted(parts.items(), key=lambda part: (-abs(part[1][1]), part[0]))
        yield {
            name: FeatureShare(round(value, 6), round(adds / value, 6) if value else 0.0, round(adds, 6))
            for name, (value, adds) in order
        }


def _bm25(
    texts: Any, words: Sequence[ScoredWord], hits: Sequence[RankedPage], mean: float
) -> list[dict[str, tuple[float, float]]]:
    """What each word adds to BM25, by hit and word."""
    lengths = texts.columns(rows_array(texts, [hit.row for hit in hits])).length
    found: list[dict[str, tuple[float, float]]] = [{} for _ in hits]
    for one in words:
        counts = _counts(texts, one.needle.text)
        for hit, length, parts in zip(hits, lengths, found, strict=True):
            if often := counts.get(hit.row):
                value = often * (K1 + 1) / (often + K1 * (1 - B + B * float(length) / mean))
                parts[one.needle.text] = value, value * one.weight
    return found


def _counts(texts: Any, term: str) -> dict[int, int]:
    rows, counts = texts.postings(term)
    return {int(row): int(count) for row, count in zip(rows, counts, strict=True)}


def _matches(
    texts: Any, words: Sequence[ScoredWord], hows: Sequence[str], rows: Sequence[int], reach: int
) -> Iterator[list[MatchedWord]]:
    """The words that each of some rows has, or the nearest of those around it."""
    count = texts.count
    places = sorted({row + far for row in rows for far in range(-reach, reach + 1) if 0 <= row + far < count})
    columns = texts.columns(rows_array(texts, places))
    known: dict[str, Mapping[int, int]] = {
        name: dict(zip(places, map(int, getattr(columns, name)), strict=True)) for name in ("session", "at_us", "page")
    }
    every = SimpleNamespace(length=range(count), **known)
    having = [_having(texts, one, how) for one, how in zip(words, hows, strict=True)]
    for row in rows:
        near = sitting(every, row) if reach else {0: row}
        found = []
        for one, has in zip(words, having, strict=True):
            nearest = sorted((abs(far), far, place) for far, place in near.items() if place in has)
            if nearest:
                _, far, place = min(nearest, key=lambda at: (has[at[2]][0] == ALIKE, at))
                found.append(MatchedWord(one.needle.text, *has[place], page_name(known["page"][place]), far))
        yield sorted(found, key=lambda match: abs(match.away))


def _having(texts: Any, one: ScoredWord, how: str) -> dict[int, tuple[str, str]]:
    """The rows that have a word, each with how and which term."""
    found = {int(row): (ALIKE, term) for term, _ in reversed(one.needle.likes) for row in texts.postings(term)[0]}
    for term in reversed(one.needle.terms):
        found.update((int(row), (how, term)) for row in texts.postings(term)[0])
    return found


def in_words(match: MatchedWord) -> str:
    """In words how a text has a word."""
    spelled = "" if match.term == match.word.casefold() else f" {match.term}"
    if not match.away:
        where = "in the text"
    else:
        many = f"{abs(match.away)} texts" if abs(match.away) > 1 else "one text"
        where = f"{many} {'after' if match.away > 0 else 'before'} it, in {match.page}"
    return f"{match.word}: {match.how}{spelled}, {where}"
