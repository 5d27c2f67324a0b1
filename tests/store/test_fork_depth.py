"""Long chains of forks, and forks of a session that another process is writing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import vmstore
from tests.disasters.child import joined, start
from tests.engine.stories import chat
from vmstore.store.store import Store, memory_store

DEPTH = 100


@pytest.fixture(scope="module")
def chain() -> Store:
    """Sessions f0 to f100, each forked from the one before after its one call, which says one line more."""
    store = memory_store()
    store.record("f0", chat(*lines(0)))
    for depth in range(1, DEPTH + 1):
        store.session(f"f{depth - 1}").fork(f"f{depth}")
        store.record(f"f{depth}", chat(*lines(depth)))
    return store


def lines(depth: int) -> list[str]:
    """What is said in a request at a depth."""
    return [f"line {n}" for n in range(depth + 1)]


@pytest.mark.parametrize("depth", [1, 10, 99, 100])
def test_every_call_of_a_long_chain_comes_back(chain: Store, depth: int) -> None:
    """At the end of a chain of forks each call is the one that was made, by whichever session made it."""
    session = chain.session(f"f{depth}")
    assert session.info().calls == depth + 1
    for call in {1, 2, depth, depth + 1}:
        assert session.wire.request(call=call) == chat(*lines(call - 1))
        assert [p.page for p in session.pages(call=call)] == [p.page for p in chain.session(f"f{call - 1}").pages()]


def test_the_root_of_a_long_chain_knows_nothing_of_it(chain: Store) -> None:
    """The first session of a chain stays as it was, and each of the others ends where its child begins."""
    assert chain.session("f0").wire.request() == chat(*lines(0))
    assert [chain.session(f"f{d}").info().fork_position for d in (1, 2, DEPTH)] == [
        chain.session(f"f{d - 1}").info().position for d in (1, 2, DEPTH)
    ]


def test_pages_of_a_long_chain_keep_their_names_and_history(chain: Store) -> None:
    """The first page is the same page a hundred forks later, in the context without a break."""
    first = chain.session("f0").pages()[0].page
    deep = chain.session(f"f{DEPTH}")
    assert deep.content(first) == chain.session("f0").content(first)
    assert [event.event for event in deep.lineage.history(first)] == ["create", "enter"]
    assert first in [page.page for page in deep.context().pages]
    changes = deep.diff(vmstore.Call(1), vmstore.Call(DEPTH + 1)).changes
    assert [change.change for change in changes] == ["entered"] * DEPTH


def test_a_long_chain_verifies_and_rebuilds(chain: Store) -> None:
    """Every hash of a chain of forks holds, and its views folded again are the same."""
    assert chain.verify().ok
    before = {view: chain._ns.projection.digest(view) for view in chain._ns.projection.positions()}
    chain.admin.rebuild()
    assert before == {view: chain._ns.projection.digest(view) for view in chain._ns.projection.positions()}


def test_forks_are_made_while_their_parent_is_written(store_path: Path) -> None:
    """Forks of a session that another process goes on writing share its past to a call, and nothing after."""
    number = 30
    with vmstore.open(store_path) as store:
        store.record("parent", chat("line 0"))

    def write() -> None:
        with vmstore.open(store_path) as store:
            for n in range(1, number):
                store.record("parent", chat(*lines(n)))
                time.sleep(0.01)  # a model takes longer

    writer = start(write)
    seen: list[int] = [0]
    with vmstore.open(store_path) as store:
        while seen[-1] < number and len(seen) < 1000:
            calls = store.session("parent").info().calls
            n = len(seen)
            child = store.session("parent").fork(f"child {n}", call=calls)
            assert child.wire.request() == chat(*lines(calls - 1))
            store.record(f"child {n}", chat(*lines(calls - 1), "aside"))
            assert child.info().calls == calls + 1
            seen.append(calls)
        assert joined(writer) == 0
        assert len(set(seen)) > 3, "the parent was written while it was forked"
        assert store.session("parent").wire.request() == chat(*lines(number - 1))
        assert store.verify().ok
