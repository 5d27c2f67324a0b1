"""Namespaces under keys: which key is meant, and how they are made and opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from vmstore.cells.storekey import StoreKey
from vmstore.cells.subject_keys import Keyring
from vmstore.core.clock import IdSource
from vmstore.errors import InputError, StoreError
from vmstore.log.archive.formats import ENCRYPTED_FORMAT as ARCHIVE_FORMAT
from vmstore.log.archive.formats import FORMATS
from vmstore.log.commit import Commit
from vmstore.log.file import ENCRYPTED_FORMAT, check_format
from vmstore.log.frame_encryption import FrameEncryption
from vmstore.log.sqlite import SqliteLog
from vmstore.namespace.folder import LOG, is_archive, make_log, namespaces


def subject_of(first: Commit) -> bytes:
    """The data subject of the session that begins with a commit, which has its cells."""
    from vmstore.core.mutation import Open, decode

    try:
        opened = decode(first.body)[0]
    except (ValueError, IndexError):
        return b""
    if not isinstance(opened, Open):
        return b""
    user: Any = None
    if isinstance(opened.meta, int) and opened.meta < len(first.cells) and not first.cells[opened.meta].erased:
        meta = msgspec.json.decode(first.cells[opened.meta].content)
        user = meta.get("user") if isinstance(meta, dict) else None
    return b"user\0" + user.encode("utf-8", "replace") if isinstance(user, str) else b"session\0" + opened.uid


KEYS = "keys.sqlite"
Key = str | os.PathLike[str] | StoreKey
"""A store key as a caller names it: the file it is in, or what wraps and unwraps."""
K = TypeVar("K", bound=Key)


def store_key_of(given: Key | None, ids: IdSource) -> StoreKey | None:
    """The store key that a caller named; raises InputError where it is none."""
    if given is None:
        return None
    if isinstance(given, str | os.PathLike):
        from vmstore.namespace.storekey import read_store_key

        return read_store_key(given, ids)
    if isinstance(given, StoreKey):
        return given
    raise InputError(
        f"{given!r:.60} is no store key; name its file, or pass an object with `wrap` and `unwrap`",
        code="not-a-store-key",
    )


def making(store_key: StoreKey | None, ids: IdSource) -> Callable[[Path], None]:
    """A function that makes the files of a new namespace: its log, encrypted where there is a key."""
    if store_key is None:
        return make_log

    def make(folder: Path) -> None:
        Keyring.create(folder / KEYS, store_key, ids)
        SqliteLog.create(folder / LOG, encrypted=True)

    return make


def plain_beside(place: str, other: str) -> StoreError:
    """The refusal of a plain namespace in a store of which another one is encrypted."""
    return StoreError(
        f"{place} would be plain, and {other!r} beside it is encrypted; name the file of the key "
        "with --store-key or in VMSTORE_KEY_FILE, in Python with vmstore.open(…, key=…), or use another store",
        code="plain-beside-encrypted",
    )


def none_plain_beside(path: Path, namespace: str) -> None:
    """Raises StoreError where a namespace would be made that is plain, in a store of which another is encrypted."""
    others = namespaces(path) if os.path.isdir(path) else []
    for other in others if namespace not in others else ():
        if _under_key(path / other):
            raise plain_beside(str(path / namespace), other)


def _under_key(folder: Path) -> bool:
    """Whether a namespace is encrypted, as far as that is known: a damaged one is reported where it is opened."""
    try:
        return (folder / KEYS).is_file() or encrypted(folder)
    except StoreError:
        return False


def encrypted(folder: Path) -> bool:
    """Whether a namespace is encrypted."""
    return check_format(folder / LOG) == ENCRYPTED_FORMAT


def vault_of(folder: Path, store_key: StoreKey | None, ids: IdSource) -> FrameEncryption | None:
    """The decryption of a namespace, None for a plain one; raises StoreError where the key does not fit."""
    if not encrypted(folder):
        if store_key is not None:
            raise StoreError(
                f"{folder} is not encrypted; leave the key out, or run `vmstore encrypt` on its store",
                code="not-encrypted",
            )
        return None
    if store_key is None:
        raise StoreError(
            f"{folder} is encrypted; name the file of its key with --store-key or in VMSTORE_KEY_FILE, "
            "in Python with vmstore.open(…, key=…)",
            code="encrypted",
        )
    return FrameEncryption(Keyring(folder / KEYS, store_key, ids), ids, subject_of)


def key_for(path: Path, namespace: str, key: K | None) -> K | None:
    """The key of all namespaces of a store that are encrypted, for one of them: none where that one is plain.

    A path may be that of an archive too.
    """
    if is_archive(path):
        return key if check_format(path, FORMATS) == ARCHIVE_FORMAT else None
    folder = path / namespace
    return None if key is None or ((folder / LOG).is_file() and not encrypted(folder)) else key


def vault_in(folder: Path, store_key: StoreKey | None, ids: IdSource) -> FrameEncryption | None:
    """The same, where the key is that of all namespaces which are encrypted."""
    return vault_of(folder, store_key if encrypted(folder) else None, ids)
