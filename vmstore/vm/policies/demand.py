"""Demand: how likely a page is used next, by how lately it was used and how often.

What was just used is used again soon, whatever it is; what was used time and again will be again,
though it was not for a while. A page counts for the greater of the two, a large one for somewhat
more, because large pages are gone back to more often.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from vmstore.core.page import IMPORTANCE
from vmstore.vm.policies.fixed_point import OCTAVE, STEPS, exp2, log2
from vmstore.vm.policies.ordered_queues import OrderedQueues, Place
from vmstore.vm.policies.policy import PolicyMoment
from vmstore.vm.policies.resident import Resident

COLD = -1
LULL = 8  # references; an age below it hardly counts


class Demand1(OrderedQueues):
    """A page's score is the greater of two logarithms, in 2**24ths of an octave: its warmth, and its rate of use.

    - Warmth falls with the power 3/2 of the references since its last use.
    - The rate counts its uses: each half as much after `half_life` references, one within `burst`
      references of the one before not at all, and `prior` of them for every page that is first seen.
      Importance from 0 to 1 multiplies it, up to 2 to the power of `importance` thousandths.
    - Twice the tokens add `size` thousandths of an octave to both.

    Warmth has fallen to the rate of a page of ordinary importance without further use after `cooling`
    references. Pages stand in line by size and last use while they are warm, and in one line after.
    """

    NAME, VERSION, NUMBER = "demand", 1, 7
    PARAMETERS: ClassVar[Mapping[str, int]] = {
        "half_life": 4_000,
        "burst": 32,
        "prior": 2,
        "importance": 4_000,
        "size": 200,
        "cooling": 200,
    }
    LOWEST: ClassVar[Mapping[str, int]] = {
        "half_life": 100,
        "prior": 1,
    }  # a count stays a number of some thousand digits

    def __init__(self, budget: int, parameters: Mapping[str, int]) -> None:
        super().__init__(budget, parameters)
        parameters = self._parameters
        self._half_life, self._burst, self._prior = parameters["half_life"], parameters["burst"], parameters["prior"]
        self._importance, self._size = parameters["importance"] * OCTAVE // 1000, parameters["size"] * OCTAVE // 1000
        self._glow = log2(self._prior * exp2(0)) + _fall(parameters["cooling"])
        self._weights: dict[int, tuple[int, int, int]] = {}  # of every page ever seen: its last use, what all weigh
        self._worths: dict[int, tuple[int, int, int]] = {}  # of those here: last use, warm and cold, but for the time

    def place(self, resident: Resident, now: PolicyMoment) -> Place:
        """In the line of its class and size, by last use."""
        extra = self._classes[resident.type] + self._size * resident.tokens.bit_length()
        importance = self._importance * (resident.importance - IMPORTANCE) // (2 * IMPORTANCE)
        warm = extra + self._glow
        self._worths[resident.page] = resident.used, warm, extra + importance + self._rate(resident)
        return warm, resident.used

    def _rate(self, resident: Resident) -> int:
        """The logarithm of what a page's uses weigh: later ones more, so that earlier ones need not be made less."""
        page, used = resident.page, resident.used
        last, weight, rate = self._weights.get(page, (0, 0, 0))
        if not weight or used - last > self._burst:
            uses = 1 if weight else self._prior + resident.uses
            weight += uses * exp2(used * STEPS // self._half_life)
            rate = log2(weight)
        if used != last or not last:
            self._weights[page] = used, weight, rate
        return rate

    def score(self, line: int, number: int, now: PolicyMoment) -> int:
        """In a warm line its worth minus its age's, in the cold one the worth minus the time's."""
        if line == COLD:
            return number - now.reference * OCTAVE // self._half_life
        age = now.reference - number
        return line - (_FALLS[age] if age < _NEAR else _fall(age))

    def worth(self, page: int, score: int, now: PolicyMoment) -> int:
        """The greater of both."""
        used, warm, cold = self._worths[page]
        return max(self.score(warm, used, now), self.score(COLD, cold, now))

    def touch(self, resident: Resident, now: PolicyMoment) -> None:
        """A page was used and is warm again, or one of its numbers changed."""
        place = self.place(resident, now)
        self._move(resident.page, place)
        line, pages = place[0], self._lines[place[0]]
        for _ in range(2):  # one comes, up to two go, so lines stay short
            number, page = pages.first
            cold = self._worths[page][2]
            if page == resident.page or self.score(COLD, cold, now) <= self.score(line, number, now):
                return
            self._move(page, (COLD, cold))

    def leave(self, resident: Resident, now: PolicyMoment, *, evicted: bool) -> None:
        """A page leaves; what its uses weigh is kept."""
        self._move(resident.page, None)
        del self._worths[resident.page]


def _fall(age: int) -> int:
    """The worth that warmth has lost at an age in references."""
    return log2(age + LULL) * 3 // 2


_NEAR = 1_024
_FALLS = [_fall(age) for age in range(_NEAR)]
