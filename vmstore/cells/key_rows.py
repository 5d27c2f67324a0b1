"""The port of what keeps the wrapped keys of a namespace: a file beside its log, or a table of its database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

DROPPED = b""
"""What stands in the row of a key that was destroyed."""


class KeyRows(Protocol):
    """Wrapped keys by their ids. Any thread may use it."""

    @property
    def place(self) -> str:
        """The place they lie in, as messages name it."""
        ...

    def row(self, name: bytes) -> bytes | None:
        """The wrapped key of an id; DROPPED where it was destroyed, None where there is none."""
        ...

    def add(self, name: bytes, wrapped: bytes) -> None:
        """Adds a key, durable; where there is one of the id already, that stays."""
        ...

    def drop(self, name: bytes) -> bool:
        """Empties a row, whose bytes are gone; whether there was a key."""
        ...

    def changed(self) -> bool:
        """Whether somebody else may have changed rows since this was last asked."""
        ...

    def count(self) -> int:
        """How many keys there are, dropped ones left out."""
        ...

    def rewrap(self, again: Callable[[bytes, bytes], bytes]) -> int:
        """Has every key that is not dropped wrapped again by its id and what it was, all or none; how many."""
        ...

    def close(self) -> None:
        """Closes what it has open; closing twice does nothing."""
        ...
