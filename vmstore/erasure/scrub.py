"""Scrubs what follows the log: after an erasure no view, index or remembered digest holds anything of it."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from vmstore.core.system.atomic_file import destroy_scratches
from vmstore.core.system.safe_files import destroy
from vmstore.errors import LockedError, StoreError
from vmstore.log.upgrade import KEPT
from vmstore.namespace.folder import LOG, SNAPSHOTS, VIEWS
from vmstore.namespace.view_file import forget
from vmstore.search.place import TEXT
from vmstore.views.applier import Applier
from vmstore.views.projection import Projection

if TYPE_CHECKING:
    from vmstore.search.index import TextIndex

WAITS = 3


def scrub_views(folder: Path | None, projection: Projection) -> None:
    """Folds the views to the end, rewrites their file, and removes those of other projectors.

    The fold starts over where it meets an erasure; what SQLite left of the rows before goes here.
    """
    projection.catch_up()
    if projection.left is not None:
        raise LockedError(
            f"{projection.left} is held by another process, so what was erased may stay there: end it, then run "
            "`vmstore erase --finish`"
        )
    if folder is None:
        return
    if projection.db.filename == "":
        for file in sorted(folder.glob(f"{VIEWS}*.sqlite")):
            raise StoreError(
                f"{file} could not be opened as this store was, so what was erased may stay there: mend the disk, or "
                "delete it while no process has the store open, then run `vmstore erase --finish`",
                code="views-unreachable",
            )
        return
    with projection.alone():
        compacted(projection.db)
    for file in folder.glob(f"{VIEWS}*.sqlite"):
        if file.absolute() != Path(projection.db.filename).absolute():
            forget(file)


def compacted(db: apsw.Connection) -> None:
    """Rewrites a database and empties its WAL; raises StoreError where somebody keeps reading it."""
    try:
        db.execute("VACUUM").fetchall()
        for _ in range(WAITS):
            busy, left, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").get
            if not busy and left <= 0:
                return
    except (apsw.FullError, apsw.IOError) as error:
        raise StoreError(
            f"{db.filename} could not be rewritten ({error}); make room or mend the disk, then run "
            "`vmstore erase --finish`"
        ) from error
    raise StoreError(
        f"{db.filename} is being read and its WAL cannot be emptied; what was erased may stay there until then: "
        "try `vmstore erase --finish` again"
    )


def scrub_kept(folder: Path | None) -> None:
    """Overwrites and removes the old log that an upgrade kept, and what killed upgrades and imports left."""
    if folder is None:
        return
    destroy_scratches(folder)
    for file in sorted({*folder.glob(f"{LOG}{KEPT}*"), *folder.glob(f"{LOG}.new*")}):
        try:
            destroy(folder, file)
        except OSError as error:
            raise StoreError(
                f"{file} could not be destroyed ({error.strerror}); mend the disk, then run `vmstore erase --finish`"
            ) from error


def scrub_snapshots(folder: Path | None) -> None:
    """Overwrites and removes what live sessions were folded into; the next act folds them again."""
    if folder is None:
        return
    for file in sorted((folder / SNAPSHOTS).glob("*")):
        try:
            destroy(folder, file)
        except OSError as error:
            raise StoreError(
                f"{file} could not be destroyed ({error.strerror}); mend the disk, then run `vmstore erase --finish`"
            ) from error


def scrub_text(folder: Path | None, index: TextIndex | None) -> None:
    """Takes what was erased out of the text index, or the index away where nobody here can read it."""
    if index is not None:
        try:
            index.scrub()
        except OSError as error:
            raise _left(folder, error) from error
        return
    if folder is None or not (folder / TEXT).exists():
        return
    lock = Applier(folder / f"{TEXT}.lock")
    try:
        with lock.taken():
            shutil.rmtree(folder / TEXT)
    except OSError as error:
        raise _left(folder, error) from error
    finally:
        with contextlib.suppress(OSError):
            lock.close()


def _left(folder: Path | None, error: OSError) -> StoreError:
    """The error where the text index could not be cleared."""
    place = TEXT if folder is None else folder / TEXT
    return StoreError(f"{place} could not be cleared ({error}); mend the disk, then run `vmstore erase --finish`")
