"""A cache of values computed for one request and reused by the next: most pages do not change."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import takewhile
from operator import is_
from typing import Any, TypeVar

T = TypeVar("T")


def shared(first: Sequence[object], second: Sequence[object]) -> int:
    """How many objects two lists begin with in common: the very same ones."""
    return sum(takewhile(bool, map(is_, first, second)))


class Memo:
    """Values by what they were made of, those of the last two requests that were gone through whole.

    A request that only adds to the one before continues where that ended (`last`), and looks up nothing of
    what stands before. A key may hold the `id` of an object where its value holds the object itself: while the
    value is kept, no other object has that id. What is kept is shared by requests, so nobody may change it.
    """

    def __init__(self) -> None:
        self._now: dict[Hashable, Any] = {}
        self._before: dict[Hashable, Any] = {}
        self.last: dict[str, Any] = {}  # where each step of making a request stood after the last one

    def begin(self) -> None:
        """Begins a request that is gone through whole: what the one before the last such needed is let go."""
        self._now, self._before = {}, self._now

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """The value of a key, made where none is kept."""
        found: T | None = self._now.get(key)
        if found is None:
            found = self._before.get(key)
            found = self._now[key] = make() if found is None else found
        return found
