"""Importance-weighted LRU: an important page counts as used later than it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from vmstore.core.page import IMPORTANCE
from vmstore.vm.policies.ordered_queues import OrderedQueues, Place
from vmstore.vm.policies.policy import PolicyMoment
from vmstore.vm.policies.resident import Resident

REFERENCES_MAX = 10**8  # keeps scores within a class


class Importance1(OrderedQueues):
    """A page's score is the reference of its last use plus what its importance is worth, in millionths of one.

    Importance 1 is worth `weight` references more than importance 0 for every 1,000 tokens of the
    budget, because a page that nobody uses stays the longer, the more there is room for.
    """

    NAME, VERSION, NUMBER = "importance", 1, 2
    PARAMETERS: ClassVar[Mapping[str, int]] = {"weight": 16}

    def __init__(self, budget: int, parameters: Mapping[str, int]) -> None:
        super().__init__(budget, parameters)
        self._weight = min(self._parameters["weight"] * budget // 1000, REFERENCES_MAX)

    def place(self, resident: Resident, now: PolicyMoment) -> Place:
        """One line, by last use and importance."""
        score = resident.used * 2 * IMPORTANCE + resident.importance * self._weight
        return 0, self._classes[resident.type] + score
