"""Copies of a tier's objects on this machine, each held to its SHA-256; bounded, the longest unused go first.

    ~/.cache/vmstore/cold-<hash of the address>/objects/<sha256>.archive

Processes of one machine may share it: a copy gets its name when it is whole. Two machines may not.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from vmstore.cold.manifest import FoundManifest, StoredObject
from vmstore.core.system.cache_folder import prepare
from vmstore.core.system.safe_files import destroy, regular
from vmstore.errors import CorruptError, StoreError
from vmstore.objects.port import Objects

CACHE_BYTES = 8 << 30
OBJECTS, VIEWS = "objects", "views"
TRIES = 3


def cache_of(address: str, root: str | None = None) -> Path:
    """The folder for copies from an address, below the user's cache folder or another `root`."""
    place = Path(root or os.path.expanduser("~/.cache/vmstore")).absolute()
    return place / f"cold-{hashlib.sha256(address.encode()).hexdigest()[:12]}"


class ObjectCache:
    """The copies of objects in a folder. Any thread may use it."""

    def __init__(self, folder: Path, objects: Objects, *, size_max: int = CACHE_BYTES) -> None:
        self.folder = folder
        self._objects = objects
        self._size_max = size_max
        self._checked: set[str] = set()
        self.fetched = 0  # objects that were not here
        prepare(folder, folder.name)

    def path(self, stored: StoredObject) -> Path:
        """The copy of an object, fetched where none is whole here; CorruptError where it is not what was published."""
        path = self._place(stored)
        if not self._whole(path, stored):
            self._fetch(path, stored)
        with contextlib.suppress(OSError):
            os.utime(path)
        return path

    def _place(self, stored: StoredObject) -> Path:
        return self.folder / OBJECTS / f"{stored.sha256}{Path(stored.name).suffix}"

    def _whole(self, path: Path, stored: StoredObject) -> bool:
        """Whether a copy is there and what it was; looked into once by each process."""
        if stored.sha256 in self._checked and path.exists():
            return True
        try:
            with regular(path, link=False) as file:
                found = hashlib.file_digest(file, "sha256").hexdigest() == stored.sha256
        except OSError:
            return False
        if found:
            self._checked.add(stored.sha256)
        return found

    def _fetch(self, path: Path, stored: StoredObject) -> None:
        content = self.read(stored)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._make_room(stored.size)
            handle, beside = tempfile.mkstemp(dir=path.parent, suffix=".new")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                os.rename(beside, path)
            except BaseException:
                os.unlink(beside)
                raise
        except OSError as error:
            raise StoreError(
                f"{path} could not be written ({error.strerror}); make room, or name another folder by cache= in the "
                "address",
                code="no-cache",
            ) from error
        self._checked.add(stored.sha256)
        self.fetched += 1

    def read(self, stored: StoredObject) -> bytes:
        """The bytes of an object from the tier, held to its hash; read again where only some came."""
        for _ in range(TRIES):
            content = self._objects.get(stored.name)
            if content is None:
                raise CorruptError(
                    f"{self._objects.address}/{stored.name} is gone: what was erased is destroyed, and what was "
                    "replaced is swept; open the address again, without a manifest's number",
                    code="cold-missing",
                )
            if hashlib.sha256(content).hexdigest() == stored.sha256:
                return content
        raise CorruptError(
            f"{self._objects.address}/{stored.name} has not the bytes that were published: put it back, or publish the "
            "session again from its store",
            code="cold-damaged",
        )

    def _make_room(self, size: int) -> None:
        """Removes the copies that were used longest ago, as far as another one of a size needs it."""
        rows = []
        for file in (self.folder / OBJECTS).iterdir():
            with contextlib.suppress(FileNotFoundError):
                status = file.stat()
                rows.append((status.st_mtime_ns, status.st_size, file))
        size += sum(row[1] for row in rows)
        for _, length, file in sorted(rows):
            if size <= self._size_max:
                break
            self._drop(file)
            size -= length

    def views(self, found: FoundManifest) -> Path:
        """The folder for the views of a manifest."""
        return self.folder / VIEWS / found.sha256[:16]

    def keep_only(self, found: FoundManifest, *, erasing: bool = False) -> None:
        """Removes the copies and views of other manifests, overwritten first where something in them was erased.

        Else a process that reads an older manifest keeps what it has open.
        """
        wanted = {stored.sha256 for stored in found.manifest.objects}
        files = [*(self.folder / OBJECTS).glob("*")] if (self.folder / OBJECTS).is_dir() else []
        for file in files:
            if file.name.partition(".")[0] not in wanted and file.suffix != ".new":
                self._drop(file, erasing=erasing)
        for folder in (self.folder / VIEWS).glob("*"):
            if folder != self.views(found):
                for file in folder.rglob("*") if erasing else ():
                    if file.is_file():
                        destroy(self.folder, file)
                shutil.rmtree(folder, ignore_errors=True)

    def _drop(self, file: Path, *, erasing: bool = False) -> None:
        self._checked.discard(file.name.partition(".")[0])
        if erasing:
            destroy(self.folder, file)
        else:
            file.unlink(missing_ok=True)
