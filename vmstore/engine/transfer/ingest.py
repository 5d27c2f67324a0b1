"""Takes in the commits of another log: proven first in a log of their own, then adopted as they are, or rewritten.

Adopted, a session keeps its positions, salts and hashes; a session that is here already gains what
it lacks, if its past is the same. Rewritten, the same mutations become a new session of this log,
with its own ids, salts and hashes. Either way a session is written whole, in one append.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, overload

import apsw
import msgspec

from vmstore.core.mutation import CellRef
from vmstore.engine.engine import Arrival, Engine, Ingested
from vmstore.engine.verify.verify import Counts, Finding, verify
from vmstore.errors import ConflictError
from vmstore.log.commit import Commit
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.log_reader import LogReader, commit_at
from vmstore.views.projection import Progress, Projection, room_of
from vmstore.views.stored_cells import Instead, read_cells

RUN_BYTES = 4 << 20
RUN_COMMITS = 500


class ForeignSession(NamedTuple):
    """A session of the log it was proven in."""

    session: int
    uid: bytes
    name: str
    position: int
    hash: bytes
    hidden: bool


class CommitCollector:
    """Commits that are looked at in a log of their own before anything of them is written to another."""

    def __init__(self, log: Log, *files: Path) -> None:
        self.log = log  # which lies in `files`
        self._keys: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._name = ""
        self._run: list[Commit] = []
        self._bytes = 0
        self.views = Projection(log, apsw.Connection(":memory:"), room=room_of(*files) if files else None)

    def take(self, name: str, commit: Commit) -> None:
        """Takes in the next commit of the session that is called `name` there."""
        if name != self._name or self._bytes > RUN_BYTES or len(self._run) >= RUN_COMMITS:
            self._flush()
        self._name = name
        self._run.append(commit)
        self._bytes += sum(len(cell.content) for cell in commit.cells) + len(commit.body)

    def _flush(self) -> None:
        if self._run:
            name = self._name
            stored = self.log.append(self._run, self._keys.get(name, 0), self._ends.get(name, 0))
            assert len(stored) == len(self._run), "a run is stored whole"
            self._keys[name], self._ends[name] = stored[-1].session, stored[-1].last
        self._run, self._bytes = [], 0

    def settle(self) -> None:
        """Makes what was taken in readable without proving it: of a log of one's own."""
        self._flush()
        self.views.catch_up()

    def prove(self, progress: Progress | None = None) -> tuple[Counts, list[Finding]]:
        """Checks every hash, every cell and every rule of what was taken in."""
        self._flush()
        return verify(self.log, self.views, progress)

    def sessions(self) -> list[ForeignSession]:
        """The sessions taken in, parents before their forks."""
        sql = "SELECT session, uid, name, position, hash, hidden FROM sessions ORDER BY session"
        return [ForeignSession(*row) for row in self.views.db.execute(sql)]

    def lane(self, foreign: ForeignSession) -> Branch:
        """The branch of a session: which session wrote which positions."""
        return Branch(self.views.db, foreign.session)

    def commits(self, session: int, after: int = 0) -> ForeignCommits:
        """A session's commits beyond a position."""
        return ForeignCommits(self.log, LogReader(self.log, self.views.db).ordinals(session, after))


def content_of(log: Log, lane: Branch, commit: Commit, ref: CellRef, instead: Instead | None = None) -> bytes:
    """The bytes of a cell that a commit, read with its cells, names: its own, or one of an earlier commit."""
    if isinstance(ref, int) and not commit.cells[ref].erased:
        return commit.cells[ref].content
    number, commitment = sealed_at(log, lane, commit, ref)
    return read_cells(log, lane.db, {number: commitment}, instead)[number]


def sealed_at(log: Log, lane: Branch, commit: Commit, ref: CellRef) -> tuple[int, bytes]:
    """The number of a cell that a commit names, and its commitment."""
    if isinstance(ref, int):
        return commit.cell + ref, commit.commitment(ref)
    earlier = LogReader(log, lane.db).holding(lane.owner(ref[0]), ref[0])
    assert earlier is not None, "a cell is named after its commit"
    return earlier.cell + ref[1], earlier.commitment(ref[1])


class ForeignCommits(Sequence[Commit]):
    """Commits of a log with their cells, read when they are looked at."""

    def __init__(self, log: Log, ordinals: Sequence[int]) -> None:
        self._log = log
        self._ordinals = ordinals

    def __len__(self) -> int:
        return len(self._ordinals)

    @overload
    def __getitem__(self, index: int) -> Commit: ...
    @overload
    def __getitem__(self, index: slice) -> ForeignCommits: ...
    def __getitem__(self, index: int | slice) -> Commit | ForeignCommits:
        """One commit with its cells, or some of them still unread."""
        if isinstance(index, slice):
            return ForeignCommits(self._log, self._ordinals[index])
        commit = commit_at(self._log, self._ordinals[index])
        numbers = range(commit.cell, commit.cell + commit.cell_count)
        cells = self._log.cells(numbers)
        return msgspec.structs.replace(commit, cells=tuple(cells[number] for number in numbers))


def adopt(engine: Engine, gathering: CommitCollector) -> list[Ingested]:
    """Writes proven sessions with the very commits they have, each whole or not at all.

    Raises ConflictError, before anything is written, where a name is taken by another session or a
    session went on differently here.
    """

    def lacking() -> list[Arrival]:
        places = [standing(engine, gathering, foreign) for foreign in gathering.sessions()]
        return [
            Arrival(gathering.commits(foreign.session, position), session, position)
            for foreign, session, position in places
        ]

    return engine.ingest(lacking)


class IngestProgress(NamedTuple):
    """How far a foreign session is here already: its key (0 where it is not) and position."""

    foreign: ForeignSession
    session: int
    position: int


def standing(engine: Engine, gathering: CommitCollector, foreign: ForeignSession) -> IngestProgress:
    """How far a foreign session is here; raises ConflictError where its name is taken or it went on differently."""
    db = engine.projection.db
    row = db.execute("SELECT session, position FROM sessions WHERE uid = ?", (foreign.uid,)).fetchone()
    if row is None:
        if db.execute("SELECT 1 FROM sessions WHERE name = ?", (foreign.name,)).fetchone() is not None:
            raise ConflictError(
                f"another session is called {foreign.name!r} here, and exact commits keep their name; "
                "import into another store, or without --exact",
                code="name-taken",
            )
        return IngestProgress(foreign, 0, 0)
    session, position = row
    common = min(position, foreign.position)
    mine = hash_at(engine.projection.db, engine.log, session, common)
    if mine is None or mine != hash_at(gathering.views.db, gathering.log, foreign.session, common):
        raise ConflictError(
            f"session {foreign.name!r} went on differently here, somewhere up to position {common}; "
            "import it without --exact, as a session of its own",
            code="diverged",
        )
    return IngestProgress(foreign, session, position)


def hash_at(db: apsw.Connection, log: Log, session: int, position: int) -> bytes | None:
    """The hash of the commit that ends at a position, if one does."""
    commit = LogReader(log, db).ending(session, position)
    return None if commit is None else commit.hash
