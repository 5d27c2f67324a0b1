"""Closeness: how near texts lie to a question by an embedder's vectors, as a feature of a row and for candidates.

A cosine says little by itself: with one model all texts are within 0.7 and 0.9 of each other, with another around 0.
So closeness counts how far a row stands out: standard deviations above the mean of all rows at the moment that have
a vector, over `SPREAD`. What was said before and after counts too, since an answer seldom repeats what was asked.
A row without a vector stands where the mean does, at 0, and so does a row below it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

WEIGHT = 0.4
"""What closeness weighs beside features that are within about 0 and 1. Chosen with the vectors of a small model
(all-MiniLM-L6-v2) of five LoCoMo conversations, where .3 to .5 give the same, and of the coding recalls."""
NEIGHBOUR = 0.3  # of what a row's neighbours in its lane stand out is added to it
SPREAD = 6.0  # standard deviations that make a closeness of 1: what answers a question stands out about so far
CLOSENESS_MAX = 1.5
ROWS = 1024  # of a matrix that are multiplied at once
CANDIDATES = 100  # rows that come into question by their closeness alone


class VectorMatrix:
    """Vectors one below the other, in as few bytes as they are kept: whole numbers times a scale for each, or floats.

    Products are made some rows at a time: converted there, bytes are faster than floats from memory, and a quarter.
    """

    def __init__(self, numbers: NDArray[np.int8] | Floats, scales: Floats | None = None) -> None:
        self.numbers, self.scales = numbers, scales

    def __len__(self) -> int:
        return len(self.numbers)

    def dot(self, question: Floats, index: Rows | None = None) -> Floats:
        """The product of each vector, or of some, with a question."""
        numbers = self.numbers if index is None else self.numbers[index]
        found = np.empty(len(numbers), np.float32)
        room = np.empty((min(ROWS, len(numbers)), numbers.shape[1]), np.float32)
        for start in range(0, len(numbers), ROWS):
            some = numbers[start : start + ROWS]
            np.copyto(room[: len(some)], some)
            np.dot(room[: len(some)], question, out=found[start : start + len(some)])
        if self.scales is not None:
            found *= self.scales if index is None else self.scales[index]
        return found

    def plain(self) -> VectorMatrix:
        """The same as floats."""
        if self.scales is None:
            return self
        return VectorMatrix(np.asarray(self.numbers * self.scales[:, None], np.float32))

    def beside(self, others: Sequence[VectorMatrix]) -> VectorMatrix:
        """These, and others below them; all as floats where any is."""
        parts = [self, *others]
        if any(part.scales is None for part in parts if len(part)):
            parts = [part.plain() for part in parts]
            return VectorMatrix(np.concatenate([part.numbers for part in parts]))
        scales = [part.scales for part in parts if part.scales is not None]
        return VectorMatrix(np.concatenate([part.numbers for part in parts]), np.concatenate(scales))


class RowVectors:
    """The vectors of the rows of a moment: vector `index[i]` of the matrix is of row `rows[i]`.

    A row may have several, or none; there are `count` rows. `lanes` says for each row in which lane it stands, where
    there are several.
    """

    def __init__(
        self, matrix: VectorMatrix, index: Rows, rows: Rows, count: int, model: str, lanes: Rows | None = None
    ) -> None:
        order = np.argsort(rows, kind="stable")
        self._matrix, self._index = matrix, index[order]
        self.rows, self._first = np.unique(rows[order], return_index=True)
        self.joined = np.diff(self.rows) == 1  # whether each stands beside the next one
        if lanes is not None:
            self.joined &= np.diff(lanes[self.rows]) == 0
        self.count = count
        self.embedded = len(self.rows)
        self.model = model

    def to(self, numbers: Sequence[float]) -> Closeness:
        """How close every row is to a question's vector."""
        question = np.array(numbers, np.float32)
        if not len(self.rows):
            return Closeness(self.rows, np.zeros(0, np.float32), self)
        if 2 * len(self._index) > len(self._matrix):  # to pick vectors out first would copy them
            cosines = self._matrix.dot(question)[self._index]
        else:
            cosines = self._matrix.dot(question, self._index)
        return Closeness(self.rows, np.maximum.reduceat(cosines, self._first), self)


class Closeness:
    """How close the rows of a moment are to one question."""

    weight = WEIGHT

    def __init__(self, rows: Rows, cosines: Floats, of: RowVectors) -> None:
        self._rows = rows
        away = cosines - cosines.mean() if len(cosines) else cosines
        self._near = away > 0  # by themselves
        lift = NEIGHBOUR * np.maximum(away, 0)
        away[:-1] += of.joined * lift[1:]
        away[1:] += of.joined * lift[:-1]
        spread = float(away.std()) if len(away) > 1 else 0.0
        away = (away - away.mean()) / spread if spread > 1e-6 else np.zeros(len(away), np.float32)
        self._values = np.clip(away / SPREAD, 0.0, CLOSENESS_MAX).astype(np.float32)
        self._cosines = cosines
        self.vectors = of

    def of(self, rows: Sequence[int] | Rows) -> Floats:
        """The closeness of some rows, 0 of those that have no vector."""
        return self._picked(self._values, rows)

    def cosines(self, rows: Sequence[int] | Rows) -> Floats:
        """The cosine of some rows' closest chunks, 0 of those that have no vector."""
        return self._picked(self._cosines, rows)

    def _picked(self, values: Floats, rows: Sequence[int] | Rows) -> Floats:
        wanted = np.asarray(rows, np.int64)
        if not len(self._rows):
            return np.zeros(len(wanted), np.float32)
        at = np.minimum(np.searchsorted(self._rows, wanted), len(self._rows) - 1)
        return np.where(self._rows[at] == wanted, values[at], np.float32(0.0))

    def nearest(self, limit: int = CANDIDATES) -> Rows:
        """The closest rows, the closest first, equal ones in their order; none at 0, or that only a neighbour lifts."""
        near = np.where(self._near, self._values, np.float32(0))
        least = np.partition(near, -limit)[-limit] if limit < len(near) else np.float32(0)
        some = np.flatnonzero((near >= least) & (near > 0))
        return self._rows[some[np.lexsort((some, -self._values[some]))]][:limit]

    @property
    def coverage(self) -> str:
        """In words how much of the moment has vectors."""
        of = self.vectors
        return f"{of.embedded:,} of {of.count:,} texts have a vector of {of.model}"
