"""Importance-weighted LRU: an important page counts as used later than it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from vmstore.core.page import IMPORTANCE
from vmstore.vm.policies.lines import Lines, Place
from vmstore.vm.policy import Now
from vmstore.vm.resident import Resident


class Importance1(Lines):
    """A page's score is the reference of its last use plus its importance times `weight` references, in millionths.

    `weight` is what importance 1 is worth against importance 0.
    """

    NAME, VERSION, NUMBER = "importance", 1, 2
    PARAMETERS: ClassVar[Mapping[str, int]] = {"weight": 400}

    def place(self, resident: Resident, now: Now) -> Place:
        """One line, by last use and importance."""
        used, extra = resident.used * 2 * IMPORTANCE, resident.importance * self._parameters["weight"]
        return Place(0, self._classes[resident.type] + used + extra)
