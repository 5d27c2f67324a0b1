"""Upgrades of a namespace's log, and their rehearsal on a copy that is gone afterwards."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from vmstore.core.clock import Clock, SystemClock
from vmstore.engine.verify.verify import unsafe, verify
from vmstore.errors import CorruptError, StoreError
from vmstore.log.file import FORMAT, format_of
from vmstore.log.port import Progress
from vmstore.log.sqlite import SqliteLog
from vmstore.log.upgrade import OldLog, UpgradeResult
from vmstore.log.upgrade import upgrade as upgrade_log
from vmstore.maintenance.backup import copy_log
from vmstore.namespace.folder import LOG, find
from vmstore.namespace.reports import Rehearsal
from vmstore.views.projection import PROJECTORS, Projection

HINT = "put back a backup, then upgrade"


def upgrade(path: Path, namespace: str, progress: Progress | None = None) -> UpgradeResult:
    """Brings the log of a namespace to this version's format.

    The old log stays in its place until the new one is proven: every commit and cell, every rule,
    and each view folded from both. It is kept beside the new one. Killed, it is there or that is.
    """
    return upgrade_log(find(path, namespace, create=False) / LOG, progress, prove)


def rehearse(path: Path, namespace: str, progress: Progress | None = None, *, clock: Clock | None = None) -> Rehearsal:
    """Does the whole upgrade on a copy beside the store, or among the system's temporary files, and deletes it.

    Raises what the real one would, and StoreError where there is no room for it.
    """
    log = find(path, namespace, create=False) / LOG
    before, free = format_of(log), shutil.disk_usage(log.parent).free
    if before == FORMAT:
        return Rehearsal(True, before, FORMAT, 0, 0, 0.0, 0, log.stat().st_size, free)
    clock = clock or SystemClock()
    size = sum(file.stat().st_size for file in log.parent.glob(f"{LOG}*") if file.name in (LOG, f"{LOG}-wal"))
    with _aside(path, 2 * size) as folder:
        copy_log(log, folder / LOG, None)
        start = clock.now()
        found = upgrade_log(folder / LOG, progress, prove)
        seconds = (clock.now() - start) / 1e6
        new = sum(
            file.stat().st_size for file in folder.rglob("*") if file.is_file() and file != Path(found.kept or "")
        )
    return Rehearsal(free > new, before, found.now, found.commits, len(PROJECTORS), seconds, new, new, free)


@contextmanager
def _aside(store: Path, needed: int) -> Iterator[Path]:
    """A folder with room for so many bytes, gone afterwards."""
    tried = [store.absolute().parent, Path(tempfile.gettempdir())]
    for place in tried:
        if os.access(place, os.W_OK) and shutil.disk_usage(place).free > needed:
            folder = Path(tempfile.mkdtemp(prefix=f".{store.name}.", suffix=".new", dir=place))
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            return
    raise StoreError(
        f"a rehearsal needs {needed:,} bytes, and neither {tried[0]} nor {tried[1]} has them; make room, or set TMPDIR",
        code="no-room",
    )


def prove(old: OldLog, new: SqliteLog) -> None:
    """Raises CorruptError where the new log is not sound, or a view of it differs from that of the old one."""
    with closing(Projection(old, apsw.Connection(""))) as before, closing(Projection(new, apsw.Connection(""))) as now:
        _, problems = verify(new, now)
        if problems := unsafe(problems):
            kind, where, what = problems[0]
            raise CorruptError(f"the new log is not sound: {kind}, {where}: {what}; {HINT}", code="not-sound")
        before.catch_up()
        now.catch_up()
        for projector in PROJECTORS:
            if before.digest(projector.name) != now.digest(projector.name):
                raise CorruptError(
                    f"the view {projector.name} of the new log is another one; {HINT}", code="views-differ"
                )
