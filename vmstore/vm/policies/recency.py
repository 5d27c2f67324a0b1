"""The score of half recency, three tenths similarity, two tenths anchor strength."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from vmstore.vm.policies.fixed_point import falling
from vmstore.vm.policies.ordered_queues import OrderedQueues, Place
from vmstore.vm.policies.policy import PolicyMoment
from vmstore.vm.policies.resident import Resident

WHOLE = 1_000_000


class Recency1(OrderedQueues):
    """A page's score in parts per million: the weighted share of recency; of the other two nothing is known to it.

    Recency is e to the power of minus `decay_ppm` times the turns since it was used; the weights
    are in thousandths. Pages used in the same turn stand in one line, so a choice looks at one page a turn.
    """

    NAME, VERSION, NUMBER = "recency", 1, 4
    PARAMETERS: ClassVar[Mapping[str, int]] = {"decay_ppm": 100_000, "recency": 500, "similarity": 300, "anchor": 200}
    LOWEST: ClassVar[Mapping[str, int]] = {"decay_ppm": 1_000}  # 14,000 turns until nothing is left

    def __init__(self, budget: int, parameters: Mapping[str, int]) -> None:
        super().__init__(budget, parameters)
        parameters = self._parameters
        self._fallen = falling(parameters["decay_ppm"], parameters["recency"] * (WHOLE // 1000))
        self._similarity, self._anchor = parameters["similarity"], parameters["anchor"]

    def place(self, resident: Resident, now: PolicyMoment) -> Place:
        """A line for each turn and class."""
        return resident.used_turn, self._classes[resident.type]

    def score(self, line: int, number: int, now: PolicyMoment) -> int:
        """Adds what is left of the recency of a turn."""
        return number + self._fallen[min(now.turn - line, len(self._fallen) - 1)]


class Recency2(Recency1):
    """The same with what each turn says its message is like, and with how strong an anchor a page is.

    Similarity is to what the turn under way began with, as the log has it; 0 of what it does not name.
    """

    VERSION, NUMBER = 2, 8

    def place(self, resident: Resident, now: PolicyMoment) -> Place:
        """A line for each turn and class, by similarity and anchor strength."""
        number = (self._similarity * resident.similarity + self._anchor * resident.anchor) // 1000
        return resident.used_turn, self._classes[resident.type] + number
