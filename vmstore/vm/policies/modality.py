"""Modality-aware LRU: media go first, text is kept."""

from __future__ import annotations

from vmstore.core.page import Modality
from vmstore.vm.policies.min_residency import CLASS_STEP
from vmstore.vm.policies.ordered_queues import OrderedQueues, Place
from vmstore.vm.policies.policy import PolicyMoment
from vmstore.vm.policies.resident import Resident

STEP = CLASS_STEP >> 4
KEPT: dict[Modality, int] = {
    Modality.VIDEO: 0,
    Modality.AUDIO: 1,
    Modality.IMAGE: 2,
    Modality.STRUCTURED: 3,
    Modality.TEXT: 3,
}
"""Which modality outlasts which: the greater number stays longer."""


class Modality1(OrderedQueues):
    """A page's score is the reference of its last use, above that of every page of a lesser modality."""

    NAME, VERSION, NUMBER = "modality", 1, 3

    def place(self, resident: Resident, now: PolicyMoment) -> Place:
        """One line, by modality and last use."""
        return 0, self._classes[resident.type] + STEP * KEPT[resident.modality] + resident.used
