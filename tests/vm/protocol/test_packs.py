"""Packs are kept while nothing changes, and never when something did."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vm.protocol.leaves import form, leaf
from vmstore.core.page import PageType
from vmstore.vm.protocol import PackCache, PackKey, working_set_hash

PAGE = leaf("p1", "text", others=(form(2, 1),))


def key(session: str = "s", model: str = "m", budget: int = 100, of: str = "h") -> PackKey:
    """A key like any other."""
    return PackKey(session, model, budget, of)


def test_each_part_of_the_key_counts() -> None:
    """Another session, model, budget or working set has another pack."""
    cache: PackCache[str] = PackCache()
    cache.put(key(), "pack")
    assert cache.get(key()) == "pack"
    for other in (key(session="t"), key(model="n"), key(budget=101), key(of="i")):
        assert cache.get(other) is None
    assert (cache.hits, cache.misses) == (1, 4)


def test_the_pack_used_longest_ago_goes() -> None:
    """The thirty-third pack drops the one used longest ago, and use keeps a pack."""
    cache: PackCache[int] = PackCache()
    for n in range(32):
        cache.put(key(of=str(n)), n)
    assert cache.get(key(of="0")) == 0
    cache.put(key(of="32"), 32)
    assert len(cache) == 32
    assert cache.get(key(of="1")) is None
    assert cache.get(key(of="0")) == 0


@given(st.lists(st.tuples(st.sampled_from(["get", "put"]), st.integers(0, 5)), max_size=40))
def test_the_cache_is_the_obvious_one(steps: list[tuple[str, int]]) -> None:
    """Over any steps it keeps what a list ordered by use keeps."""
    cache: PackCache[int] = PackCache(3)
    order: list[int] = []
    for what, n in steps:
        if what == "get":
            assert cache.get(key(of=str(n))) == (n if n in order else None)
        else:
            cache.put(key(of=str(n)), n)
        if n in order or what == "put":
            order = [*(one for one in order if one != n), n][-3:]
    assert len(cache) == len(order)


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "p2"},
        {"version": 2},
        {"level": 1},
        {"tokens": 99},
        {"importance": 1},
        {"pinned": True},
        {"turn": 4},
        {"hint": "x"},
        {"type": PageType.CLAIM},
        {"provenance": ("p9",)},
        {"others": ()},
    ],
    ids=str,
)
def test_whatever_packing_weighs_changes_the_hash(changed: dict[str, Any]) -> None:
    """Another page, version, level or any number a pack depends on is another working set."""
    assert working_set_hash([msgspec.structs.replace(PAGE, **changed)]) != working_set_hash([PAGE])


def test_order_counts_and_bytes_do_not() -> None:
    """The order of the pages is part of the working set; their bytes are known by name, version and level."""
    other = leaf("p2", "x")
    assert working_set_hash([PAGE, other]) != working_set_hash([other, PAGE])
    assert working_set_hash([msgspec.structs.replace(PAGE, content=None)]) == working_set_hash([PAGE])
