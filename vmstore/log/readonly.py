"""A log that is only read: what the log port asks of one beyond its commits and cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from io import BytesIO
from pathlib import Path
from typing import NoReturn

from vmstore.cells.cell import Cell
from vmstore.core.system.safe_files import Stray
from vmstore.errors import ReadOnlyError
from vmstore.log.commit import Commit
from vmstore.log.port import NOTHING, Append, ChainHead, CompactionResult, DestroyResult, Log, OpenCell, Progress

BATCH = 256


class ReadLog(ABC):
    """Refuses every write."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def tail(self, after: int, limit: int) -> list[Commit]:
        """Up to `limit` commits with an ordinal above `after`."""

    @abstractmethod
    def cells(self, numbers: Iterable[int], *, archived: bool = True) -> dict[int, Cell]:
        """The cells of these numbers."""

    def each(self, numbers: Iterable[int]) -> Iterator[tuple[int, Cell]]:
        """The cells of these numbers, some at a time."""
        return iter(self.cells(numbers).items())

    @property
    @abstractmethod
    def ordinal(self) -> int:
        """The ordinal of the last commit."""

    @property
    @abstractmethod
    def last_cell(self) -> int:
        """The number of the last cell."""

    @abstractmethod
    def close(self) -> None:
        """Closes the file."""

    def open_cell(self, number: int) -> OpenCell | None:
        """A cell's bytes to be read in pieces."""
        cell = self.cells([number]).get(number)
        return None if cell is None else OpenCell(cell.salt, BytesIO(cell.content))

    def head(self, session: int, after: int = 0) -> ChainHead | None:
        """The head of a session's chain if it lies beyond an ordinal, else None."""
        found = None
        while batch := self.tail(after, BATCH):
            for commit in batch:
                found = ChainHead(commit.last, commit.hash) if commit.session == session else found
            after = batch[-1].ordinal
        return found

    def sweep(self, before: int, *, dry: bool = False) -> list[Stray]:
        """Does nothing: the log is a single file."""
        return []

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
    ) -> NoReturn:
        """Refused."""
        raise self._refused()

    def together(self, appends: Sequence[Append]) -> NoReturn:
        """Refused."""
        raise self._refused()

    def alone(self) -> AbstractContextManager[object]:
        """Refused."""
        raise self._refused()

    def deciding(self) -> AbstractContextManager[object]:
        """Refused."""
        raise self._refused()

    def destroying(self) -> AbstractContextManager[object]:
        """Refused."""
        raise self._refused()

    def settled(self) -> AbstractContextManager[object]:
        """Nobody changes it."""
        return nullcontext()

    @property
    def erased(self) -> Mapping[int, int]:
        """Returns an empty mapping: no cell is missing that a commit records as erased."""
        return NOTHING

    def destroy(self, erased: Mapping[int, int]) -> DestroyResult:
        """Refused."""
        raise self._refused()

    def compact(self, progress: Progress | None = None) -> CompactionResult:
        """Refused."""
        raise self._refused()

    def _refused(self) -> ReadOnlyError:
        return ReadOnlyError(f"{self.path} is only read; write to the store it came from")


class LentLog(ReadLog):
    """A log of somebody else's, for looking, as long as `let` raises nothing."""

    def __init__(self, log: Log, path: Path, let: Callable[[], object]) -> None:
        super().__init__(path)
        self._lent = log
        self._let = let

    def tail(self, after: int, limit: int) -> list[Commit]:
        """Up to `limit` commits with an ordinal above `after`."""
        self._let()
        return self._lent.tail(after, limit)

    def cells(self, numbers: Iterable[int], *, archived: bool = True) -> dict[int, Cell]:
        """The cells of these numbers."""
        self._let()
        return self._lent.cells(numbers, archived=archived)

    @property
    def ordinal(self) -> int:
        """The ordinal of the last commit."""
        self._let()
        return self._lent.ordinal

    @property
    def last_cell(self) -> int:
        """The number of the last cell."""
        self._let()
        return self._lent.last_cell

    def close(self) -> None:
        """Does nothing: the log belongs to the one who lent it."""
