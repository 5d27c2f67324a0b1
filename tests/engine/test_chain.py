"""The chain of one session: everything it stands on is read, and whatever does not fit is named where it lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import vmstore
from tests.engine.stories import answer, chat
from vmstore.cells.cell import Cell
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.engine.verify import chain
from vmstore.engine.verify.chain import Chain
from vmstore.log.commit import Commit
from vmstore.views.branch import Branch

Store = vmstore.Store


@pytest.fixture
def store() -> Store:
    """A session of four calls, one that forked from it after two and went on, and one apart."""
    store = vmstore.memory_store(clock=ManualClock(5_000_000), ids=SeededIds(4))
    store.record("apart", chat("Unrelated"), answer("Yes."))
    for number in range(4):
        store.record("s", chat(*[f"So {n}?" for n in range(2 * number + 1)]), answer(f"So {2 * number + 1}?"))
    child = store.session("s").fork("f", call=2)
    child.record(chat("So 0?", "So 1?", "So 2?", "No.", "Else?"), answer("Else."))
    store.admin.follow()
    return store


def chain_of(store: Store, name: str) -> Chain:
    """The chain of a session, not read yet."""
    key = store.admin.views.execute("SELECT session FROM sessions WHERE name = ?", (name,)).get
    return Chain(store.admin.log, store.admin.views, Branch(store.admin.views, key))


def changed(store: Store, ordinal: int, **fields: Any) -> None:
    """Changes a commit of a log in memory, past every check."""
    commits = store.admin.log._commits  # type: ignore[attr-defined]
    commits[ordinal - 1] = msgspec.structs.replace(commits[ordinal - 1], **fields)


def own(store: Store, name: str) -> list[Commit]:
    """The commits that a session wrote itself."""
    key = store.admin.views.execute("SELECT session FROM sessions WHERE name = ?", (name,)).get
    return [commit for commit in store.admin.log.tail(0, 99) if commit.session == key]


@pytest.mark.parametrize("batch", [1, 2, 3, 200])
def test_a_chain_is_read_whole_and_once(store: Store, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a fork: what it wrote and what it inherits, and nothing else, however many commits are looked up at once."""
    monkeypatch.setattr(chain, "BATCH", batch)
    inherited = [commit for commit in own(store, "s") if commit.last < own(store, "f")[0].first]
    assert 1 < len(inherited) < len(own(store, "s"))
    for name, commits in (("s", own(store, "s")), ("f", inherited + own(store, "f"))):
        actual_chain = chain_of(store, name)
        assert list(actual_chain.problems()) == []
        assert (actual_chain.commits, actual_chain.mutations) == (len(commits), sum(commit.count for commit in commits))
        assert actual_chain.mutations == commits[-1].last


def test_what_is_below_a_fork_is_named_above_it(store: Store) -> None:
    """A changed commit that a fork inherits is named by the chains of both, one after the fork point by its own."""
    low, high = own(store, "s")[0].ordinal, own(store, "s")[-1].ordinal
    changed(store, low, at=9)
    assert [(f.kind, f.where) for f in chain_of(store, "f").problems()] == [("hash", f"commit {low}")]
    assert [(f.kind, f.where) for f in chain_of(store, "s").problems()] == [("hash", f"commit {low}")]
    changed(store, high, at=9)
    assert [f.where for f in chain_of(store, "f").problems()] == [f"commit {low}"]
    assert [f.where for f in chain_of(store, "s").problems()] == [f"commit {low}", f"commit {high}"]


def test_a_position_left_out_is_named_with_the_one_before(store: Store) -> None:
    """A commit that begins elsewhere than its session stood is named, and so is the next, with both positions."""
    second, third = own(store, "s")[1:3]
    changed(store, second.ordinal, first=second.first + 1)
    rows = [(f.kind, f.where, f.what) for f in chain_of(store, "s").problems()]
    assert rows == [
        ("position", f"commit {second.ordinal}", f"it begins at position {second.first + 1}, after {second.first - 1}"),
        ("hash", f"commit {second.ordinal}", "its bytes and its hash do not match"),
        ("position", f"commit {third.ordinal}", f"it begins at position {third.first}, after {third.first}"),
    ]


@pytest.mark.parametrize("spoil", [lambda cell: Cell(cell.salt, cell.content + b"x"), lambda cell: None])
def test_every_cell_of_a_chain_is_held_to_its_own_commitment(store: Store, spoil: Callable[[Cell], Cell]) -> None:
    """Whichever cell is changed, that one is named, by its number, and no other; one of another session is not."""
    cells, theirs = store.admin.log._cells, set[int]()  # type: ignore[attr-defined]
    for commit in own(store, "s"):
        theirs.update(range(commit.cell, commit.cell + commit.cell_count))
    assert len(theirs) > 8
    for number in range(1, len(cells) + 1):
        kept, cells[number - 1] = cells[number - 1], spoil(cells[number - 1])
        rows = [(f.kind, f.where.partition(" of ")[0]) for f in chain_of(store, "s").problems()]
        assert rows == ([("cell", f"cell {number}")] if number in theirs else [])
        cells[number - 1] = kept
