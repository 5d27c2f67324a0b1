"""Where a batch begins is where a token costs least to free."""

from __future__ import annotations

import random

from vmstore.vm.kernel.eviction import BatchCut, CutCandidate, cut


def test_what_stands_last_goes_before_what_a_cache_would_lose_more_for() -> None:
    """Of two pages the policy likes about as little, that one goes which has less behind it."""
    order = [CutCandidate(1, 100, 0), CutCandidate(9, 100, 500)]
    kept = [(1, 100), (5, 800), (9, 100)]
    assert cut(order, kept, 100, 0) == BatchCut(9, 100)
    assert cut(order, [(1, 100), (5, 0), (9, 0)], 100, 0) == BatchCut(1, 100), (
        "what no call has shown is lost by nobody"
    )


def test_a_cut_frees_what_must_be_free_where_any_does() -> None:
    """The cheapest place is no place where it frees too little; where all do, the one that frees most is taken."""
    order = [CutCandidate(1, 300, 0), CutCandidate(9, 100, 500)]
    kept = [(1, 300), (5, 800), (9, 100)]
    assert cut(order, kept, 400, 50) == BatchCut(9, 100)
    assert cut(order, kept, 400, 350) == BatchCut(1, 400)
    assert cut(order, kept, 900, 700) == BatchCut(1, 400)
    assert cut([], kept, 900, 0) is None


def test_a_cut_is_a_page_that_may_go() -> None:
    """On any prompt it stands at a page of the order, and tells what goes behind it, of the order's first as needed."""
    chance = random.Random(5)
    for _ in range(300):
        kept = [(rank, chance.randrange(900)) for rank in range(chance.randrange(1, 60))]
        may = [rank for rank, _ in kept if chance.random() < 0.6]
        chance.shuffle(may)
        order = [CutCandidate(rank, chance.randrange(1, 900), nth * 1000 // len(may)) for nth, rank in enumerate(may)]
        need = chance.randrange(1, 20_000)
        actual = cut(order, kept, need, chance.randrange(need))
        assert (actual is None) is (not order)
        if actual is not None:
            behind = [going.tokens for going in order if going.rank >= actual.rank]
            taken = [sum(behind[:count]) for count in range(1, len(behind) + 1)]
            assert actual.rank in may
            assert actual.freed == next((tokens for tokens in taken if tokens >= need), taken[-1])
