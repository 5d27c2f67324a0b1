"""Takes in the commits of another log: proven first in a log of their own, then adopted as they are, or told anew.

Adopted, a session keeps its positions, salts and hashes; a session that is here already gains what
it lacks, if its past is the same. Told anew, the same mutations become a new session of this log,
with its own ids, salts and hashes. Either way a session is written whole, in one append.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, overload

import apsw
import msgspec

from vmstore.core.asof import Position
from vmstore.core.mutation import (
    AnyMutation,
    CellRef,
    Compress,
    Create,
    Erase,
    Known,
    Open,
    Pack,
    Unknown,
    Update,
    decode,
    sealed_again,
)
from vmstore.core.page import Origin
from vmstore.engine.doors import resized
from vmstore.engine.gate import Engine
from vmstore.engine.head import Head
from vmstore.engine.lookups import ViewLookups
from vmstore.engine.opening import Opening
from vmstore.engine.verify import Counts, Finding, verify
from vmstore.errors import ConflictError, ErasedError, InputError
from vmstore.log.commit import Commit
from vmstore.log.port import Log
from vmstore.views.context import Instead, read_cells
from vmstore.views.lane import Lane
from vmstore.views.moment import basis
from vmstore.views.projection import Progress, Projection
from vmstore.views.residency import resident_at

RUN_BYTES = 4 << 20
RUN_COMMITS = 500


class Adopted(NamedTuple):
    """What became of a session: its key in this log and how many commits were new."""

    session: int
    commits: int


class Foreign(NamedTuple):
    """A session of the log it was proven in."""

    session: int
    uid: bytes
    name: str
    position: int
    hash: bytes
    hidden: bool


class Gathering:
    """Commits that are looked at in a log of their own before anything of them is written to another."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._keys: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._name = ""
        self._run: list[Commit] = []
        self._bytes = 0
        self.views = Projection(log, apsw.Connection(":memory:"))

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

    def sessions(self) -> list[Foreign]:
        """The sessions taken in, parents before their forks."""
        sql = "SELECT session, uid, name, position, hash, hidden FROM sessions ORDER BY session"
        return [Foreign(*row) for row in self.views.db.execute(sql)]

    def lane(self, foreign: Foreign) -> Lane:
        """Who wrote what of a session."""
        return Lane(self.views.db, foreign.session)

    def commits(self, session: int, after: int = 0) -> Commits:
        """A session's commits beyond a position."""
        sql = "SELECT ordinal FROM commits WHERE session = ? AND last > ? ORDER BY last"
        return Commits(self.log, [row[0] for row in self.views.db.execute(sql, (session, after))])


def content_of(log: Log, lane: Lane, commit: Commit, ref: CellRef, instead: Instead | None = None) -> bytes:
    """The bytes of a cell that a commit, read with its cells, names: its own, or one of an earlier commit."""
    if isinstance(ref, int):
        if not commit.cells[ref].erased:
            return commit.cells[ref].content
        return read_cells(log, lane.db, {commit.cell + ref: None}, instead)[commit.cell + ref]
    ordinal = lane.db.execute(
        "SELECT ordinal FROM commits WHERE session = ? AND last >= ? ORDER BY last LIMIT 1",
        (lane.owner(ref[0]), ref[0]),
    ).get
    earlier = log.tail(ordinal - 1, 1)[0]
    number = earlier.cell + ref[1]
    return read_cells(log, lane.db, {number: earlier.commitment(ref[1])}, instead)[number]


class Commits(Sequence[Commit]):
    """Commits of a log with their cells, read when they are looked at."""

    def __init__(self, log: Log, ordinals: Sequence[int]) -> None:
        self._log = log
        self._ordinals = ordinals

    def __len__(self) -> int:
        return len(self._ordinals)

    @overload
    def __getitem__(self, index: int) -> Commit: ...
    @overload
    def __getitem__(self, index: slice) -> Commits: ...
    def __getitem__(self, index: int | slice) -> Commit | Commits:
        """One commit with its cells, or some of them still unread."""
        if isinstance(index, slice):
            return Commits(self._log, self._ordinals[index])
        commit = self._log.tail(self._ordinals[index] - 1, 1)[0]
        numbers = range(commit.cell, commit.cell + commit.cell_count)
        cells = self._log.cells(numbers)
        return msgspec.structs.replace(commit, cells=tuple(cells[number] for number in numbers))


def adopt(engine: Engine, gathering: Gathering) -> list[Adopted]:
    """Writes proven sessions with the very commits they have, each whole or not at all.

    Raises ConflictError, before anything is written, where a name is taken by another session or a
    session went on differently here.
    """
    new: Counter[int] = Counter()
    while True:
        seen = engine.follow()
        there = [_standing(engine, gathering, foreign) for foreign in gathering.sessions()]
        try:
            _write(engine, gathering, there, seen, new)
        except ConflictError:  # another writer was first: look again at what is here
            if engine.log.ordinal == seen:
                raise
            continue
        engine.follow()
        return [_adopted(engine, standing.foreign, new) for standing in there]


def _adopted(engine: Engine, foreign: Foreign, new: Counter[int]) -> Adopted:
    session = engine.projection.db.execute("SELECT session FROM sessions WHERE uid = ?", (foreign.uid,)).get
    return Adopted(int(session), new[foreign.session])


class _Standing(NamedTuple):
    """How far a foreign session is here already: its key (0 where it is not) and position."""

    foreign: Foreign
    session: int
    position: int


def _standing(engine: Engine, gathering: Gathering, foreign: Foreign) -> _Standing:
    db = engine.projection.db
    row = db.execute("SELECT session, position FROM sessions WHERE uid = ?", (foreign.uid,)).fetchone()
    if row is None:
        if db.execute("SELECT 1 FROM sessions WHERE name = ?", (foreign.name,)).fetchone() is not None:
            raise ConflictError(
                f"another session is called {foreign.name!r} here, and exact commits keep their name; "
                "import into another store, or without --exact"
            )
        return _Standing(foreign, 0, 0)
    session, position = row
    common = min(position, foreign.position)
    mine = hash_at(engine.projection.db, engine.log, session, common)
    if mine is None or mine != hash_at(gathering.views.db, gathering.log, foreign.session, common):
        raise ConflictError(
            f"session {foreign.name!r} went on differently here, somewhere up to position {common}; "
            "import it without --exact, as a session of its own"
        )
    return _Standing(foreign, session, position)


def hash_at(db: apsw.Connection, log: Log, session: int, position: int) -> bytes | None:
    """The hash of the commit that ends at a position, if one does."""
    ordinal = db.execute("SELECT ordinal FROM commits WHERE session = ? AND last = ?", (session, position)).get
    return None if ordinal is None else log.tail(ordinal - 1, 1)[0].hash


def _write(engine: Engine, gathering: Gathering, there: Iterable[_Standing], seen: int, new: Counter[int]) -> None:
    if engine.warden is not None:
        engine.warden.let((), charter=False)
    for foreign, session, position in there:
        commits = gathering.commits(foreign.session, position)
        if commits:
            seen = engine.log.append(commits, session, position, after=seen, seen=seen, dense=True)[-1].ordinal
            new[foreign.session] += len(commits)


Hide = Callable[[bytes], bytes]
"""What is to be seen of the bytes of a cell."""


def tell_anew(
    engine: Engine, gathering: Gathering, foreign: Foreign, opening: Opening, hide: Hide | None = None
) -> Adopted:
    """Writes a proven session's mutations as a new session that `opening` begins, with this log's ids and salts.

    Where only what `hide` leaves is told, request ids are left out too: their digests let guesses be tried.
    """
    commits, lane = gathering.commits(foreign.session), gathering.lane(foreign)
    batch = engine.begin(opening, commits[0].at)
    batch.passing = None  # what is told anew passed the door where it was told first, and its records are here
    if opening.origin is Origin.FORK:
        inherit(engine, batch.head, opening)
    for commit in commits:
        if commit.request >= 0 and hide is None:
            request_id, _, payload = commit.cells[commit.request].content.rpartition(b"\n")
            batch.request(request_id.decode(), bytes.fromhex(payload.decode()))

        sizes: dict[CellRef, tuple[int, int]] = {}  # of cells, before and as they are told

        def again(ref: CellRef, commit: Commit = commit, sizes: dict[CellRef, tuple[int, int]] = sizes) -> CellRef:
            content = content_of(gathering.log, lane, commit, ref)
            shown = content if hide is None else hide(content)
            made = batch.cell(shown)
            sizes[made] = len(content), len(shown)
            return made

        for mutation in decode(commit.body):
            if not isinstance(mutation, Open):
                told: Any = sealed_again(_writable(mutation, foreign), again)
                if isinstance(told, Pack):  # the leaves of its root name the session that made each page
                    totals = batch.head.foresee(told.entered, told.left)
                    told = msgspec.structs.replace(told, root=totals.root, tokens=totals.tokens)
                elif hide is not None and isinstance(told, Create | Update | Compress):
                    told = resized(told, *sizes.get(told.content or 0, (0, 0)))
                batch.add(told)
        batch.end(commit.at)
    stored = batch.commit(commits[-1].at, dense=True)
    engine.follow()
    return Adopted(stored[-1].session, len(commits))


class _Inherited(ViewLookups):
    """What a fork finds of its parent before it is in the views itself."""

    def __init__(self, db: apsw.Connection, parent: int, position: int, uid: bytes) -> None:
        super().__init__(db, parent)
        self.upto = position
        self._own = uid

    def uid(self, page: int) -> bytes:
        """The uid of the session that created a page: the fork's own beyond the fork point."""
        return self._own if page > self.upto else super().uid(page)


def inherit(engine: Engine, head: Head, opening: Opening) -> None:
    """Gives the head of a fork what its parent's views hold up to the fork point."""
    db, position = engine.projection.db, opening.parent_position
    lookups = _Inherited(db, opening.parent, position, head.uid)
    head.lookups = lookups
    moment = basis(lookups.lane, Position(position))
    head.turn, head.call = moment.turn, moment.call
    head.restore(resident[:4] for resident in resident_at(lookups.lane, position))


def _writable(mutation: AnyMutation, foreign: Foreign) -> Known:
    if isinstance(mutation, Erase):
        raise ErasedError(f"session {foreign.name!r} records an erasure, which holds for the cells it names alone")
    if isinstance(mutation, Unknown):
        raise InputError(
            f"session {foreign.name!r} holds a {mutation.kind}, which this version cannot write; import it with --exact"
        )
    return mutation


def opening_of(gathering: Gathering, foreign: Foreign, keys: dict[bytes, int], name: str, source: str) -> Opening:
    """How a foreign session began, told of a new one; `keys` are this log's sessions by foreign uid."""
    commit = gathering.commits(foreign.session)[0]
    opened = decode(commit.body)[0]
    assert isinstance(opened, Open), "a session begins with its open"
    lane = gathering.lane(foreign)
    meta = b"{}" if opened.meta is None else content_of(gathering.log, lane, commit, opened.meta)
    return Opening(
        name,
        msgspec.json.decode(meta),
        origin=Origin(opened.origin),
        parent=keys.get(opened.parent or b"", 0),
        parent_position=opened.parent_position,
        source=source,
        spawned_by=opened.spawned_by,
    )
