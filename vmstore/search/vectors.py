"""The vectors of a namespace in memory, as the log has them, and those of the texts in force at a moment.

They are read when a question first needs them and as they come; where anything is erased all are let go of and read
again, so nothing of what was erased stays. A question is compared with every one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import apsw
import numpy as np
from numpy.typing import NDArray

from vmstore.core.vectors import Quantisation, vector_bytes
from vmstore.log.port import Log
from vmstore.relevance.closeness import RowVectors, VectorMatrix
from vmstore.views.branch import Branch, BranchRange
from vmstore.views.stored_cells import read_cells

READ = 256  # contents read at once
POSITIONS = 34  # bits of a position in a key; the session stands above

Numbers = NDArray[np.int64]


class PlacedTexts(Protocol):
    """The texts of a moment as far as their places are asked for."""

    @property
    def count(self) -> int:
        """How many rows there are."""
        ...

    def columns(self, rows: Any) -> Any:
        """What is known of rows: the session that wrote each, and the position of its content."""
        ...

    def lanes(self, rows: Any) -> Any:
        """The number of the lane that each row stands in."""
        ...


def _keys(session: Numbers, position: Numbers) -> Numbers:
    """A number for each content, which no other has."""
    return (np.asarray(session, np.int64) << POSITIONS) | np.asarray(position, np.int64)


class ModelVectors:
    """All vectors of one model, with where each stands."""

    def __init__(self, log: Log, db: apsw.Connection, model: str, dimension: int) -> None:
        self._log, self._db = log, db
        self._asked = (model, dimension)
        self._ordinal = 0
        self._ends: dict[int, int] = {}  # by session, up to where it was read
        self._blocks: list[VectorMatrix] = []
        self._places: list[tuple[int, int, int]] = []  # of each vector: session, position, content
        self.matrix = VectorMatrix(np.zeros((0, dimension), np.int8), np.zeros(0, np.float32))
        self.session = self.position = self.content = np.zeros(0, np.int64)
        self._order = np.zeros(0, np.int64)

    def follow(self, ordinal: int) -> None:
        """Reads what came up to an ordinal."""
        if ordinal == self._ordinal:
            return
        for session in self._changed():
            self._read(session)
        self._ordinal = ordinal
        if self._blocks:
            self.matrix = self.matrix.beside(self._blocks)
            places = np.array(self._places, np.int64).reshape(-1, 3)
            self.session = np.concatenate([self.session, places[:, 0]])
            self.position = np.concatenate([self.position, places[:, 1]])
            self.content = np.concatenate([self.content, places[:, 2]])
            self._blocks, self._places = [], []
            self._order = np.lexsort((self.position, self.session))

    def _changed(self) -> list[int]:
        """The sessions that wrote since."""
        if not self._ordinal:
            rows: Any = self._db.execute("SELECT DISTINCT session FROM vectors")
            return sorted(session for (session,) in rows)
        found, after = set[int](), self._ordinal
        while some := self._log.tail(after, READ):
            found.update(commit.session for commit in some)
            after = some[-1].ordinal
        return sorted(found)

    def _read(self, session: int) -> None:
        asked = (session, self._ends.get(session, 0), *self._asked)
        rows: list[Any] = self._db.execute(_VECTORS, asked).fetchall()
        for start in range(0, len(rows), READ):
            some = rows[start : start + READ]
            cells = read_cells(self._log, self._db, {row[4]: row[5] for row in some}, instead=lambda _: b"")
            for position, content, chunks, quantisation, cell, _ in some:
                packed = cells[cell]
                if len(packed) == chunks * vector_bytes(quantisation, self._asked[1]):
                    self._blocks.append(unpacked(packed, quantisation, self._asked[1]))
                    self._places += [(session, position, content)] * chunks
        if rows:
            self._ends[session] = rows[-1][0]

    def seen(self, moments: Sequence[tuple[Branch, int]]) -> tuple[Numbers, Numbers]:
        """Which vectors the lanes have at their moments, each with the key of the content it is of."""
        sorted_sessions = self.session[self._order]
        found, keys = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for lane, position in moments:
            own = sorted(lane.upto(position), key=lambda stretch: stretch.low)
            for stretch in own:
                low, high = np.searchsorted(sorted_sessions, (stretch.session, stretch.session + 1))
                some = self._order[low:high]
                some = some[(self.position[some] > stretch.low) & (self.position[some] <= stretch.high)]
                owner = _owners(own, self.content[some])
                some, owner = some[owner > 0], owner[owner > 0]
                found.append(some)
                keys.append(_keys(owner, self.content[some]))
        return np.concatenate(found), np.concatenate(keys)

    def at(self, moments: Sequence[tuple[Branch, int]], texts: PlacedTexts) -> RowVectors:
        """The vectors of the rows of some moments."""
        seen, keys = self.seen(moments)
        columns = texts.columns(np.arange(texts.count, dtype=np.int32))
        rows = _keys(columns.session, columns.position)
        order = np.argsort(rows, kind="stable")
        sorted_rows = rows[order]
        at = np.minimum(np.searchsorted(sorted_rows, keys), max(len(rows) - 1, 0))
        hit = sorted_rows[at] == keys if len(rows) else np.zeros(len(keys), bool)
        lanes = np.asarray(texts.lanes(np.arange(texts.count, dtype=np.int32)), np.int64)
        return RowVectors(self.matrix, seen[hit], order[at[hit]].astype(np.int64), len(rows), self._asked[0], lanes)


def _owners(own: Sequence[BranchRange], contents: Numbers) -> Numbers:
    """The sessions of a lane that wrote contents; 0 for what none of its stretches holds."""
    lows = np.array([stretch.low for stretch in own], np.int64)
    at = np.searchsorted(lows, contents, side="left") - 1
    sessions = np.array([stretch.session for stretch in own], np.int64)
    return np.where(at >= 0, sessions[np.maximum(at, 0)], 0)


def unpacked(packed: bytes, quantisation: int, dimension: int) -> VectorMatrix:
    """Vectors as they are kept, as numbers."""
    if quantisation == Quantisation.FLOAT16:
        return VectorMatrix(np.frombuffer(packed, "<f2").reshape(-1, dimension).astype(np.float32))
    rows = np.frombuffer(packed, np.uint8).reshape(-1, vector_bytes(quantisation, dimension))
    return VectorMatrix(rows[:, 4:].view(np.int8), rows[:, :4].copy().view("<f4")[:, 0])


class VectorTable:
    """The vectors of a namespace by model; forgets all of them where something was erased since."""

    def __init__(self, log: Log, db: apsw.Connection) -> None:
        self._log, self._db = log, db
        self._erased = -1
        self._models: dict[tuple[str, int], ModelVectors] = {}

    def of(self, model: str, dimension: int, ordinal: int, erased: int) -> ModelVectors:
        """The vectors of a model up to an ordinal; `erased` is the last erasure up to there."""
        if erased != self._erased:
            self.forget()
            self._erased = erased
        found = self._models.get((model, dimension))
        if found is None:
            found = self._models[model, dimension] = ModelVectors(self._log, self._db, model, dimension)
        found.follow(ordinal)
        return found

    def forget(self) -> None:
        """Drops every vector."""
        self._models.clear()


_VECTORS = """SELECT position, content, chunks, quantisation, cell, commitment FROM vectors
  WHERE session = ? AND position > ? AND model = ? AND dimension = ? AND chunk = 1 ORDER BY position"""
