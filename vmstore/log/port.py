"""The log port: what the engine and the views need of a log, and nothing more.

A log orders commits and keeps their cells. It knows positions and bytes, not their meaning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import BinaryIO, NamedTuple, Protocol, runtime_checkable

from vmstore.cells.cell import Cell
from vmstore.core.system.safe_files import Stray
from vmstore.core.system.waits import seconds
from vmstore.errors import ConflictError, CorruptError, OvertakenError
from vmstore.log.commit import Commit, follows


class ChainHead(NamedTuple):
    """The last position of a session and the hash it ends with."""

    position: int
    hash: bytes


class Append(NamedTuple):
    """Commits of one session to be stored; what each field means says `Log.append`."""

    commits: Sequence[Commit]
    session: int
    expected: int
    after: int = 0
    seen: int | None = None
    dense: bool = False
    tip: int = 0


assert Append._fields[:3] == ("commits", "session", "expected"), "`one_by_one` hands these on by place"


class OpenCell(NamedTuple):
    """A cell to be read in pieces: the salt it was sealed with and its bytes, unchecked, as a file."""

    salt: bytes
    file: BinaryIO


class CompactionResult(NamedTuple):
    """Counts of a compaction: frames and bytes of content before and after."""

    frames_before: int = 0
    frames_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0


class DestroyResult(NamedTuple):
    """Counts of a destruction: cells and bytes destroyed, frames rewritten, files removed."""

    cells: int = 0
    bytes: int = 0
    frames: int = 0
    files: int = 0


POLL_S = 0.02
"""How often the position of a log is looked at by who waits for news."""

Progress = Callable[[int, int], None]
"""Called with how much is done, of how much."""

NOTHING: Mapping[int, int] = MappingProxyType({})
"""Of a log whose commits record all that was erased from it."""


class Log(Protocol):
    """The order of commits and their cells; the only truth. Any thread may use it."""

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
        """Stores commits of one session, all or none, durable before it returns.

        `session` is 0 for a new one. Raises OvertakenError when the session's last position is not
        `expected` (0 for a new one), or when the log has commits beyond the ordinal `seen`. A writer
        who knows that the session stood there at the ordinal `after` says so, and the log looks
        only beyond it; the ordinal of the session's last commit, as `tip`, spares the log a search.
        Raises CorruptError or ConflictError where the commits do not follow the session's last one
        in this log, whatever the writer knows. `dense` asks to spend time on space, where nobody waits. Returns the
        commits as stored, cells left out.
        """
        ...

    def together(self, appends: Sequence[Append]) -> list[list[Commit] | Exception]:
        """Stores several appends with one flush, each all or none, in their order; what came of each."""
        ...

    def alone(self) -> AbstractContextManager[object]:
        """Keeps every other writer waiting, so that what is decided within is not overtaken.

        Writers that were waiting already come first. Within it, append as usual.
        """
        ...

    def deciding(self) -> AbstractContextManager[object]:
        """Keeps every other writer waiting until one call of `together` within has appended what was decided.

        Where a log is far away this costs less than `alone`; here it may be the same.
        """
        ...

    def destroying(self) -> AbstractContextManager[object]:
        """Keeps every other writer waiting while cells are recorded as erased and destroyed."""
        ...

    def settled(self) -> AbstractContextManager[object]:
        """Waits for those that destroy or move cells, and keeps them waiting within; others write on.

        What is recorded as erased and still there within is what nobody is about to destroy.
        """
        ...

    def tail(self, after: int, limit: int) -> list[Commit]:
        """Up to `limit` commits with an ordinal above `after`, in order, without their cells."""
        ...

    def cells(self, numbers: Iterable[int], *, archived: bool = True) -> dict[int, Cell]:
        """The cells of these numbers; one that is not there is left out, and unless `archived` one in an archive."""
        ...

    def each(self, numbers: Iterable[int]) -> Iterator[tuple[int, Cell]]:
        """The same one after the other, for callers that keep none: memory holds those of one frame."""
        ...

    def open_cell(self, number: int) -> OpenCell | None:
        """A cell's bytes as they lie, to be read in pieces from any place; None where it is not there."""
        ...

    def head(self, session: int, after: int = 0) -> ChainHead | None:
        """The head of a session's chain, or None where no commit of it lies beyond the ordinal `after`.

        Costs what the log holds beyond `after`, and of that nothing twice.
        """
        ...

    @property
    def ordinal(self) -> int:
        """The ordinal of the last commit; 0 of an empty log."""
        ...

    @property
    def last_cell(self) -> int:
        """The number of the last cell; 0 where there is none."""
        ...

    def compact(self, progress: Progress | None = None) -> CompactionResult:
        """Takes less room, where it can; what was read before reads the same."""
        ...

    def destroy(self, erased: Mapping[int, int]) -> DestroyResult:
        """Destroys cells: bytes and salts are gone from every place this log keeps, while every hash still holds.

        The numbers are of cells that are there, each with the position where it is recorded as erased;
        those destroyed before stay so. Durable before it returns. The caller has recorded the
        destruction before, else it counts as damage.
        """
        ...

    @property
    def erased(self) -> Mapping[int, int]:
        """Cells that are recorded as erased, and where, by commits that this log does not hold."""
        ...

    def sweep(self, before: int, *, dry: bool = False) -> list[Stray]:
        """Deletes what no commit names and was written before a time (microseconds since 1970); dry only finds it."""
        ...

    def close(self) -> None:
        """Closes the files; a closed log refuses everything else."""
        ...


def check_expected(head: ChainHead | None, session: int, expected: int, commits: Iterable[Commit]) -> None:
    """Raises OvertakenError where a session moved on since its writer decided.

    Where the commits do not follow `head`, which is where the session stands in the log, or each
    other, raises CorruptError or ConflictError. What a new session's first one follows the log does
    not know: it may be a fork.
    """
    position = 0 if head is None else head.position
    if session and position != expected:
        raise OvertakenError(
            f"session {session} stands at position {position}, not {expected}: read what was added and decide again"
        )
    before = head
    for commit in commits:
        if before is not None and commit.first != before.position + 1:
            raise ConflictError(
                f"a commit that begins at position {commit.first} does not follow position {before.position} "
                f"of session {session}; nothing was written: read the session and decide again",
                code="does-not-follow",
            )
        if before is not None and not follows(before.hash, commit):
            raise CorruptError(
                f"a commit at position {commit.first} of session {session} follows another hash than the log's; "
                "nothing was written: the views may be damaged, run `vmstore rebuild`",
                code="other-hash",
            )
        before = ChainHead(commit.last, commit.hash)


def check_seen(ordinal: int, seen: int | None) -> None:
    """Raises OvertakenError where a log moved on since its writer looked."""
    if seen is not None and ordinal != seen:
        raise OvertakenError(f"the log stands at ordinal {ordinal}, not {seen}: read what was added and decide again")


def one_by_one(append: Callable[..., list[Commit]], appends: Iterable[Append]) -> list[list[Commit] | Exception]:
    """Runs several appends one after the other, where there is no flush to share; gives each result or error."""
    outcomes: list[list[Commit] | Exception] = []
    for each in appends:
        try:
            stored = append(*each[:3], after=each.after, seen=each.seen, dense=each.dense, tip=each.tip)
        except Exception as error:
            outcomes.append(error)
        else:
            outcomes.append(stored)
    return outcomes


@runtime_checkable
class Woken(Protocol):
    """A log that may be told by others that it moved; nothing is promised of that, so its position is looked at."""

    def doze(self, at_most_s: float) -> None:
        """Waits until there may be news, or for a while."""
        ...


def wait_beyond(log: Log, after: int, timeout_s: float) -> bool:
    """Waits until a log has a commit beyond an ordinal; whether it has within some seconds."""
    until = seconds() + timeout_s
    while log.ordinal <= after:
        left_s = until - seconds()
        if left_s <= 0:
            return False
        if isinstance(log, Woken):
            log.doze(left_s)
        else:
            time.sleep(min(left_s, POLL_S))
    return True
