"""Ranks: integers that order a context, chosen so that what stays keeps its own.

New pages at the end take the next step; pages between two others take numbers between them;
where there is no room, what follows is ranked again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

STEP = 1024


def assign(old: Sequence[int | None], floor: int = 0) -> list[int]:
    """Ranks for a sequence of pages, given the rank each had (None for a new one), all above `floor`."""
    keep = _longest(old)
    ranks: list[int] = []
    last, index = floor, 0
    while index < len(old):
        end = index
        while end < len(old) and end not in keep:
            end += 1
        run = end - index
        above = old[end] if end < len(old) else None
        if above is not None and above - last <= run:
            return ranks + [last + STEP * (i + 1) for i in range(len(old) - index)]
        step = STEP if above is None else (above - last) // (run + 1)
        ranks += [last + step * (i + 1) for i in range(run)]
        if above is not None:
            ranks.append(above)
        last, index = ranks[-1], end + 1
    return ranks


def _longest(ranks: Sequence[int | None]) -> set[int]:
    """Indexes of a longest increasing subsequence of the ranks there are."""
    tails: list[int] = []
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for index, rank in enumerate(ranks):
        if rank is None:
            continue
        at = bisect_left(tails, rank)
        before[index] = ends[at - 1] if at else None
        if at == len(tails):
            tails.append(rank)
            ends.append(index)
        else:
            tails[at], ends[at] = rank, index
    kept: set[int] = set()
    index_or_none = ends[-1] if ends else None
    while index_or_none is not None:
        kept.add(index_or_none)
        index_or_none = before[index_or_none]
    return kept
