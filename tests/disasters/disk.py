"""A disk that fails when told, and remembers what would be left of it after a power cut.

As on Linux, a block whose flush failed counts as clean afterwards: it is durable only once it was
written again and flushed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

BLOCK = 4096


class Disk(apsw.VFS):
    """SQLite's own disk with a countdown to failure, and each file as it was last flushed."""

    def __init__(self) -> None:
        self.left: int | None = None  # writes and flushes that still succeed; None for all
        self.error: type[apsw.Error] = apsw.IOError
        self.failures: int | None = None  # after how many it is well again; None for never
        self.done = 0
        self.writes: list[tuple[str, int]] = []  # which file, where it began
        self.pause = 0.0  # seconds a flush takes at least
        self.flushes: list[str] = []  # of which files
        self.flushed: dict[str, bytes] = {}
        self.dirty: dict[str, set[int]] = {}  # blocks written since the last flush was tried
        self.base = apsw.vfs_names()[0]
        super().__init__("disk", self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> File:
        """Opens a file of this disk."""
        return File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        """Deletes a file, and forgets what was flushed of it."""
        super().xDelete(filename, syncdir)
        self.flushed.pop(filename, None)
        self.dirty.pop(filename, None)

    def syncs(self, name: str) -> int:
        """How often files of a name were flushed."""
        return sum(Path(path).name == name for path in self.flushes)

    def spend(self) -> None:
        """Counts a write or flush, and fails once the countdown is over."""
        self.done += 1
        if self.left is not None:
            if self.left == 0:
                if self.failures is not None:
                    self.failures -= 1
                    self.left = 0 if self.failures else None
                raise self.error("the disk failed")
            self.left -= 1

    def after_power_cut(self, folder: Path, left: Path) -> None:
        """Lays the flushed files of a folder, and nothing else, into another folder."""
        for name, content in self.flushed.items():
            if Path(name).parent == folder:
                (left / Path(name).name).write_bytes(content)


class File(apsw.VFSFile):
    """A file whose writes and flushes are counted."""

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        self.name = name.filename() if isinstance(name, apsw.URIFilename) else name
        super().__init__(disk.base, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        """Writes, or fails."""
        self.disk.spend()
        self.disk.writes.append((self.name or "", offset))
        super().xWrite(data, offset)
        dirty = self.disk.dirty.setdefault(self.name, set())
        dirty.update(range(offset // BLOCK, (offset + len(data) - 1) // BLOCK + 1))

    def xSync(self, flags: int) -> None:
        """Flushes and remembers what was written since the last flush, or fails and forgets that it was."""
        dirty = self.disk.dirty.pop(self.name, set())
        self.disk.spend()
        time.sleep(self.disk.pause)
        self.disk.flushes.append(self.name or "")
        super().xSync(flags)
        if self.name:
            now = Path(self.name).read_bytes()
            kept = bytearray(self.disk.flushed.get(self.name, b"")[: len(now)].ljust(len(now), b"\0"))
            for block in dirty:
                part = slice(block * BLOCK, (block + 1) * BLOCK)
                kept[part] = now[part]
            self.disk.flushed[self.name] = bytes(kept)


@contextmanager
def disk() -> Iterator[Disk]:
    """Everything SQLite opens meanwhile lies on this disk."""
    made = Disk()
    try:
        yield made
    finally:
        made.unregister()
