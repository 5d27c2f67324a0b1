"""Opens the views of a namespace: their file, or for a reader a copy in memory that follows the log."""

from __future__ import annotations

import logging
from pathlib import Path

import apsw

from vmstore.log.port import Log
from vmstore.store.folder import views_file
from vmstore.views.projection import Projection

# What says nothing against the file: it cannot be written now, or not by us.
_UNWRITABLE = (apsw.CantOpenError, apsw.ReadOnlyError, apsw.BusyError, apsw.FullError, apsw.IOError)

_log = logging.getLogger("vmstore")


def open_views(folder: Path, log: Log, *, readonly: bool) -> Projection:
    """The views of a namespace; a damaged file, or one that is ahead of its log, is made anew."""
    path = views_file(folder)
    if readonly:
        return _in_memory(path, log)
    try:
        return _checked(path, log)
    except (apsw.Error, ValueError, TypeError) as error:  # a damaged one may also give what is no text, or no number
        if isinstance(error, _UNWRITABLE):
            return _in_memory(path, log)
        _log.warning("%s could not be read (%s) and is made anew from the log", path, error)
        forget(path)
        return _checked(path, log)


def forget(path: Path) -> None:
    """Deletes a views file; the log can give it back."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _checked(path: Path, log: Log) -> Projection:
    db = apsw.Connection(str(path))
    try:
        db.setbusytimeout(10_000)
        db.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL").fetchall()
        projection = Projection(log, db)
        if not projection.follows():
            _log.warning("%s follows another log and is made anew", path)
            projection.rebuild()
        return projection
    except BaseException:
        db.close()
        raise


def _in_memory(path: Path, log: Log) -> Projection:
    memory = apsw.Connection(":memory:")
    if path.is_file():
        try:
            _copy(path, memory)
            projection = Projection(log, memory)
            if projection.follows():
                return projection
        except (apsw.Error, ValueError, TypeError):
            pass  # a damaged or unreadable file is worth no more than none
        memory = apsw.Connection(":memory:")
    return Projection(log, memory)


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
