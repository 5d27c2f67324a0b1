"""A line in pieces is a sorted list, however its pieces fall."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from vmstore.vm.policies import ordered_queues
from vmstore.vm.policies.ordered_queues import ChunkedList

places = st.tuples(st.integers(-(1 << 70), 1 << 70) | st.integers(-3, 3), st.integers(1, (1 << 63) - 1))


@given(st.lists(places, unique_by=lambda place: place[1], max_size=60), st.data())
def test_a_line_is_a_sorted_list(sizes: list[tuple[int, int]], data: st.DataObject) -> None:
    """Pages that come and go in any order stand by number, then by page, and the first is the least."""
    with patch.object(ordered_queues, "PIECE_MAX", 4):
        pages, plain = ChunkedList(), []
        for number, page in sizes:
            pages.add(number, page)
            plain.append((number, page))
            if data.draw(st.booleans()):
                gone = data.draw(st.sampled_from(plain))
                pages.remove(*gone)
                plain.remove(gone)
            assert list(pages) == sorted(plain) and bool(pages) == bool(plain)
            assert not plain or pages.first == min(plain)
