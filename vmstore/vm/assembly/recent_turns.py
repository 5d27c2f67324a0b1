"""Where the conversation of a prompt begins: at a turn that stays the first one for many calls.

A window that loses its oldest turn at each call voids all that stands behind it in a provider's cache. This one loses
many turns at once: of the turns it may begin at, it takes the one whose number has the most twos in it. That turn
is the first one until it is too far back, for every caller and moment, and no call before has to be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

NEVER = 1 << 62  # nothing goes before turn 0, which begins a session


class TurnTokens(NamedTuple):
    """A turn by its number, and the tokens of what was said in it."""

    turn: int
    tokens: int


def first_turn(newest_first: Sequence[TurnTokens], most: int, least: int, protected: int) -> int:
    """The turn a conversation begins at: `protected` turns at least, `least` tokens where there are, never over `most`.

    `newest_first` holds the turns from the last one back, as many as `most` tokens have room for. The protected ones
    are in it whatever they take. 0 where nothing was said.
    """
    allowed: list[int] = []
    tokens = first = 0
    for place, (turn, taken) in enumerate(newest_first):
        tokens += taken
        if place >= max(1, protected) and tokens > most:
            break
        first = turn
        if place >= protected - 1 and tokens >= least:
            allowed.append(turn)
    return max(allowed, key=lambda turn: (turn & -turn if turn else NEVER, -turn)) if allowed else first
