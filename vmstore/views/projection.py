"""The fold: views follow the log, each with its position stored beside its rows.

One mechanism serves catch-up, recovery after a crash, rebuild and verify: read the log after a
view's position, hand each mutation to the projectors, store rows and position in one transaction.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import apsw
import msgspec

from vmstore.cells.cell import SALT_BYTES
from vmstore.core.mutation import AnyMutation, CellRef, Open, Pack, Turn, decode
from vmstore.core.page import Origin
from vmstore.errors import CorruptError, StoreError, UnknownError
from vmstore.log.commit import Commit, genesis, relink
from vmstore.log.port import Log
from vmstore.views.calls import Calls
from vmstore.views.commits import Commits
from vmstore.views.lane import Lane
from vmstore.views.lineage import Lineage
from vmstore.views.marks import Marks
from vmstore.views.messages import Messages
from vmstore.views.pages import Pages
from vmstore.views.projector import Fact, Projector
from vmstore.views.residency import Residency
from vmstore.views.sessions import Sessions
from vmstore.views.turns import Turns

PROJECTORS: tuple[Projector, ...] = (
    Sessions(),
    Commits(),
    Turns(),
    Pages(),
    Messages(),
    Calls(),
    Residency(),
    Lineage(),
    Marks(),
)
BATCH = 1000
Progress = Callable[[int, int], None]


def fingerprint(projectors: Sequence[Projector] = PROJECTORS) -> str:
    """Names a projector set: eight hex digits of its names, versions and tables."""
    text = repr([(p.name, p.version, sorted(p.schema.items()), p.indexes) for p in projectors])
    return hashlib.sha256(text.encode()).hexdigest()[:8]


class LogCells:
    """Finds the cells that mutations name, through the log and the commits view."""

    def __init__(self, log: Log, db: apsw.Connection) -> None:
        self._log = log
        self._db = db

    def number(self, session: int, commit: Commit, ref: CellRef) -> int:
        """The log's number of a cell."""
        if isinstance(ref, int):
            return commit.cell + ref
        return self._earlier(session, ref[0])[1] + ref[1]

    def commitment(self, session: int, commit: Commit, ref: CellRef) -> bytes:
        """A cell's commitment."""
        if isinstance(ref, int):
            return commit.commitment(ref)
        ordinal, _ = self._earlier(session, ref[0])
        return self._log.tail(ordinal - 1, 1)[0].commitment(ref[1])

    def content(self, session: int, commit: Commit, ref: CellRef) -> bytes:
        """A cell's bytes; raises CorruptError where they are missing or do not match their commitment."""
        number = self.number(session, commit, ref)
        cell = self._log.cells([number]).get(number)
        if cell is None:
            raise CorruptError(f"cell {number} is missing from the log; run `vmstore verify`")
        if len(cell.salt) != SALT_BYTES or cell.commitment != self.commitment(session, commit, ref):
            raise CorruptError(f"cell {number} does not match its commitment; run `vmstore verify`")
        return cell.content

    def _earlier(self, session: int, position: int) -> tuple[int, int]:
        owner = Lane(self._db, session).owner(position)
        row = self._db.execute(
            "SELECT ordinal, cell FROM commits WHERE session = ? AND last >= ? ORDER BY last LIMIT 1",
            (owner, position),
        ).fetchone()
        assert row is not None, "a commit names cells of earlier commits only"
        return row[0], row[1]


class Moment(NamedTuple):
    """Where a session stands in the fold: turn, call, and the hash its next commit follows."""

    turn: int
    call: int
    hash: bytes


class Projection:
    """The views of one log in one database."""

    def __init__(self, log: Log, db: apsw.Connection, *, projectors: Sequence[Projector] = PROJECTORS) -> None:
        self.log = log
        self.db = db
        self.projectors = projectors
        self.cells = LogCells(log, db)
        self._moments: dict[int, Moment] = {}
        self._reached = 0  # where this fold left the views; another's may have gone on
        self._make()

    def _make(self) -> None:
        if self.db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'positions'").fetchone() is not None:
            return
        with self._transaction():
            if self.db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'positions'").fetchone() is not None:
                return
            self.db.execute("CREATE TABLE positions(view TEXT PRIMARY KEY, ordinal INTEGER, hash BLOB) WITHOUT ROWID")
            for projector in self.projectors:
                projector.create(self.db)
                self.db.execute("INSERT INTO positions VALUES(?, 0, NULL)", (projector.name,))

    def positions(self) -> dict[str, int]:
        """How far each view has followed the log, by ordinal."""
        return dict(self.db.execute("SELECT view, ordinal FROM positions"))

    def _place(self, view: str, ordinal: int, digest: bytes | None) -> None:
        self.db.execute("UPDATE positions SET ordinal = ?, hash = ? WHERE view = ?", (ordinal, digest, view))

    def follows(self) -> bool:
        """Whether these views follow this log: the commit each stands on is the log's."""
        rows: list[Any] = self.db.execute("SELECT DISTINCT ordinal, hash FROM positions").fetchall()
        for ordinal, digest in rows:
            commits = self.log.tail(ordinal - 1, 1) if ordinal else []
            if ordinal and (not commits or commits[0].hash != digest):
                return False
        return True

    def catch_up(self, progress: Progress | None = None, *, upto: int | None = None) -> int:
        """Folds what the log holds beyond the views, up to an ordinal or its end; the ordinal reached."""
        target = self.log.ordinal if upto is None else upto
        position = min(self.positions().values())
        while position < target:
            position = self._step(position, target)
            if progress is not None:
                progress(position, target)
        return position

    def _step(self, position: int, target: int) -> int:
        """Folds one batch, unless another process did; the ordinal reached."""
        with self._transaction():
            now = min(self.positions().values())
            if now != self._reached:
                self._moments.clear()
                self._reached = now
            if now != position:
                return now
            batch = self.log.tail(position, min(BATCH, target - position))
            if not batch:
                raise CorruptError(
                    f"the log ends at ordinal {position} although it counts {target}; run `vmstore verify`"
                )
            self._apply(batch, self.projectors)
            self._reached = batch[-1].ordinal
            return self._reached

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """One transaction that takes the write lock at its beginning."""
        try:
            self.db.execute("BEGIN IMMEDIATE")
            yield
            self.db.execute("COMMIT")
        except (apsw.FullError, apsw.IOError) as error:
            self._roll_back()
            raise StoreError(
                f"{self.db.filename} cannot be written ({error}); make room, or open the store with mode 'r'"
            ) from error
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        self._moments.clear()
        self._reached = 0
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")

    def rebuild(self, view: str | None = None, progress: Progress | None = None) -> None:
        """Forgets one view, or all, and folds the log again from its start."""
        chosen = [p for p in self.projectors if view in (None, p.name)]
        if not chosen:
            names = ", ".join(p.name for p in self.projectors)
            raise UnknownError(f"there is no view {view!r}; the views are {names}")
        if view is not None:
            self.catch_up(progress)
        target = self.log.ordinal
        with self._transaction():
            for projector in chosen:
                projector.drop(self.db)
                projector.create(self.db)
                self._place(projector.name, 0, None)
            self._moments.clear()
            for batch in self._batches(target):
                self._apply(batch, chosen)
                if progress is not None:
                    progress(batch[-1].ordinal, target)

    def _batches(self, target: int) -> Iterator[list[Commit]]:
        position = 0
        while position < target:
            batch = self.log.tail(position, BATCH)
            yield batch
            position = batch[-1].ordinal

    def _apply(self, batch: Sequence[Commit], projectors: Sequence[Projector]) -> None:
        """Folds commits into some views and stores their position, in one transaction."""
        handlers = _handlers(projectors)
        for commit in batch:
            self._fold(commit, projectors, handlers)
        for projector in projectors:
            self._place(projector.name, batch[-1].ordinal, batch[-1].hash)

    def _fold(self, commit: Commit, projectors: Sequence[Projector], handlers: dict[str, list[Any]]) -> None:
        try:
            mutations: list[AnyMutation] = decode(commit.body)
            turn, call, previous = self.moment(commit.session, mutations[0])
            sound = relink(previous, commit) == commit.hash
        except (ValueError, IndexError, struct.error) as error:
            raise CorruptError(f"commit {commit.ordinal} cannot be read ({error}); run `vmstore verify`") from error
        if not sound:
            raise CorruptError(f"commit {commit.ordinal} does not match its hash; run `vmstore verify`")
        start = Fact(commit, commit.first, turn, call, self.cells)
        for projector in projectors:
            projector.on_commit(self.db, start, mutations)
        for position, mutation in enumerate(mutations, commit.first):
            if isinstance(mutation, Turn):
                turn = mutation.number
            elif isinstance(mutation, Pack):
                call = mutation.call
            fact = Fact(commit, position, turn, call, self.cells)
            for handler in handlers.get(mutation.kind, ()):
                handler(self.db, fact, mutation)
        self._moments[commit.session] = Moment(turn, call, commit.hash)

    def moment(self, session: int, first: AnyMutation) -> Moment:
        """What is in force before a commit; a fork goes on with its parent's."""
        if isinstance(first, Open):
            return self._fork_moment(first) if first.origin == Origin.FORK else Moment(0, 0, genesis(first.uid))
        if session not in self._moments:
            row = self.db.execute("SELECT turns, calls, hash FROM sessions WHERE session = ?", (session,)).fetchone()
            if row is None:
                raise ValueError("it belongs to a session that no commit opens")
            self._moments[session] = Moment(*row)
        return self._moments[session]

    def _fork_moment(self, opening: Open) -> Moment:
        parent = self.db.execute("SELECT session FROM sessions WHERE uid = ?", (opening.parent,)).get
        if parent is None:
            raise ValueError("it forks from a session that is not there")
        lane, position = Lane(self.db, parent), opening.parent_position
        row = self.db.execute(
            "SELECT ordinal FROM commits WHERE session = ? AND last = ?", (lane.owner(position), position)
        ).fetchone()
        if row is None:
            raise ValueError(f"it forks at position {position}, where no commit ends")
        return Moment(*moment_at(lane, position), self.log.tail(row[0] - 1, 1)[0].hash)

    @contextmanager
    def moment_held(self) -> Iterator[int]:
        """The ordinal the views follow to, while they stand still for this reader."""
        self.db.execute("BEGIN")
        try:
            yield min(self.positions().values())
        finally:
            self.db.execute("COMMIT")

    def dump(self, view: str) -> Iterator[bytes]:
        """The view's rows in canonical form: one line a row, tables and rows in order."""
        for projector in self.projectors:
            if projector.name == view:
                for table in sorted(projector.schema):
                    columns = [row[1] for row in self.db.execute(f"PRAGMA table_info({table})")]
                    for row in self.db.execute(f"SELECT * FROM {table} ORDER BY {', '.join(columns)}"):
                        yield table.encode() + b" " + msgspec.json.encode(row)

    def digest(self, view: str) -> bytes:
        """SHA-256 over the canonical dump of a view."""
        digest = hashlib.sha256()
        for line in self.dump(view):
            digest.update(line + b"\n")
        return digest.digest()


def _handlers(projectors: Sequence[Projector]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for projector in projectors:
        for kind, handler in projector.handlers().items():
            found.setdefault(kind, []).append(handler)
    return found


def moment_at(lane: Lane, position: int) -> tuple[int, int]:
    """The turn and the call in force at a position; 0 before the first."""
    found = []
    for table, column in (("turns", "turn"), ("calls", "call")):
        number = None
        for stretch in lane.upto(position):
            number = lane.db.execute(
                f"SELECT {column} FROM {table} WHERE session = ? AND position <= ? ORDER BY position DESC LIMIT 1",
                (stretch.session, stretch.high),
            ).get
            if number is not None:
                break
        found.append(number or 0)
    return found[0], found[1]
