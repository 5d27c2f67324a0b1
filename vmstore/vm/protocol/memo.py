"""What was worked out for one request, kept for the next: most of its pages stand as they stood."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class Memo:
    """Values by what they were made of, those of the last two requests.

    A key may hold the `id` of an object where its value holds the object itself: while the value is kept,
    no other object has that id. What is kept is shared by requests, so nobody may change it.
    """

    def __init__(self) -> None:
        self._now: dict[Hashable, Any] = {}
        self._before: dict[Hashable, Any] = {}

    def begin(self) -> None:
        """Begins a request: what the one before the last needed is let go."""
        self._now, self._before = {}, self._now

    def kept(self, key: Hashable, told: object) -> Any:
        """What `keep` was given under a key for all this; None where it was given for anything else."""
        found = self._now.get(key) or self._before.get(key)
        if found is None or found[0] != told:
            return None
        self._now[key] = found
        return found[1]

    def keep(self, key: Hashable, told: object, value: T) -> T:
        """Keeps a value under a key, and all that it follows from."""
        self._now[key] = told, value
        return value

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made where none is kept."""
        found: T | None = self._now.get(key)
        if found is None:
            found = self._before.get(key)
            found = self._now[key] = make() if found is None else found
        return found
