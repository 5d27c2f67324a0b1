"""The SQLite backend: a store is a folder, a namespace a directory in it with its log, its views and all the rest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw

from vmstore.cells.storekey import StoreKey
from vmstore.cells.subject_keys import Keyring
from vmstore.core.clock import Clock, IdSource
from vmstore.errors import InputError, ReadOnlyError, StoreError
from vmstore.log.blobs import flush
from vmstore.log.port import Log
from vmstore.log.sqlite import SqliteLog
from vmstore.namespace.backends.outside_archives import reach_outside
from vmstore.namespace.backends.port import Attachment, Opening, Sizes
from vmstore.namespace.encryption import KEYS, Key, encrypted, key_for, making, none_plain_beside, vault_of
from vmstore.namespace.folder import ARCHIVE, ERASING, LOG, find, is_archive, namespaces, sizes
from vmstore.namespace.reports import Capability, PublishedViews
from vmstore.namespace.view_file import open_views
from vmstore.views.projection import Projection, room_of

K = TypeVar("K", bound=Key)


class FolderPlace:
    """A namespace's directory."""

    beyond = ()
    parted = False

    def __init__(self, backend: FolderBackend, folder: Path) -> None:
        self.backend = backend
        self.name = folder.name
        self.cache = folder
        self.directory = folder

    @property
    def identity(self) -> str:
        """The path, links followed."""
        return os.path.realpath(self.directory)

    def absolute(self) -> FolderPlace:
        """The same by its whole path."""
        return FolderPlace(FolderBackend(self.backend.path.absolute()), self.directory.absolute())

    def mark(self) -> None:
        """Says that an erasure is under way."""
        with self._marking() as mark:
            mark.touch()
            flush(self.directory)

    def unmark(self) -> None:
        """Says that it is done."""
        with self._marking() as mark:
            mark.unlink(missing_ok=True)
            flush(self.directory)

    def marked(self) -> bool:
        """Whether an erasure was begun and not finished."""
        return (self.directory / ERASING).exists()

    @contextmanager
    def _marking(self) -> Iterator[Path]:
        mark = self.directory / ERASING
        try:
            yield mark
        except OSError as error:
            raise StoreError(
                f"{mark}, which says that an erasure is under way, could not be changed ({error.strerror}); mend the "
                "disk, then run `vmstore erase --finish`"
            ) from error

    def sizes(self) -> Sizes:
        """Bytes on disk of its log, views and blobs."""
        return Sizes(*sizes(self.directory))

    def publish_views(self, views: apsw.Connection) -> PublishedViews:
        """Refuses: who opens the folder has its views."""
        raise InputError(
            f"the views of {self.directory} lie beside its log, for everybody who opens it; only those of a database "
            "are published",
            code="views-beside",
        )

    def unpublish_views(self) -> None:
        """Does nothing."""

    def archiving(self, log: Log) -> SqliteLog | None:
        """The log itself."""
        return log if isinstance(log, SqliteLog) else None

    def column_files(self) -> None:
        """None: segments are cut here."""

    def alone(self, session: str) -> Attachment | None:
        """None: views of all sessions are at hand."""
        return None


class FolderBackend:
    """A store in a folder, or the archive of one session in a file."""

    named = None

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def address(self) -> str:
        """The path."""
        return str(self.path)

    def namespaces(self) -> list[str]:
        """The names of the folders in it that hold a log; an archive is one namespace."""
        return ["default"] if is_archive(self.path) else namespaces(self.path)

    @property
    def identity(self) -> str:
        """The path, links followed."""
        return os.path.realpath(self.path)

    def check(self, namespace: str | None = None) -> None:
        """Raises StoreError where there is no such store, or no such namespace in it."""
        if not is_archive(self.path):
            first = next(iter(namespaces(self.path) if self.path.is_dir() else ()), "default")
            find(self.path, namespace or first, create=False)

    def exists(self, namespace: str) -> bool:
        """Whether there is such a namespace; raises StoreError where the path cannot be a store."""
        if not self.path.exists() and not self.path.is_symlink():
            return False
        if self.path.is_dir() and (names := namespaces(self.path)) and namespace not in names:
            return False
        find(self.path, namespace, create=False)
        return True

    def mode(self, namespace: str) -> str:
        """Whether the files may be written."""
        return "r" if is_archive(self.path) or not self._writable(namespace) else "rw"

    def check_writable(self, namespace: str) -> None:
        """Raises ReadOnlyError where the files may not be written."""
        if is_archive(self.path):
            raise ReadOnlyError(f"{self.path} is an archive, which is only read; name the store it came from")
        if not self._writable(namespace):
            raise ReadOnlyError(
                f"{self.path / namespace} is not writable for you; copy the store, or change its permissions"
            )

    def _writable(self, namespace: str) -> bool:
        folder = find(self.path, namespace, create=False)
        return os.access(folder, os.W_OK) and os.access(folder / LOG, os.W_OK)

    def key_for(self, namespace: str, key: K | None) -> K | None:
        """The key, where the namespace is encrypted or is yet to be made."""
        return key_for(self.path, namespace, key)

    def capabilities(self, clock: Clock) -> list[Capability]:
        """As far as the files allow; there is one clock."""
        names = self.namespaces()
        keys = [name for name in names if (self.path / name / KEYS).is_file()]
        writes = not is_archive(self.path) and all(os.access(self.path / name / LOG, os.W_OK) for name in names)
        total = sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())
        return [
            Capability("server", True, f"none: SQLite {apsw.sqlite_lib_version()} in this process"),
            Capability("durable flush", True, "synchronous = FULL"),
            Capability("replication", False, "none: `vmstore backup`, or `vmstore migrate` again and again"),
            Capability("clock", True, "this host's own"),
            Capability("reads", True, "yes"),
            Capability("writes", writes, "yes" if writes else "no: the files may not be written"),
            Capability("erases", writes, "yes" if writes else "no: the files may not be written"),
            Capability("rows of one role", False, "no: by the permissions of folders, a folder a namespace"),
            Capability("bytes", True, f"{total:,}"),
            Capability("group commit", True, "threads of a process share a flush"),
            Capability("long contents", True, "files beside the log"),
            Capability(
                "encryption", bool(keys), f"of {', '.join(keys)}" if keys else "off; `vmstore encrypt` turns it on"
            ),
            Capability("archives", True, "`vmstore archive`"),
            Capability("cold tier", True, "archives, a file a session"),
            Capability("backup", True, "`vmstore backup`"),
        ]

    def keyring(self, namespace: str, store_key: StoreKey, ids: IdSource) -> Keyring:
        """The keys of an encrypted namespace, in their file."""
        folder = find(self.path, namespace, create=False)
        if not encrypted(folder):
            raise StoreError(f"{folder} is not encrypted; `vmstore encrypt` does that", code="not-encrypted")
        return Keyring(folder / KEYS, store_key, ids)

    def attach(self, namespace: str, opening: Opening) -> Attachment:
        """Finds a namespace, which is made where there is none, encrypted with a key."""
        if is_archive(self.path):
            return self._archived(opening)
        readonly, store_key, ids = opening.readonly, opening.store_key, opening.ids
        if store_key is None and not readonly:
            none_plain_beside(self.path, namespace)
        folder = find(self.path, namespace, create=not readonly, make=making(store_key, ids))
        again = partial(_opened, folder.absolute(), opening)  # by then the process may be elsewhere
        return Attachment(FolderPlace(self, folder), partial(_opened, folder, opening), again)

    def _archived(self, opening: Opening) -> Attachment:
        """An archive as a store of its session; its views are folded in memory."""
        from vmstore.log.archive.file import ArchiveLog

        if not opening.readonly:
            raise ReadOnlyError(
                f"{self.path} is an archive, which is only read: open it with mode 'r', or the store it came from",
                code="archive-is-read",
            )

        def opened(path: Path) -> tuple[Log, Projection]:
            log = ArchiveLog(path, store_key=opening.store_key)
            return log, in_memory(log, path)

        return Attachment(None, partial(opened, self.path), partial(opened, self.path.absolute()))


def _opened(folder: Path, opening: Opening) -> tuple[Log, Projection]:
    vault = vault_of(folder, opening.store_key, opening.ids)
    log = SqliteLog(folder / LOG, readonly=opening.readonly, vault=vault, wait_s=opening.wait_s)
    reach_outside(log, folder.name)
    try:
        if opening.believed and vault is None:
            return log, open_views(folder, log, readonly=opening.readonly, wait_s=opening.wait_s)
        return log, in_memory(log, *([folder / LOG, folder / ARCHIVE] if vault is None else []))
    except BaseException:
        log.close()
        raise


def in_memory(log: Log, *files: Path) -> Projection:
    """Views in memory, bounded where the log lies in files."""
    return Projection(log, apsw.Connection(":memory:"), room=room_of(*files) if files else None)
