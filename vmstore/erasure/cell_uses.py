"""Uses of cells: which mutations name which cells, found by reading the log from its start."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple

import apsw

from vmstore.core.mutation import CELL_FIELDS, AnyMutation, CellRef, Pack, decode
from vmstore.log.commit import NO_REQUEST, Commit
from vmstore.log.port import Log
from vmstore.views.branch import Branch

READ = 256  # commits at a time
REQUEST = "request"  # the field of a commit's request id


class CellKey(NamedTuple):
    """A cell by the session that brought it, the first position of its commit and its index there; its number."""

    session: int
    first: int
    at: int
    number: int


class CellUse(NamedTuple):
    """A mutation that names a cell in one of its fields; of a request id there is no mutation."""

    session: int
    position: int
    mutation: AnyMutation | None
    field: str
    cell: CellKey


class CellUseReader:
    """Reads a log whose views are at its end; what it learns of commits serves the next reading too."""

    def __init__(self, log: Log, db: apsw.Connection) -> None:
        self._log = log
        self._db = db
        self._lanes: dict[int, Branch] = {}
        self._lasts: dict[int, list[int]] = {}
        self._commits: dict[int, list[tuple[int, int, int]]] = {}  # first, cell, cells

    def lane(self, session: int) -> Branch:
        """The branch of a session."""
        if session not in self._lanes:
            self._lanes[session] = Branch(self._db, session)
        return self._lanes[session]

    def owner(self, session: int, page: int) -> tuple[int, int]:
        """A page by the session that made it."""
        return self.lane(session).owner(page), page

    def uses(self) -> Iterator[CellUse]:
        """Every cell that any mutation names, in the order of the log."""
        for commit in self.commits():
            if commit.request != NO_REQUEST:
                yield CellUse(commit.session, commit.first, None, REQUEST, self._own(commit, commit.request))
            for position, mutation in enumerate(decode(commit.body), commit.first):
                for field, ref in _refs(mutation):
                    yield CellUse(commit.session, position, mutation, field, self._cell(commit, ref))

    def commits(self) -> Iterator[Commit]:
        """Every commit, in order."""
        after = 0
        while batch := self._log.tail(after, READ):
            for commit in batch:
                lasts = self._lasts.setdefault(commit.session, [])
                if not lasts or commit.last > lasts[-1]:
                    lasts.append(commit.last)
                    self._commits.setdefault(commit.session, []).append((commit.first, commit.cell, commit.cell_count))
                yield commit
            after = batch[-1].ordinal

    def _own(self, commit: Commit, index: int) -> CellKey:
        return CellKey(commit.session, commit.first, index, commit.cell + index)

    def _cell(self, commit: Commit, ref: CellRef) -> CellKey:
        if isinstance(ref, int):
            return self._own(commit, ref)
        position, index = ref
        session = self.lane(commit.session).owner(position)
        first, cell, _ = self._commits[session][bisect_left(self._lasts[session], position)]
        return CellKey(session, first, index, cell + index)

    def whole(self, session: int) -> list[CellKey]:
        """Every cell a session brought, once its commits were read."""
        return [
            CellKey(session, first, index, cell + index)
            for first, cell, cells in self._commits.get(session, ())
            for index in range(cells)
        ]

    def last(self, session: int) -> int:
        """The last position of a session that was read."""
        return self._lasts[session][-1]


def _refs(mutation: AnyMutation) -> Iterator[tuple[str, CellRef]]:
    for field in CELL_FIELDS.get(type(mutation), ()):
        ref: Any = getattr(mutation, field)
        if ref is not None:
            yield field, ref
    if isinstance(mutation, Pack):
        for _, ref in mutation.envelopes:
            yield "envelopes", ref
