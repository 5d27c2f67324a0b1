"""The cells that mutations name: where they lie in the log, what they must hash to, what is in them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

import apsw

from vmstore.cells.cell import COMMITMENT_BYTES, SALT_BYTES, Cell
from vmstore.core.mutation import (
    CELL_FIELDS,
    Alias,
    Annotate,
    AnyMutation,
    Approve,
    CellRef,
    Close,
    Create,
    Depth,
    Embed,
    Fact,
    GuardTrip,
    Mark,
    Open,
    Pack,
    Promote,
    Settings,
    Tag,
    ToolRun,
)
from vmstore.errors import CorruptError
from vmstore.log.commit import NO_REQUEST, Commit
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.erased_cells import Erasures, check_erased
from vmstore.views.log_reader import LogReader
from vmstore.views.tool_cells import cells_read

BYTES_MAX = 8 << 20
FOUND_MAX = 1024
AHEAD_BYTES = 4 << 20  # of cells that are read before they are asked for
NAMED_BYTES, NAMED_MAX = 4_096, 1_024  # cells that are kept in case they are named again
READ: dict[type, tuple[str, ...]] = {
    Open: ("name", "meta", "source", "key"),
    Mark: ("name",),
    Close: ("reason",),
    Create: ("labels",),
    Embed: ("model",),
    Fact: ("subject", "verb", "what", "attribute", "method"),
    Annotate: ("tags", "untags", "anchors"),
    Approve: ("who",),
    Pack: ("rest",),
    Settings: ("told",),
    Tag: ("tag",),
    Alias: ("alias", "canonical"),
    Depth: ("tag",),
    ToolRun: ("error", "tags"),
    GuardTrip: ("tool",),
    Promote: ("skill",),
}
"""The fields whose cells a fold reads: names and labels; of contents what `tool_cells` says, and keeps none."""

assert all(set(fields) <= set(CELL_FIELDS[kind]) for kind, fields in READ.items()), "what is read ahead are cells"
assert not any("content" in fields for fields in READ.values()), "a fold keeps no content, so a rebuild needs none"
assert NAMED_BYTES * NAMED_MAX <= AHEAD_BYTES, "what is kept of small cells takes no more than what is read ahead"


Brought = tuple[int, int, int, bytes]
"""What one commit brought: its last and first position, the number of its first cell, their commitments."""


class CellReadahead:
    """Cells that are asked for about in their order, read some at a time: a few bytes of a log may hold many."""

    def __init__(self, each: Callable[[Sequence[int]], Iterable[tuple[int, Cell]]]) -> None:
        self._each = each
        self._wanted: list[int] = []
        self._read: dict[int, Cell] = {}
        self._named: dict[int, Cell] = {}  # small ones that were read alone: what is named often is so
        self._last = 0  # read so far, of those that are wanted

    def want(self, numbers: Iterable[int]) -> None:
        """Says what will be asked for from here on."""
        self.forget()
        self._wanted = sorted(set(numbers))

    def get(self, number: int) -> Cell | None:
        """A cell, with those after it that will be asked for where it was not read yet; None where it is not there."""
        found = self._read.get(number) or self._named.get(number)
        if found is None and number > self._last and self._wanted:
            self._on(number)
            found = self._read.get(number)
        if found is None:
            found = dict(self._each([number])).get(number)
            if found is not None and len(found.content) <= NAMED_BYTES and len(self._named) < NAMED_MAX:
                self._named[number] = found
        return found

    def _on(self, number: int) -> None:
        """Reads from a cell on."""
        assert number > self._last, "cells are read in runs ahead only: what was let go of is asked for one by one"
        self._read.clear()
        size = 0
        for at, cell in self._each(self._wanted[bisect_left(self._wanted, number) :]):
            self._read[at], self._last = cell, max(at, self._last)
            size += len(cell.content)
            if size > AHEAD_BYTES:
                return
        self._last = self._wanted[-1]

    def forget(self) -> None:
        """Drops what was read."""
        self._wanted, self._last = [], 0
        self._read.clear()
        self._named.clear()


class CellResolver:
    """Finds cells: those of commits just folded from memory, older ones through the commits view.

    A cell that is known to be erased is not read, be its bytes still there or not. `erasures` are
    those of the log where the views are being folded, and cannot be asked. With a `lane` all commits
    are of it, in order, and a position tells its writer.
    """

    def __init__(
        self, log: Log, db: apsw.Connection, erasures: Erasures | None = None, lane: Branch | None = None
    ) -> None:
        self._lane = lane
        self._log = log
        self._db = db
        self._erasures = erasures
        self._brought: dict[int, list[Brought]] = {}
        self._bytes = 0
        self._found: dict[tuple[int, int], Brought] = {}
        self._ahead = CellReadahead(log.each)
        self.given = 0  # bytes of names and labels, which those who asked may keep

    def note(self, commit: Commit) -> None:
        """Takes in a commit that is folded, so that later ones may name its cells."""
        if commit.commitments:
            session = commit.session if self._lane is None else self._lane.session
            self._brought.setdefault(session, []).append(_brought(commit))
            self._bytes += len(commit.commitments)

    def settle(self) -> None:
        """Forgets what was read for a batch, and older commits where they are many: the views hold them now."""
        self._ahead.forget()
        if self._bytes > BYTES_MAX:
            self.forget()

    def forget(self) -> None:
        """Forgets every commit."""
        self._brought.clear()
        self._found.clear()
        self._ahead.forget()
        self._bytes = 0

    def read(self, batch: Iterable[tuple[Commit, Sequence[AnyMutation]]]) -> None:
        """Reads the names and labels of commits, many at once."""
        wanted = []
        for commit, mutations in batch:
            if commit.request != NO_REQUEST:
                wanted.append(commit.cell + commit.request)
            named = [getattr(m, field) for m in mutations for field in READ.get(type(m), ())]
            wanted += [commit.cell + ref for ref in (*named, *cells_read(mutations, commit.first)) if type(ref) is int]
        self._ahead.want(wanted)

    def want(self, numbers: Iterable[int]) -> None:
        """Says which cells will be asked for from here on, about in their order: frames are read once for all."""
        self._ahead.want(numbers)

    def sealed(self, commit: Commit, ref: CellRef) -> tuple[int, bytes]:
        """The log's number of a cell that a commit names, and its commitment."""
        if isinstance(ref, int):
            cell, commitments, index = commit.cell, commit.commitments, ref
        else:
            (_, _, cell, commitments), index = self._holding(commit.session, ref[0]), ref[1]
        found = commitments[index * COMMITMENT_BYTES : (index + 1) * COMMITMENT_BYTES]
        if len(found) != COMMITMENT_BYTES:
            raise CorruptError(
                f"commit {commit.ordinal} names a cell that is not there; run `vmstore verify`", code="cell-missing"
            )
        return cell + index, found

    def erased(self, commit: Commit, ref: CellRef) -> bool:
        """Whether a cell is known to be erased."""
        return self._erasures is not None and self._erasures.known(self.sealed(commit, ref)[0])

    def content(self, commit: Commit, ref: CellRef, *, kept: bool = True) -> bytes | None:
        """A cell's bytes, None where it was erased; CorruptError where they are missing or do not match."""
        number, commitment = self.sealed(commit, ref)
        if self._erasures is not None and self._erasures.known(number):
            return None
        cell = self._ahead.get(number)
        if cell is None:
            raise CorruptError(f"cell {number} is missing from the log; run `vmstore verify`", code="cell-missing")
        if cell.erased:
            check_erased(self._log, self._db, number, self._erasures)
            return None
        if len(cell.salt) != SALT_BYTES or cell.commitment != commitment:
            raise CorruptError(
                f"cell {number} does not match its commitment; run `vmstore verify`", code="cell-damaged"
            )
        self.given += len(cell.content) if kept else 0
        return cell.content

    def _holding(self, session: int, position: int) -> Brought:
        """The cells of the commit that holds a position of a session's lane."""
        session = session if self._lane is None else self._lane.session
        near = self._brought.get(session, ())
        at = bisect_left(near, (position,))
        if at < len(near) and near[at][1] <= position:
            return near[at]
        known = self._found.get((session, position))
        if known is None:
            if len(self._found) > FOUND_MAX:
                self._found.clear()
            known = self._found[session, position] = self._look_up(session, position)
        return known

    def _look_up(self, session: int, position: int) -> Brought:
        lane = Branch(self._db, session) if self._lane is None else self._lane
        commit = LogReader(self._log, self._db).holding(lane.owner(position), position)
        if commit is None:
            raise CorruptError(
                f"position {position} of session {session} holds no commit; run `vmstore verify`", code="commit-missing"
            )
        return _brought(commit)


def _brought(commit: Commit) -> Brought:
    return commit.first + commit.count - 1, commit.first, commit.cell, commit.commitments
