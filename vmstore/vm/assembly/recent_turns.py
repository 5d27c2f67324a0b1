"""Chooses where the conversation of a prompt begins: a turn that stays the first one for many calls.

A window that loses its oldest turn at each call voids all that stands behind it in a provider's cache. This one loses
many turns at once: it begins at a mark, and marks stand at equal distances along the tokens of the session. A mark is
left when the conversation from there is longer than it may be, for every caller and moment, and no call before has
to be known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

MOST = 0.35  # of the budget, for the conversation
SHORT, SHORT_OVER = 0.4, 3_000  # of the budget, for what was said before it in short; of a small one what is over this
BESIDE, BESIDE_MAX = 0.85, 4_000  # of a small budget, for what stands beside the conversation; and in tokens
STEP = 0.8  # of the longest conversation, from one mark to the next


def longest(budget: int) -> int:
    """The tokens a conversation that does not fit whole grows to: a third of the budget, less of a small one."""
    return min(budget - min(int(budget * BESIDE), BESIDE_MAX), int(budget * MOST))


def in_short(budget: int) -> int:
    """The tokens of what was said before a conversation, in short; a small budget has none."""
    return max(0, min(int(budget * SHORT), budget - SHORT_OVER))


def first_turn(before: Sequence[int], total: int, budget: int, protected: int) -> int:
    """The place of the turn that a conversation begins at which does not fit whole.

    `before` has of each turn what was said before it, in tokens, and `total` is all that was said. The last `protected`
    turns are in it whatever they take: then it begins at the last mark before them.
    """
    most = longest(budget)
    step = max(1, int(most * STEP))
    marks = -(-max(0, total - most) // step)
    last = before[max(0, len(before) - max(1, protected))]
    return min(bisect_left(before, min(marks, last // step) * step), len(before) - 1)
