"""The views of one log in one database, each with its position stored beside its rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import msgspec

from vmstore.cells import schema
from vmstore.core.erasure import Erase
from vmstore.core.system.logger import notices
from vmstore.errors import CorruptError, LockedError, StoreError, UnknownError
from vmstore.log.commit import Commit
from vmstore.log.port import Log
from vmstore.views.applier import Applier
from vmstore.views.erased_cells import Erasures
from vmstore.views.projector import Projector, put
from vmstore.views.projectors.calls import CallsProjector
from vmstore.views.projectors.commits import CommitsProjector
from vmstore.views.projectors.decisions import DecisionsProjector
from vmstore.views.projectors.erasures import ErasuresProjector
from vmstore.views.projectors.facts import FactsProjector
from vmstore.views.projectors.lineage import LineageProjector
from vmstore.views.projectors.marks import MarksProjector
from vmstore.views.projectors.messages import MessagesProjector
from vmstore.views.projectors.outcomes import OutcomesProjector
from vmstore.views.projectors.pages import PagesProjector
from vmstore.views.projectors.redactions import RedactionsProjector
from vmstore.views.projectors.residency import ResidencyProjector
from vmstore.views.projectors.sessions import SessionsProjector
from vmstore.views.projectors.tags import TagsProjector
from vmstore.views.projectors.tools import ToolsProjector
from vmstore.views.projectors.turns import TurnsProjector
from vmstore.views.projectors.vectors import VectorsProjector
from vmstore.views.projectors.work import WorkProjector

if TYPE_CHECKING:
    from vmstore.views.fold import Fold

PROJECTORS: tuple[type[Projector], ...] = (
    SessionsProjector,
    CommitsProjector,
    TurnsProjector,
    PagesProjector,
    MessagesProjector,
    CallsProjector,
    ResidencyProjector,
    DecisionsProjector,
    LineageProjector,
    MarksProjector,
    ErasuresProjector,
    RedactionsProjector,
    VectorsProjector,
    FactsProjector,
    TagsProjector,
    ToolsProjector,
    OutcomesProjector,
    WorkProjector,
)
_POSITIONS = "CREATE TABLE positions(view TEXT PRIMARY KEY, ordinal INTEGER, hash BLOB) WITHOUT ROWID"
BATCH = 5000  # commits
MUTATIONS_MAX = 32_000  # of a batch, with what was read at once beyond

assert len({p.name for p in PROJECTORS}) == len(PROJECTORS), "a view's position is stored under its name"
assert len({table for p in PROJECTORS for table in p.schema}) == sum(len(p.schema) for p in PROJECTORS), (
    "a table is written by one projector: a rebuild of one view drops its tables"
)
assert all(p.inserts.keys() <= p.schema.keys() for p in PROJECTORS), "a projector says how its own tables are written"
assert all(p.selects.keys().isdisjoint(p.schema) for p in PROJECTORS), "what is read as a table is stored in others"

IN_MEMORY_MAX = 512 << 20  # of a file that is left; SQLite holds no more than twice that in memory
ROOM_BYTES, ROOM_RATIO = 16 << 20, 32  # what views in memory may take of a log's own, and times its length
_WAL_MARKS = slice(18, 20)  # of a file's header: what is in memory has no WAL
Progress = Callable[[int, int], None]
_TABLES = "SELECT type, name, sql FROM sqlite_schema"


def fingerprint(projectors: Sequence[type[Projector]] = PROJECTORS) -> str:
    """Names a projector set: eight hex digits of its names, versions and tables."""
    text = repr(
        [(p.name, p.version, sorted(p.schema.items()), sorted(p.selects.items()), p.indexes) for p in projectors]
    )
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@cache
def _made() -> frozenset[str]:
    return schema.kept([_POSITIONS, *(statement for projector in PROJECTORS for statement in projector.statements())])


def stranger(db: apsw.Connection) -> str | None:
    """Names an object in a views file that no projector makes; None where there is none."""
    found = schema.stranger(db, _made())
    return None if found is None else f"holds the {found[0]} {found[1]!r}, which no view makes"


def room_of(*places: Path) -> Callable[[], int]:
    """How many bytes views in memory may take whose log lies in some files and folders, as long as these are then.

    A log of a few bytes can name one long text again and again, and each name is a row.
    """

    def room() -> int:
        files = [file for place in places for file in (place.iterdir() if place.is_dir() else [place])]
        return ROOM_BYTES + ROOM_RATIO * sum(file.stat().st_size for file in files if file.exists())

    return room


class Projection:
    """Brings views to the end of their log, and says how far they are."""

    def __init__(
        self,
        log: Log,
        db: apsw.Connection,
        *,
        projectors: Sequence[type[Projector]] = PROJECTORS,
        applier: Applier | None = None,
        room: Callable[[], int] | None = None,
    ) -> None:
        self.log = log
        self.db = db
        self.projectors = projectors
        assert applier is None or db.filename, "what is in memory is shared with no process"
        self._applier = applier  # where others fold into the same file
        self._room = room  # bytes that views in memory may take
        self.erasures = Erasures(log)
        self._knew = 0  # up to where erasures were known when these views were folded from the start
        self._reached = 0  # where this fold left the views; another's may have gone on
        self.left: Path | None = None  # the file, where these views went on in memory
        if not db.filename:  # what is in memory leaves it nowhere, not to be sorted either
            db.execute("PRAGMA temp_store = MEMORY")
        self._make()

    @cached_property
    def fold(self) -> Fold:
        """The projectors at work, made for the first who folds: questions of views that are whole need none."""
        from vmstore.views.fold import Fold

        return Fold(self.log, self.db, self.projectors, self.erasures)

    def _forget(self) -> None:
        """Drops what the fold has in memory."""
        if "fold" in self.__dict__:
            self.fold.forget()

    def _make(self) -> None:
        if self.db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'positions'").fetchone() is not None:
            return
        with self._transaction():
            if self.db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'positions'").fetchone() is not None:
                return
            self.db.execute(_POSITIONS)
            for projector in self.projectors:
                projector.create(self.db)
                self.db.execute("INSERT INTO positions VALUES(?, 0, NULL)", (projector.name,))

    def positions(self) -> dict[str, int]:
        """How far each view has followed the log, by ordinal."""
        return dict(self.db.execute("SELECT view, ordinal FROM positions"))

    @property
    def ordinal(self) -> int:
        """How far all of them have followed the log."""
        return int(self.db.execute("SELECT min(ordinal) FROM positions").get)

    @property
    def last_erasure(self) -> int:
        """The ordinal of the last erasure they hold; 0 where there was none."""
        return int(self.db.execute("SELECT coalesce(max(ordinal), 0) FROM erasures").get)

    def close(self) -> None:
        """Closes the database and the lock beside it; what could not be tidied up the log gives back."""
        with suppress(apsw.Error):
            self.db.close()
        if self._applier is not None:
            self._applier.close()

    def connections(self) -> list[apsw.Connection]:
        """The views' database."""
        return [self.db]

    def spare(self) -> apsw.Connection:
        """An empty database beside this one: in memory where this is, else a file that goes with it."""
        return self._bounded(apsw.Connection("" if self.db.filename else ":memory:"))

    def _bounded(self, db: apsw.Connection) -> apsw.Connection:
        """A database that takes no more memory than it may: a log of a few bytes can name long texts many times."""
        if self._room is not None:
            db.execute(f"PRAGMA max_page_count = {self._room() // int(db.execute('PRAGMA page_size').get)}")
        return db

    def follows(self) -> bool:
        """Whether these views follow this log: the commit each stands on is the log's."""
        rows: list[Any] = self.db.execute("SELECT DISTINCT ordinal, hash FROM positions").fetchall()
        for ordinal, digest in rows:
            commits = self.log.tail(ordinal - 1, 1) if ordinal else []
            if ordinal and (not commits or commits[0].hash != digest):
                return False
        return True

    def sound(self) -> bool:
        """Whether the tables are those that their projectors make, whatever stands in them."""
        fresh = Projection(self.log, apsw.Connection(":memory:"), projectors=self.projectors)
        try:
            return set(self.db.execute(_TABLES)) == set(fresh.db.execute(_TABLES))
        except apsw.Error:
            return False
        finally:
            fresh.close()

    def catch_up(self, progress: Progress | None = None, *, upto: int | None = None) -> int:
        """Sees that the views hold what the log does, up to an ordinal or its end; the ordinal reached.

        Of several processes one folds and the others wait for its rows. Views that are held stay
        where they are.
        """
        if self.db.in_transaction:
            return self.ordinal
        target = self.log.ordinal if upto is None else upto
        if self.ordinal < target and self._elected(target):
            try:
                while self.ordinal < target:
                    self._moved(self._step(target), target, progress)
            finally:
                if self._applier is not None:
                    self._applier.release()
        return self.ordinal

    def _elected(self, target: int) -> bool:
        """Whether this process folds; waits until it does, or another has."""
        try:
            return self._applier is None or self._applier.until(lambda: self.ordinal >= target)
        except LockedError as error:
            self._leave(error)
            return True
        except OSError as error:
            raise StoreError(
                f"{self.db.filename} cannot be locked ({error}); mend the disk, or open the store with mode 'r'",
                code="not-lockable",
            ) from error

    def _leave(self, error: LockedError) -> None:
        """Continues in memory, with what the file holds, until these views are closed: the folding process hangs.

        The connection stays the same, for who has it.
        """
        try:
            image = bytearray(self.db.serialize("main"))
            if len(image) > IN_MEMORY_MAX:
                raise error
            image[_WAL_MARKS] = b"\1\1"
            path = Path(self.db.filename)
            self.db.deserialize("main", bytes(image))
        except apsw.Error as failed:  # somebody reads row by row just now
            raise error from failed
        notices().warning("%s; the views are followed in memory until the store is closed", error)
        if self._applier is not None:
            self._applier.close()
        self.left, self._applier, self._reached = path, None, 0
        self._forget()

    def _moved(self, position: int, target: int, progress: Progress | None) -> None:
        if self._applier is not None:
            self._applier.moved(position)
        if progress is not None:
            progress(position, target)

    def _step(self, target: int) -> int:
        """Folds one batch; the ordinal reached."""
        self._bounded(self.db)
        with self._transaction():
            position = self.ordinal
            if position != self._reached:  # another folded since
                self._forget()
            self._reached = self._fold(position, target)
            return self._reached

    def _fold(self, position: int, target: int) -> int:
        """Folds the next batch of the log and stores how far it went; the ordinal reached."""
        from vmstore.views.dispatch import decoded, uncollected

        assert self.db.in_transaction, "rows and the position they stand at become durable together"
        batch = self._read(position, min(BATCH, target - position))
        if not batch:
            raise CorruptError(
                f"the log ends at ordinal {position} although it counts {target}; run `vmstore verify`", code="log-cut"
            )
        last = batch[-1]
        with uncollected():
            read = [(commit, decoded(commit)) for commit in batch]
        if last.ordinal > self._knew and any(Erase in set(map(type, mutations)) for _, mutations in read):
            return self._anew(target)
        self.fold.batch(read)
        self.db.execute("UPDATE positions SET ordinal = ?, hash = ?", (last.ordinal, last.hash))
        return last.ordinal

    def _anew(self, target: int, progress: Progress | None = None) -> int:
        """Folds from the start, knowing what was erased, so that nothing of it comes into a row; the ordinal reached.

        Rows of before are overwritten with zeros where they lie.
        """
        assert self.db.in_transaction, "nobody sees the tables while they are empty"
        self._knew = self.erasures.follow()
        if self.erasures.numbers:
            self.db.execute("PRAGMA secure_delete = ON").fetchall()
        for projector in self.projectors:
            projector.drop(self.db)
            projector.create(self.db)
        self._forget()
        self.db.execute("UPDATE positions SET ordinal = 0, hash = NULL")
        position = 0
        while position < target:
            position = self._fold(position, target)
            self._moved(position, target, progress)
        return position

    def _read(self, position: int, limit: int) -> list[Commit]:
        """Up to `limit` commits after a position, fewer where they are large."""
        found: list[Commit] = []
        mutations, step = 0, 16
        while len(found) < limit and mutations < MUTATIONS_MAX:
            read = self.log.tail(position + len(found), min(step, limit - len(found)))
            if not read:
                break
            found += read
            mutations += sum(commit.count for commit in read)
            step = 1 + (MUTATIONS_MAX - mutations) * len(found) // max(mutations, 1)
        return found

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """One transaction that takes the write lock at its beginning."""
        try:
            self.db.execute("BEGIN IMMEDIATE")
            yield
            self.db.execute("COMMIT")
        except (apsw.FullError, apsw.IOError, apsw.ReadOnlyError) as error:
            self._roll_back()
            raise StoreError(self._unwritable(error)) from error
        except BaseException:
            self._roll_back()
            raise

    def _unwritable(self, error: apsw.Error) -> str:
        """The error where a fold cannot be written."""
        if self.db.filename:
            return f"{self.db.filename} cannot be written ({error}); make room, or open the store with mode 'r'"
        room = "" if self._room is None else f" within {self._room() >> 20} MiB, many times the length of their log"
        return (
            f"the views do not fit into memory{room} ({error}): it names long texts again and again; "
            "where it is a store of yours, open it for writing, which keeps them in a file"
        )

    def _roll_back(self) -> None:
        self._forget()
        self._reached = 0
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")

    def rebuild(self, view: str | None = None, progress: Progress | None = None) -> None:
        """Folds the log again from its start, and puts one view, or all, in the place of what was there."""
        chosen = [p for p in self.projectors if p.name == view]
        if view is None:
            self._rebuild(progress)
        elif chosen:
            self._replace(chosen[0], progress)
        else:
            names = ", ".join(p.name for p in self.projectors)
            raise UnknownError(f"there is no view {view!r}; the views are {names}", code="no-view")

    def _rebuild(self, progress: Progress | None) -> None:
        with self.alone(), self._transaction():
            self._reached = self._anew(self.log.ordinal, progress)

    def _replace(self, projector: type[Projector], progress: Progress | None) -> None:
        """Puts a view folded beside the others in its place: a fold is of all views, or of none."""
        self.catch_up()
        beside = Projection(self.log, self.spare(), projectors=self.projectors)
        try:
            with self.alone():
                target = self.ordinal
                beside.catch_up(lambda done, _: self._moved(done, target, progress), upto=target)
                with self._transaction():
                    projector.drop(self.db)
                    projector.create(self.db)
                    for table in projector.schema:
                        rows = beside.db.execute(f"SELECT * FROM {table}")
                        while some := list(islice(rows, BATCH)):
                            put(self.db, f"INSERT INTO {table}", some)
        finally:
            beside.close()

    def alone(self) -> AbstractContextManager[None]:
        """Keeps other processes from folding."""
        return nullcontext() if self._applier is None else self._applier.taken()

    @contextmanager
    def moment_held(self) -> Iterator[int]:
        """The ordinal the views follow to, while they stand still for this reader; within itself the same one."""
        outer = self.db.in_transaction
        if not outer:
            self.db.execute("BEGIN")
        try:
            yield self.ordinal
        finally:
            if not outer:
                self.db.execute("COMMIT")

    @contextmanager
    def now_held(self) -> Iterator[int]:
        """A moment held that has all the log does; within another the same one."""
        if self.db.in_transaction:
            yield self.ordinal
            return
        target = self.log.ordinal
        with self.moment_held() as ordinal:
            if ordinal >= target:
                yield ordinal
                return
        self.catch_up(upto=target)
        with self.moment_held() as ordinal:
            yield ordinal

    def rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a table in the order of their columns, which begin with its key."""
        columns = [row[1] for row in self.db.execute(f"PRAGMA table_info({table})")]
        return self.db.execute(f"SELECT * FROM {table} ORDER BY {', '.join(columns)}")

    def dump(self, view: str) -> Iterator[bytes]:
        """The view's rows in canonical form: one line a row, tables and rows in order."""
        for projector in self.projectors:
            if projector.name == view:
                for table in sorted(projector.schema):
                    for row in self.rows(table):
                        yield table.encode() + b" " + msgspec.json.encode(row)

    def digest(self, view: str) -> bytes:
        """SHA-256 over the canonical dump of a view."""
        digest = hashlib.sha256()
        for line in self.dump(view):
            digest.update(line + b"\n")
        return digest.digest()
