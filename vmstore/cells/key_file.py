"""The file of a namespace's keys, which forgets without trace.

keys.sqlite   keys  id (16 bytes) | wrapped
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from vmstore.cells import schema
from vmstore.cells.key_rows import DROPPED
from vmstore.core.system import after_fork
from vmstore.errors import CorruptError, StoreError

APPLICATION_ID = 0x766D736B  # "vmsk"
BUSY_MS = 10_000

# No WAL, where a key would stay for a while; EXTRA, so that no journal brings a dropped key back.
_SETTINGS = "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA; PRAGMA secure_delete = ON;"
_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = 1;
CREATE TABLE keys(id BLOB PRIMARY KEY, wrapped BLOB NOT NULL) WITHOUT ROWID;
"""
MADE = schema.made_by(_SCHEMA)


class KeyFile(after_fork.Owner):
    """Wrapped keys in a file; any thread and several processes may use it. A forked process opens its own."""

    lock_order = after_fork.KEYS

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._db = _opened(path)
        after_fork.owns(self)
        try:
            with self._translated_errors():
                self._version = self._read_version()
        except BaseException:
            self._db.close()
            raise

    @staticmethod
    def create(path: Path, name: bytes, wrapped: bytes) -> None:
        """Makes the file of a new namespace, with its first row."""
        db = apsw.Connection(str(path))
        try:
            db.execute(_SETTINGS + _SCHEMA).fetchall()
            db.execute("INSERT INTO keys VALUES(?, ?)", (name, wrapped))
        finally:
            db.close()

    @property
    def place(self) -> str:
        """The path."""
        return str(self.path)

    def close(self) -> None:
        """Closes the file; closing twice does nothing."""
        with self._lock:
            self._db.close()

    @property
    def entry(self) -> after_fork.ReentrantLock:
        """The lock under which the file is used."""
        return self._lock

    def connections(self) -> list[apsw.Connection]:
        """The connection to the file."""
        return [self._db]

    def forked(self, quiet: bool) -> None:
        """Is of no use in a forked process."""
        if not quiet:
            self._lock, self._db = threading.RLock(), apsw.Connection(":memory:")
            self._db.close()

    def row(self, name: bytes) -> bytes | None:
        """The wrapped key of an id."""
        with self._lock, self._translated_errors():
            row = self._db.execute("SELECT CAST(wrapped AS BLOB) FROM keys WHERE id = ?", (name,)).fetchone()
            return None if row is None else row[0]

    def add(self, name: bytes, wrapped: bytes) -> None:
        """Adds a key, durable, where there is none of the id."""
        with self._lock, self._translated_errors():
            self._db.execute("INSERT OR IGNORE INTO keys VALUES(?, ?)", (name, wrapped))

    def drop(self, name: bytes) -> bool:
        """Empties a row."""
        with self._lock, self._translated_errors():
            self._db.execute("UPDATE keys SET wrapped = ? WHERE id = ? AND wrapped != ?", (DROPPED, name, DROPPED))
            return self._db.changes() > 0

    def changed(self) -> bool:
        """Whether another process has changed the file since this was last asked."""
        with self._lock, self._translated_errors():
            version = self._read_version()
            before, self._version = self._version, version
            return version != before

    def count(self) -> int:
        """How many rows are not empty."""
        with self._lock, self._translated_errors():
            return int(self._db.execute("SELECT count(*) FROM keys WHERE wrapped != ?", (DROPPED,)).get)

    def rewrap(self, again: Callable[[bytes, bytes], bytes]) -> int:
        """Puts another wrapped key in the place of each, all or none; how many."""
        with self._lock, self._translated_errors(), self._db:
            rows = list(self._db.execute("SELECT id, wrapped FROM keys WHERE wrapped != ?", (DROPPED,)))
            for name, wrapped in rows:
                self._db.execute("UPDATE keys SET wrapped = ? WHERE id = ?", (again(name, wrapped), name))
        return len(rows)

    def _read_version(self) -> int:
        return int(self._db.execute("PRAGMA data_version").get)

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Turns SQLite's errors into ours."""
        try:
            yield
        except (apsw.CorruptError, apsw.NotADBError, apsw.SQLError) as error:
            raise CorruptError(f"{self.path} is damaged ({error}); put it back from a backup") from error
        except (apsw.ConnectionClosedError, apsw.CursorClosedError) as error:
            raise StoreError(f"{self.path} is closed; open the store again") from error
        except apsw.Error as error:
            raise StoreError(f"{self.path} cannot be used ({error}); mend the disk, then try again") from error


def _opened(path: Path) -> apsw.Connection:
    """A connection to the file, one that only reads where it may not be written."""
    if not path.is_file():
        raise StoreError(
            f"{path} is missing, which holds the keys of this namespace; put it back from a backup", code="keys-missing"
        )
    if (reason := after_fork.busy(path)) is not None:
        raise StoreError(reason)
    uri = path.absolute().as_uri()
    for flags, query in ((apsw.SQLITE_OPEN_READWRITE, ""), (apsw.SQLITE_OPEN_READONLY, "?immutable=1")):
        db = None
        try:
            db = apsw.Connection(uri + query, flags=flags | apsw.SQLITE_OPEN_URI)
            schema.guard(db)
            db.setbusytimeout(BUSY_MS)
            if not query:
                db.execute(_SETTINGS).fetchall()
            if db.execute("PRAGMA application_id").get == APPLICATION_ID:
                schema.check(db, path, MADE)
                return db
            db.close()
            break
        except (apsw.CantOpenError, apsw.ReadOnlyError):
            if db is not None:
                db.close()
        except apsw.Error as error:
            raise CorruptError(
                f"{path} is damaged ({error}); put it back from a backup", code="keys-damaged"
            ) from error
        except CorruptError:
            assert db is not None, "it holds something"
            db.close()
            raise
    raise CorruptError(f"{path} is no file of keys, or cannot be opened; put it back from a backup")
