"""Demand: how likely a page is used next, by how lately it was used and how often.

What was just used is used again soon, whatever it is; what was used time and again will be again,
though it was not for a while. A page counts for the greater of the two, a large one for somewhat
more, because large pages are gone back to more often.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from vmstore.core.page import IMPORTANCE
from vmstore.vm.policies.fixed import OCTAVE, STEPS, exp2, log2
from vmstore.vm.policies.lines import Lines, Place
from vmstore.vm.policy import Now
from vmstore.vm.resident import Resident

COLD = -1
LULL = 8  # references; an age below it hardly counts


class Demand(NamedTuple):
    """When a page was used last, and what warmth and rate are worth but for the time gone by."""

    used: int
    warm: int
    cold: int


class Demand1(Lines):
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
    LOWEST: ClassVar[Mapping[str, int]] = {"half_life": 1, "prior": 1}

    def __init__(self, budget: int, parameters: Mapping[str, int]) -> None:
        super().__init__(budget, parameters)
        told = self._parameters
        self._half_life, self._burst, self._prior = told["half_life"], told["burst"], told["prior"]
        self._importance, self._size = told["importance"] * OCTAVE // 1000, told["size"] * OCTAVE // 1000
        self._glow = log2(self._prior * exp2(0)) + _fall(told["cooling"])
        self._weights: dict[int, tuple[int, int]] = {}  # of every page ever seen: what its uses weigh, and the last
        self._demands: dict[int, Demand] = {}

    def place(self, resident: Resident, now: Now) -> Place:
        """In the line of its class and size, by last use."""
        warm = self._classes[resident.type] + self._size * resident.tokens.bit_length()
        importance = self._importance * (resident.importance - IMPORTANCE) // (2 * IMPORTANCE)
        cold = warm + importance + log2(self._weight(resident))
        self._demands[resident.page] = Demand(resident.used, warm + self._glow, cold)
        return Place(warm + self._glow, resident.used)

    def _weight(self, resident: Resident) -> int:
        """What a page's uses weigh: a later one more than those before, so that nothing must be made less."""
        weight, last = self._weights.get(resident.page, (0, 0))
        if not weight or resident.used - last > self._burst:
            uses = 1 if weight else self._prior + resident.uses
            weight += uses * exp2(resident.used * STEPS // self._half_life)
        self._weights[resident.page] = weight, resident.used
        return weight

    def score(self, line: int, number: int, now: Now) -> int:
        """Of a warm line its worth less its age's, of the cold one the worth less the time's."""
        if line == COLD:
            return number - now.reference * OCTAVE // self._half_life
        return line - _fall(now.reference - number)

    def worth(self, page: int, score: int, now: Now) -> int:
        """The greater of both."""
        used, warm, cold = self._demands[page]
        return max(self.score(warm, used, now), self.score(COLD, cold, now))

    def touch(self, resident: Resident, now: Now) -> None:
        """A page was used and is warm again, or one of its numbers changed."""
        super().touch(resident, now)
        line = self._places[resident.page].line
        for _ in range(2):  # one comes, up to two go, so lines stay short
            number, page = self._lines[line][0]
            cold = self._demands[page].cold
            if page == resident.page or self.score(COLD, cold, now) <= self.score(line, number, now):
                return
            self._move(page, Place(COLD, cold))

    def leave(self, resident: Resident, now: Now, *, evicted: bool) -> None:
        """A page leaves; what its uses weigh is kept."""
        super().leave(resident, now, evicted=evicted)
        del self._demands[resident.page]


def _fall(age: int) -> int:
    """The worth that warmth has lost at an age in references."""
    return log2(age + LULL) * 3 // 2
