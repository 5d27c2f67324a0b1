"""The keys of a namespace's data subjects: a small file of wrapped keys, which forgets without trace.

    keys.sqlite   keys  id (16 bytes) | wrapped

A key's id is a digest of its subject under a secret of the file's own, so it tells nobody who that
is; the secret lies in the row of id zero. Each key is wrapped by the store key, which lies elsewhere,
together with its id, so that rows cannot change places. A dropped key keeps its row, with nothing in
it: what lay under it is destroyed, and a subject that comes back gets a key of another id, the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import apsw

from vmstore.cells import schema
from vmstore.cells.storekey import KEY_BYTES, StoreKey
from vmstore.core.clock import IdSource
from vmstore.core.system import after_fork
from vmstore.errors import CorruptError, StoreError

APPLICATION_ID = 0x766D736B  # "vmsk"
ID_BYTES = 16
BUSY_MS = 10_000
ROOT = bytes(ID_BYTES)
DROPPED = b""

# No WAL, where a key would stay for a while; EXTRA, so that no journal brings a dropped key back.
_SETTINGS = "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA; PRAGMA secure_delete = ON;"
_SCHEMA = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = 1;
CREATE TABLE keys(id BLOB PRIMARY KEY, wrapped BLOB NOT NULL) WITHOUT ROWID;
"""
MADE = schema.made_by(_SCHEMA)


class Keys(Protocol):
    """Keys by their ids."""

    def key(self, name: bytes) -> bytes | None:
        """The key of an id; DROPPED where it was destroyed, None where there is none."""
        ...

    def refresh(self) -> bool:
        """Looks whether keys changed meanwhile; whether they did."""
        ...

    def close(self) -> None:
        """Forgets the keys."""
        ...


class Keyring(after_fork.Owner):
    """The keys in a file, unwrapped when they are needed; any thread and several processes may use it.

    A forked process opens its own.
    """

    lock_order = after_fork.KEYS

    def __init__(self, path: Path, store_key: StoreKey, ids: IdSource) -> None:
        self.path = path
        self._store_key = store_key
        self._ids = ids
        self._lock = threading.RLock()
        self._keys: dict[bytes, bytes | None] = {}
        self._db = _opened(path)
        after_fork.owns(self)
        try:
            with self._translated_errors():
                self._version = self._read_version()
                self._secret = self._unwrapped(ROOT, self._row(ROOT))
        except BaseException:
            self._db.close()
            raise

    @staticmethod
    def create(path: Path, store_key: StoreKey, ids: IdSource) -> None:
        """Makes the file of a new namespace."""
        wrapped = _wrapped(store_key, ROOT, b"".join(ids.salts(2)))
        db = apsw.Connection(str(path))
        try:
            db.execute(_SETTINGS + _SCHEMA).fetchall()
            db.execute("INSERT INTO keys VALUES(?, ?)", (ROOT, wrapped))
        finally:
            db.close()

    def close(self) -> None:
        """Forgets the keys and closes the file; closing twice does nothing."""
        with self._lock:
            self._keys.clear()
            self._db.close()

    @property
    def entry(self) -> after_fork.ReentrantLock:
        """The lock under which the file is used."""
        return self._lock

    def connections(self) -> list[apsw.Connection]:
        """The connection to the file."""
        return [self._db]

    def forked(self, quiet: bool) -> None:
        """Forgets the keys, and is of no use in a forked process."""
        self._keys.clear()
        if not quiet:
            self._lock, self._db = threading.RLock(), apsw.Connection(":memory:")
            self._db.close()

    # ---- names

    def name(self, subject: bytes) -> bytes:
        """The id of a subject's first key."""
        return self._digest(b"subject\0" + subject)

    def _digest(self, text: bytes) -> bytes:
        import hmac

        return hmac.digest(self._secret, text, sha256)[:ID_BYTES]

    # ---- keys

    def key(self, name: bytes) -> bytes | None:
        """The key of an id; DROPPED where it was destroyed, None where the file holds none."""
        with self._lock:
            if name not in self._keys:
                with self._translated_errors():
                    wrapped = self._row(name)
                    self._keys[name] = self._readable(name, wrapped) if wrapped else wrapped
            return self._keys[name]

    def wrapped(self, name: bytes) -> bytes:
        """A key as the file holds it, for copying it elsewhere; nothing where there is none."""
        with self._lock, self._translated_errors():
            return self._row(name) or DROPPED

    def opens(self, name: bytes, wrapped: bytes) -> bool:
        """Whether the store key opens a key that was carried elsewhere, and it is that of an id."""
        try:
            return unwrapped(self._store_key, name, wrapped, self.path) == self.key(name)
        except (StoreError, CorruptError):
            return False

    def in_use(self, name: bytes) -> bytes:
        """The id under which a subject is written now: a dropped key has a successor. A new key is durable first."""
        while (key := self.key(name)) == DROPPED:
            name = self._digest(b"next\0" + name)
        if key is None:
            wrapped = _wrapped(self._store_key, name, b"".join(self._ids.salts(2)))
            with self._lock, self._translated_errors():  # another process may be first; what lies there then is the key
                self._db.execute("INSERT OR IGNORE INTO keys VALUES(?, ?)", (name, wrapped))
                self._keys.pop(name, None)
            return self.in_use(name)
        return name

    def drop(self, name: bytes) -> bool:
        """Destroys a key: what lies under it is gone; whether there was one."""
        with self._lock, self._translated_errors():
            self._db.execute("UPDATE keys SET wrapped = ? WHERE id = ? AND wrapped != ?", (DROPPED, name, DROPPED))
            self._keys.pop(name, None)
            return self._db.changes() > 0

    def refresh(self) -> bool:
        """Forgets the keys at hand where another process has changed the file, as one may be dropped; whether it did.

        Who writes holds the lock of the log while a key is dropped, so that nothing is written under it after.
        """
        with self._lock, self._translated_errors():
            version = self._read_version()
            changed = version != self._version
            if changed:
                self._version = version
                self._keys.clear()
            return changed

    def count(self) -> int:
        """How many subjects' keys there are, dropped ones left out."""
        with self._lock, self._translated_errors():
            return int(self._db.execute("SELECT count(*) FROM keys WHERE wrapped != ?", (DROPPED,)).get) - 1

    def rewrapped(self, name: bytes, store_key: StoreKey) -> bytes:
        """A key wrapped by another store key."""
        return _wrapped(store_key, name, self.key(name) or DROPPED)

    def rewrap(self, store_key: StoreKey) -> int:
        """Wraps every key by another store key, all or none; how many. What they were wrapped by is not kept."""
        with self._lock, self._translated_errors():
            with self._db:
                rows = list(self._db.execute("SELECT id, wrapped FROM keys WHERE wrapped != ?", (DROPPED,)))
                for name, wrapped in rows:
                    row = (_wrapped(store_key, name, self._unwrapped(name, wrapped)), name)
                    self._db.execute("UPDATE keys SET wrapped = ? WHERE id = ?", row)
            self._store_key = store_key
        return len(rows) - 1

    # ---- the file

    def _row(self, name: bytes) -> bytes | None:
        row = self._db.execute("SELECT CAST(wrapped AS BLOB) FROM keys WHERE id = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def _readable(self, name: bytes, wrapped: bytes) -> bytes:
        """A subject's key; the store key is known to be the right one."""
        try:
            return self._unwrapped(name, wrapped)
        except StoreError as error:
            self._unwrapped(ROOT, self._row(ROOT))  # as another store key may have been set meanwhile
            raise CorruptError(
                f"{self.path} gives no key {name.hex()} ({error.__cause__}): put it back from a backup, or where a "
                "key service is asked, try again"
            ) from error

    def _unwrapped(self, name: bytes, wrapped: bytes | None) -> bytes:
        """A key; raises StoreError where this store key does not open it."""
        return unwrapped(self._store_key, name, wrapped or b"", self.path)

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


def unwrapped(store_key: StoreKey, name: bytes, wrapped: bytes, path: Path) -> bytes:
    """A key of a file; raises StoreError where this store key does not open it."""
    try:
        found = store_key.unwrap(wrapped)
    except Exception as error:
        raise StoreError(
            f"{path} is not opened by this store key ({str(error) or type(error).__name__}); open the store "
            "with the key it has now, or put the file back from a backup",
            code="other-store-key",
        ) from error
    if len(found) != ID_BYTES + KEY_BYTES or found[:ID_BYTES] != name:
        raise CorruptError(
            f"{path} is damaged (a key stands in another's place); put it back from a backup", code="keys-damaged"
        )
    return found[ID_BYTES:]


def _wrapped(store_key: StoreKey, name: bytes, key: bytes) -> bytes:
    try:
        return store_key.wrap(name + key)
    except Exception as error:
        raise StoreError(f"the store key could not wrap a new key ({error}); nothing was written") from error
