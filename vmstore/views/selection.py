"""Selection of commits to export: sessions up to a position each, and the past their forks share."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import apsw
import msgspec

from vmstore.cells.cell import Cell
from vmstore.errors import RefusedError
from vmstore.log.commit import Commit
from vmstore.log.port import Log
from vmstore.views.branch import NEVER, Branch
from vmstore.views.erased_cells import seen
from vmstore.views.log_reader import read_commits
from vmstore.views.projection import Projection
from vmstore.views.stored_cells import whole_cells


class Portion(NamedTuple):
    """A session up to a position; `asked` for, or there because another one forked from it."""

    session: int
    uid: bytes
    name: str
    upto: int
    asked: bool
    ordinals: array[int]  # of its commits, in order


def select(db: apsw.Connection, wanted: Sequence[tuple[int, int]]) -> list[Portion]:
    """The portions of sessions (key, position) and, up to their fork points, of those they came from."""
    upto: dict[int, int] = {}
    for session, position in wanted:
        for stretch in Branch(db, session).upto(position):
            upto[stretch.session] = max(upto.get(stretch.session, 0), min(stretch.high, position))
    asked = {session for session, _ in wanted}
    assert asked <= upto.keys(), (
        "a session has at least the commit that opens it, so none that is asked for is left out"
    )
    return [_portion(db, session, position, session in asked) for session, position in sorted(upto.items())]


def _portion(db: apsw.Connection, session: int, upto: int, asked: bool) -> Portion:
    ordinals: array[int] = array("q")
    last = 0
    for ordinal, last in db.execute(  # noqa: B007 (the last one is looked at)
        "SELECT ordinal, last FROM commits WHERE session = ? AND last <= ? ORDER BY last", (session, upto)
    ):
        ordinals.append(ordinal)
    assert last <= upto, "a portion ends with a commit, at or before where it is cut"
    uid, name = db.execute("SELECT uid, name FROM sessions WHERE session = ?", (session,)).get
    return Portion(session, uid, name, last, asked, ordinals)


def whole(db: apsw.Connection, session: int) -> tuple[int, int]:
    """A session and its last position."""
    return session, int(db.execute("SELECT position FROM sessions WHERE session = ?", (session,)).get)


def check_end(lane: Branch, position: int, name: str) -> None:
    """Refuses a position that a bundle could not end at: one within a commit, or before the session's own first."""
    own = lane.stretches[0]
    if position <= own.low:
        raise RefusedError(
            f"position {position} of {name!r} was written by the session it forked from; export that one up to there",
            code="of-its-parent",
        )
    following = lane.db.execute(
        "SELECT min(last) FROM commits WHERE session = ? AND last >= ?", (own.session, min(position, NEVER))
    ).get
    if following != position:
        raise RefusedError(
            f"position {position} of {name!r} is no commit end; the next one is {following}", code="within-a-commit"
        )


def commits_of(projection: Projection, portion: Portion) -> Iterator[Commit]:
    """A portion's commits in order, each with its cells as they may be seen; memory holds the cells of one."""
    log, db = projection.log, projection.db
    return _with_cells(log, portion, lambda numbers: seen(log, db, numbers))


def commits_as_they_lie(log: Log, portion: Portion) -> Iterator[Commit]:
    """The same with what is there, asking no views; for who keeps others from destroying any cells."""
    return _with_cells(log, portion, lambda numbers: dict(log.cells(numbers)))


def _with_cells(log: Log, portion: Portion, read: Callable[[Iterable[int]], dict[int, Cell]]) -> Iterator[Commit]:
    for commit in read_commits(log, portion.ordinals):
        sealed = {commit.cell + index: commit.commitment(index) for index in range(commit.cell_count)}
        assert len(sealed) == commit.cell_count, "each cell of a commit has a number of its own"
        found = whole_cells(log, sealed, read(sealed)) if sealed else {}
        yield msgspec.structs.replace(commit, cells=tuple(found[number] for number in sealed))
