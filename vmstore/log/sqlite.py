"""The SQLite log: two append-only tables, one row a commit.

    commits  ordinal | session first count at lag request cell commitments body hash
    frames   first   | count form sizes salts content

An append returns after the flush; appends that are handed over together share one transaction, and
writers queue at a lock. A commit whose flush failed is neither there nor not: the file is opened again
and asked, and the answer is made durable before anybody hears it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
from msgspec import Struct

from vmstore.cells.cell import COMMITMENT_BYTES, Cell
from vmstore.core.system.safe_files import Stray
from vmstore.core.system.waits import WAIT_S
from vmstore.errors import CorruptError, ReadOnlyError, StoreError
from vmstore.log.archive.folder import Archives
from vmstore.log.blobs import CellFiles
from vmstore.log.cell_reader import NEVER, cells_of, frames_of
from vmstore.log.commit import Commit
from vmstore.log.compaction import due, pack
from vmstore.log.destruction import destroy
from vmstore.log.file import LogFile, counted, create, make_room, undecided, write_again
from vmstore.log.frame import ENCRYPTED, FILE_BYTES_MIN, FILES, Frame, cut, in_file, named
from vmstore.log.frame_encryption import FrameEncryption, began_in, checked
from vmstore.log.heads import Heads
from vmstore.log.lock import WriteLock
from vmstore.log.port import (
    NOTHING,
    Append,
    ChainHead,
    CompactionResult,
    DestroyResult,
    OpenCell,
    Progress,
    check_expected,
    check_seen,
)
from vmstore.log.rows import COMMITS, READ_COMMITS, READ_FRAMES, commit_of, frame_of, number, row_of

if TYPE_CHECKING:
    from vmstore.log.archive.mover import Mover

_TAIL = f"SELECT {READ_COMMITS} FROM commits WHERE ordinal > ? ORDER BY ordinal LIMIT ?"
_SEEN = (
    "SELECT ordinal, session, first + count - 1, CAST(hash AS BLOB) FROM commits"
    " WHERE ordinal > ? AND ordinal <= ? ORDER BY ordinal"
)
_STANDS = "SELECT ordinal, first + count - 1, CAST(hash AS BLOB) FROM commits"
_TIP = f"{_STANDS} WHERE ordinal = ? AND session = ? AND first + count - 1 = ?"
_SEARCH = f"{_STANDS} WHERE ordinal >= ? AND ordinal <= ? AND session = ? ORDER BY ordinal DESC LIMIT 1"
_INSERT_COMMIT = f"INSERT INTO commits({COMMITS}) VALUES(?,?,?,?,?,?,?,?,?,?,?)"
_INSERT_FRAME = "INSERT INTO frames VALUES(?,?,?,?,?,?)"
_LAST_CELL = "SELECT first + count - 1 FROM frames ORDER BY first DESC LIMIT 1"
_FILES = f"SELECT {READ_FRAMES} FROM frames WHERE form IN (?, ?)"
_ORDINAL = "SELECT coalesce(max(ordinal), 0) FROM commits"
UNKNOWN = (
    "whether the commit is there is not known: make room or mend the disk, then look, "
    "or try again with the same request id"
)
TIDY_WRITES = 256
TIDY_WAIT_S = 1.0  # another handle packs what this one does not come to
STAYING = 2  # a handle that writes more often than this stays, and is worth a WAL of full length


class _Pending(Struct, eq=False):
    """An append on its way into a transaction, then what came of it."""

    append: Append
    key: bytes = b""  # the id of the key that its files were written under
    stored: list[Commit] = []
    error: Exception | None = None


class SqliteLog:
    """The log of one namespace, in one file, its long cells in files beside it."""

    def __init__(
        self, path: Path, *, readonly: bool = False, vault: FrameEncryption | None = None, wait_s: float | None = WAIT_S
    ) -> None:
        self.file = LogFile(path, readonly=readonly, wait_s=wait_s)
        self.vault = checked(self.file, vault)
        self.files = CellFiles(path.with_name("blobs"), self.vault)
        self.archives = Archives(path.with_name("archive"), self.vault, wait_s)
        self.lock = WriteLock(path.with_suffix(".lock"), wait_s)
        self._readonly = readonly
        with self.file as db:
            self._heads = Heads(_number(db, _ORDINAL))
        self._writes = 0
        self._tidying = threading.Thread()
        self._doubted: int | None = None  # where in the WAL begins what was written and may not be flushed
        self._cell: int | None = None  # the last cell's number; None where another writer may have moved it

    create = staticmethod(create)

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
            raise ReadOnlyError(f"{self.file.path} was opened for reading; open it with mode 'rw' to write")
        pending = [_Pending(each._replace(commits=list(each.commits))) for each in appends]
        for each in pending:
            self._keep_files(each)
        try:
            with self.lock:
                self._transact(pending)
                self._count_write()
        except Exception as error:
            self._cell = None
            for each in pending:
                each.error = each.error or error
        except BaseException:
            self._cell = None
            raise
        return [each.stored if each.error is None else each.error for each in pending]

    def _count_write(self) -> None:
        """Makes room for a handle that stays, and packs now and then what was appended lately."""
        self._writes += 1
        if self._writes == STAYING:
            make_room(self.file.path)
        if self._writes % TIDY_WRITES == 0 and not self._tidying.is_alive():
            self._tidying = threading.Thread(target=self._tidy, name="vmstore-tidy", daemon=True)
            self._tidying.start()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keeps every other writer waiting, so that what is decided within is not overtaken."""
        with self.lock:
            yield

    deciding = alone

    @contextmanager
    def destroying(self) -> Iterator[None]:
        """Keeps every other writer waiting, who moves cells to archives and back among them."""
        with self.archives.alone(), self.alone():
            yield

    def settled(self) -> AbstractContextManager[None]:
        """Waits for those that destroy cells, or move them to archives or back."""
        return self.archives.settled(make=not self._readonly)

    def _keep_files(self, pending: _Pending) -> None:
        long = [
            cell for commit in pending.append.commits for cell in commit.cells if len(cell.content) >= FILE_BYTES_MIN
        ]
        if long:
            with self.file as db:
                pending.key = self.vault.name(pending.append, began_in(db))
        for cell in long:
            self.files.keep(cell.commitment, cell.content, pending.key)

    def _transact(self, together: list[_Pending]) -> None:
        assert self.lock.held, "ordinals and cell numbers are taken while no other process writes"
        try:
            with self.file as db:
                self._mend()
                db.execute("BEGIN IMMEDIATE")
                try:
                    fit = self._lay(db, together)
                    db.execute("COMMIT" if fit else "ROLLBACK")
                except BaseException:
                    if db.in_transaction:
                        db.execute("ROLLBACK")
                    raise
        except StoreError as error:
            laid = [commit for pending in together for commit in pending.stored]
            if not laid or not isinstance(error.__cause__, apsw.IOError | apsw.FullError):
                raise
            self._resolve(laid[0], error)
        with self.file:  # as everything that looks at heads
            for commit in (commit for pending in together for commit in pending.stored):
                self._heads.follow(commit.ordinal, commit.session, ChainHead(commit.last, commit.hash))

    def _resolve(self, first: Commit, error: StoreError) -> None:
        """Finds out what became of a transaction whose flush failed and makes that last, or says it is unknown.

        What is not there may still lie in the WAL beyond what SQLite counts, to be found by the next
        recovery: another write takes its place. On a full disk there is no other write, but mostly its
        end never came into the WAL either.
        """
        assert self.lock.held, "another process could write over what is in doubt"
        if self._doubted is None:
            self._doubted = 0
            with contextlib.suppress(StoreError), self.file as db:
                self._doubted = counted(db)
        doubtful = self._may_be_found(self._doubted)  # before the last one out folds the WAL
        self.file.poison()
        try:
            with self.file as db:
                self._mend()
                rows = db.execute(_TAIL, (first.ordinal - 1, 1)).fetchall()
                if rows and commit_of(rows[0]).hash == first.hash:
                    return
                db.execute(f"PRAGMA user_version = {self.file.format}")
        except StoreError:
            self.file.poison()
            if doubtful:
                raise StoreError(
                    f"{self.file.path} failed while it was written ({error.__cause__}); {UNKNOWN}"
                ) from error
        raise StoreError(
            f"{self.file.path} failed while it was written ({error.__cause__}); nothing of the commit is there: "
            "make room or mend the disk, then try again"
        ) from error

    def _may_be_found(self, start: int) -> bool:
        """Whether a recovery might find what lies in the WAL from a byte on."""
        try:
            return undecided(self.file.path, start)
        except (apsw.Error, OSError):
            return True

    def _mend(self) -> None:
        """Makes what a failed flush left in doubt last, before anything is written after it."""
        if self._doubted is not None:
            write_again(self.file.path, self._doubted)
            self._doubted = None

    def _lay(self, db: apsw.Connection, together: list[_Pending]) -> bool:
        """Puts rows into the transaction for every append that fits; whether there is any."""
        assert db.in_transaction, "what is seen here stays the end of the log until the rows are in"
        self._see(db)
        ordinal, cell = self._heads.end, self._last_cell(db)
        ahead: dict[int, ChainHead] = {}
        rows: list[tuple[Any, ...]] = []
        frames: list[Frame] = []
        for pending in together:
            try:
                append = pending.append
                head = ahead.get(append.session) or self._standing(db, append)
                check_expected(head, append.session, append.expected, append.commits)
                check_seen(ordinal, append.seen)
                stored, laid = self._numbered(db, pending, ordinal, cell)
            except Exception as error:
                pending.error = error
                continue
            pending.stored = stored
            rows += map(row_of, stored)
            frames += laid
            ordinal += len(stored)
            cell = laid[-1].after - 1 if laid else cell
            ahead[stored[-1].session] = ChainHead(stored[-1].last, stored[-1].hash)
        assert ordinal == self._heads.end + len(rows), "ordinals are dense: what was refused leaves no gap"
        db.executemany(_INSERT_COMMIT, rows)
        db.executemany(_INSERT_FRAME, frames)
        self._cell = cell
        return bool(rows)

    def _numbered(
        self, db: apsw.Connection, waiting: _Pending, ordinal: int, cell: int
    ) -> tuple[list[Commit], list[Frame]]:
        """An append's commits as they will stand after an ordinal and a cell, and its cells in frames."""
        append = waiting.append
        session = append.session or ordinal + 1
        stored: list[Commit] = []
        cells: list[Cell] = []
        for at, c in enumerate(append.commits, ordinal + 1):
            assert len(c.commitments) == COMMITMENT_BYTES * len(c.cells), (
                "a commit brings every cell that its hash covers"
            )
            first = cell + len(cells) + 1 if c.cells else 0
            cells += c.cells
            stored.append(
                Commit(c.first, c.count, c.at, c.lag, c.body, c.commitments, c.hash, c.request, session, at, first)
            )
        frames = list(cut(cell + 1, cells, dense=append.dense))
        assert not frames or frames[0].first == cell + 1, "the frames go on where the log ended"
        assert not frames or frames[-1].after == cell + 1 + len(cells), "and hold every cell that the commits count"
        key = self.vault.name(append, began_in(db)) if frames else b""
        for frame in frames:  # swept, or its key dropped, while we waited
            if frame.form == FILES and (key != waiting.key or not self.files.holds(named(frame, 0))):
                assert frame.cells == 1, "a file holds one cell"
                self.files.keep(named(frame, 0), cells[frame.first - cell - 1].content, key)
        return stored, [self.vault.closed(frame, key) for frame in frames]

    def _see(self, db: apsw.Connection) -> None:
        """Takes in the heads of commits not seen yet, other processes' included."""
        for ordinal, session, last, digest in db.execute(_SEEN, (self._heads.end, NEVER)):
            self._heads.follow(ordinal, session, ChainHead(last, digest))
            self._cell = None

    def _head(self, db: apsw.Connection, session: int, after: int) -> ChainHead | None:
        if after < self._heads.start and session:
            rows = db.execute(_SEEN, (after, self._heads.start))
            self._heads.reach_back(after, ((ordinal, key, ChainHead(last, h)) for ordinal, key, last, h in rows))
        return self._heads.head(session, after)

    def _standing(self, db: apsw.Connection, append: Append) -> ChainHead | None:
        """The head of an append's session in the log; None where the log has no such session.

        Of one that wrote nothing since this handle was opened, the commit that the writer calls its
        last is looked at; where that is another one, the last one is searched for.
        """
        session = append.session
        if not session:
            return None
        head = self._head(db, session, append.after) or self._heads.head(session, 0)
        if head is None:
            row = db.execute(_TIP, (append.tip, session, append.expected)).fetchone()
            row = row or db.execute(_SEARCH, (session, self._heads.end, session)).fetchone()
            if row is not None:
                head = ChainHead(*row[1:])
                self._heads.remember(row[0], session, head)
        return head

    def _last_cell(self, db: apsw.Connection) -> int:
        return _number(db, _LAST_CELL) if self._cell is None else self._cell

    def tail(self, after: int, limit: int) -> list[Commit]:
        """Up to `limit` commits with an ordinal above `after`, in order, without their cells."""
        with self.file as db:
            commits = [commit_of(row) for row in db.execute(_TAIL, (after, limit))]
        for commit in commits:
            if commit.ordinal <= after:  # else pages that changed places are walked for ever
                raise CorruptError(
                    f"{self.file.path} gives commit {commit.ordinal} after {after}; put back a backup",
                    code="log-out-of-order",
                )
            after = commit.ordinal
        return commits

    def cells(self, numbers: Iterable[int], *, archived: bool = True) -> dict[int, Cell]:
        """The cells of these numbers, each frame read once; one that is not there is left out."""
        return dict(cells_of(self.file, numbers, self.files.read, self.archives if archived else None, self.vault))

    def each(self, numbers: Iterable[int]) -> Iterator[tuple[int, Cell]]:
        """The cells of these numbers, one frame at a time."""
        return cells_of(self.file, numbers, self.files.read, self.archives, self.vault)

    def open_cell(self, at: int) -> OpenCell | None:
        """A cell's bytes as they lie, to be read in pieces from any place; None where it is not there."""
        for frame, _ in frames_of(self.file, [at], self.vault):
            place = in_file(frame, at)
            file = None if place is None else self.files.open(place.commitment)
            if place is not None and file is not None:
                return OpenCell(place.salt, file)
        cell = self.cells([at]).get(at)
        return None if cell is None else OpenCell(cell.salt, BytesIO(cell.content))

    def head(self, session: int, after: int = 0) -> ChainHead | None:
        """The head of a session's chain, or None where no commit of it lies beyond the ordinal `after`."""
        with self.file as db:
            self._see(db)
            return self._head(db, session, after)

    @property
    def ordinal(self) -> int:
        """The ordinal of the last commit."""
        with self.file as db:
            return _number(db, _ORDINAL)

    @property
    def last_cell(self) -> int:
        """The number of the last cell; 0 where there is none."""
        with self.file as db:
            return _number(db, _LAST_CELL)

    # ---- keeping house

    def compact(self, progress: Progress | None = None) -> CompactionResult:
        """Packs every frame that is worth it; readers and writers go on meanwhile."""
        if self._readonly:
            raise ReadOnlyError(f"{self.file.path} was opened for reading; open it with mode 'rw' to pack it")
        return pack(self.file, self._hold, progress=progress, vault=self.vault)

    @property
    def mover(self) -> Mover:
        """The mover that takes cells to archives and back."""
        from vmstore.log.archive.mover import Mover

        return Mover(self.file, self.files, self.archives, self.vault, self._hold)

    @contextmanager
    def _hold(self) -> Iterator[None]:
        with self.lock:
            yield

    def _tidy(self) -> None:
        """Packs what was appended lately, a bounded piece of it, where there is enough."""
        with contextlib.suppress(StoreError):  # it is worth trying again later, and nothing else
            start = due(self.file)
            if start is not None:
                pack(self.file, partial(self.lock.within, TIDY_WAIT_S), start, steps=1, vault=self.vault)

    erased = NOTHING

    def destroy(self, erased: Mapping[int, int]) -> DestroyResult:
        """Destroys cells: frames and the whole file are rewritten without them, the WAL is emptied."""
        if self._readonly:
            raise ReadOnlyError(f"{self.file.path} was opened for reading; open it with mode 'rw' to erase")
        return destroy(self.file, self.files, self.archives, self.vault, self._hold, erased)

    def sweep(self, before: int, *, dry: bool = False) -> list[Stray]:
        """Deletes files that no cell names and that were written before a time; they are given back, dry or not."""
        if self._readonly and not dry:
            raise ReadOnlyError(f"{self.file.path} was opened for reading; open it with mode 'rw' to sweep it")
        with contextlib.nullcontext() if self._readonly else self._hold():
            with self.file as db:
                rows = db.execute(_FILES, (FILES, FILES + ENCRYPTED)).fetchall()
            names = {named(frame, at) for frame in map(frame_of, rows) for at in range(frame.cells)}
            uids = {place.uid for _, _, place in self.mover.places()}
            strays = [*self.files.strays(names.__contains__), *self.archives.strays(uids)]
            found = [stray for stray in strays if stray.at < before]
            if not dry:
                for stray in found:
                    Path(stray.path).unlink(missing_ok=True)
        return found

    def close(self) -> None:
        """Closes the file; the last one out folds the WAL into it."""
        if not self._readonly and self._writes and not self.file.closed:
            if self._tidying.is_alive():
                self._tidying.join()
            self._tidy()
        self.archives.close()
        self.file.close()
        self.lock.close()
        self.vault.close()


def _number(db: apsw.Connection, sql: str) -> int:
    return number(db.execute(sql).get)
