"""The file of a log: how it is made, marked, opened, and opened again after its disk failed.

`with LogFile(...) as db:` gives the connection to one thread at a time and turns SQLite's errors
into ours. The application id marks the file as ours, the user version is the format.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import apsw

from vmstore.cells import schema
from vmstore.core.system import after_fork
from vmstore.core.system.safe_files import regular
from vmstore.errors import CorruptError, ReadOnlyError, StoreError

APPLICATION_ID = 0x766D7374  # "vmst"
FORMAT = 1
ENCRYPTED_FORMAT = 2  # as 1, with every frame under a key
HALF_ENCRYPTED_FORMAT = 3  # while one becomes the other, and nobody else may read or write
FORMATS = (FORMAT, ENCRYPTED_FORMAT)
_OTHERS = (ENCRYPTED_FORMAT, HALF_ENCRYPTED_FORMAT)
SQLITE_MIN = (3, 51, 3)  # older ones can lose commits with two connections (WAL-reset bug)
CHECKPOINT_PAGES = 256
WAL_HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
FRAME_BYTES = FRAME_HEADER_BYTES + 4096
WAL_BYTES = 288 * FRAME_BYTES  # between checkpoints, a commit of some pages more
ROOM_MIN = 64 << 20  # a disk with less keeps it for commits
BUSY_MS = 10_000
BUSY_MS_MIN = 100

assert HALF_ENCRYPTED_FORMAT not in FORMATS, "nobody reads or writes a log that is half encrypted"
assert WAL_BYTES > WAL_HEADER_BYTES + CHECKPOINT_PAGES * FRAME_BYTES, "the WAL does not grow between two checkpoints"

_SCHEMA = f"""
PRAGMA page_size = 4096;
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
PRAGMA journal_mode = WAL;
CREATE TABLE commits(
  ordinal INTEGER PRIMARY KEY, session INTEGER NOT NULL, first INTEGER NOT NULL, count INTEGER NOT NULL,
  at INTEGER NOT NULL, lag INTEGER NOT NULL, request INTEGER, cell INTEGER, commitments BLOB,
  body BLOB NOT NULL, hash BLOB NOT NULL);
CREATE TABLE frames(
  first INTEGER PRIMARY KEY, count INTEGER NOT NULL, form INTEGER NOT NULL, sizes BLOB NOT NULL,
  salts BLOB NOT NULL, content BLOB NOT NULL);
"""
assert f"page_size = {FRAME_BYTES - FRAME_HEADER_BYTES};" in _SCHEMA, "a WAL frame holds one page"
MADE = schema.made_by(_SCHEMA)
_WRITER = f"""
PRAGMA synchronous = FULL;
PRAGMA fullfsync = ON;
PRAGMA checkpoint_fullfsync = ON;
PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES};
PRAGMA secure_delete = ON;
"""


def create(path: Path, *, encrypted: bool = False) -> None:
    """Makes an empty log in a new file."""
    check_platform()
    db = apsw.Connection(str(path))
    try:
        db.execute(_SCHEMA).fetchall()
        if encrypted:
            db.execute(f"PRAGMA user_version = {ENCRYPTED_FORMAT}")
    finally:
        db.close()


def check_platform() -> None:
    """Raises StoreError where this machine cannot keep a log safe."""
    if sys.platform == "win32":
        raise StoreError(
            "vmstore keeps no store on Windows: its locks and flushes are those of Linux and macOS; use WSL 2",
            code="no-windows",
        )
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < SQLITE_MIN:
        raise StoreError(
            f"SQLite {apsw.sqlite_lib_version()} can lose commits; "
            f"install apsw {'.'.join(map(str, SQLITE_MIN))} or newer",
            code="old-sqlite",
        )


class LogFile(after_fork.Owner):
    """A connection for one thread at a time; after `poison` the next use opens the file again.

    A forked process has no use of it: what its parent knows of the log may be half of a change.
    """

    lock_order = after_fork.FILE

    made = MADE  # all that such a file may hold

    def __init__(
        self, path: Path, *, readonly: bool = False, formats: tuple[int, ...] = FORMATS, wait_s: float | None = None
    ) -> None:
        check_platform()
        self._busy_ms = BUSY_MS if wait_s is None else max(BUSY_MS_MIN, min(BUSY_MS, round(wait_s * 1_000)))
        self.format = check_format(path, formats)
        self.path = path
        self.readonly = readonly
        self._lock = threading.RLock()
        self._db: apsw.Connection | None = None
        self.closed = False
        self._inherited = False
        after_fork.owns(self)
        with self:
            pass

    def __enter__(self) -> apsw.Connection:
        self._lock.acquire()
        if self._db is not None:
            return self._db
        try:
            self._db = self._opened()
            return self._db
        except BaseException as error:
            self._lock.release()
            _translate(self.path, error)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
        if error is not None:
            _translate(self.path, error)

    def _opened(self) -> apsw.Connection:
        if self._inherited:
            raise StoreError(after_fork.belongs_to_parent(self.path), code="forked")
        if self.closed:
            raise StoreError(f"{self.path} is closed; open it again")
        if (reason := after_fork.busy(self.path)) is not None:
            raise StoreError(reason, code="forked")
        db = _reader(self.path) if self.readonly else _connect(self.path, apsw.SQLITE_OPEN_READWRITE)
        try:
            schema.guard(db)
            db.setbusytimeout(self._busy_ms)
            if not self.readonly:
                db.execute(_WRITER).fetchall()
            schema.check(db, self.path, self.made)
            if self.format != (now := db.execute("PRAGMA user_version").get) and now in _OTHERS:
                raise StoreError(
                    f"{self.path} was encrypted meanwhile, or half of it; open the store again, with its key",
                    code="encrypted-meanwhile",
                )
            return db
        except BaseException:
            db.close()
            raise

    def poison(self) -> None:
        """Gives up a connection whose commit failed: what it holds in memory may not be what the file holds."""
        with self._lock:
            db, self._db = self._db, None
            if db is not None:
                with contextlib.suppress(apsw.Error):  # the last one out checkpoints, and the disk may fail again
                    db.close(True)

    def close(self) -> None:
        """Closes the file; closing twice does nothing."""
        with self._lock:
            self.closed = True
            self.poison()

    @property
    def entry(self) -> after_fork.ReentrantLock:
        """The lock under which the connection is used."""
        return self._lock

    def connections(self) -> list[apsw.Connection]:
        """The connection, where it is open."""
        return [] if self._db is None else [self._db]

    def forked(self, quiet: bool) -> None:
        """Is of no use in a forked process."""
        self._db, self.closed, self._inherited = None, True, True
        if not quiet:
            self._lock = threading.RLock()


def _translate(path: Path, error: BaseException) -> None:
    """Raises one of our errors for one of SQLite's; returns where it is none of those."""
    if isinstance(error, apsw.ConnectionClosedError | apsw.CursorClosedError):
        raise StoreError(after_fork.belongs_to_parent(path)) from error
    if isinstance(error, apsw.CantOpenError):
        raise StoreError(
            f"{path} cannot be opened ({error}); where it may only be read, open it with mode 'r'", code="not-opened"
        ) from error
    if isinstance(error, apsw.FullError | apsw.IOError):
        raise StoreError(
            f"{path} could not be read or written ({error}); make room or mend the disk, then try again"
        ) from error
    if isinstance(error, apsw.ReadOnlyError):
        raise ReadOnlyError(f"{path} is not writable ({error}); open it with mode 'r'", code="not-writable") from error
    if isinstance(error, apsw.BusyError):
        raise StoreError(f"{path} is held by another writer ({error}); try again", code="held") from error
    if isinstance(error, apsw.Error | UnicodeDecodeError):
        raise CorruptError(f"{path} is damaged ({error}); run `vmstore verify`, or put back a backup") from error


def make_room(path: Path) -> None:
    """Lengthens a WAL with zeros to what it grows to between checkpoints; the writers' lock is held.

    Writing over a file costs half of letting it grow, whose every flush writes the file's length too.
    Zeros are no frames, so a recovery stops before them. The WAL goes with the last handle, because
    one left behind would be taken for the WAL of a log put back from a backup.
    """
    with contextlib.suppress(OSError):
        handle = os.open(path.with_name(path.name + "-wal"), os.O_WRONLY)
        try:
            size, disk = os.fstat(handle).st_size, os.fstatvfs(handle)
            if 0 < size < WAL_BYTES and disk.f_bavail * disk.f_frsize > ROOM_MIN:
                os.pwrite(handle, bytes(WAL_BYTES - size), size)
        finally:
            os.close(handle)


def counted(db: apsw.Connection) -> int:
    """How many bytes of the WAL count by its index: a commit does once it was flushed, and no sooner."""
    frames, _ = db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    return WAL_HEADER_BYTES + frames * FRAME_BYTES if frames > 0 else 0


def undecided(path: Path, start: int) -> bool:
    """Whether the end of a transaction lies in a WAL from a byte on, where a later recovery could find and count it."""
    assert not start or (start - WAL_HEADER_BYTES) % FRAME_BYTES == 0, "frames are looked for where frames begin"
    wal = path.with_name(path.name + "-wal")
    if not wal.exists():
        return False
    file = apsw.VFSFile("", str(wal), [apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_READWRITE, 0])
    try:
        size, salts = file.xFileSize(), b""
        if size >= WAL_HEADER_BYTES:
            salts = file.xRead(WAL_HEADER_BYTES, 0)[16:24]
        for at in range(max(start, WAL_HEADER_BYTES), size - FRAME_BYTES + 1, FRAME_BYTES):
            head = file.xRead(FRAME_HEADER_BYTES, at)
            if any(head[4:8]) and head[8:16] == salts:  # the size of the database stands in the last frame alone
                return True
        return False
    finally:
        file.xClose()


def write_again(path: Path, start: int) -> None:
    """Writes a WAL over itself from a byte on, and flushes it; the writers' lock is held.

    A page whose flush failed counts as clean afterwards: later flushes succeed without it, and all
    that follows it in the WAL would be gone after a power cut. What was flushed before is not
    touched: a power cut may leave noise where something is being written.
    """
    wal = path.with_name(path.name + "-wal")
    if not wal.exists():
        return
    file = apsw.VFSFile("", str(wal), [apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_READWRITE, 0])
    try:
        size = file.xFileSize()
        for at in range(start, size, 65_536):
            file.xWrite(file.xRead(min(65_536, size - at), at), at)
        file.xSync(apsw.SQLITE_SYNC_FULL)
    finally:
        file.xClose()


def _connect(path: Path, flags: int, query: str = "") -> apsw.Connection:
    uri = "file:" + quote(str(path.absolute())) + query
    return apsw.Connection(uri, flags=flags | apsw.SQLITE_OPEN_URI)


def _reader(path: Path) -> apsw.Connection:
    """A connection that refuses writes; in a folder that may only be read too."""
    try:
        db = _connect(path, apsw.SQLITE_OPEN_READWRITE)
        db.setbusytimeout(BUSY_MS)
        db.execute("PRAGMA query_only = ON; SELECT count(*) FROM sqlite_schema").fetchall()
        if db.readonly("main"):
            raise apsw.ReadOnlyError("the folder is read-only")
        return db
    except (apsw.CantOpenError, apsw.ReadOnlyError) as error:  # a read-only folder cannot hold the shared index
        wal = path.with_name(path.name + "-wal")
        if wal.exists() and wal.stat().st_size:
            raise StoreError(
                f"{path} was not closed and its folder is read-only, so its last commits cannot be read; "
                "copy the store to where it can be written, or open it there once"
            ) from error
        return _connect(path, apsw.SQLITE_OPEN_READONLY, "?immutable=1")


def check_format(path: Path, formats: tuple[int, ...] = FORMATS) -> int:
    """The format by the marks in the file's first bytes, so that a file of somebody else is not touched."""
    version = format_of(path)
    if version in formats:
        return version
    if version == 0:
        raise StoreError(
            f"{path} has format 0, this vmstore reads format {FORMAT}: run `vmstore upgrade` on its store",
            code="older-format",
        )
    if version == HALF_ENCRYPTED_FORMAT:
        raise StoreError(
            f"{path} was being encrypted when that was stopped: run `vmstore encrypt` on its store again",
            code="half-encrypted",
        )
    raise StoreError(
        f"{path} has format {version}, this vmstore reads format {formats[0]}: "
        "install the version that wrote it, or export it there and import it here",
        code="newer-format",
    )


def format_of(path: Path) -> int:
    """The format a log file states; raises StoreError where it is no vmstore log."""
    try:
        header = _header(path)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read ({error.strerror}); name a store you may read", code="not-read"
        ) from error
    except apsw.Error as error:
        raise StoreError(f"{path} cannot be read ({error}); mend the disk, then try again") from error
    sound = len(header) == 100 and header.startswith(b"SQLite format 3\0")
    application, version = int.from_bytes(header[68:72], "big"), int.from_bytes(header[60:64], "big")
    if not sound or application != APPLICATION_ID:
        application, version = _marks(path) or (application, version)
        sound = sound or application == APPLICATION_ID
    if not sound:
        raise StoreError(
            f"{path} is no vmstore log (no SQLite file); put back a backup, or name another store", code="not-a-log"
        )
    if application != APPLICATION_ID:
        raise StoreError(
            f"{path} is no vmstore log (application id {application}); name another store", code="not-a-log"
        )
    return version


def _header(path: Path) -> bytes:
    """The first bytes of a file, read by SQLite: who closes a descriptor drops every lock its process has on the file.

    SQLite keeps it open for as long as another handle of this process has one.
    """
    if path.exists() and not path.is_file():
        regular(path).close()  # says what it is: a pipe would be waited for
    try:
        file = apsw.VFSFile("", str(path.absolute()), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
    except apsw.CantOpenError:
        with path.open("rb") as plain:  # says why
            return plain.read(100)
    try:
        return file.xRead(min(100, file.xFileSize()), 0)
    finally:
        file.xClose()


def _marks(path: Path) -> tuple[int, int] | None:
    """The marks of a file whose first page may lie in the WAL beside it, as where a checkpoint was cut."""
    wal = path.with_name(path.name + "-wal")
    if not wal.exists() or not wal.stat().st_size:
        return None
    with contextlib.suppress(apsw.Error):
        db = _connect(path, apsw.SQLITE_OPEN_READONLY)
        try:
            return db.execute("PRAGMA application_id").get, db.execute("PRAGMA user_version").get
        finally:
            with contextlib.suppress(apsw.Error):  # one that may only read may fail to tidy up
                db.close()
    return None
