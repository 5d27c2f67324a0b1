"""Where a batch begins: behind the first page that goes a provider's cache is void, whatever else goes there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

CUTS = 16  # places that are looked at
ANEW = 115  # what a token costs more that is written anew than one that was kept, in hundredths
BACK = 42  # what one costs that comes back (125), which of what the policy would keep longest a third is taken to do


class Going(NamedTuple):
    """How far a page may go: its rank, the tokens that frees, and its place in the policy's order, in thousandths."""

    rank: int
    tokens: int
    place: int


class Cut(NamedTuple):
    """The rank of the first page that may go, and the tokens that are free then."""

    rank: int
    freed: int


def cut(order: Sequence[Going], kept: Sequence[tuple[int, int]], need: int, must: int) -> Cut | None:
    """The place where a token costs least to free: behind it pages go in the policy's order until `need` is free.

    Only where nowhere `must` is free, the place where most is. `kept` are the pages here by rank, each with the
    tokens of it that a provider may have kept. Costs a look at the order for each of a few places.
    """
    ranks = sorted({going.rank for going in order})
    places = min(CUTS, len(ranks))
    sums = accumulate(tokens for _, tokens in reversed(kept))
    behind = dict(zip((rank for rank, _ in reversed(kept)), sums, strict=True))
    best: tuple[bool, int] | None = None
    found: Cut | None = None
    for nth in range(places):
        rank = ranks[nth * len(ranks) // places]
        freed, missed = _freed(order, rank, need)
        if freed <= 0:
            continue
        cost = 1_000 * (ANEW * max(0, behind[rank] - freed) + BACK * missed // 1_000) // freed
        price = (False, cost) if freed >= must else (True, -freed)
        if best is None or price < best:
            best, found = price, Cut(rank, freed)
    return found


def _freed(order: Sequence[Going], rank: int, need: int) -> tuple[int, int]:
    """What goes behind a rank: its tokens, and these times their places in the policy's order."""
    freed = missed = 0
    for going in order:
        if freed >= need:
            break
        if going.rank >= rank:
            freed += going.tokens
            missed += going.tokens * going.place
    return freed, missed
