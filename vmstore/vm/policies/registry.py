"""Policies by name; for now the least recently used alone."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import ClassVar

from vmstore.vm.policy import Now, Policy, Scored
from vmstore.vm.resident import Resident


class LRU:
    """The page that was used longest ago goes first."""

    NAME: ClassVar[str] = "lru"
    VERSION: ClassVar[int] = 1
    NUMBER: ClassVar[int] = 1

    def __init__(self) -> None:
        self._order: list[Scored] = []
        self._scores: dict[int, Scored] = {}

    def enter(self, resident: Resident, now: Now) -> None:
        """A page comes into the prompt."""
        self.touch(resident, now)

    def touch(self, resident: Resident, now: Now) -> None:
        """A page in the prompt is used."""
        self._drop(resident.page)
        self._scores[resident.page] = scored = Scored(now.reference, resident.page)
        insort(self._order, scored)

    def leave(self, resident: Resident, now: Now, *, evicted: bool) -> None:
        """A page leaves the prompt."""
        self._drop(resident.page)

    def victims(self, now: Now) -> Iterator[Scored]:
        """Every resident, the first to go first."""
        return iter(self._order)

    def _drop(self, page: int) -> None:
        scored = self._scores.pop(page, None)
        if scored is not None:
            del self._order[bisect_left(self._order, scored)]


def policy(name: str, budget: int, **parameters: int) -> Policy:
    """The policy of a name for a budget in tokens."""
    return LRU()
