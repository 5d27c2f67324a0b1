"""LRU: the page that was used longest ago goes first."""

from __future__ import annotations

from vmstore.vm.policies.ordered_queues import Lines, Place
from vmstore.vm.policies.policy import Now
from vmstore.vm.policies.resident import Resident


class LRU1(Lines):
    """A page's score is the count of references when it was last used."""

    NAME, VERSION, NUMBER = "lru", 1, 1

    def place(self, resident: Resident, now: Now) -> Place:
        """One line, by last use."""
        return 0, self._classes[resident.type] + resident.used
