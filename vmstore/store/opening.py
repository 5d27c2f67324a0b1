"""Opens a namespace: its folder, its log, its views, and what says the time and draws the ids."""

from __future__ import annotations

from pathlib import Path

import apsw

from vmstore.core.clock import Clock, IdSource
from vmstore.errors import InputError
from vmstore.log.memory import MemoryLog
from vmstore.log.sqlite import SqliteLog
from vmstore.store.folder import ERASING, LOG, find
from vmstore.store.namespace import Namespace
from vmstore.store.viewfile import open_views
from vmstore.views.projection import Projection


def open_namespace(path: Path, mode: str, name: str, clock: Clock, ids: IdSource) -> Namespace:
    """The namespace of a store in a folder; in mode 'rw' it is made where there is none."""
    if mode not in ("r", "rw"):
        raise InputError(f"mode {mode!r} is none of 'r' (read) and 'rw' (read and write)")
    readonly = mode == "r"
    folder = find(path, name, create=not readonly)
    log = SqliteLog(folder / LOG, readonly=readonly)
    try:
        projection = open_views(folder, log, readonly=readonly)
    except BaseException:
        log.close()
        raise
    namespace = Namespace(log, projection, folder=folder, readonly=readonly, clock=clock, ids=ids)
    if not readonly and (folder / ERASING).exists():
        from vmstore.store.erasing import finish

        finish(namespace)
    return namespace


def memory_namespace(clock: Clock, ids: IdSource) -> Namespace:
    """A namespace that lives in memory and ends with the process."""
    log = MemoryLog()
    projection = Projection(log, apsw.Connection(":memory:"))
    return Namespace(log, projection, folder=None, readonly=False, clock=clock, ids=ids)
