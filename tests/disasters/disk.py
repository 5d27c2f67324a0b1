"""A disk that fails when told, and remembers what would be left of it after a power cut."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw


class Disk(apsw.VFS):
    """SQLite's own disk with a countdown to failure, and each file as it was last flushed."""

    def __init__(self) -> None:
        self.left: int | None = None  # writes and flushes that still succeed; None for all
        self.error: type[apsw.Error] = apsw.IOError
        self.done = 0
        self.flushed: dict[str, bytes] = {}
        self.base = apsw.vfs_names()[0]
        super().__init__("disk", self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> File:
        """Opens a file of this disk."""
        return File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        """Deletes a file, and forgets what was flushed of it."""
        super().xDelete(filename, syncdir)
        self.flushed.pop(filename, None)

    def spend(self) -> None:
        """Counts a write or flush, and fails once the countdown is over."""
        self.done += 1
        if self.left is not None:
            if self.left == 0:
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
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        """Flushes and remembers the file, or fails."""
        self.disk.spend()
        super().xSync(flags)
        if self.name:
            self.disk.flushed[self.name] = Path(self.name).read_bytes()


@contextmanager
def disk() -> Iterator[Disk]:
    """Everything SQLite opens meanwhile lies on this disk."""
    made = Disk()
    try:
        yield made
    finally:
        made.unregister()
