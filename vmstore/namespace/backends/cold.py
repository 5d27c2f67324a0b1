"""The backend of cold tiers: what was published of a store, only read, as of a manifest.

Objects are fetched into a cache of this machine when they are read, and views of the manifest are kept there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path

import apsw

from vmstore.cells.storekey import StoreKey
from vmstore.cells.subject_keys import Keyring
from vmstore.cold.catalogue import opened as names_of
from vmstore.cold.log import ColdLog, opened
from vmstore.cold.manifest import FoundManifest, PublishedSession
from vmstore.cold.place import ColdAddress, cold_address
from vmstore.cold.tier import ColdTier, namespaces
from vmstore.core.clock import Clock, IdSource
from vmstore.errors import ReadOnlyError, StoreError
from vmstore.log.port import Log
from vmstore.log.sqlite import SqliteLog
from vmstore.namespace.backends.folder import in_memory
from vmstore.namespace.backends.port import Attachment, FoundFiles, K, Opening, Sizes
from vmstore.namespace.folder import sizes
from vmstore.namespace.reports import Capability, PublishedViews
from vmstore.namespace.view_file import open_views
from vmstore.objects.port import Objects
from vmstore.views.projection import ROOM_BYTES, ROOM_RATIO, Projection


class ColdPlace:
    """A namespace in a cold tier, as of a manifest."""

    directory = None
    parted = True

    def __init__(self, backend: ColdBackend, name: str, found: FoundManifest, store_key: StoreKey | None) -> None:
        self.backend = backend
        self.name = name
        self.found = found
        self.copies = backend.parts.copies(backend.objects, name)
        self.cache = self.copies.views(found)
        self._store_key = store_key

    @property
    def identity(self) -> str:
        """The digest of the manifest, which no other namespace has."""
        return f"cold {self.found.sha256}"

    def absolute(self) -> ColdPlace:
        """The same: its cache is named by its whole path."""
        return self

    def mark(self) -> None:
        """Refused."""
        raise ReadOnlyError(f"{self.backend.address} is only read; erase in the store it came from")

    unmark = mark

    def marked(self) -> bool:
        """Returns False: erasures happen in the store it came from."""
        return False

    def sizes(self) -> Sizes:
        """Bytes of the archives, and of the views on this machine."""
        return Sizes(self.archive_bytes(), sizes(self.cache)[1], 0)

    def archive_bytes(self) -> int:
        """Bytes of the archives of its sessions."""
        return sum(session.archive.size for session in self.found.manifest.sessions)

    beyond = ()

    def publish_views(self, views: apsw.Connection) -> PublishedViews:
        """Refused."""
        raise ReadOnlyError(f"{self.backend.address} is only read; publish the views of the store it came from")

    def unpublish_views(self) -> None:
        """Refused."""
        self.mark()

    def archiving(self, log: Log) -> SqliteLog | None:
        """None: what is here is archived."""
        return None

    @cached_property
    def names(self) -> dict[str, str]:
        """The uid of each session by its name."""
        stored = self.found.manifest.catalogue
        content = self.copies.path(stored).read_bytes()
        uids = names_of(content, f"{self.backend.address}/{stored.name}", self._store_key)
        return {name: uid for uid, name in uids.items()}

    def column_files(self) -> FoundFiles | None:
        """The published segments, fetched; None where there are none, or of another version."""
        from vmstore.columns.schema import SCHEMA, TABLES

        manifest = self.found.manifest
        if not manifest.segments or any(not one.name.startswith(f"{SCHEMA}-") for one in manifest.segments):
            return None
        files = {name: [self.copies.path(one.files[name]) for one in manifest.segments] for name in TABLES}
        starts = accumulate((one.commits for one in manifest.sessions), initial=1)
        keys = [
            (one.key, start, one.position, one.mutations) for one, start in zip(manifest.sessions, starts, strict=False)
        ]
        return files, keys

    def alone(self, session: str) -> Attachment | None:
        """A session from its archive alone, with what it inherits; None where none has the name.

        None too of one whose archive does not hold what it was forked from, because it inherited nothing of that.
        """
        uid = self.names.get(session)
        found = next((one for one in self.found.manifest.sessions if one.uid == uid), None)
        if found is None or found.parent not in (None, *found.past):
            return None
        make = partial(self._alone, found)
        return Attachment(None, make, make)

    def _alone(self, session: PublishedSession) -> tuple[Log, Projection]:
        path = self.fetched(session)
        log = opened(self.backend.address, session, path, self._store_key)
        return log, in_memory(log, path)

    def fetched(self, session: PublishedSession) -> Path:
        """The path of the copy of a session's archive."""
        return self.copies.path(session.archive)

    def open(self, opening: Opening) -> tuple[Log, Projection]:
        """Its log and its views, which are kept where its contents are not encrypted."""
        sessions = self.found.manifest.sessions
        log = ColdLog(self.backend.address, sessions, self.fetched, self._store_key)

        def room() -> int:
            return ROOM_BYTES + ROOM_RATIO * self.archive_bytes()

        try:
            if opening.believed and self._store_key is None:
                self.cache.mkdir(parents=True, exist_ok=True)
                return log, open_views(self.cache, log, readonly=False, wait_s=opening.wait_s, room=room)
            return log, Projection(log, apsw.Connection(":memory:"), room=room)
        except BaseException:
            log.close()
            raise


class ColdBackend:
    """A store in a cold tier."""

    def __init__(self, address: str | os.PathLike[str]) -> None:
        self.given = address
        self.parts: ColdAddress = cold_address(address)
        self._found: dict[str, FoundManifest] = {}

    def __getstate__(self) -> str:
        return os.fspath(self.given)

    def __setstate__(self, address: str) -> None:
        self.__init__(address)  # type: ignore[misc]

    @cached_property
    def objects(self) -> Objects:
        """The object store."""
        return self.parts.store()

    @property
    def address(self) -> str:
        """The address as messages name it."""
        return self.objects.address

    @property
    def identity(self) -> str:
        """The address, with the manifest where one is named."""
        return f"{self.parts.objects}#{self.parts.manifest or ''}"

    named = None

    def capabilities(self, clock: Clock) -> list[Capability]:
        """A tier is only read, and is as old as its manifest."""
        tiers = [(name, self.found(name).manifest) for name in self.namespaces()]
        total = sum(stored.size for _, manifest in tiers for stored in manifest.objects)
        numbers = ", ".join(f"{name} {manifest.number}" for name, manifest in tiers)
        return [
            Capability("server", True, "an object store"),
            Capability("manifest", bool(tiers), numbers or "none", None if tiers else "publish a store there"),
            Capability("reads", True, "yes"),
            Capability("writes", False, "no: publish from the store it came from"),
            Capability("erases", False, "no: erase in the store it came from, which clears its cold tiers"),
            Capability("bytes", True, f"{total:,}"),
        ]

    def tier(self, namespace: str) -> ColdTier:
        """A namespace of it."""
        return ColdTier(self.objects, namespace)

    def found(self, namespace: str) -> FoundManifest:
        """The manifest that is asked for, read once; raises StoreError or UnknownError where there is none."""
        if namespace not in self._found:
            self._found[namespace] = self.tier(namespace).manifest(self.parts.manifest)
        return self._found[namespace]

    def namespaces(self) -> list[str]:
        """The names of what was published."""
        return namespaces(self.objects)

    def check(self, namespace: str | None = None) -> None:
        """Raises StoreError where nothing was published, or not such a namespace."""
        if namespace is not None:
            self.found(namespace)
        elif not self.namespaces():
            self.found("default")

    def exists(self, namespace: str) -> bool:
        """Whether such a namespace was published."""
        return bool(self.tier(namespace).numbers())

    def mode(self, namespace: str) -> str:
        """Returns 'r': a cold tier is only read."""
        self.found(namespace)
        return "r"

    def check_writable(self, namespace: str) -> None:
        """Raises ReadOnlyError."""
        raise self._refused()

    def key_for(self, namespace: str, key: K | None) -> K | None:
        """The key, where what was published is encrypted."""
        return key if self.found(namespace).manifest.encrypted else None

    def keyring(self, namespace: str, store_key: StoreKey, ids: IdSource) -> Keyring:
        """ReadOnlyError: the keys of what was published are those of its store."""
        raise self._refused()

    def attach(self, namespace: str, opening: Opening) -> Attachment:
        """Finds a namespace as of the manifest that is asked for."""
        if not opening.readonly:
            raise self._refused()
        found = self.found(namespace)
        encrypted = found.manifest.encrypted
        if encrypted != (opening.store_key is not None):
            raise StoreError(
                f"{self.address} is encrypted; name the file of its store's key with --store-key or in "
                "VMSTORE_KEY_FILE, in Python with vmstore.open(…, key=…)"
                if encrypted
                else f"{self.address} is not encrypted; leave the key out",
                code="not-encrypted",
            )
        place = ColdPlace(self, namespace, found, opening.store_key)
        if self.parts.manifest is None:
            place.copies.keep_only(found)
        again: Callable[[], tuple[Log, Projection]] = partial(place.open, opening)
        return Attachment(place, again, again)

    def _refused(self) -> ReadOnlyError:
        return ReadOnlyError(
            f"{self.address} is a cold tier, which is only read: open it with mode 'r', or the store it came from",
            code="archive-is-read",
        )
