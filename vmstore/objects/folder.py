"""An object store in a folder: each object a file, which is written beside its name and linked to it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR

from vmstore.core.system.safe_files import no_links, regular
from vmstore.errors import StoreError
from vmstore.objects.port import ObjectInfo, check_name, exists

HALF = ".half-"  # begins the name of what is being written


class FolderObjects:
    """Files below a folder, which is made when the first object comes; hosts may share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    @property
    def address(self) -> str:
        """The path."""
        return str(self.folder)

    def put(self, name: str, content: bytes) -> None:
        """Writes a file, flushed, and gives it its name where that is free."""
        path = self.folder / check_name(name)
        try:
            no_links(self.folder, path.parent)
            try:
                handle, beside = self._begun(path.parent)
            except FileNotFoundError:  # who deleted the last object there took the folder away meanwhile
                handle, beside = self._begun(path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.link(beside, path)  # unlike a rename it takes no name that is in use
            except FileExistsError:
                if self.get(name) != content:
                    raise exists(self.address, name) from None
            finally:
                os.unlink(beside)
            self._flush(path.parent)
        except OSError as error:
            raise self._failed(path, "written", error) from error

    def _begun(self, folder: Path) -> tuple[int, str]:
        """A new file in a folder, which is made."""
        folder.mkdir(parents=True, exist_ok=True)
        return tempfile.mkstemp(prefix=HALF, dir=folder)

    def _flush(self, folder: Path) -> None:
        """Makes the names in a folder durable, and that of each folder above it up to the store's own."""
        while folder.is_relative_to(self.folder.parent):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
            folder = folder.parent

    def get(self, name: str, start: int = 0, length: int | None = None) -> bytes | None:
        """The bytes of a file, or some of them."""
        path = self.folder / check_name(name)
        if path.is_dir() and not path.is_symlink():
            return None  # the names of other objects begin so
        try:
            with regular(path, link=False) as file:
                file.seek(start)
                return file.read(-1 if length is None else length)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._failed(path, "read", error) from error

    def head(self, name: str) -> ObjectInfo | None:
        """A file's size and age."""
        path = self.folder / check_name(name)
        try:
            status = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise self._failed(path, "read", error) from error
        if S_ISDIR(status.st_mode):
            return None
        return ObjectInfo(name, status.st_size, status.st_mtime_ns // 1_000)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """The files below a prefix, by name."""
        top = self.folder / check_name(prefix) if prefix else self.folder
        paths = (path for path in top.rglob("*") if path.is_file() and not path.is_symlink())
        for name in sorted(path.relative_to(self.folder).as_posix() for path in paths if HALF not in path.name):
            if (found := self.head(name)) is not None:
                yield found

    def delete(self, name: str) -> bool:
        """Removes a file, and the folders that it leaves empty."""
        path = self.folder / check_name(name)
        try:
            path.unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise self._failed(path, "removed", error) from error
        with suppress(OSError):  # until one holds something else
            for folder in path.relative_to(self.folder).parents:
                (self.folder / folder).rmdir()
        return True

    def _failed(self, path: Path, done: str, error: OSError) -> StoreError:
        return StoreError(
            f"{path} could not be {done} ({error.strerror or error}); make room, or mend the disk or its permissions",
            code="not-written" if done == "written" else "not-read",
        )
