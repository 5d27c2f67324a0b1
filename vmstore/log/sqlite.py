"""The SQLite log: two append-only tables, one row a commit.

    commits  ordinal | session first count at lag request cell commitments body hash
    cells    number  | salt content form

A cell's `form` is how its bytes lie here: null as they are, 1 deflated (imports). WAL with
`synchronous=FULL`: an append returns after the flush. The application id marks the file as ours,
the user version is the format.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
import msgspec

from vmstore.cells.cell import Cell
from vmstore.errors import CorruptError, ReadOnlyError, StoreError
from vmstore.log.commit import Commit
from vmstore.log.port import Head, check_expected

APPLICATION_ID = 0x766D7374  # "vmst"
FORMAT = 0
SQLITE_MIN = (3, 51, 3)  # older ones can lose commits with two connections (WAL-reset bug)
CHECKPOINT_PAGES = 256
BUSY_MS = 10_000

_SCHEMA = f"""
PRAGMA page_size = 4096;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
PRAGMA journal_mode = WAL;
CREATE TABLE commits(
  ordinal INTEGER PRIMARY KEY, session INTEGER NOT NULL, first INTEGER NOT NULL, count INTEGER NOT NULL,
  at INTEGER NOT NULL, lag INTEGER NOT NULL, request INTEGER, cell INTEGER, commitments BLOB,
  body BLOB NOT NULL, hash BLOB NOT NULL);
CREATE TABLE cells(number INTEGER PRIMARY KEY, salt BLOB, content BLOB, form INTEGER);
"""
_CELLS = (
    "SELECT number, CAST(salt AS BLOB), CAST(content AS BLOB), form FROM cells"
    " WHERE number IN (SELECT value FROM json_each(?))"
)
DEFLATED = 1
DEFLATE_BYTES_MIN = 64
_COLUMNS = "ordinal, session, first, count, at, lag, request, cell, commitments, body, hash"
# Read as bytes whatever type a damaged column has, so that its hash can name it.
_READ = (
    "ordinal, session, first, count, at, lag, request, cell, CAST(commitments AS BLOB), CAST(body AS BLOB),"
    " CAST(hash AS BLOB)"
)


class SqliteLog:
    """The log of one namespace, in one file."""

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        _check_version()
        self._path = path
        self._readonly = readonly
        self._heads: dict[int, Head] = {}
        self._ordinal = 0
        _check_format(path)
        with self._naming():
            self._db = _connect(path, readonly)
            try:
                self._db.setbusytimeout(BUSY_MS)
                if not readonly:
                    pragmas = f"PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}"
                    self._db.execute(pragmas).fetchall()
                self._see()
            except BaseException:
                self._db.close()
                raise

    @staticmethod
    def create(path: Path) -> None:
        """Makes an empty log in a new file."""
        _check_version()
        db = apsw.Connection(str(path))
        try:
            db.execute(_SCHEMA).fetchall()
        finally:
            db.close()

    def append(
        self, commits: Sequence[Commit], session: int, expected: int, *, seen: int | None = None, dense: bool = False
    ) -> list[Commit]:
        """Stores commits of one session, all or none, durable before it returns."""
        if self._readonly:
            raise ReadOnlyError(f"{self._path} was opened for reading; open it with mode 'rw' to write")
        with self._naming():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._see()
                check_expected(self._heads.get(session), session, expected, self._ordinal, seen)
                stored = self._insert(commits, session, dense)
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        self._note(stored)
        return stored

    def _insert(self, commits: Sequence[Commit], session: int, dense: bool) -> list[Commit]:
        cell = int(self._db.execute("SELECT coalesce(max(number), 0) FROM cells").get)
        ordinal = self._ordinal
        stored = []
        for commit in commits:
            ordinal += 1
            session = session or ordinal
            first = cell + 1 if commit.cells else 0
            kept = msgspec.structs.replace(commit, session=session, ordinal=ordinal, cell=first, cells=())
            self._db.execute(f"INSERT INTO commits({_COLUMNS}) VALUES(?,?,?,?,?,?,?,?,?,?,?)", _row(kept))
            rows = [(first + i, c.salt, *_laid(c.content, dense)) for i, c in enumerate(commit.cells)]
            self._db.executemany("INSERT INTO cells VALUES(?,?,?,?)", rows)
            cell += len(rows)
            stored.append(kept)
        return stored

    def _see(self) -> None:
        """Takes in the heads of commits not seen yet, other processes' included."""
        rows = self._db.execute(
            "SELECT ordinal, session, first + count - 1, CAST(hash AS BLOB) FROM commits"
            " WHERE ordinal > ? ORDER BY ordinal",
            (self._ordinal,),
        )
        for ordinal, session, last, digest in rows:
            self._heads[session] = Head(last, digest)
            self._ordinal = ordinal

    def _note(self, stored: Sequence[Commit]) -> None:
        for commit in stored:
            self._heads[commit.session] = Head(commit.last, commit.hash)
            self._ordinal = commit.ordinal

    def tail(self, after: int, limit: int) -> list[Commit]:
        """Up to `limit` commits with an ordinal above `after`, in order, without their cells."""
        with self._naming():
            rows = self._db.execute(
                f"SELECT {_READ} FROM commits WHERE ordinal > ? ORDER BY ordinal LIMIT ?", (after, limit)
            ).fetchall()
        return [_commit(row) for row in rows]

    def cells(self, numbers: Iterable[int]) -> dict[int, Cell]:
        """The cells of these numbers; one that is not there is left out."""
        listed = "[" + ",".join(map(str, sorted(set(numbers)))) + "]"
        with self._naming():
            rows = self._db.execute(_CELLS, (listed,)).fetchall()
        return {_number(row[0]): Cell(_blob(row[1]), _lifted(_blob(row[2]), row[3])) for row in rows}

    def head(self, session: int) -> Head | None:
        """Where a session stands, or None when the log does not hold it."""
        with self._naming():
            self._see()
        return self._heads.get(session)

    @property
    def ordinal(self) -> int:
        """The ordinal of the last commit seen."""
        with self._naming():
            self._see()
        return self._ordinal

    @property
    def last_cell(self) -> int:
        """The number of the last cell; 0 where there is none."""
        with self._naming():
            return int(self._db.execute("SELECT coalesce(max(number), 0) FROM cells").get)

    def close(self) -> None:
        """Closes the file; the last one out folds the WAL into it."""
        self._db.close()

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Turns SQLite's errors into ours, naming the file and the remedy."""
        try:
            yield
        except (apsw.CorruptError, apsw.NotADBError, UnicodeDecodeError) as error:
            raise CorruptError(
                f"{self._path} is damaged ({error}); run `vmstore verify`, or put back a backup"
            ) from error
        except apsw.ConnectionClosedError as error:
            raise StoreError(f"{self._path} is closed; open it again") from error
        except apsw.CantOpenError as error:
            raise StoreError(
                f"{self._path} cannot be opened ({error}); where it may only be read, open it with mode 'r'"
            ) from error
        except (apsw.FullError, apsw.IOError) as error:
            raise StoreError(
                f"{self._path} could not be written ({error}); read it again to see whether the commit is there"
            ) from error
        except apsw.ReadOnlyError as error:
            raise ReadOnlyError(f"{self._path} is not writable ({error}); open it with mode 'r'") from error
        except (apsw.SQLError, apsw.MismatchError, apsw.SchemaChangeError) as error:
            raise CorruptError(f"{self._path} is damaged ({error}); put back a backup") from error
        except apsw.BusyError as error:
            raise StoreError(f"{self._path} is held by another writer ({error}); try again") from error


def _check_version() -> None:
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < SQLITE_MIN:
        raise StoreError(
            f"SQLite {apsw.sqlite_lib_version()} can lose commits; "
            f"install apsw {'.'.join(map(str, SQLITE_MIN))} or newer"
        )


def _connect(path: Path, readonly: bool) -> apsw.Connection:
    """A connection that waits for others; a reader's refuses writes and leaves no file behind."""
    uri = "file:" + quote(str(path.absolute()))
    writable = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    if not readonly:
        return apsw.Connection(uri, flags=writable)
    try:
        db = apsw.Connection(uri, flags=writable)
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
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        return apsw.Connection(uri + "?immutable=1", flags=flags)


def _check_format(path: Path) -> None:
    """Reads the marks from the file's first bytes, so that a file of somebody else is not touched."""
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror}); name a store you may read") from error
    if len(header) < 100 or not header.startswith(b"SQLite format 3\0"):
        raise StoreError(f"{path} is no vmstore log (no SQLite file); put back a backup, or name another store")
    application = int.from_bytes(header[68:72], "big")
    if application != APPLICATION_ID:
        raise StoreError(f"{path} is no vmstore log (application id {application}); name another store")
    version = int.from_bytes(header[60:64], "big")
    if version != FORMAT:
        raise StoreError(
            f"{path} has format {version}, this vmstore reads format {FORMAT}: "
            "install the version that wrote it, or export it there and import it here"
        )


def _row(c: Commit) -> tuple[Any, ...]:
    request = c.request if c.request >= 0 else None
    if not c.commitments:
        return c.ordinal, c.session, c.first, c.count, c.at, c.lag, request, None, None, c.body, c.hash
    return c.ordinal, c.session, c.first, c.count, c.at, c.lag, request, c.cell, c.commitments, c.body, c.hash


def _commit(row: Any) -> Commit:
    ordinal, session, first, count, at, lag, request, cell, commitments, body, digest = row
    return Commit(
        first=_number(first),
        count=_number(count),
        at=_number(at),
        lag=_number(lag),
        body=_blob(body),
        commitments=_blob(commitments),
        hash=_blob(digest),
        request=-1 if request is None else _number(request),
        session=_number(session),
        ordinal=ordinal,
        cell=0 if cell is None else _number(cell),
    )


def _laid(content: bytes, dense: bool) -> tuple[bytes, int | None]:
    """A cell's bytes as they are written, and their form."""
    if dense and len(content) >= DEFLATE_BYTES_MIN:
        packed = zlib.compress(content, 6)
        if len(packed) < len(content):
            return packed, DEFLATED
    return content, None


def _lifted(content: bytes, form: object) -> bytes:
    """A cell's bytes again; damaged ones come back as they lie, which no commitment agrees with."""
    if form is None:
        return content
    try:
        return zlib.decompress(content)
    except zlib.error:
        return content


def _number(value: object) -> int:
    """A column's integer; a damaged one becomes 0, which no hash agrees with."""
    return value if isinstance(value, int) else 0


def _blob(value: object) -> bytes:
    """A column's bytes; a damaged type becomes bytes that no hash agrees with."""
    if isinstance(value, bytes):
        return value
    return str(value).encode("utf-8", "replace") if value is not None else b""
