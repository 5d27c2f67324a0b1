"""What a session's references would have cost at least, had the memory known all of them beforehand."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from vmstore.core import mutation as m
from vmstore.core.decision import Use
from vmstore.replay.stimuli import Stimuli
from vmstore.vm.metrics.belady import Asked, belady


class Optimum(msgspec.Struct, frozen=True):
    """Belady's choice on the same references, each page whole: its faults and their tokens.

    `above` is by how many faults a run had more; less than none where it held more pages by showing
    them shorter.
    """

    faults: int
    fault_tokens: int
    above: int


def optimum(stimuli: Stimuli, room: int, pinned: Collection[int], faults: int) -> Optimum | None:
    """The yardstick of a run with so many faults; None where pins leave no room.

    `room` is in tokens, without what is `pinned` in the end, which is no part of the trace. That a
    page arrives is no fault.
    """
    if room <= 0:
        return None
    uses = list(_uses(stimuli, pinned))
    arrived = [asked for asked, first in uses if first]
    cost = belady([asked for asked, _ in uses], room)
    least = cost.faults - len(arrived)
    return Optimum(least, cost.tokens - sum(asked.tokens for asked in arrived), faults - least)


def _uses(stimuli: Stimuli, pinned: Collection[int]) -> Iterator[tuple[Asked, bool]]:
    """Every page that is not pinned as it arrives, and each use of one; whether it is the first."""
    tokens: dict[int, int] = {}
    for found in stimuli.rounds:
        for position, one in found.mutations:
            if isinstance(one, m.Create):
                if position not in pinned:
                    tokens[position] = one.tokens
                    yield Asked(position, one.tokens), True
            elif isinstance(one, m.Update):
                if one.page in tokens:
                    tokens[one.page] = one.tokens
            elif isinstance(one, m.Reference) and one.use != Use.SIGNAL and one.page in tokens:
                yield Asked(one.page, tokens[one.page]), False
