"""The optimum on a trace that is known to its end."""

from __future__ import annotations

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from vmstore.vm.metrics.belady import NEVER, Cost, PageReference, belady, next_uses

pages = st.lists(st.integers(1, 5), max_size=12)


def fewest(trace: tuple[int, ...], room: int) -> int:
    """The fewest faults there can be with pages of one size: every choice tried."""

    @cache
    def rest(at: int, here: frozenset[int]) -> int:
        if at == len(trace):
            return 0
        page = trace[at]
        if page in here:
            return rest(at + 1, here)
        if len(here) < room:
            return 1 + rest(at + 1, here | {page})
        return 1 + min(rest(at + 1, here - {gone} | {page}) for gone in here)

    return rest(0, frozenset())


@given(pages, st.integers(1, 4))
def test_nothing_is_better_where_pages_are_alike(trace: list[int], room: int) -> None:
    """With pages of one size it has as few faults as the best of all possible choices."""
    asked = [PageReference(page, 100) for page in trace]
    cost = belady(asked, 100 * room + 50)
    assert cost.faults == fewest(tuple(trace), room)
    assert cost.tokens == 100 * cost.faults


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 300)), max_size=40), st.integers(0, 500))
def test_less_room_never_costs_less_than_all_room(trace: list[tuple[int, int]], budget: int) -> None:
    """With room for everything each page comes once and none goes; with less, whatever the sizes, it is no cheaper."""
    asked = [PageReference(*item) for item in trace]
    enough, cost = belady(asked, 300 * 8), belady(asked, budget)
    assert enough.faults == len({page for page, _ in trace})
    assert enough.evictions == 0
    assert enough.faults <= cost.faults <= len(trace)
    assert cost.evictions <= cost.faults
    assert cost.tokens <= sum(tokens for _, tokens in trace)


def test_the_farthest_next_use_goes_first() -> None:
    """Of two pages the one that is needed later makes room, large or small; then those that nobody needs again."""
    trace = [
        PageReference(1, 60),
        PageReference(2, 40),
        PageReference(3, 60),
        PageReference(2, 40),
        PageReference(1, 60),
    ]
    assert belady(trace, 100) == Cost(faults=4, tokens=220, evictions=3)


def test_a_page_larger_than_the_budget_is_brought_in_each_time() -> None:
    """It is never kept, and sends nothing away."""
    trace = [PageReference(1, 10), PageReference(2, 500), PageReference(2, 500), PageReference(1, 10)]
    assert belady(trace, 100) == Cost(faults=3, tokens=1_010, evictions=0)


def test_next_uses_are_where_they_are() -> None:
    """Each reference knows the next of its page, the last one that there is none."""
    assert next_uses([7, 8, 7, 7, 9]) == [2, NEVER, 3, NEVER, NEVER]
