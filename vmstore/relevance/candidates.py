"""The texts that are worth scoring for a question, by how much its words weigh in and around them.

Where the words stand in a good part of all texts, these are gone through some at a time, so that what is worked on
stays small and close; what cannot be among the best is dropped at once. The answer is the same as over all.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vmstore.relevance.measures import K1, LIKE, NEAR, SPREAD, TINY
from vmstore.relevance.question import Needle

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

SPARSE = 512  # postings to as many times the texts: so few are looked at with the rows around them alone
ROWS_MIN, ROWS_MAX = 4_096, 65_536  # that are gone through at once: few at first, to learn soon what is good
KERNEL = np.array(SPREAD)
CLOSE = 1 - 1e-9  # sums of the same numbers in another order differ by less


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Some values ascending, each once; `np.unique` loads all that numpy has for masked arrays to do the same."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


class Found(NamedTuple):
    """A needle among the texts: the rows that have it, how often, what it weighs, rows with other spellings."""

    needle: Needle
    rows: Rows
    counts: Floats
    weight: float
    likes: tuple[tuple[Rows, float], ...]

    @property
    def gains(self) -> Floats:
        """What it is worth in each row that has it."""
        return self.weight * self.counts / (self.counts + K1)


def candidates(count: int, found: Sequence[Found], sentence: bool, most: int | None) -> tuple[Rows, int]:
    """The rows that are worth scoring, ascending, and how many have any asked word.

    Who types single words wants the texts that have one. For a sentence they are those with an asked word, or another
    spelling of one, in them or within four rows, the best of them by how much the words weigh there; a fifth of the
    places go to the best by the words in the row alone.
    """
    added = _Added(found, sentence)
    if SPARSE * added.postings >= count:
        return _best(count, added, sentence, most)
    places = added.places(count)
    rows, total = _best(len(places), added.at(places), sentence, most)
    return places[rows], total


class _Added:
    """What is added to rows: for asked words, and for other spellings of them."""

    def __init__(self, found: Sequence[Found], sentence: bool) -> None:
        self.words = [(one.rows, one.gains) for one in found]
        self.likes = [
            (rows, np.full(len(rows), LIKE * alike * one.weight))
            for one in found
            for rows, alike in (one.likes if sentence else ())
        ]
        self.postings = sum(len(rows) for rows, _ in self.words + self.likes)

    def places(self, count: int) -> Rows:
        """The rows within twice the reach of any, ascending.

        Numbered again they stand as close to each other as before, as far as a word reaches; where rows are left out
        between two of them no word is within its reach.
        """
        lists = [rows for rows, _ in self.words + self.likes]
        wide = (np.concatenate(lists)[:, None] + np.arange(-2 * NEAR, 2 * NEAR + 1)).ravel()
        return distinct(wide[(wide >= 0) & (wide < count)])

    def at(self, places: Rows) -> _Added:
        """The same, rows numbered again."""
        found = _Added((), False)
        found.words = [(np.searchsorted(places, rows), gains) for rows, gains in self.words]
        found.likes = [(np.searchsorted(places, rows), gains) for rows, gains in self.likes]
        return found


class _Kept:
    """The rows that may be among the best so far, with what weighs in each and those around it, and about near it."""

    def __init__(self, most: int | None, reach: int) -> None:
        self._most = most
        self._some = max((most or 0) // 5, 1)
        self._reach = reach
        self._least = self._least_own = 0.0
        self._rows, self._near = np.zeros(0, np.int64), np.zeros(0)
        self._wide = np.zeros((0, 2 * reach + 1))

    def take(self, first: int, own: Floats, near: Floats) -> None:
        """Takes in the rows from one on, `own` with those before and after; `near` is about what weighs near them."""
        inner = own[NEAR : len(own) - NEAR]
        if self._least:
            here = np.flatnonzero(near >= min(self._least, self._least_own))  # what weighs in a row weighs near it too
            here = here[(near[here] >= self._least) | (inner[here] >= self._least_own)]
        else:
            here = np.flatnonzero(near)
        if not len(here):
            return
        wide = own[here[:, None] + np.arange(NEAR - self._reach, NEAR + self._reach + 1)]
        self._rows = np.concatenate([self._rows, here + first])
        self._near = np.concatenate([self._near, near[here]])
        self._wide = np.concatenate([self._wide, wide])
        if self._most is not None and len(self._rows) > 2 * self._most:
            self._cut(self._near, self._most, CLOSE)

    def best(self) -> Rows:
        """The best of all that were taken."""
        if self._most is not None and (self._least or len(self._rows) > self._most):
            shares = SPREAD if self._reach else (1.0,)
            near = sum((share * self._wide[:, at] for at, share in enumerate(shares)), np.zeros(len(self._rows)))
            self._cut(near, self._most, 1.0)
        return self._rows

    def _cut(self, near: Floats, most: int, close: float) -> None:
        """Drops what is not among the best, or so close to them that another order of the sum might tell."""
        own = self._wide[:, self._reach]
        self._least = float(_largest(near, most - self._some)) * close
        self._least_own = max(float(_largest(own, self._some)), TINY)
        best = np.flatnonzero((near >= self._least) | (own >= self._least_own))
        self._rows, self._near, self._wide = self._rows[best], self._near[best], self._wide[best]


def _best(count: int, added: _Added, sentence: bool, most: int | None) -> tuple[Rows, int]:
    """The best rows, some at a time, and how many have any asked word."""
    edges = [0, *(ROWS_MIN << n for n in range((ROWS_MAX // ROWS_MIN).bit_length()))]
    edges = [edge for edge in (*edges, *range(2 * ROWS_MAX, count, ROWS_MAX)) if edge < count] + [count]
    words, likes = _cut_up(added.words, edges), _cut_up(added.likes, edges)
    kept, total = _Kept(most, NEAR if sentence else 0), 0
    for number, (first, last) in enumerate(pairwise(edges)):
        size = last - first + 2 * NEAR
        here = [slice(low[number], high[number]) for _, _, low, high in words]
        rows = np.concatenate([_NO_ROWS, *(rows[some] for (rows, *_), some in zip(words, here, strict=True))])
        gains = np.concatenate([_NOTHING, *(gains[some] for (_, gains, *_), some in zip(words, here, strict=True))])
        own = np.asarray(np.bincount(rows - (first - NEAR), gains, size), np.float64)
        total += int(np.count_nonzero(own[NEAR : size - NEAR] > 0))
        for rows, gains, low, high in likes:
            own[rows[low[number] : high[number]] - (first - NEAR)] += gains[low[number] : high[number]]
        kept.take(first, own, np.correlate(own, KERNEL) if sentence else own[NEAR : size - NEAR])
    return kept.best(), total


def _cut_up(
    lists: Sequence[tuple[Rows, Floats]], edges: Sequence[int]
) -> list[tuple[Rows, Floats, list[int], list[int]]]:
    """Lists with where in each the rows begin and end that are within reach of those between two edges."""
    low, high = np.array(edges[:-1], np.int64) - NEAR, np.array(edges[1:], np.int64) + NEAR
    return [
        (rows, gains, np.searchsorted(rows, low).tolist(), np.searchsorted(rows, high).tolist())
        for rows, gains in lists
    ]


def _largest(values: Floats, number: int) -> np.float64:
    """The so-manieth largest of some values."""
    return np.partition(values, len(values) - number)[len(values) - number]  # type: ignore[no-any-return]


_NO_ROWS, _NOTHING = np.zeros(0, np.int64), np.zeros(0)
