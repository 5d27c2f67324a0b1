"""The file of a store key: 64 hex digits, for its owner alone."""

from __future__ import annotations

import os
from pathlib import Path

from vmstore.cells.storekey import KEY_BYTES, KeyAtHand
from vmstore.core.clock import IdSource, SystemIds
from vmstore.core.system.atomic_file import beside, naming
from vmstore.errors import InputError
from vmstore.namespace.signing_keys import read_secret, write_secret

REMEDY = "`vmstore key --new {}` makes one"


def new_store_key(path: str | os.PathLike[str], *, ids: IdSource | None = None) -> Path:
    """Draws a store key and writes it where nothing is yet, readable for its owner alone (0600); the file."""
    file = Path(path)
    with beside(file) as part, naming(file):
        write_secret(part, b"".join((ids or SystemIds()).salts(2)).hex().encode() + b"\n")
    return file


def read_store_key(path: str | os.PathLike[str], ids: IdSource) -> KeyAtHand:
    """The store key in a file; raises InputError where there is none, or others may read it."""
    file = Path(path)
    try:
        secret = bytes.fromhex(read_secret(file, REMEDY.format(file)).decode("ascii"))
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise InputError(
            f"{file} holds no store key, which is 64 hex digits; {REMEDY.format('FILE')}", code="not-a-store-key"
        )
    return KeyAtHand(secret, ids)
