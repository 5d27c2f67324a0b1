"""LRU: the page that was used longest ago goes first."""

from __future__ import annotations

from vmstore.vm.policies.ordered_queues import OrderedQueues, Place
from vmstore.vm.policies.policy import PolicyMoment
from vmstore.vm.policies.resident import Resident


class LRU1(OrderedQueues):
    """A page's score is the count of references when it was last used."""

    NAME, VERSION, NUMBER = "lru", 1, 1

    def place(self, resident: Resident, now: PolicyMoment) -> Place:
        """One line, by last use."""
        return 0, self._classes[resident.type] + resident.used
