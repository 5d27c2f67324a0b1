"""BM25: how well pages answer some words, with the counts and lengths of the texts in force at the moment.

Robertson and Zaragoza, The Probabilistic Relevance Framework (2009), with k1 = 1.2 and b = 0.75;
the weight of a word is Lucene's, which is never negative. This is `score@1`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from vmstore.errors import InputError
from vmstore.relevance.words import Analyzer

if TYPE_CHECKING:
    from vmstore.search.moment import MomentTexts
    from vmstore.search.naive import NaiveTexts

K1 = 1.2
B = 0.75
FEW = 16  # postings to as many times the texts: so few are sorted, and no number is kept for each text


class RankedPage(NamedTuple):
    """A page that holds one of the words, best first: its score, its row, in which lane, what is in force of it."""

    score: float
    row: int
    lane: int
    session: int
    page: int
    version: int
    position: int


def asked(query: str, analyzer: Analyzer) -> list[str]:
    """The terms of a query, each once: stop words where it has no other; InputError where it has no word."""
    forms = analyzer.forms(query)
    terms = [term for form in forms for term in form.terms] or [term for form in forms for term in form.stops]
    if not terms:
        raise InputError(f"{query!r} has no word to search for; a word has letters or digits")
    return list(dict.fromkeys(terms))


def ranked(texts: MomentTexts | NaiveTexts, query: str, limit: int | None = None) -> list[RankedPage]:
    """The pages that hold a term of the query, best first."""
    lists = [texts.postings(term) for term in asked(query, texts.analyzer)]
    weights = [math.log(1 + (texts.count - len(rows) + 0.5) / (len(rows) + 0.5)) for rows, _ in lists]
    mean = texts.words / texts.count if texts.words else 1.0
    if hasattr(texts, "lengths"):
        rows, scores = _summed(texts, lists, weights, mean, limit)
    else:
        rows, scores = _summed_plainly(texts, lists, weights, mean)
    columns, lanes = texts.columns(rows), texts.lanes(rows)
    told = (columns.session, columns.page, columns.version, columns.position)
    numbers = zip(*(map(int, column) for column in (rows, lanes, *told)), strict=True)
    hits = [RankedPage(float(score), *one) for score, one in zip(scores, numbers, strict=True)]
    hits.sort(key=lambda hit: (-hit.score, hit.session, hit.page))
    return hits[:limit]


def answering(texts: MomentTexts | NaiveTexts, query: str) -> int:
    """How many pages hold a term of the query."""
    lists = [texts.postings(term)[0] for term in asked(query)]
    if not hasattr(texts, "lengths"):
        return len({row for rows in lists for row in rows})
    import numpy as np

    return len(np.unique(np.concatenate(lists)))


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
