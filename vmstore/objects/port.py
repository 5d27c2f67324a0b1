"""The port of an object store: five verbs over named bytes, of which each name is written once.

S3 and what speaks like it is one, a folder another. What is written is never changed, so readers need no lock, and two
hosts that write the same name find out: of stores that many hosts share, a put that only creates is the one test
and set that all of them keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from vmstore.errors import ConflictError, InputError

NAME_MAX = 900
_NAME = re.compile(r"[A-Za-z0-9_=.-]+(/[A-Za-z0-9_=.-]+)*")


class ObjectInfo(NamedTuple):
    """An object's name, its bytes and when it was written (microseconds since 1970, by the store's clock)."""

    name: str
    size: int
    at_us: int


class Objects(Protocol):
    """Named bytes that are written once. Any thread may use it.

    Names are paths of letters, digits and `_=.-`, parted by slashes. What cannot be reached, or lets nobody in, is a
    StoreError that names the address; what may pass is tried again for a while before.
    """

    @property
    def address(self) -> str:
        """The address as messages name it, without secrets."""
        ...

    def put(self, name: str, content: bytes) -> None:
        """Writes an object, durable before it returns.

        One of the name that holds the same bytes counts as written; one that holds others raises ConflictError
        (`object-exists`) and stays.
        """
        ...

    def get(self, name: str, start: int = 0, length: int | None = None) -> bytes | None:
        """The bytes of an object, or `length` of them from `start` on; None where there is none of the name."""
        ...

    def head(self, name: str) -> ObjectInfo | None:
        """An object's size and age; None where there is none of the name."""
        ...

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """The objects below a prefix, which is a whole part of a path (`segments`, not `seg`), by name."""
        ...

    def delete(self, name: str) -> bool:
        """Removes an object; whether it was there. A store that keeps versions keeps the bytes."""
        ...


def check_name(name: str) -> str:
    """The name itself; InputError where it is none."""
    if len(name) > NAME_MAX or not _NAME.fullmatch(name) or any(part in (".", "..") for part in name.split("/")):
        raise InputError(
            f"{name[:80]!r} is no name of an object; use parts of letters, digits and _=.- with slashes between",
            code="no-object-name",
        )
    return name


def exists(address: str, name: str) -> ConflictError:
    """The refusal of a put over another object."""
    return ConflictError(
        f"{address} has another {name} already, and an object is written once; read what is there and decide again",
        code="object-exists",
    )
