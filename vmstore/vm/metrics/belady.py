"""Belady's optimum: what a session's references would have cost if the future had been known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

NEVER = 1 << 62


class PageReference(NamedTuple):
    """One reference: a page, and the tokens it takes in the prompt."""

    page: int
    tokens: int


class Cost(NamedTuple):
    """The cost of a trace of references under a budget: pages brought in, their tokens, pages evicted."""

    faults: int
    tokens: int
    evictions: int


def belady(trace: Iterable[PageReference], budget: int) -> Cost:
    """Sends away the page whose next use is farthest, until what is asked for fits.

    Counts what has to be brought in, the first time too. A page larger than the budget is never
    kept. With pages of different sizes the farthest next use is not the least possible cost, but
    no policy that does not know the future is known to come near. Logarithmic a reference.
    """
    references = list(trace)
    nexts = next_uses([reference.page for reference in references])
    here: dict[int, tuple[int, int]] = {}  # when a page is used next, and its tokens
    farthest: list[tuple[int, int]] = []
    used = faults = tokens = evictions = 0
    for (page, size), after in zip(references, nexts, strict=True):
        before = here.pop(page, None)
        if before is None:
            faults += 1
            tokens += size
        else:
            used -= before[1]
        if size > budget:
            continue
        while used + size > budget:
            far, other = heappop(farthest)
            if other in here and here[other][0] == -far:
                used -= here.pop(other)[1]
                evictions += 1
        here[page] = after, size
        used += size
        heappush(farthest, (-after, page))
    return Cost(faults, tokens, evictions)


def next_uses(pages: Sequence[int]) -> list[int]:
    """For each reference the index of the next one to the same page, or NEVER."""
    nexts = [NEVER] * len(pages)
    seen: dict[int, int] = {}
    for at in range(len(pages) - 1, -1, -1):
        nexts[at] = seen.get(pages[at], NEVER)
        seen[pages[at]] = at
    return nexts
