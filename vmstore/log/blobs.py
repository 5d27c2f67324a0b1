"""Cells too long for a row: each in a file of its own, named by its commitment.

    blobs/<first two hex digits>/<64 hex digits>

A file is written beside its name, flushed and renamed, and its folder flushed, before the commit
that names it. What a crash leaves between the two is garbage that `sweep` finds.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from vmstore.cells.cell import COMMITMENT_BYTES
from vmstore.core.system.safe_files import Stray, kind_of, no_links, read_within, regular
from vmstore.errors import StoreError
from vmstore.log.frame_encryption import PLAIN, NoEncryption

BYTES_MAX = 1 << 32  # a cell's length is stored in 32 bits


class CellFiles:
    """The folder of a log's long cells; made when the first one comes."""

    def __init__(self, folder: Path, vault: NoEncryption = PLAIN) -> None:
        self.folder = folder
        self._vault = vault
        self._suffix = self._vault.suffix

    def path(self, commitment: bytes) -> Path:
        """The path of the file that holds a cell."""
        name = commitment.hex()
        return self.folder / name[:2] / f"{name}{self._suffix}"

    def keep(self, commitment: bytes, content: bytes, key: bytes = b"") -> None:
        """Writes a cell's bytes, encrypted where they lie under a key, durable before it returns."""
        assert len(commitment) == COMMITMENT_BYTES, "the file is found again by the whole commitment"
        assert bool(key) == bool(self._suffix), "a file is named after whether it lies under a key"
        path = self.path(commitment)
        try:
            no_links(self.folder.parent, path.parent)
            if not path.parent.is_dir():
                path.parent.mkdir(parents=True, exist_ok=True)
                flush(self.folder.parent)
                flush(self.folder)
            closed = self._vault.closed_file(commitment, content, key)
            try:
                self._place(path, closed)
            except FileNotFoundError:  # an erasure swept it while it was half written
                self._place(path, closed)
            flush(path.parent)
        except OSError as error:
            raise StoreError(
                f"{path} could not be written ({error.strerror}); nothing was logged: make room, then try again",
                code="not-written",
            ) from error

    def _place(self, path: Path, content: bytes) -> None:
        """Writes a file beside its name, and gives it that."""
        beside = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.new")
        try:
            _write(beside, content)
            os.rename(beside, path)
        finally:
            beside.unlink(missing_ok=True)

    def holds(self, commitment: bytes) -> bool:
        """Whether the file of a commitment is there."""
        path = self.path(commitment)
        return path.exists() and kind_of(path) is None

    def read(self, commitment: bytes) -> bytes | None:
        """A cell's bytes, or None where the file is not there."""
        try:
            return self._vault.opened_file(commitment, read_within(self.path(commitment), BYTES_MAX, link=False))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(
                f"{self.path(commitment)} cannot be read ({error.strerror}); mend the disk", code="not-read"
            ) from error

    def open(self, commitment: bytes) -> BinaryIO | None:
        """A cell's bytes to be read in pieces, or None where the file is not there; what is encrypted is read whole."""
        if self._suffix:
            content = self.read(commitment)
            return None if content is None else BytesIO(content)
        try:
            return regular(self.path(commitment), link=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{self.path(commitment)} cannot be read ({error.strerror}); mend the disk") from error

    def strays(self, named: Callable[[bytes], bool]) -> Iterator[Stray]:
        """Files that no commitment in use names, those a crash left half written included."""
        for path in sorted(self.folder.glob("*/*")):
            try:
                commitment = bytes.fromhex(path.stem if path.suffix == self._suffix else path.name)
            except ValueError:
                commitment = b""
            if not (path.suffix == self._suffix and named(commitment)) and path.is_file():
                status = path.lstat()
                yield Stray(path, status.st_size, status.st_mtime_ns // 1_000)


def _write(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        with memoryview(content) as rest:
            done = 0
            while done < len(rest):
                done += os.write(handle, rest[done:])
        os.fsync(handle)
    finally:
        os.close(handle)


def flush(folder: Path) -> None:
    """Makes the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
