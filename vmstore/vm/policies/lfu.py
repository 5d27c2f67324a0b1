"""LFU with ageing, times importance: what is used often stays, until others have been used more since."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from vmstore.vm.policies.min_residency import CLASS_STEP
from vmstore.vm.policies.ordered_queues import OrderedQueues, Place
from vmstore.vm.policies.policy import PolicyMoment
from vmstore.vm.policies.resident import Resident


class LFU1(OrderedQueues):
    """A page's score is its uses times `base_ppm` plus importance, on top of the age it had when last used.

    The age is the score of the last page this policy sent away, where that was higher than any before.
    """

    NAME, VERSION, NUMBER = "lfu", 1, 5
    PARAMETERS: ClassVar[Mapping[str, int]] = {"base_ppm": 300_000}

    def __init__(self, budget: int, parameters: Mapping[str, int]) -> None:
        super().__init__(budget, parameters)
        self._age = 0
        self._ages: dict[int, int] = {}

    def enter(self, resident: Resident, now: PolicyMoment) -> None:
        """A page comes in at the age of now, as if it was used."""
        self._ages[resident.page] = self._age
        super().enter(resident, now)

    def touch(self, resident: Resident, now: PolicyMoment) -> None:
        """A page's numbers changed; where it is a use, its age did too."""
        if resident.used == now.reference:
            self._ages[resident.page] = self._age
        super().touch(resident, now)

    def place(self, resident: Resident, now: PolicyMoment) -> Place:
        """One line, by age, uses and importance."""
        score = (1 + resident.uses) * (self._parameters["base_ppm"] + resident.importance)
        return 0, self._classes[resident.type] + self._ages[resident.page] + score

    def leave(self, resident: Resident, now: PolicyMoment, *, evicted: bool) -> None:
        """A page leaves; where it was sent away, the others have aged."""
        if evicted:
            self._age = max(self._age, self._places[resident.page][1] % CLASS_STEP)
        del self._ages[resident.page]
        super().leave(resident, now, evicted=evicted)
