"""A file or folder that is not there until it is whole: written beside its place and renamed into it.

The writer holds a lock on the hidden folder it writes in, which ends with its process. A folder whose
lock nobody holds was left by a kill: the next writer of the same name removes it.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from vmstore.core.system.safe_files import Stray, destroy
from vmstore.errors import StoreError

if sys.platform != "win32":
    import fcntl

SUFFIX = ".part"
SCRATCH = "scratch"


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write; it appears at `path` when the block ends well, and nothing is left when it does not.

    What is no regular file (a device, a pipe) is written as it stands. Raises StoreError for a path
    that is taken or cannot be written, or a disk that is full.
    """
    if _is_stream(path):
        with naming(path), path.open("wb") as file:
            yield file
        return
    with beside(path) as part, naming(path), part.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A path in a hidden folder beside `path`, for a file or folder that then takes its place, flushed."""
    _remove_left(path)
    check_free(path)
    with naming(path):
        folder, lock = _held(path)
    try:
        part = folder / "new"
        yield part
        with naming(path):
            if part.is_dir():
                for inner in (part, *(one for one in part.rglob("*") if one.is_dir())):
                    flush(inner)
            _place(part, path)
            flush(path.absolute().parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """A hidden folder in a namespace's folder, gone afterwards; what killed processes left of such goes first.

    It lies there, and not among the system's temporary files, so that the doctor and an erasure find what is left.
    """
    destroy_scratches(folder)
    with naming(folder):
        place, lock = _held(folder / SCRATCH)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def scratches(folder: Path) -> list[Path]:
    """The hidden folders of imports that killed processes left in a namespace's folder."""
    found = []
    for place in sorted(folder.glob(f"{_prefix(folder / SCRATCH)}*{SUFFIX}")):
        with contextlib.suppress(OSError):
            if (lock := _locked(place)) is not None:
                found.append(place)
                os.close(lock)
    return found


def destroy_scratches(folder: Path, *, dry: bool = False) -> list[Stray]:
    """Overwrites and removes what killed imports left in a namespace's folder; the files that were, or would be."""
    found = []
    for place in scratches(folder):
        for file in sorted(path for path in place.rglob("*") if not path.is_dir()):
            status = file.lstat()
            found.append(Stray(file, status.st_size, status.st_mtime_ns // 1_000))
            if not dry:
                destroy(folder, file)
        if not dry:
            shutil.rmtree(place, ignore_errors=True)
    return found


def _held(path: Path) -> tuple[Path, int | None]:
    """A new hidden folder beside a path, and the lock on it; none where the file system knows no such locks."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_prefix(path), suffix=SUFFIX, dir=path.absolute().parent))
        assert _left(path).fullmatch(folder.name), "what a kill leaves is found by its name"
        try:
            lock = _locked(folder)
        except OSError:
            return folder, None
        if lock is not None and folder.exists():  # else taken for one that was left, before it was locked
            return folder, lock
        if lock is not None:
            os.close(lock)


def _remove_left(path: Path) -> None:
    """Removes the hidden folders that killed processes left beside a path; those in use, and of other names, stay."""
    name = _left(path)
    with contextlib.suppress(OSError):
        for entry in [
            entry_found for entry_found in os.scandir(path.absolute().parent) if name.fullmatch(entry_found.name)
        ]:
            with contextlib.suppress(OSError):  # what may not be looked at is left to the doctor
                if (lock := _locked(Path(entry.path))) is not None:
                    shutil.rmtree(entry.path, ignore_errors=True)
                    os.close(lock)


def _locked(folder: Path) -> int | None:
    """A lock on a folder; None where somebody holds it, or it is gone."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except BaseException:
        os.close(handle)
        raise
    return handle


def _left(path: Path) -> re.Pattern[str]:
    """A pattern for the names of hidden folders beside a path."""
    return re.compile(re.escape(_prefix(path)) + r"[a-z0-9_]{8}" + re.escape(SUFFIX))


def _prefix(path: Path) -> str:
    return f".{path.name[:100]}."


def check_free(path: Path) -> None:
    """Raises StoreError where something stands at a path, or nothing could."""
    if os.path.lexists(path):
        raise StoreError(f"{path} is there already; name another path, or remove it first", code="path-taken")
    if not path.absolute().parent.is_dir():
        raise StoreError(f"{path.absolute().parent} is no folder, so {path.name} cannot be made in it; make it first")


def flush(path: Path) -> None:
    """Makes a file durable, or the names in a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _place(part: Path, path: Path) -> None:
    """Gives what is finished its name; what somebody else put there meanwhile stays."""
    if part.is_dir():
        os.rename(part, path)  # fails where a folder with something in it stands
        return
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        check_free(path)
        os.rename(part, path)


def _is_stream(path: Path) -> bool:
    try:
        return not (stat.S_ISREG(mode := path.stat().st_mode) or stat.S_ISDIR(mode))
    except OSError:
        return False


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turns the system's refusals into ours, naming the path."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StoreError(
            f"{path} could not be written ({error.strerror or error}); nothing was left there, make room or name "
            "another path",
            code="not-written",
        ) from error
