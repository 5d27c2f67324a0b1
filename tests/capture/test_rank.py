"""Ranks: what stays in the context keeps its own, so that only what moved is written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vmstore.capture.conversation.rank import STEP, assign


def test_the_first_context_is_ranked_in_steps() -> None:
    """New pages at the end follow each other at a distance that leaves room between."""
    assert assign([None, None, None]) == [STEP, 2 * STEP, 3 * STEP]
    assert assign([]) == []


def test_growth_leaves_the_ranks_before_it() -> None:
    """What is added at the end takes the next steps."""
    assert assign([STEP, 2 * STEP, None]) == [STEP, 2 * STEP, 3 * STEP]


def test_what_comes_between_takes_a_rank_between() -> None:
    """A page put between two others moves neither."""
    assert assign([STEP, None, 2 * STEP]) == [STEP, STEP * 3 // 2, 2 * STEP]


def test_what_comes_first_stands_below() -> None:
    """A page put before all others takes a rank under theirs, and above the floor."""
    assert assign([None, STEP]) == [STEP // 2, STEP]
    assert assign([None, STEP], floor=STEP // 2) == [STEP * 3 // 4, STEP]


def test_deleted_pages_leave_the_others_where_they_are() -> None:
    """A hole in the ranks costs nothing."""
    assert assign([STEP, 5 * STEP, 9 * STEP]) == [STEP, 5 * STEP, 9 * STEP]


def test_one_page_moved_is_one_rank_changed() -> None:
    """Of a context where the last page went to the front only that one is ranked again."""
    ranks = assign([4 * STEP, STEP, 2 * STEP, 3 * STEP])
    assert ranks[1:] == [STEP, 2 * STEP, 3 * STEP]
    assert 0 < ranks[0] < STEP


def test_where_no_room_is_left_what_follows_is_ranked_anew() -> None:
    """Between neighbours nothing fits: from there on the ranks are dealt again."""
    ranks = assign([10, None, 11, 12])
    assert ranks[0] == 10
    assert ranks == sorted(set(ranks))


ranks_before = st.lists(st.one_of(st.none(), st.integers(101, 400)), max_size=30).map(
    lambda ranks: [rank if rank is None or rank not in ranks[:at] else None for at, rank in enumerate(ranks)]
)


@given(ranks_before, st.integers(0, 100))
def test_ranks_rise_and_stand_above_the_floor(old: list[int | None], floor: int) -> None:
    """Whatever stood before, every page gets a rank, each above the one before it and the floor."""
    ranks = assign(old, floor)
    assert len(ranks) == len(old)
    assert all(above > below for below, above in zip([floor, *ranks], ranks, strict=False))


@given(st.lists(st.integers(1, 50), unique=True, max_size=20), st.data())
def test_with_room_the_longest_rising_run_stays(order: list[int], data: st.DataObject) -> None:
    """Where ranks lie steps apart, as many pages as can keep theirs do."""
    old: list[int | None] = [rank * STEP for rank in order]
    at = data.draw(st.integers(0, len(old)))
    old.insert(at, None)
    kept = sum(now == before for now, before in zip(assign(old), old, strict=True))
    assert kept == longest([rank for rank in old if rank is not None])


def longest(ranks: list[int]) -> int:
    """The length of the longest rising run, counted the slow way."""
    best = [0] * len(ranks)
    for index, rank in enumerate(ranks):
        best[index] = 1 + max((best[i] for i in range(index) if ranks[i] < rank), default=0)
    return max(best, default=0)
