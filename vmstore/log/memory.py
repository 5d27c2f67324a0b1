"""A log in memory: the port with nothing behind it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from io import BytesIO

import msgspec

from vmstore.cells.cell import COMMITMENT_BYTES, ERASED, Cell
from vmstore.core.system.safe_files import Stray
from vmstore.errors import StoreError
from vmstore.log.commit import Commit
from vmstore.log.port import (
    NOTHING,
    Append,
    ChainHead,
    CompactionResult,
    DestroyResult,
    OpenCell,
    Progress,
    check_expected,
    check_seen,
    one_by_one,
)


class MemoryLog:
    """Keeps commits and cells in two lists."""

    def __init__(self) -> None:
        self._commits: list[Commit] | None = []
        self._cells: list[Cell] = []
        self._heads: dict[int, ChainHead] = {}
        self._turn = threading.RLock()
        self.erased: Mapping[int, int] = NOTHING

    def append(
        self,
        commits: Sequence[Commit],
        session: int,
        expected: int,
        *,
        after: int = 0,
        seen: int | None = None,
        dense: bool = False,
        tip: int = 0,
    ) -> list[Commit]:
        """Stores commits of one session, all or none; there is no room to save."""
        with self._turn:
            check_expected(self._heads.get(session), session, expected, commits)
            check_seen(self.ordinal, seen)
            stored, cells, session = [], list[Cell](), session or self.ordinal + 1
            for ordinal, commit in enumerate(commits, self.ordinal + 1):
                first = len(self._cells) + len(cells) + 1 if commit.cells else 0
                assert len(commit.commitments) == COMMITMENT_BYTES * len(commit.cells), "a commit brings all its cells"
                cells += commit.cells
                stored.append(msgspec.structs.replace(commit, session=session, ordinal=ordinal, cell=first, cells=()))
            self._cells += cells
            self._all.extend(stored)
            assert stored[-1].ordinal == len(self._all), "`tail` finds a commit by its place in the list"
            self._heads[session] = ChainHead(stored[-1].last, stored[-1].hash)
            return stored

    def together(self, appends: Sequence[Append]) -> list[list[Commit] | Exception]:
        """Stores several appends; there is no flush to share."""
        return one_by_one(self.append, appends)

    def alone(self) -> AbstractContextManager[bool]:
        """Keeps other threads waiting."""
        return self._turn

    deciding = destroying = settled = alone

    @property
    def _all(self) -> list[Commit]:
        if self._commits is None:
            raise StoreError("this log is closed, and a log in memory ends with that")
        return self._commits

    def tail(self, after: int, limit: int) -> list[Commit]:
        """Up to `limit` commits with an ordinal above `after`."""
        return self._all[after : after + limit]

    def cells(self, numbers: Iterable[int], *, archived: bool = True) -> dict[int, Cell]:
        """The cells of these numbers; none is archived."""
        return {n: self._cells[n - 1] for n in numbers if self._all and 0 < n <= len(self._cells)}

    def each(self, numbers: Iterable[int]) -> Iterator[tuple[int, Cell]]:
        """The same: all of it is in memory."""
        return iter(self.cells(numbers).items())

    def open_cell(self, number: int) -> OpenCell | None:
        """A cell's bytes to be read in pieces."""
        cell = self.cells([number]).get(number)
        return None if cell is None else OpenCell(cell.salt, BytesIO(cell.content))

    def head(self, session: int, after: int = 0) -> ChainHead | None:
        """The head of a session's chain if it lies beyond an ordinal, else None."""
        moved = any(commit.session == session for commit in self._all[after:])
        return self._heads[session] if moved else None

    ordinal = property(lambda self: len(self._all), doc="The ordinal of the last commit.")
    last_cell = property(lambda self: len(self._cells), doc="The number of the last cell.")

    def compact(self, progress: Progress | None = None) -> CompactionResult:
        """Does nothing: a log in memory has no frames to pack."""
        return CompactionResult()

    def destroy(self, erased: Mapping[int, int]) -> DestroyResult:
        """Puts nothing in the place of cells."""
        with self._turn:
            gone = {n: len(cell.content) for n, cell in self.cells(erased).items() if not cell.erased}
            for n in gone:
                self._cells[n - 1] = ERASED
            return DestroyResult(len(gone), sum(gone.values()))

    def sweep(self, before: int, *, dry: bool = False) -> list[Stray]:
        """Does nothing: a log in memory has no files to collect."""
        return []

    def close(self) -> None:
        """Forgets everything."""
        self._commits = None
