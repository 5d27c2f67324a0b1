"""A store's contents put under keys, and its store key changed."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

import msgspec

from vmstore.cells.storekey import StoreKey
from vmstore.cells.subject_keys import Keyring
from vmstore.core.clock import SystemIds
from vmstore.engine.verify.verify import UNREADABLE
from vmstore.errors import CorruptError, RefusedError, StoreError
from vmstore.log.archive.folder import Archives
from vmstore.log.encrypt_in_place import encrypt as encrypt_log
from vmstore.log.encrypt_in_place import format_now
from vmstore.log.file import ENCRYPTED_FORMAT, HALF_ENCRYPTED_FORMAT
from vmstore.log.frame_encryption import FrameEncryption
from vmstore.log.port import Progress
from vmstore.log.upgrade import KEPT
from vmstore.maintenance.archive import archived_sessions
from vmstore.namespace.backends.address import backend_of, path_of
from vmstore.namespace.backends.folder import FolderBackend
from vmstore.namespace.encryption import KEYS, Key, store_key_of, subject_of
from vmstore.namespace.folder import ARCHIVE, COLUMNS, LOG, SNAPSHOTS, VIEWS, find
from vmstore.namespace.namespace import KNOWN
from vmstore.store.store import open_store

TEXT = "text"
MADE_FROM_CONTENTS = (VIEWS, KNOWN, COLUMNS, TEXT, SNAPSHOTS)
LEFT = (LOG + KEPT, LOG + ".new")  # an old log that an upgrade kept, half of a new one


class EncryptionReport(msgspec.Struct, frozen=True):
    """Result of an encryption: the number of cells and of data subjects."""

    path: str
    cells: int
    subjects: int


class RekeyReport(msgspec.Struct, frozen=True):
    """The store whose keys were wrapped again, and of how many data subjects."""

    path: str
    subjects: int


def encrypt(
    path: str | os.PathLike[str], key: Key, *, namespace: str = "default", progress: Progress | None = None
) -> EncryptionReport:
    """Encrypts a namespace in place, or resumes where that was stopped; nobody else may have it open.

    Its log is verified first. Hashes, positions and answers stay. At the end no file of the namespace
    holds a content in the clear; what deleted files leave on a disk, and backups made before, do.
    """
    ids = SystemIds()
    store_key = _needed(key)
    remedy = "`vmstore migrate` it into a namespace that is made with a key"
    folder = find(path_of(path, remedy), namespace, create=False)
    _begin(folder, store_key)
    vault = FrameEncryption(Keyring(folder / KEYS, store_key, ids), ids, subject_of)
    try:
        cells = encrypt_log(folder / LOG, vault, lambda: _tidy(folder), progress)
        return EncryptionReport(str(folder), cells, vault.keyring.count())
    finally:
        vault.close()


def rekey(path: str | os.PathLike[str], key: Key, new_key: Key, *, namespace: str = "default") -> RekeyReport:
    """Wraps the keys of a namespace by another store key, all or none; contents are not written again.

    Every process with the store open needs to open it again, with the new key.
    """
    old, new = _needed(key), _needed(new_key)
    backend = backend_of(path)
    keyring = backend.keyring(namespace, old, SystemIds())
    try:
        folder = backend.path / namespace if isinstance(backend, FolderBackend) else None
        if folder is not None and (folder / ARCHIVE).is_dir():
            # first, as after a kill only the old key says what they are
            with closing(Archives(folder / ARCHIVE)) as archives:
                archives.rewrap(lambda name: keyring.rewrapped(name, new))
        return RekeyReport(backend.address if folder is None else str(folder), keyring.rewrap(new))
    finally:
        keyring.close()


def _needed(key: Key) -> StoreKey:
    store_key = store_key_of(key, SystemIds())
    assert store_key is not None, "a key is given"
    return store_key


def _begin(folder: Path, store_key: StoreKey) -> None:
    """Makes the file of keys, once the log is known to be whole."""
    now = format_now(folder / LOG)
    if now == HALF_ENCRYPTED_FORMAT:
        return
    if now == ENCRYPTED_FORMAT:
        raise StoreError(f"{folder} is encrypted already; `vmstore rekey` changes its key", code="encrypted-already")
    with open_store(folder.parent, namespace=folder.name) as store:
        archived = archived_sessions(store)
        problems = [problem for problem in store.verify(views=False).problems if problem.kind != UNREADABLE]
    if problems:
        first = problems[0]
        raise CorruptError(
            f"{folder} cannot be encrypted: {first.kind}, {first.where}: {first.what}; mend that first",
            code="not-sound",
        )
    if archived:
        raise RefusedError(
            f"session {next(iter(archived))!r} of {folder} is archived, and an archive is not encrypted; bring what is "
            "archived back first, with `vmstore unarchive`"
        )
    (folder / KEYS).unlink(missing_ok=True)  # of a try that was stopped before anything was encrypted
    Keyring.create(folder / KEYS, store_key, SystemIds())
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _tidy(folder: Path) -> None:
    """Removes what was made from contents and lies in the clear, and what others left; views are made in memory."""
    for entry in folder.iterdir():
        if entry.name.startswith((*MADE_FROM_CONTENTS, *LEFT)) or entry.name == ARCHIVE:  # nothing names archives
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
