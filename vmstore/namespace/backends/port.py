"""The ports of what keeps the logs of a store: a `Backend` for the store, a `Place` for each namespace.

A store's address chooses its backend, see `vmstore.namespace.backends.address`. The log itself is the port of
`vmstore.log.port`; everything that is folded from it lies on this machine, in the place's `cache`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import apsw

from vmstore.cells.storekey import StoreKey
from vmstore.cells.subject_keys import Keyring
from vmstore.core.clock import Clock, IdSource
from vmstore.errors import InputError
from vmstore.namespace.reports import Capability, PublishedViews

if TYPE_CHECKING:
    from vmstore.log.port import Log
    from vmstore.log.sqlite import SqliteLog
    from vmstore.views.projection import Projection

K = TypeVar("K", bound="str | os.PathLike[str] | StoreKey")


FoundFiles = tuple[dict[str, list[Path]], list[tuple[int, int, int, int]]]
"""As `vmstore.columns.relations.ColumnFiles` takes them."""


class Opening(NamedTuple):
    """How a namespace is to be opened; `believed` are views that this machine folded itself, or may have."""

    readonly: bool
    clock: Clock
    ids: IdSource
    store_key: StoreKey | None
    wait_s: float | None
    believed: bool = True


class Sizes(NamedTuple):
    """Bytes of a namespace's log, of its views and of its large contents."""

    log: int = 0
    views: int = 0
    blobs: int = 0


class Place(Protocol):
    """The place of a namespace, in its backend and on this machine."""

    @property
    def backend(self) -> Backend:
        """The store's backend."""
        ...

    @property
    def name(self) -> str:
        """The name of the namespace."""
        ...

    @property
    def cache(self) -> Path:
        """The folder on this machine for views, indexes and snapshots; its parent's name names what is kept beside."""
        ...

    @property
    def directory(self) -> Path | None:
        """The directory of the log; None where it lies in none."""
        ...

    @property
    def identity(self) -> str:
        """The same text for every handle on this namespace, whatever it was opened by."""
        ...

    def absolute(self) -> Place:
        """The place for a process that may have changed its working directory."""
        ...

    def mark(self) -> None:
        """Says for everybody that an erasure is under way, durable; for a caller within `Log.destroying`."""
        ...

    def unmark(self) -> None:
        """Says that it is done; for a caller within `Log.destroying` that saw that it is."""
        ...

    def marked(self) -> bool:
        """Whether an erasure was begun and not finished."""
        ...

    def sizes(self) -> Sizes:
        """Bytes of its parts; what is not yet folded in counts too."""
        ...

    @property
    def beyond(self) -> Sequence[str]:
        """The copies there that an erasure does not reach."""
        ...

    def publish_views(self, views: apsw.Connection) -> PublishedViews:
        """Keeps a copy of its views where new hosts find it; InputError where they lie beside the log already."""
        ...

    def unpublish_views(self) -> None:
        """Removes what was published, which holds what was erased; for a caller within `Log.destroying`."""
        ...

    def archiving(self, log: Log) -> SqliteLog | None:
        """Its log, where that can move contents to archives."""
        ...

    def column_files(self) -> FoundFiles | None:
        """Files of column segments that were published with it; None where there are none, or its own are at hand."""
        ...

    @property
    def parted(self) -> bool:
        """Whether a session by itself is less to read than all: then `alone` gives one."""
        ...

    def alone(self, session: str) -> Attachment | None:
        """A session by itself; None where none has the name, or views of all are at hand."""
        ...


class Backend(Protocol):
    """Keeps the logs of a store, one a namespace."""

    @property
    def address(self) -> str:
        """The store's address as messages name it, without a password."""
        ...

    @property
    def named(self) -> str | None:
        """The one namespace that the store's address names; None where it names none."""
        ...

    def namespaces(self) -> list[str]:
        """The names of the store's namespaces, in order."""
        ...

    @property
    def identity(self) -> str:
        """The same text for every address of the store."""
        ...

    def check(self, namespace: str | None = None) -> None:
        """Raises StoreError where there is no such store, or no such namespace in it."""
        ...

    def exists(self, namespace: str) -> bool:
        """Whether there is such a namespace; raises StoreError where the address can be that of no store."""
        ...

    def mode(self, namespace: str) -> str:
        """'rw' where a namespace that is there may be written by this process, else 'r'."""
        ...

    def check_writable(self, namespace: str) -> None:
        """Raises ReadOnlyError where a namespace may not be written by this process."""
        ...

    def key_for(self, namespace: str, key: K | None) -> K | None:
        """The key of all namespaces of the store that are encrypted, for one of them: none where that one is plain."""
        ...

    def capabilities(self, clock: Clock) -> list[Capability]:
        """Capabilities for this process, as the backend is set up; by `clock` it is told how far others are off."""
        ...

    def keyring(self, namespace: str, store_key: StoreKey, ids: IdSource) -> Keyring:
        """The keys of an encrypted namespace; StoreError where it is plain."""
        ...

    def attach(self, namespace: str, opening: Opening) -> Attachment:
        """Finds a namespace; one that is to be written is made where there is none."""
        ...


class Attachment(NamedTuple):
    """A namespace that was found: its place, and what opens its log and its views.

    `again` does it in a process that was forked, and may have changed its working directory.
    """

    place: Place | None
    opened: Callable[[], tuple[Log, Projection]]
    again: Callable[[], tuple[Log, Projection]]


def sizes_of(place: Place | None) -> Sizes:
    """Bytes of the parts of a namespace; none of one in memory."""
    return Sizes() if place is None else place.sizes()


def directory_of(place: Place | None, remedy: str) -> Path:
    """The directory of a namespace's log; InputError with a remedy where it lies in none."""
    if place is None:
        raise InputError(f"a store in memory has no files; {remedy}", code="in-memory")
    if place.directory is None:
        raise InputError(
            f"{place.backend.address} is no folder: back it up and restore it with the tools of its database, or "
            "export its sessions",
            code="no-folder-of-files",
        )
    return place.directory
