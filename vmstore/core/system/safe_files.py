"""Opens, overwrites and removes files in folders that others may write to, without following what they planted.

A link, a pipe or a device can stand where a file is expected. A link below a trusted folder is never
followed, and what is no regular file is never opened for long: a pipe would wait for ever, a device never end.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

BYTES_MAX = 1 << 30  # of a file that is read at once
CHUNK_BYTES = 1 << 20
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
_KINDS = (
    (stat.S_ISLNK, "a link"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


class Stray(NamedTuple):
    """A file or an object that no cell names: where it lies, its bytes, when it was written (us since 1970)."""

    path: Path | str
    size: int
    at: int


def regular(path: str | os.PathLike[str], *, link: bool = True) -> BufferedReader:
    """A regular file, open for reading; OSError says what it is where it is anything else.

    A `link` that a person named is followed, one in a folder of others' making is not.
    """
    if not link and Path(path).is_symlink():
        raise OSError(errno.ELOOP, "it is a link, and no regular file", str(path))
    handle = os.open(path, os.O_RDONLY | _NO_WAIT | (0 if link else _NO_LINK))
    try:
        _check(os.fstat(handle).st_mode, path)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_within(path: str | os.PathLike[str], size_max: int = BYTES_MAX, *, link: bool = True) -> bytes:
    """Reads a regular file; OSError where it is none, or holds more than `size_max` bytes."""
    with regular(path, link=link) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(size + 1) if size <= size_max else b""
        while size <= size_max and len(content) <= size_max and (more := file.read(CHUNK_BYTES)):
            content += more  # it grows, or its size is not known
    if max(size, len(content)) > size_max:
        raise OSError(errno.EFBIG, f"it holds more than {size_max:,} bytes", str(path))
    return content


def destroy(folder: Path, path: Path) -> None:
    """Overwrites a file below a folder, where it is there, and removes its name; see `overwrite` and `remove`."""
    overwrite(folder, path)
    remove(folder, path)


def overwrite(folder: Path, path: Path) -> None:
    """Writes zeros over a file below a folder, durable; what a disk keeps of earlier writes elsewhere is its own.

    What a link leads to stays as it is, and so does a file that has another name too: neither is of this folder
    alone. Raises OSError where a folder on the way is a link.
    """
    with _parent(folder, path) as (handle, name):
        if handle is not None:
            _zero(handle, name)


def remove(folder: Path, path: Path) -> None:
    """Removes the name of a file below a folder, durable, where it is there; a link goes, what it leads to stays.

    Raises OSError where a folder on the way is a link.
    """
    with _parent(folder, path) as (handle, name):
        if handle is not None:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=handle)
                os.fsync(handle)


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """Names what stands at a path other than a file or a folder; None for these and for nothing."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    return None if stat.S_ISDIR(mode) else _kind(mode)


def no_links(folder: Path, path: Path) -> None:
    """Raises OSError where anything from below a folder to a path is a link, as far as it is there."""
    step = folder
    for part in _below(folder, path):
        step = step / part
        if step.is_symlink():
            raise OSError(errno.ELOOP, f"{step} is a link, which nobody but a person makes there", str(path))


def _kind(mode: int) -> str | None:
    if stat.S_ISREG(mode):
        return None
    return next((word for matches, word in _KINDS if matches(mode)), "no file")


def _check(mode: int, path: str | os.PathLike[str]) -> None:
    if (kind := _kind(mode)) is not None:
        raise OSError(errno.EINVAL, f"it is {kind}, and no regular file", str(path))


def _below(folder: Path, path: Path) -> tuple[str, ...]:
    """The names on the way from a folder to a path in it."""
    return path.absolute().relative_to(folder.absolute()).parts


@contextmanager
def _parent(folder: Path, path: Path) -> Iterator[tuple[int | None, str]]:
    """The folder that a path lies in, opened step by step from below `folder`, and its name there."""
    *steps, name = _below(folder, path)
    handle: int | None = None
    try:
        handle = os.open(folder, _FOLDER & ~_NO_LINK)
        for step in steps:
            below = os.open(step, _FOLDER, dir_fd=handle)
            os.close(handle)
            handle = below
    except FileNotFoundError:
        if handle is not None:
            os.close(handle)
        yield None, name
        return
    except OSError as error:
        if handle is not None:
            os.close(handle)
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise OSError(errno.ELOOP, "a folder on the way there is a link; remove it", str(path)) from error
        raise
    try:
        yield handle, name
    finally:
        os.close(handle)


def _zero(folder: int, name: str) -> None:
    """Writes zeros over a regular file that has one name; of anything else the name alone is ours to take."""
    try:
        handle = os.open(name, os.O_WRONLY | _NO_LINK | _NO_WAIT, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):  # nothing, a link, a pipe that nobody reads
            return
        raise
    try:
        status = os.fstat(handle)
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
            for at in range(0, status.st_size, CHUNK_BYTES):
                os.pwrite(handle, bytes(min(CHUNK_BYTES, status.st_size - at)), at)
            os.fsync(handle)
    finally:
        os.close(handle)
