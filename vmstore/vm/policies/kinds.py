"""Demand by what a page is: what a tool printed is gone back to more often than what was said, and long pages more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from vmstore.core.page import IMPORTANCE, Modality, PageType
from vmstore.vm.policies.demand import COLD, Demand1
from vmstore.vm.policies.fixed_point import OCTAVE, exp2, log2
from vmstore.vm.policies.ordered_queues import Place
from vmstore.vm.policies.policy import PolicyMoment
from vmstore.vm.policies.resident import Resident

ORDINARY_BITS = 8  # of the tokens of a page that is not long


class Demand2(Demand1):
    """A page's score is that of `demand@1`, but of tool results and calls, which most of a working session is.

    - Being warm they are worth `result` or `call` thousandths of an octave more, and `long` more for each
      doubling of their tokens over 128: a long one costs most to bring back, and is gone back to more often.
    - Each doubling of one and their uses takes `again` thousandths off their warmth: a newer page, as the next
      reading of the same file, holds by then what they were used for.
    - Their rate is less by `fleeting` thousandths: what a tool printed is used for a while, and no favourite.

    The age of all pages counts from `lull` references on.
    """

    NAME, VERSION, NUMBER = "demand", 2, 9
    PARAMETERS: ClassVar[Mapping[str, int]] = {
        **Demand1.PARAMETERS,
        "lull": 16,
        "result": 800,
        "call": 500,
        "long": 250,
        "again": 300,
        "fleeting": 6_000,
    }
    LOWEST: ClassVar[Mapping[str, int]] = {**Demand1.LOWEST, "lull": 1}

    def __init__(self, budget: int, parameters: Mapping[str, int]) -> None:
        super().__init__(budget, parameters)
        parameters = self._parameters
        self._lull, self._again = parameters["lull"], parameters["again"] * OCTAVE // 1000
        self._result, self._call = parameters["result"] * OCTAVE // 1000, parameters["call"] * OCTAVE // 1000
        self._long, self._fleeting = parameters["long"] * OCTAVE // 1000, parameters["fleeting"] * OCTAVE // 1000
        self._glow = log2(self._prior * exp2(0)) + self._fallen(parameters["cooling"])

    def place(self, resident: Resident, now: PolicyMoment) -> Place:
        """In the line of its class, size, kind and number of uses, by last use."""
        bits = resident.tokens.bit_length()
        extra = self._classes[resident.type] + self._size * bits
        importance = self._importance * (resident.importance - IMPORTANCE) // (2 * IMPORTANCE)
        warm, cold = extra + self._glow, extra + importance + self._rate(resident)
        kind = self._kind(resident)
        if kind is not None:
            warm += kind + self._long * (bits - ORDINARY_BITS) - self._again * ((resident.uses + 1).bit_length() - 1)
            cold -= self._fleeting
        self._worths[resident.page] = resident.used, warm, cold
        return warm, resident.used

    def _kind(self, resident: Resident) -> int | None:
        """The worth of being a result or a call; None for messages."""
        if resident.type is PageType.ARTIFACT:
            return self._result
        return self._call if resident.modality is Modality.STRUCTURED else None

    def score(self, line: int, number: int, now: PolicyMoment) -> int:
        """In a warm line its worth minus its age's, in the cold one the worth minus the time's."""
        if line == COLD:
            return super().score(line, number, now)
        return line - self._fallen(now.reference - number)

    def _fallen(self, age: int) -> int:
        """The worth that warmth has lost at an age in references."""
        return log2(age + self._lull) * 3 // 2
