"""A disk that fails when told, and writes down all that is done to it.

SQLite's files pass through a VFS, plain files through the functions of `os`. What is written down
is a trace: `campaigns.cut` says from it what a power cut at any moment may leave.
"""

from __future__ import annotations

import errno
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw

NAME = "campaign"
SIDE = ("-wal", "-journal")  # whose folder SQLite flushes with them


class Event(NamedTuple):
    """One thing that was done: to which file, where, and the bytes or whatever else it was done with."""

    kind: str
    path: str = ""
    offset: int = 0
    data: Any = b""


class Failure(NamedTuple):
    """How an operation fails: as SQLite says it, and as `os` does."""

    sqlite: type[apsw.Error]
    number: int


IO = Failure(apsw.IOError, errno.EIO)
FULL = Failure(apsw.FullError, errno.ENOSPC)


class Fault:
    """What befalls the operations: a failure of the k-th, of each from there on, or a signal that kills or stops."""

    def __init__(
        self,
        at: int,
        failure: Failure | None = None,
        *,
        forever: bool = False,
        touches: Callable[[str, str], bool] = lambda kind, path: True,
        after: bool = False,
        sent: signal.Signals = signal.SIGKILL,
    ) -> None:
        self.at = at
        self.failure = failure  # None to send this process a signal
        self.sent = sent
        self.forever = forever
        self.touches = touches
        self.after = after  # the operation is done, and only then it fails
        self.seen = 0
        self.fired: Counter[str] = Counter()

    def befalls(self, kind: str, path: str) -> bool:
        """Counts an operation; whether it is one that fails."""
        if not self.touches(kind, path):
            return False
        self.seen += 1
        if self.seen == self.at or (self.forever and self.seen > self.at):
            self.fired[kind] += 1
            return True
        return False

    def strike(self, path: str, plain: bool) -> None:
        """Fails as this fault does."""
        if self.failure is None:
            os.kill(os.getpid(), self.sent)
        elif plain:
            raise OSError(self.failure.number, os.strerror(self.failure.number), path)
        else:
            raise self.failure.sqlite("the disk failed")


class Disk(apsw.VFS):
    """SQLite's own disk with a fault that may befall it, and everything done to it in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.fault: Fault | None = None
        self.recording = True
        self.base = apsw.vfs_names()[0]
        super().__init__(NAME, self.base)

    def note(self, kind: str, path: str = "", offset: int = 0, data: Any = b"") -> None:
        """Writes down what was done."""
        if self.recording:
            self.events.append(Event(kind, path, offset, data))

    def mark(self, what: str, value: Any = None) -> None:
        """Writes down that something was asked for or acknowledged at this moment."""
        self.note("mark", what, 0, value)

    @contextmanager
    def doing(
        self, kind: str, path: str, half: Callable[[], None] = lambda: None, *, plain: bool = False
    ) -> Iterator[None]:
        """Around an operation that may fail, before it or after; `half` does a part of one that fails."""
        fault = self.fault if self.fault is not None and self.fault.befalls(kind, path) else None
        if fault is not None and not fault.after:
            half()
            fault.strike(path, plain)
        yield
        if fault is not None and fault.after:
            fault.strike(path, plain)

    def xOpen(self, name: Any, flags: list[int]) -> File:
        """Opens a file of this disk."""
        return File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        """Deletes a file."""
        with self.doing("delete", filename):
            super().xDelete(filename, syncdir)
        self.note("delete", filename)
        if syncdir:
            self.note("flush", os.path.dirname(filename))


class File(apsw.VFSFile):
    """A file whose writes and flushes are written down."""

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        self.name = str(name.filename() if isinstance(name, apsw.URIFilename) else name or "")
        there = os.path.exists(self.name)
        super().__init__(disk.base, name, flags)
        if self.name and not there:
            disk.note("make", self.name)

    def xWrite(self, data: bytes, offset: int) -> None:
        """Writes."""
        if not self.name:
            return super().xWrite(data, offset)
        with self.disk.doing("write", self.name, lambda: self._half(data, offset)):
            super().xWrite(data, offset)
        self.disk.note("write", self.name, offset, bytes(data))

    def _half(self, data: bytes, offset: int) -> None:
        """A write that failed may have written some sectors."""
        part = bytes(data)[: len(data) // 1024 * 512]
        if part:
            super().xWrite(part, offset)
            self.disk.note("write", self.name, offset, part)

    def xTruncate(self, newsize: int) -> None:
        """Cuts the file to a size."""
        if not self.name:
            return super().xTruncate(newsize)
        with self.disk.doing("truncate", self.name):
            super().xTruncate(newsize)
        self.disk.note("truncate", self.name, newsize)

    def xSync(self, flags: int) -> None:
        """Flushes the file; with one of SQLite's side files its folder."""
        if not self.name:
            return super().xSync(flags)
        try:
            with self.disk.doing("sync", self.name):
                super().xSync(flags)
                self.disk.note("sync", self.name)
        except apsw.Error:
            self.disk.note("unsynced", self.name)
            raise
        if self.name.endswith(SIDE):
            self.disk.note("flush", os.path.dirname(self.name))


@contextmanager
def disk(folder: Path) -> Iterator[Disk]:
    """Everything SQLite opens meanwhile, and every plain file below a folder, lies on this disk."""
    made = Disk()
    apsw.set_default_vfs(NAME)
    try:
        with plain_files(made, str(folder)):
            yield made
    finally:
        apsw.set_default_vfs(made.base)
        made.unregister()


@contextmanager
def plain_files(disk: Disk, root: str) -> Iterator[None]:
    """Has what is done to plain files through `os` written down, and befallen by faults."""
    right = {name: getattr(os, name) for name in PLAIN}

    def wrapped(name: str) -> Callable[..., Any]:
        do, kind = right[name], PLAIN[name]

        def act(first: Any, *rest: Any, **fields: Any) -> Any:
            path = _path(first, fields.get("dir_fd", fields.get("src_dir_fd")))
            if not path.startswith(root):
                return do(first, *rest, **fields)
            there = os.path.lexists(path)
            if kind == "open" and there:
                return do(first, *rest, **fields)
            with disk.doing(kind, path, plain=True):
                actual = do(first, *rest, **fields)
            _note(disk, kind, path, rest)
            return actual

        return act

    for name in PLAIN:
        setattr(os, name, wrapped(name))
    try:
        yield
    finally:
        for name, function in right.items():
            setattr(os, name, function)


PLAIN = {
    "open": "open",
    "mkdir": "mkdir",
    "rename": "rename",
    "replace": "rename",
    "link": "link",
    "unlink": "delete",
    "remove": "delete",
    "rmdir": "delete",
    "fsync": "sync",
    "fdatasync": "sync",
}


def _path(named: Any, folder: int | None) -> str:
    """The absolute path of what a function of `os` was given."""
    if isinstance(named, int):
        return os.readlink(f"/proc/self/fd/{named}")
    path = os.fsdecode(named)
    base = os.getcwd() if folder is None else os.readlink(f"/proc/self/fd/{folder}")
    return os.path.normpath(os.path.join(base, path))


def _note(disk: Disk, kind: str, path: str, rest: tuple[Any, ...]) -> None:
    """Writes down what was done to a plain file."""
    if kind in ("rename", "link"):
        to = _path(rest[0], None)
        disk.note(kind, path, 0, (to, Path(to).read_bytes() if os.path.isfile(to) else None))
    elif kind == "open":
        if os.path.isfile(path):
            disk.note("make", path)
    elif kind == "sync":
        if os.path.isdir(path):
            disk.note("flush", path)
        else:
            disk.note("sync", path, 0, Path(path).read_bytes())
    else:
        disk.note(kind, path)
