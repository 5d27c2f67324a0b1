"""Opens the views of a namespace: their file, or for a reader a copy in memory that follows the log.

The file's name says which projectors folded it, so another version keeps its views beside. When
these are whole, older ones that nobody has open are removed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw

from vmstore.cells import schema
from vmstore.core.system import after_fork
from vmstore.core.system.logger import notices
from vmstore.core.system.waits import WAIT_S
from vmstore.errors import LockedError, StoreError
from vmstore.log.port import Log
from vmstore.namespace.folder import ARCHIVE, LOG, VIEWS, views_file
from vmstore.views.applier import Applier
from vmstore.views.projection import Projection, room_of, stranger

# What says nothing against the file: it cannot be written now, or not by us.
UNWRITABLE = (apsw.CantOpenError, apsw.ReadOnlyError, apsw.BusyError, apsw.FullError, apsw.IOError)


def open_views(
    folder: Path, log: Log, *, readonly: bool, wait_s: float | None = WAIT_S, room: Callable[[], int] | None = None
) -> Projection:
    """The views of a namespace; a damaged file, or one that follows another log, is rebuilt.

    `room` is how many bytes they may take in memory, where the log does not lie beside them.
    """
    path = views_file(folder)
    if readonly:
        return _in_memory(path, log, room)
    try:
        applier = Applier(path.with_suffix(".lock"), wait_s)
        older = [file for file in folder.glob(f"{VIEWS}*.sqlite") if file != path]
        projection = _checked(path, log, applier)
        if older:
            projection.catch_up()
            for file in older:
                _retire(file)
        return projection
    except (LockedError, apsw.BusyError) as error:
        notices().warning("%s; the views are followed in memory until the store is closed", error)
        projection = _in_memory(path, log, room)
        projection.left = path
        return projection
    except (OSError, *UNWRITABLE):
        return _in_memory(path, log, room)


def _checked(path: Path, log: Log, applier: Applier) -> Projection:
    """The views in a file, rebuilt where they are not this log's; by one process at a time."""
    projection, _ = _look(path, log, applier)
    if projection is None:
        with applier.taken():
            projection, reason = _look(path, log, applier)  # another process may have rebuilt them
            if projection is None:
                notices().warning("%s %s and is rebuilt from the log", path, reason)
                forget(path)
                projection, reason = _look(path, log, applier)
    if projection is None:
        raise StoreError(f"{path} {reason} as soon as it is made; check the disk, or open the store with mode 'r'")
    return projection


def _look(path: Path, log: Log, applier: Applier) -> tuple[Projection | None, str]:
    """The views in a file, or what is wrong with them."""
    if (reason := after_fork.busy(path)) is not None:
        raise apsw.CantOpenError(reason)
    db = apsw.Connection(str(path))
    try:
        schema.guard(db)
        db.setbusytimeout(applier.busy_ms)
        db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL").fetchall()
        foreign = stranger(db)
        if foreign is None:
            projection = Projection(log, db, applier=applier)
            if projection.follows():
                return projection, ""
        reason = foreign or "follows another log"
    except UNWRITABLE:
        db.close()
        raise
    except (apsw.Error, ValueError, TypeError) as error:  # a damaged one may also give what is no text, or no number
        reason = f"could not be read ({error})"
    db.close()
    return None, reason


def _retire(path: Path) -> None:
    """Removes the views of other projectors, unless somebody has them open: then a later open does."""
    if after_fork.busy(path) is not None:
        return
    try:
        db = apsw.Connection(str(path))
        try:
            alone = db.execute("PRAGMA journal_mode = DELETE").get == "delete"
        finally:
            db.close()
    except apsw.BusyError:
        return
    except apsw.Error:
        alone = True  # damaged: nobody reads it
    if alone:
        notices().info("%s is of other projectors and is removed", path)
        forget(path)
        path.with_suffix(".lock").unlink(missing_ok=True)


def forget(path: Path) -> None:
    """Deletes a views file; the log can give it back."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _in_memory(path: Path, log: Log, room: Callable[[], int] | None) -> Projection:
    room = room or room_of(path.with_name(LOG), path.with_name(f"{LOG}-wal"), path.with_name(ARCHIVE))
    memory = apsw.Connection(":memory:")
    schema.guard(memory)
    if path.is_file() and after_fork.busy(path) is None:
        try:
            _copy(path, memory)
            projection = None if stranger(memory) else Projection(log, memory, room=room)
            if projection is not None and projection.follows():
                return projection
        except (apsw.Error, ValueError, TypeError):
            pass  # a damaged or unreadable file is worth no more than none
        memory = apsw.Connection(":memory:")
    return Projection(log, memory, room=room)


def _copy(path: Path, memory: apsw.Connection) -> None:
    """Copies a views file; a connection that may write cleans up behind itself, one that may not reads as it is."""
    uri = path.absolute().as_uri()
    for flags, query in ((apsw.SQLITE_OPEN_READWRITE, ""), (apsw.SQLITE_OPEN_READONLY, "?immutable=1")):
        try:
            file = apsw.Connection(uri + query, flags=flags | apsw.SQLITE_OPEN_URI)
            try:
                with memory.backup("main", file, "main") as backup:
                    backup.step(-1)
                return
            finally:
                file.close()
        except (apsw.CantOpenError, apsw.ReadOnlyError):
            continue
