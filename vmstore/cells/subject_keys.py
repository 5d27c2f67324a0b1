"""The keys of a namespace's data subjects: wrapped keys, which are forgotten without trace.

A key's id is a digest of its subject under a secret of the namespace's own, so it tells nobody who that
is; the secret lies in the row of id zero. Each key is wrapped by the store key, which lies elsewhere,
together with its id, so that rows cannot change places. A dropped key keeps its row, with nothing in
it: what lay under it is destroyed, and a subject that comes back gets a key of another id, the next one.
"""

from __future__ import annotations

import threading
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from vmstore.cells.key_file import KeyFile
from vmstore.cells.key_rows import DROPPED, KeyRows
from vmstore.cells.storekey import KEY_BYTES, StoreKey
from vmstore.core.clock import IdSource
from vmstore.core.system import after_fork
from vmstore.errors import CorruptError, StoreError

ID_BYTES = 16
ROOT = bytes(ID_BYTES)


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


class Keyring:
    """The keys of a namespace, unwrapped when they are needed; any thread and several processes may use it.

    They lie in the file of a path, or where `kept` says.
    """

    def __init__(self, kept: Path | KeyRows, store_key: StoreKey, ids: IdSource) -> None:
        self._rows: KeyRows = KeyFile(kept) if isinstance(kept, Path) else kept
        self.place = self._rows.place
        self._store_key = store_key
        self._ids = ids
        self._lock = threading.RLock()  # a key that is read as it is dropped would stay
        self._keys: dict[bytes, bytes | None] = {}
        after_fork.inherits(self)
        try:
            self._secret = self._unwrapped(ROOT, self._rows.row(ROOT))
        except BaseException:
            self._rows.close()
            raise

    @staticmethod
    def create(path: Path, store_key: StoreKey, ids: IdSource) -> None:
        """Makes the file of a new namespace."""
        KeyFile.create(path, ROOT, root_key(store_key, ids))

    def close(self) -> None:
        """Forgets the keys and closes what they lie in; closing twice does nothing."""
        with self._lock:
            self._keys.clear()
        self._rows.close()

    def forked(self) -> None:
        """Forgets the keys in a forked process, which opens its own."""
        self._lock = threading.RLock()
        self._keys.clear()

    # ---- names

    def name(self, subject: bytes) -> bytes:
        """The id of a subject's first key."""
        return self._digest(b"subject\0" + subject)

    def _digest(self, text: bytes) -> bytes:
        import hmac

        return hmac.digest(self._secret, text, sha256)[:ID_BYTES]

    # ---- keys

    def key(self, name: bytes) -> bytes | None:
        """The key of an id; DROPPED where it was destroyed, None where there is none."""
        with self._lock:
            if name not in self._keys:
                wrapped = self._rows.row(name)
                self._keys[name] = self._readable(name, wrapped) if wrapped else wrapped
            return self._keys[name]

    def wrapped(self, name: bytes) -> bytes:
        """A key as it is kept, for copying it elsewhere; nothing where there is none."""
        return self._rows.row(name) or DROPPED

    def opens(self, name: bytes, wrapped: bytes) -> bool:
        """Whether the store key opens a key that was carried elsewhere, and it is that of an id."""
        try:
            return unwrapped(self._store_key, name, wrapped, self.place) == self.key(name)
        except (StoreError, CorruptError):
            return False

    def in_use(self, name: bytes) -> bytes:
        """The id under which a subject is written now: a dropped key has a successor. A new key is durable first."""
        while (key := self.key(name)) == DROPPED:
            name = self._digest(b"next\0" + name)
        if key is None:
            self._unwrapped(ROOT, self._rows.row(ROOT))  # else under a store key that was changed meanwhile
            # another process may be first; what lies there then is the key
            wrapped = _wrapped(self._store_key, name, b"".join(self._ids.salts(2)))
            with self._lock:
                self._rows.add(name, wrapped)
                self._keys.pop(name, None)
            return self.in_use(name)
        return name

    def drop(self, name: bytes) -> bool:
        """Destroys a key: what lies under it is gone; whether there was one."""
        with self._lock:
            dropped = self._rows.drop(name)
            self._keys.pop(name, None)
            return dropped

    def refresh(self) -> bool:
        """Forgets the keys at hand where another process has changed rows, as one may be dropped; whether it did.

        Who writes holds the lock of the log while a key is dropped, so that nothing is written under it after.
        """
        with self._lock:
            changed = self._rows.changed()
            if changed:
                self._keys.clear()
            return changed

    def forget(self) -> None:
        """Forgets the keys at hand: they are read again."""
        with self._lock:
            self._keys.clear()

    def count(self) -> int:
        """How many subjects' keys there are, dropped ones left out."""
        return self._rows.count() - 1

    def rewrapped(self, name: bytes, store_key: StoreKey) -> bytes:
        """A key wrapped by another store key."""
        return _wrapped(store_key, name, self.key(name) or DROPPED)

    def rewrap(self, store_key: StoreKey) -> int:
        """Wraps every key by another store key, all or none; how many. What they were wrapped by is not kept."""
        with self._lock:
            count = self._rows.rewrap(lambda name, wrapped: _wrapped(store_key, name, self._unwrapped(name, wrapped)))
            self._store_key = store_key
            return count - 1

    def _readable(self, name: bytes, wrapped: bytes) -> bytes:
        """A subject's key; the store key is known to be the right one."""
        try:
            return self._unwrapped(name, wrapped)
        except StoreError as error:
            self._unwrapped(ROOT, self._rows.row(ROOT))  # as another store key may have been set meanwhile
            raise CorruptError(
                f"{self.place} gives no key {name.hex()} ({error.__cause__}): put it back from a backup, or where a "
                "key service is asked, try again"
            ) from error

    def _unwrapped(self, name: bytes, wrapped: bytes | None) -> bytes:
        """A key; raises StoreError where this store key does not open it."""
        return unwrapped(self._store_key, name, wrapped or b"", self.place)


def root_key(store_key: StoreKey, ids: IdSource) -> bytes:
    """The wrapped secret of a new namespace, for the row of id ROOT."""
    return _wrapped(store_key, ROOT, b"".join(ids.salts(2)))


def unwrapped(store_key: StoreKey, name: bytes, wrapped: bytes, place: str) -> bytes:
    """A key of a namespace; raises StoreError where this store key does not open it."""
    try:
        found = store_key.unwrap(wrapped)
    except Exception as error:
        raise StoreError(
            f"{place} is not opened by this store key ({str(error) or type(error).__name__}); open the store "
            "with the key it has now, or put them back from a backup",
            code="other-store-key",
        ) from error
    if len(found) != ID_BYTES + KEY_BYTES or found[:ID_BYTES] != name:
        raise CorruptError(
            f"{place} is damaged (a key stands in another's place); put it back from a backup", code="keys-damaged"
        )
    return found[ID_BYTES:]


def _wrapped(store_key: StoreKey, name: bytes, key: bytes) -> bytes:
    try:
        return store_key.wrap(name + key)
    except Exception as error:
        raise StoreError(f"the store key could not wrap a new key ({error}); nothing was written") from error
