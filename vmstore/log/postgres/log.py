"""The log in PostgreSQL: one row a commit, positions from the row of the namespace in the same statement.

An append names the end of the log that it was decided at, and is refused by the server where that moved: then what
came is read, and the append is checked against it and tried again. Whether a commit whose answer was lost is there is
asked by its hash, with the namespace's row locked, so that a statement that still runs there has ended: nothing is
lost and nothing comes twice. Appends that are handed over together share one statement and its flush.

Where there is an object store, long contents are put there first. An append that brings some also states how often
strays were deleted there before it put them, and is refused where that changed: then it looks for them again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from io import BytesIO
from typing import Any

import psycopg
from msgspec import Struct

from vmstore.cells.cell import Cell
from vmstore.core.system.safe_files import Stray
from vmstore.core.system.waits import WAIT_S, seconds
from vmstore.errors import CorruptError, LockedError, OvertakenError, ReadOnlyError, StoreError
from vmstore.log.commit import Commit
from vmstore.log.frame import RAW, Frame, named, opened
from vmstore.log.frame_encryption import PLAIN, NoEncryption
from vmstore.log.heads import Heads
from vmstore.log.port import (
    NOTHING,
    POLL_S,
    Append,
    ChainHead,
    CompactionResult,
    DestroyResult,
    OpenCell,
    Progress,
    check_expected,
    check_seen,
)
from vmstore.log.postgres.cell_objects import CellObjects, not_named
from vmstore.log.postgres.connection import AGAIN, PAUSE_S, PAUSE_S_MAX, Connection, Params, Row, pause_for
from vmstore.log.postgres.contents import NEVER, ContentWriter, Pending
from vmstore.log.postgres.destruction import Destroyer
from vmstore.log.postgres.lease import Lease
from vmstore.log.postgres.notify import Listener, Notifier, channel_of
from vmstore.log.postgres.tables import COMMIT_TYPES, FRAME_TYPES, OBJECTS, Statements
from vmstore.log.rows import commit_of, frame_of, row_of

TRIES = 3  # without a lock: who is overtaken more often waits for the row
IDLE_S = 60  # a writer that stops while it holds the row is ended by the server
READ_CELLS = 64
BELIEVED_S = 0.005  # a head that a writer begins with; what it decides is held against the log's end
COMMITMENTS = 8  # of the columns of a commit


class _Laid(Struct):
    """Rows for the appends that fit after an ordinal and a cell: commits, frames, and how many cells these hold."""

    ordinal: int
    cell: int
    commits: list[Commit]
    frames: list[Frame]
    cells: int = 0


class PostgresLog:
    """The log of one namespace; each handle has a connection to write by and one to read by."""

    def __init__(
        self, conninfo: str, address: str, namespace: str, sql: Statements, *, me: str, readonly: bool = False,
        wait_s: float | None = WAIT_S, objects: CellObjects | None = None, notify: bool = False,
        vault: NoEncryption = PLAIN,
    ) -> None:  # fmt: skip
        self.address = address
        self.objects = objects
        self.vault = vault
        self._contents = ContentWriter(objects, vault, self._began)
        self.wait_s = wait_s
        self._namespace = namespace
        self._sql = sql
        self._me = me
        self._readonly = readonly
        self._writing = Connection(conninfo, address, wait_s)
        self._reading = Connection(conninfo, address, wait_s)
        self._turn = threading.RLock()  # over what follows: one thread of this handle writes at a time
        self._locked = False  # the row of the namespace is locked, by a transaction that is open
        self._deciding = 0
        self._decided_at: int | None = None  # what is decided within may not be overtaken
        self._writer = Lease(self._writing, sql.holder, sql.lease, sql.release, self._params(), wait_s)
        self._destroyer = Lease(
            self._reading, sql.destroyer, sql.destroy_lease, sql.destroy_release, self._params(), wait_s
        )
        self._destruction = Destroyer(self._writing, sql, self._params(), objects, vault)
        ordinal, self._cell, self._swept, uid = self._standing()
        self._notifier = Notifier(conninfo, address, channel_of(uid)) if notify and not readonly else None
        self._listener = Listener(conninfo, channel_of(uid)) if notify else None
        self._heads = Heads(ordinal)
        self._known = threading.Lock()  # over the heads and the last cell
        self._looked_s = 0.0  # when the log was last known to end where the heads do

    def _params(self, **more: Any) -> dict[str, Any]:
        return {"namespace": self._namespace, "me": self._me, **more}

    def _standing(self) -> tuple[int, int, int, bytes]:
        rows = self._reading.rows(self._sql.standing, self._params())
        if not rows:
            raise StoreError(f"{self.address} has no namespace {self._namespace!r} any more", code="no-namespace")
        return int(rows[0][0]), int(rows[0][1]), int(rows[0][2]), bytes(rows[0][3])

    def _began(self, session: int) -> tuple[bytes, int]:
        rows = self._reading.rows(self._sql.began, self._params(session=session))
        return (bytes(rows[0][0]), int(rows[0][1])) if rows else (b"", RAW)

    # ---- writing

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
        """Stores commits of one session, all or none, durable before it returns."""
        (outcome,) = self.together([Append(commits, session, expected, after, seen, dense, tip)])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def together(self, appends: Sequence[Append]) -> list[list[Commit] | Exception]:
        """Stores several appends with one flush, each all or none, in their order; what came of each."""
        if self._readonly:
            raise ReadOnlyError(f"{self.address} was opened for reading; open it with mode 'rw' to write")
        pending = self._contents.pending(appends)
        with self._turn:
            try:
                self._write(pending)
            except Exception as error:
                for each in pending:
                    each.error = each.error or error
        return [each.stored if each.error is None else each.error for each in pending]

    def _write(self, pending: list[Pending]) -> None:
        """Lays rows for the end of the log as far as it is known, and looks again where that was not its end.

        Who was overtaken some times waits in the server's queue for the row: looking again takes longer than the next
        write of the winner.
        """
        locked = self._locked
        try:
            self._attempt(pending)
        finally:
            if not locked:
                self._unlock_row()

    def _attempt(self, pending: list[Pending]) -> None:
        fresh, until, pause = self._locked, self._until(), PAUSE_S / 10
        for tries in range(1_000_000):
            if self._decided_at is not None and self._decided_at != self._heads.end:
                raise OvertakenError(f"{self.address} moved on while this was decided; read it and decide again")
            swept = self._contents.keep(pending, self._swept)
            if swept is None or swept >= 0:
                laid = self._lay(pending)
                if not fresh and (not laid.commits or any(each.error is not None for each in pending)):
                    fresh = self._see()  # what is known may be old, so nothing is refused by it
                    continue
                if not laid.commits or self._put(laid, swept):
                    return
            if until is not None and seconds() > until:
                raise LockedError(f"{self.address} is held by {self._holder()}; wait until it ends, then try again")
            if tries >= TRIES and self._decided_at is None:
                self._lock_row()
                self._decided_at, fresh = None, True  # nothing was decided: what came meanwhile was read
                continue
            fresh = self._see()
            pause_for(pause)
            pause = min(2 * pause, PAUSE_S_MAX / 4)

    def _move_to(self, swept: int) -> None:
        """Takes in how often objects were deleted and keys dropped; keys are read again before that is stated."""
        if swept != self._swept:
            self.vault.forget()
        self._swept = swept

    def _until(self) -> float | None:
        return None if self.wait_s is None else seconds() + self.wait_s

    def _holder(self) -> str:
        return self._writer.holder() or "other writers"

    def _lay(self, pending: list[Pending]) -> _Laid:
        """The rows of every append that fits at the end of the log."""
        with self._known:
            ordinal, cell = self._heads.end, self._cell
        ahead: dict[int, ChainHead] = {}
        laid = _Laid(ordinal, cell, [], [])
        for each in pending:
            each.error, each.stored = each.unkept, []
            if each.unkept is not None:
                continue
            try:
                append = each.append
                head = ahead.get(append.session) or self._last(append.session)
                check_expected(head, append.session, append.expected, append.commits)
                check_seen(ordinal, append.seen)
                stored, frames = self._contents.numbered(each, ordinal, cell)
            except Exception as error:
                each.error = error
                continue
            each.stored = stored
            laid.commits += stored
            laid.frames += frames
            ordinal += len(stored)
            cell = frames[-1].after - 1 if frames else cell
            ahead[stored[-1].session] = ChainHead(stored[-1].last, stored[-1].hash)
        assert ordinal == laid.ordinal + len(laid.commits), "ordinals are dense: what was refused leaves no gap"
        laid.cells = cell - laid.cell
        return laid

    def _last(self, session: int) -> ChainHead | None:
        """The head of a session as of what is known of the log; None where it has no such session."""
        if not session:
            return None
        head = self._heads.head(session, 0)
        if head is None:
            params = self._params(session=session, upto=self._heads.end)
            for ordinal, last, digest in self._reading.rows(self._sql.head, params):
                head = ChainHead(last, digest)
                self._heads.remember(ordinal, session, head)
        return head

    def _see(self) -> bool:
        """Takes in the heads of commits not seen yet; True, as all is known then."""
        with self._known:
            looked_s = seconds()
            ordinal, cell, swept, _ = self._standing()
            if ordinal > self._heads.end:
                params = self._params(after=self._heads.end, upto=ordinal)
                for at, session, last, digest in self._reading.rows(self._sql.since, params):
                    self._heads.follow(at, session, ChainHead(last, digest))
            if self._heads.end != ordinal:
                raise CorruptError(
                    f"{self.address} counts {ordinal} commits of {self._namespace!r}, and {self._heads.end} were seen: "
                    "a standby that lacks the last ones was promoted, or it was restored; open the store again",
                    code="log-out-of-order",
                )
            self._looked_s, self._cell = looked_s, cell
            self._move_to(swept)
        return True

    def _put(self, laid: _Laid, swept: int | None) -> bool:
        """Inserts the rows, durable; whether the log still ended where they begin."""
        rows = [list(column) for column in zip(*map(row_of, laid.commits), strict=True)]
        rows[COMMITMENTS] = [commitments or b"" for commitments in rows[COMMITMENTS]]
        frames = [list(column) for column in zip(*laid.frames, strict=True)]
        params = self._params(
            commits=len(laid.commits), cells=laid.cells, ordinal=laid.ordinal, cell=laid.cell, swept=swept
        )
        params |= {f"c{at}": column for at, column in enumerate(rows)}
        params |= {f"f{at}": frames[at] if frames else [] for at in range(len(FRAME_TYPES))}
        assert len(rows) == len(COMMIT_TYPES), "a commit fills every column"
        try:
            there = self._sent(params)
        except psycopg.Error as error:
            self._locked = False
            if error.sqlstate in AGAIN:
                return False
            if not self._writing.is_lost(error):
                raise self._writing.explained(error) from error
            there = self._resolved(laid.commits[0], error)
        if there:
            if self._notifier is not None:
                self._notifier.tell()
            with self._known:
                for commit in laid.commits:
                    if commit.ordinal > self._heads.end:  # else another thread has seen it in the log
                        self._heads.follow(commit.ordinal, commit.session, ChainHead(commit.last, commit.hash))
                self._cell = max(self._cell, laid.cell + laid.cells)
            if self._decided_at is not None:
                self._decided_at = laid.commits[-1].ordinal if self._writer.depth else None
        return there

    def _sent(self, params: Params) -> bool:
        with self._writing.held() as db:
            if not self._locked:
                return bool(db.execute(self._sql.append, params).rowcount > 0)
            self._locked = False
            with db.pipeline():  # one way to the server and back for both
                cursor = db.execute(self._sql.append, params)
                db.execute("COMMIT")
            return bool(cursor.rowcount > 0)

    def _resolved(self, first: Commit, error: psycopg.Error) -> bool:
        """Whether a commit is there whose answer was lost, once no statement of ours runs there any more."""
        until, pause = self._until(), PAUSE_S
        while True:
            try:
                with self._writing.held() as db, db.transaction():
                    db.execute(self._sql.lock, self._params())
                    params = self._params(after=first.ordinal - 1, limit=1)
                    rows = db.cursor(binary=True).execute(self._sql.tail, params).fetchall()
                return bool(rows) and commit_of(rows[0]).hash == first.hash
            except psycopg.Error as again:
                if not self._writing.is_lost(again) or (until is not None and seconds() > until):
                    raise StoreError(
                        f"{self.address} went away while it was written ({' '.join(str(error).split())}), and whether "
                        "the commit is there is not known: see that the server runs, then look, or try again with the "
                        "same request id",
                        code="unknown-outcome",
                    ) from again
            pause_for(pause)
            pause = min(2 * pause, PAUSE_S_MAX)

    # ---- keeping others waiting

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """Keeps every other writer waiting by the lock of the namespace's row, until something was appended."""
        if self._readonly:
            raise ReadOnlyError(f"{self.address} was opened for reading; open it with mode 'rw' to write")
        with self._turn:
            outermost = not self._deciding and self._decided_at is None
            self._deciding += 1
            try:
                if outermost:
                    self._lock_row()
                yield
            finally:
                self._deciding -= 1
                if outermost:
                    self._decided_at = None
                    self._unlock_row()

    def _lock_row(self) -> None:
        until, pause = self._until(), PAUSE_S / 10
        while True:
            ordinal, _, holder, swept = self._row_locked()
            if holder in (None, self._me):
                break
            self._unlock_row()
            if until is not None and seconds() > until:
                raise LockedError(f"{self.address} is held by {holder}; wait until it ends, then try again")
            pause_for(pause)
            pause = min(2 * pause, PAUSE_S_MAX / 4)
        self._decided_at = ordinal
        self._move_to(swept)
        if ordinal != self._heads.end:
            self._see()

    def _row_locked(self) -> Row:
        """Locks the row of the namespace, in a transaction that stays open."""
        until = self._until()
        wait_ms = 0 if self.wait_s is None else max(1, round(self.wait_s * 1_000))
        while True:
            try:
                with self._writing.held() as db:
                    with db.pipeline():
                        db.execute("BEGIN")
                        db.execute(f"SET LOCAL lock_timeout = {wait_ms}")
                        db.execute(f"SET LOCAL idle_in_transaction_session_timeout = '{IDLE_S}s'")
                        cursor = db.cursor(binary=True)
                        cursor.execute(self._sql.lock, self._params())
                    row: Row | None = cursor.fetchone()
                break
            except psycopg.Error as error:
                passing = self._writing.is_lost(error) or error.sqlstate in AGAIN
                if not passing or (until is not None and seconds() > until):
                    raise self._writing.explained(error) from error
                pause_for(PAUSE_S_MAX / 5)
        if row is None:
            self._unlock_row()
            raise StoreError(f"{self.address} has no namespace {self._namespace!r} any more", code="no-namespace")
        self._locked = True
        return row

    def _unlock_row(self) -> None:
        if self._locked:
            self._locked = False
            try:
                with self._writing.held() as db:
                    db.execute("ROLLBACK")
            except psycopg.Error:  # the connection was given up, and with it the lock
                pass

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keeps every other writer waiting by a lease, however often something is appended within."""
        if self._readonly:
            raise ReadOnlyError(f"{self.address} was opened for reading; open it with mode 'rw' to write")
        with self._turn:
            before = self._decided_at if self._locked else None
            self._unlock_row()
            outermost = not self._writer.depth
            with self._writer:
                if outermost:
                    self._see()
                    self._decided_at = self._heads.end if before is None else before
                try:
                    yield
                finally:
                    if outermost:
                        self._decided_at = None

    @contextmanager
    def destroying(self) -> Iterator[None]:
        """Keeps every other writer waiting, and who looks at what was erased."""
        with self._destroyer, self.alone():
            yield

    def settled(self) -> AbstractContextManager[object]:
        """Waits for those that destroy cells; who may write keeps them waiting within."""
        return self._destroyer.over() if self._readonly else self._destroyer

    # ---- reading

    def tail(self, after: int, limit: int) -> list[Commit]:
        """Up to `limit` commits with an ordinal above `after`, in order, without their cells."""
        params = self._params(after=after, limit=limit)
        commits = [commit_of(row) for row in self._reading.rows(self._sql.tail, params)]
        for commit in commits:
            if commit.ordinal != after + 1:
                raise CorruptError(
                    f"{self.address} gives commit {commit.ordinal} after {after}; restore the database from a backup",
                    code="log-out-of-order",
                )
            after = commit.ordinal
        self._given_out(after)
        return commits

    def _given_out(self, ordinal: int) -> None:
        """Looks again before a head is told, where what was given out is newer."""
        if ordinal > self._heads.end:
            self._looked_s = 0.0

    def cells(self, numbers: Iterable[int], *, archived: bool = True) -> dict[int, Cell]:
        """The cells of these numbers; one that is not there is left out, and unless `archived` one without its object.

        CorruptError names an object that is missing or damaged.
        """
        return dict(self._each(numbers, archived=archived))

    def each(self, numbers: Iterable[int]) -> Iterator[tuple[int, Cell]]:
        """The cells of these numbers, some frames at a time; CorruptError names an object that is not whole."""
        return self._each(numbers, archived=True)

    def _each(self, numbers: Iterable[int], *, archived: bool) -> Iterator[tuple[int, Cell]]:
        wanted = sorted({number for number in numbers if 0 < number < 1 << 62})
        for start in range(0, len(wanted), READ_CELLS):
            some: Sequence[int] = wanted[start : start + READ_CELLS]
            for last in (False, True):  # what an object does not give may have been erased meanwhile
                later = []
                for frame in self._frames(some) if some else ():
                    here = [number for number in some if frame.first <= number < frame.after]
                    for number, cell in opened(frame, here, self._object):
                        commitment = named(frame, number - frame.first) if frame.form in OBJECTS else b""
                        if cell is not None and (not commitment or cell.erased or cell.keeps(commitment)):
                            yield number, cell
                        elif last and archived:
                            if self.objects is None:
                                raise not_named(self.address)
                            raise self.objects.missing(commitment) if cell is None else self.objects.damaged(commitment)
                        else:
                            later.append(number)
                some = later

    def _object(self, commitment: bytes) -> bytes | None:
        return None if self.objects is None else self.objects.read(commitment)

    def _frames(self, numbers: Sequence[int]) -> list[Frame]:
        return [self.vault.opened(frame) for frame in self._laid(numbers)]

    def _laid(self, numbers: Sequence[int]) -> Iterator[Frame]:
        """Frames as they lie."""
        return map(frame_of, self._reading.rows(self._sql.frames, self._params(numbers=list(numbers))))

    def open_cell(self, number: int) -> OpenCell | None:
        """A cell's bytes, read whole; None where it is not there."""
        cell = self.cells([number]).get(number)
        return None if cell is None else OpenCell(cell.salt, BytesIO(cell.content))

    def head(self, session: int, after: int = 0) -> ChainHead | None:
        """The head of a session's chain, or None where no commit of it lies beyond the ordinal `after`.

        What was looked up a moment ago is believed, as long as nothing newer was given out since: who decides by
        it is refused where it moved.
        """
        if not (self._locked and self._decided_at == self._heads.end) and seconds() - self._looked_s > BELIEVED_S:
            self._see()
        with self._known:
            if self._heads.start <= after:
                return self._heads.head(session, after)
        for ordinal, last, digest in self._reading.rows(self._sql.head, self._params(session=session, upto=NEVER)):
            return ChainHead(last, digest) if ordinal > after else None
        return None

    @property
    def ordinal(self) -> int:
        """The ordinal of the last commit."""
        if self._locked and self._decided_at is not None:
            return self._decided_at
        ordinal = int(self._reading.rows(self._sql.ordinal, self._params())[0][0])
        self._given_out(ordinal)
        return ordinal

    def doze(self, at_most_s: float) -> None:
        """Waits until there may be news: for a notification where the address asks for them, else for a moment."""
        if self._listener is None:
            pause_for(min(at_most_s, POLL_S))
        else:
            self._listener.wait(at_most_s, POLL_S)

    @property
    def last_cell(self) -> int:
        """The number of the last cell; 0 where there is none."""
        return int(self._reading.rows(self._sql.last_cell, self._params())[0][0])

    # ---- keeping house

    def compact(self, progress: Progress | None = None) -> CompactionResult:
        """Does nothing: the server compresses long values itself, and vacuums."""
        return CompactionResult()

    erased: Mapping[int, int] = NOTHING

    def destroy(self, erased: Mapping[int, int]) -> DestroyResult:
        """Rewrites frames without the cells, then the whole table, and deletes their objects."""
        if self._readonly:
            raise ReadOnlyError(f"{self.address} was opened for reading; open it with mode 'rw' to erase")
        wanted = sorted(erased)
        some = (wanted[start : start + READ_CELLS] for start in range(0, len(wanted), READ_CELLS))
        with self.destroying():
            return self._destruction.destroy((frame for numbers in some for frame in self._laid(numbers)), erased)

    def sweep(self, before: int, *, dry: bool = False) -> list[Stray]:
        """Deletes objects that no cell names and that were written before a time, by the object store's clock.

        However new they are none is lost that a writer is about to name: its append is refused, and it puts it again.
        """
        if self._readonly and not dry:
            raise ReadOnlyError(f"{self.address} was opened for reading; open it with mode 'rw' to sweep it")
        found = [stray for _, stray in self._destruction.strays(before)]
        if dry or not found:
            return found
        with self.alone():
            return self._destruction.sweep(before, self._writer.holds)

    def close(self) -> None:
        """Closes both connections; the server takes back what was held."""
        if self._notifier is not None:
            self._notifier.close()
        if self._listener is not None:
            self._listener.close()
        with suppress(psycopg.Error, StoreError):
            self._writing.close()
        self._reading.close()
        self.vault.close()
