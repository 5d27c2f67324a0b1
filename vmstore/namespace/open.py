"""Opens a namespace: its folder, its log, its views, and what says the time and draws the ids."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import apsw

from vmstore.cells.storekey import StoreKey
from vmstore.core.clock import Clock, IdSource
from vmstore.core.system.file_descriptors import enough
from vmstore.core.system.waits import WAIT_S, WAIT_S_MAX
from vmstore.errors import InputError, ReadOnlyError
from vmstore.log.port import Log
from vmstore.log.sqlite import SqliteLog
from vmstore.namespace.encryption import Key, making, none_plain_beside, store_key_of, vault_of
from vmstore.namespace.folder import ARCHIVE, LOG, find, is_archive
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.view_file import open_views
from vmstore.views.projection import Projection, room_of


def attach(
    path: Path, mode: str, name: str, clock: Clock, ids: IdSource, key: Key | None = None,
    wait_s: float | None = WAIT_S, *, believed: bool = True,
) -> Namespace:  # fmt: skip
    """Opens the log and the views of a namespace of a store in a folder, and resumes nothing.

    In mode 'rw' the namespace is made where there is none, encrypted with a key.

    What other processes hold is waited for `wait_s` seconds, with None for as long as they hold it. Where
    its views are not `believed`, because others made the store, they are folded again in memory.
    """
    if wait_s is not None and (not isinstance(wait_s, int | float) or not 0 <= wait_s <= WAIT_S_MAX):
        raise InputError(
            f"wait_s {wait_s!r:.40} is no number of seconds from 0 to {WAIT_S_MAX:,}; None waits on", code="not-a-limit"
        )
    if mode not in ("r", "rw"):
        raise InputError(f"mode {mode!r} is none of 'r' (read) and 'rw' (read and write)", code="no-mode")
    enough()
    readonly = mode == "r"
    store_key = store_key_of(key, ids)
    if is_archive(path):
        return _archived(path, readonly, clock, ids, store_key)
    if store_key is None and not readonly:
        none_plain_beside(path, name)
    folder = find(path, name, create=not readonly, make=making(store_key, ids))

    def opened(folder: Path) -> tuple[Log, Projection]:
        vault = vault_of(folder, store_key, ids)
        log = SqliteLog(folder / LOG, readonly=readonly, vault=vault, wait_s=wait_s)
        try:
            kept = believed and vault is None
            if kept:
                return log, open_views(folder, log, readonly=readonly, wait_s=wait_s)
            return log, _in_memory(log, *([folder / LOG, folder / ARCHIVE] if vault is None else []))
        except BaseException:
            log.close()
            raise

    again = partial(opened, folder.absolute())  # by then the process may be elsewhere
    namespace = Namespace(
        *opened(folder), folder=folder, readonly=readonly, clock=clock, ids=ids, store_key=store_key, opened=again
    )
    namespace.wait_s = wait_s
    return namespace


def _archived(path: Path, readonly: bool, clock: Clock, ids: IdSource, store_key: StoreKey | None) -> Namespace:
    """An archive as a store of its session; its views are folded in memory."""
    from vmstore.log.archive.file import ArchiveLog

    if not readonly:
        raise ReadOnlyError(
            f"{path} is an archive, which is only read: open it with mode 'r', or the store it came from",
            code="archive-is-read",
        )

    def opened(path: Path) -> tuple[Log, Projection]:
        log = ArchiveLog(path, store_key=store_key)
        return log, _in_memory(log, path)

    again = partial(opened, path.absolute())
    return Namespace(*opened(path), folder=None, readonly=True, clock=clock, ids=ids, opened=again)


def memory_namespace(clock: Clock, ids: IdSource) -> Namespace:
    """A namespace that lives in memory and ends with the process."""
    from vmstore.log.memory import MemoryLog

    log = MemoryLog()
    return Namespace(log, _in_memory(log), folder=None, readonly=False, clock=clock, ids=ids)


def _in_memory(log: Log, *files: Path) -> Projection:
    """Views in memory, bounded where the log lies in files."""
    return Projection(log, apsw.Connection(":memory:"), room=room_of(*files) if files else None)
