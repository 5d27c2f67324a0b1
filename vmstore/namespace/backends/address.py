"""The address of a store: a path, or a URL whose scheme names what keeps its logs."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from vmstore.errors import InputError
from vmstore.namespace.backends.folder import FolderBackend

if TYPE_CHECKING:
    from vmstore.namespace.backends.port import Backend

Address = str | os.PathLike[str]
"""How a caller names a store."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def path_of(address: Address, remedy: str) -> Path:
    """The path of a store that has to lie in a folder; InputError with a remedy where its address is a URL."""
    if isinstance(address, str) and _SCHEME.match(address):
        raise InputError(
            f"{backend_of(address).address} is no folder, and this works on the files of one; {remedy}",
            code="no-folder-of-files",
        )
    return Path(address)


def backend_of(address: Address | Backend) -> Backend:
    """The backend of a store by its address; raises InputError where there is none of that name."""
    if not isinstance(address, str | os.PathLike):
        return address
    scheme = _SCHEME.match(address) if isinstance(address, str) else None
    if scheme is None:
        return FolderBackend(Path(address))
    if scheme[1] in ("postgresql", "postgres"):
        try:
            from vmstore.namespace.backends.postgres import PostgresBackend
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "psycopg":
                raise
            raise InputError(
                "a store in PostgreSQL needs psycopg: pip install 'vmstore[postgres]'", code="not-installed"
            ) from None
        return PostgresBackend(str(address))
    if scheme[1] in ("s3", "cold"):
        from vmstore.namespace.backends.cold import ColdBackend

        return ColdBackend(str(address))
    raise InputError(
        f"no store is kept at {scheme[0]}…; name a folder, a database as postgresql://user@host/database, or a cold "
        "tier as s3://bucket/prefix",
        code="no-backend",
    )
