"""A folder of this machine for what can be fetched or folded again: of one origin, and of no other machine."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import msgspec

from vmstore.core.system.safe_files import destroy
from vmstore.errors import StoreError

if sys.platform != "win32":
    import fcntl

ORIGIN, LOCK = "origin.json", ".lock"


class CacheOrigin(msgspec.Struct):
    """The origin of a cache folder: what it holds copies of, by its uid, and the machine that made them."""

    uid: str
    machine: str


def prepare(folder: Path, uid: str) -> None:
    """Makes a cache folder, empties it where it is of another origin, and refuses another machine's."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (folder / LOCK).open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # who comes second finds the origin whole
            _claim(folder, CacheOrigin(uid, machine()))
    except OSError as error:
        raise StoreError(
            f"the cache {folder} cannot be used ({error.strerror}); name another by cache= in the address",
            code="no-cache",
        ) from error


def _claim(folder: Path, mine: CacheOrigin) -> None:
    found = _origin(folder)
    if found is not None and found.machine != mine.machine:
        raise StoreError(
            f"{folder} is the cache of another machine ({found.machine}), and two that write into one would "
            f"spoil it: name a folder of this machine by cache= in the address, or delete "
            f"{folder / ORIGIN} where this is the same machine under another name",
            code="cache-of-another-machine",
        )
    if found is None or found.uid != mine.uid:
        empty(folder)
        (folder / ORIGIN).write_bytes(msgspec.json.encode(mine))


def empty(folder: Path) -> None:
    """Overwrites and removes everything in a cache folder."""
    for file in sorted(folder.rglob("*"), reverse=True):
        if file.is_dir() and not file.is_symlink():
            file.rmdir()
        elif file != folder / LOCK:
            destroy(folder, file)


def machine() -> str:
    """A name of this machine that no other has, as far as it says one."""
    node = platform.node() or "unnamed"
    try:
        return f"{node}/{Path('/etc/machine-id').read_text().strip()[:12]}"
    except OSError:
        return node


def _origin(folder: Path) -> CacheOrigin | None:
    try:
        return msgspec.json.decode((folder / ORIGIN).read_bytes(), type=CacheOrigin)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
