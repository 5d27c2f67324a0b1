"""Pages that came back to the prompt, and how often pages came and went in each turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from vmstore.core.page import Tier
from vmstore.views.context import Shown, contents
from vmstore.views.lane import Lane
from vmstore.views.moment import moment_at
from vmstore.views.residency import leavings, returns

_LEVEL = Shown._fields.index("level") - Shown._fields.index("message")
_TOKENS = Shown._fields.index("tokens") - Shown._fields.index("message")


class Own(NamedTuple):
    """A session as a statement sees it: what it wrote above `low` up to `high`.

    Rows above `since` up to `until` are wanted.
    """

    lane: Lane
    name: str
    session: int
    low: int
    high: int
    since: int
    until: int


def faults_of(lanes: Iterable[Own]) -> Iterator[tuple[Any, ...]]:
    """The rows of FAULTS: each return to the prompt, by the session whose pack brought it back."""
    for own in lanes:
        came = [one for one in returns(own.lane, own.until) if one.position > max(own.low, own.since)]
        what = contents(own.lane, [one.content for one in came])
        for one in came:
            turn, call = moment_at(own.lane, one.position)
            shown = what[one.content]
            level, tokens = shown[_LEVEL], shown[_TOKENS]
            told = (None, None, level, int(Tier.L2), one.out_since, tokens, 1, None)
            yield (one.position, own.name, turn, call, one.page, *told)


def moves_of(own: Own) -> list[tuple[int, int, int]]:
    """Turn, faults and evictions of each turn in which a page came back or left."""
    came = Counter(_turns(own, (one.position for one in returns(own.lane, own.until))))
    left = Counter(_turns(own, leavings(own.lane, own.until)))
    return [(turn, came[turn], left[turn]) for turn in sorted({*came, *left})]


def _turns(own: Own, positions: Iterable[int]) -> Iterator[int]:
    known: dict[int, int] = {}
    for position in positions:
        if position > own.low:
            if position not in known:
                known[position] = moment_at(own.lane, position)[0]
            yield known[position]
