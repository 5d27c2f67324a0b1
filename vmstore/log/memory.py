"""A log in memory: the port with nothing behind it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from vmstore.cells.cell import Cell
from vmstore.errors import StoreError
from vmstore.log.commit import Commit
from vmstore.log.port import Head, check_expected


class MemoryLog:
    """Keeps commits and cells in two lists."""

    def __init__(self) -> None:
        self._commits: list[Commit] | None = []
        self._cells: list[Cell] = []

    def append(
        self, commits: Sequence[Commit], session: int, expected: int, *, seen: int | None = None, dense: bool = False
    ) -> list[Commit]:
        """Stores commits of one session, all or none; there is no room to save."""
        check_expected(self.head(session), session, expected, self.ordinal, seen)
        stored, cells, session = [], list(self._cells), session or self.ordinal + 1
        for ordinal, commit in enumerate(commits, self.ordinal + 1):
            first = len(cells) + 1 if commit.cells else 0
            cells += commit.cells
            stored.append(msgspec.structs.replace(commit, session=session, ordinal=ordinal, cell=first, cells=()))
        self._commits, self._cells = self._all + stored, cells
        return stored

    @property
    def _all(self) -> list[Commit]:
        if self._commits is None:
            raise StoreError("this log is closed, and a log in memory ends with that")
        return self._commits

    def tail(self, after: int, limit: int) -> list[Commit]:
        """Up to `limit` commits with an ordinal above `after`."""
        return self._all[after : after + limit]

    def cells(self, numbers: Iterable[int]) -> dict[int, Cell]:
        """The cells of these numbers."""
        return {n: self._cells[n - 1] for n in numbers if self._all and 0 < n <= len(self._cells)}

    def head(self, session: int) -> Head | None:
        """Where a session stands."""
        return next((Head(c.last, c.hash) for c in reversed(self._all) if c.session == session), None)

    ordinal = property(lambda self: len(self._all), doc="The ordinal of the last commit.")
    last_cell = property(lambda self: len(self._cells), doc="The number of the last cell.")

    def close(self) -> None:
        """Forgets everything."""
        self._commits = None
