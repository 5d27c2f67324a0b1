"""The folder of a store: namespaces, each a directory with its own log and views.

    agent.vms/default/log.sqlite
    agent.vms/default/views-<projectors>.sqlite

A store is made beside its path and renamed into place, so a kill leaves no store or a whole one,
and of two makers one wins and the other opens the winner's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import apsw

from vmstore.core.system.safe_files import kind_of
from vmstore.errors import StoreError
from vmstore.log.archive.folder import SUFFIX
from vmstore.log.sqlite import SqliteLog
from vmstore.views.projection import fingerprint

LOG = "log.sqlite"
VIEWS = "views-"
BLOBS = "blobs"
ARCHIVE = "archive"
COLUMNS = "columns"
SNAPSHOTS = "live"
ERASING = "erasing"  # a file that stands while an erasure is under way


def make_log(folder: Path) -> None:
    """Makes an empty log in a folder."""
    SqliteLog.create(folder / LOG)


def find(path: Path, namespace: str, *, create: bool, make: Callable[[Path], None] = make_log) -> Path:
    """The directory of a namespace; made when it is not there and `create` says so, with what `make` puts there."""
    try:
        os.fsencode(path / namespace).decode()
        return _find(path, namespace, make if create else None)
    except OSError as error:
        raise StoreError(
            f"{str(path)[:200]!r} cannot be opened ({error.strerror}); name another path", code="not-opened"
        ) from error
    except ValueError as error:
        raise StoreError(f"{str(path)[:200]!r} cannot be a path ({error}); name another", code="not-a-path") from error


def check_name(namespace: str) -> None:
    """Raises StoreError for what cannot name a namespace: a path, a hidden folder, a text that is none on disk."""
    parts = ("/", "\\", "\0") if os.name == "nt" else ("/", "\0")
    if not namespace or namespace.startswith(".") or any(part in namespace for part in parts):
        raise StoreError(f"{namespace[:200]!r} cannot name a namespace; use letters, digits, dashes", code="not-a-name")


def check_own(folder: Path) -> None:
    """Raises StoreError where something in a namespace's folder leads out of it, or is neither a file nor a folder.

    Who may write to the folder could have others open, change or destroy with their rights what it leads to.
    """
    for entry in (folder, *folder.iterdir()):
        if (kind := kind_of(entry)) is not None:
            raise StoreError(
                f"{entry} is {kind}, and a store holds only files of its own; find out who put it there, then remove "
                "it, or move there what it leads to",
                code="leads-out",
            )


def _find(path: Path, namespace: str, make: Callable[[Path], None] | None) -> Path:
    check_name(namespace)
    if path.is_symlink() and not path.exists():
        raise StoreError(f"{path} is a link to nothing; remove it or name another path", code="dead-link")
    if not path.exists():
        if make is None:
            raise StoreError(f"there is no store at {path}; `vmstore import {path} FILE` makes one", code="no-store")
        _make(path, namespace, make)
    _check(path)
    folder = path / namespace
    if not (folder / LOG).is_file():
        if make is None:
            raise StoreError(
                f"{path} has no namespace {namespace!r}; name one of the folders in it", code="no-namespace"
            )
        _make_namespace(folder, make)
    check_own(folder)
    return folder


def is_archive(path: Path) -> bool:
    """Whether a path is that of an archive's file, which can be asked alone."""
    return path.suffix == SUFFIX and path.is_file()


def namespaces(path: Path) -> list[str]:
    """The names of a store's namespaces."""
    found = (entry.name for entry in path.iterdir() if (entry / LOG).is_file())
    return sorted(name for name in found if not name.startswith("."))  # dotted ones are being made


def _check(path: Path) -> None:
    if not path.is_dir():
        raise StoreError(f"{path} is a file, and a store is a folder; name another path", code="not-a-store")
    entries = sorted(entry.name for entry in path.iterdir())
    if not entries:
        raise StoreError(
            f"{path} is an empty folder, not a store; remove it, and the store is made in its place", code="not-a-store"
        )
    if not namespaces(path):
        hint = f"; did you mean {path.parent}?" if LOG in entries else ""
        raise StoreError(
            f"{path} is a folder of something else (it holds {entries[0]}); name another path{hint}", code="not-a-store"
        )


def _make(path: Path, namespace: str, make: Callable[[Path], None]) -> None:
    import shutil
    import tempfile

    parent = path.absolute().parent
    if not parent.is_dir():
        raise StoreError(f"{parent} is no folder, so {path.name} cannot be made in it; make it first", code="no-folder")
    try:
        beside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".new", dir=parent))
    except OSError as error:
        raise StoreError(
            f"{parent} cannot be written to ({error.strerror}); name a path that can", code="not-writable"
        ) from error
    try:
        made = beside / path.name  # within a folder that is nobody else's, with the rights that the umask leaves
        folder = made / namespace
        folder.mkdir(parents=True)
        _make_within(folder, make)
        _flush(folder)
        _flush(made)
        _rename(made, path)
        _flush(parent)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _make_namespace(folder: Path, make: Callable[[Path], None]) -> None:
    import shutil
    import tempfile

    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".new", dir=folder.parent))
    try:
        made = beside / folder.name
        made.mkdir()
        _make_within(made, make)
        _flush(made)
        _rename(made, folder)
        _flush(folder.parent)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _make_within(folder: Path, make: Callable[[Path], None]) -> None:
    try:
        make(folder)
    except (apsw.Error, OSError) as error:
        raise StoreError(
            f"no log could be made in {folder.parent} ({error}); nothing was left behind", code="not-written"
        ) from error


def _rename(beside: Path, path: Path) -> None:
    """Puts a finished folder in place; when another maker was first, theirs stays."""
    try:
        os.rename(beside, path)
    except OSError as error:
        if not path.is_dir():
            raise StoreError(f"{path} could not be made ({error.strerror})") from error


def _flush(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def views_file(folder: Path) -> Path:
    """The path of the views' file for this set of projectors."""
    return folder / f"{VIEWS}{fingerprint()}.sqlite"


def sizes(folder: Path | None) -> tuple[int, int, int]:
    """Bytes of a namespace's log, views and blobs on disk; what is not yet folded in counts too."""
    if folder is None:
        return 0, 0, 0
    files = [file for file in folder.rglob("*") if file.is_file() and not file.name.endswith("-shm")]
    parts = [str(file.relative_to(folder)) for file in files]
    return tuple(  # type: ignore[return-value]
        sum(file.stat().st_size for file, part in zip(files, parts, strict=True) if part.startswith(begin))
        for begin in (LOG, (VIEWS, COLUMNS), BLOBS)
    )
