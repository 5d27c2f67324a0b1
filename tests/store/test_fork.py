"""Forks: a shared past, two futures, nothing copied and nothing leaked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import refusals
from tests.capture.words import answer, kinds, model_text, request, spelled, user
from tests.store.kept import CALLS, FULL, HEAD, told_at, told_in_memory
from vmstore.core.asof import Call, Position, Turn
from vmstore.errors import RefusedError, UnknownError
from vmstore.store.session import Session
from vmstore.store.store import Store, open_store

OTHER = [*FULL, model_text("Sixty lines."), user("Another question?")]


@pytest.fixture
def store() -> Iterator[Store]:
    """The story: four calls in two turns."""
    with told_in_memory() as store:
        yield store


def shown(session: Session, *calls: int) -> list[object]:
    """What a session shows of some calls, but for its own name."""
    rows: list[object] = []
    for call in calls:
        context = session.context(call=call)
        rows.append((context.pages, context.root, context.text(), spelled(context.request())))
    return rows


def test_a_fork_is_one_mutation(store: Store) -> None:
    """Nothing is copied: a fork of any length writes its opening alone."""
    before = store.info()
    fork = store.session("s").fork("f")
    after = store.info()
    assert (after.commits - before.commits, after.mutations - before.mutations) == (1, 1)
    assert kinds(store, "f") == ["open"] and after.pages == before.pages
    info = fork.info()
    assert (info.origin, info.parent, info.fork_position) == ("fork", "s", store.session("s").info().position)


def test_a_fork_shows_the_past_it_shares(store: Store) -> None:
    """At every call before the fork both give the same pages, order, root, text and request."""
    parent = store.session("s")
    fork = parent.fork("f", turn=1)
    assert shown(fork, 1, 2) == shown(parent, 1, 2)
    end = fork.info().fork_position
    assert fork.pages(position=end) == parent.pages(position=end)
    assert [t.turn for t in fork.turns()] == [1] and len(fork.calls()) == 2
    with refusals.refused("no-call", UnknownError, "nearest is call 2"):
        fork.context(call=3)


def test_positions_go_on_after_the_fork(store: Store) -> None:
    """A fork's own mutations are numbered on from where it left its parent."""
    fork = store.session("s").fork("f", turn=1)
    at = fork.info().fork_position
    assert at is not None and fork.info().position == at + 1
    fork.record(request(OTHER))
    positions = [entry.position for entry in store.tail() if entry.session == "f"]
    assert positions == list(range(at + 1, at + 1 + len(positions)))
    assert fork.calls()[-1].call == 3


def test_neither_sees_what_the_other_does_later(store: Store) -> None:
    """After the fork each goes its own way: contexts, pages, turns and histories stay apart."""
    parent = store.session("s")
    fork = parent.fork("f", turn=1)
    before = shown(parent, 1, 2, 3, 4)
    fork.record(request(OTHER), answer(model_text("f answers")))
    parent.record(request([*HEAD, model_text("s goes on")]), answer(model_text("s answers")))
    assert shown(parent, 1, 2, 3, 4) == before
    assert fork.wire.request() == request(OTHER)
    assert parent.wire.request() == request([*HEAD, model_text("s goes on")])
    texts = [b"".join(session.context().contents().values()) for session in (parent, fork)]
    assert b"Another" not in texts[0] and b"s goes on" not in texts[1]
    assert len(fork.pages()) == len(fork.pages(position=fork.info().fork_position)) + 2
    assert store.verify().ok


def test_a_fork_goes_on_with_its_parents_pages(store: Store) -> None:
    """What was said before the fork keeps its page, and what changes on one side changes there alone."""
    parent = store.session("s")
    fork = parent.fork("f", turn=1)
    edited = [(*FULL[0][:1], FULL[0][1] + " Quickly."), *FULL[1:]]
    fork.record(request(edited))
    page = fork.context().pages[0].page
    assert (fork.page(page).version, parent.page(page).version) == (2, 1)
    assert parent.content(page) != fork.content(page)
    assert [event.event for event in fork.lineage.history(page)].count("update") == 1
    assert "update" not in [event.event for event in parent.lineage.history(page)]


def test_forks_of_forks_reach_all_the_way_back(store: Store) -> None:
    """Each fork sees its own and its ancestors' pasts, each up to where it left."""
    session = store.session("s")
    names = ["s"]
    for depth in range(6):
        session = session.fork(f"f{depth}")
        names.append(session.name)
        session.record(request([*HEAD, *[model_text(f"depth {n}") for n in range(depth + 1)]]))
        assert session.calls()[-1].call == 5 + depth
    for depth in range(6):
        fork = store.session(f"f{depth}")
        assert fork.info().parent == names[depth]
        assert shown(fork, 1, 2, 3, 4) == shown(store.session("s"), 1, 2, 3, 4)
        assert fork.wire.request() == request([*HEAD, *[model_text(f"depth {n}") for n in range(depth + 1)]])
        assert len(fork.pages()) == len(store.session("s").pages()) + depth + 1
    assert store.verify().ok


def test_a_fork_may_lie_in_what_its_parent_inherited(store: Store) -> None:
    """A fork of a fork at a moment before that one's own beginning stands on the common ancestor."""
    parent = store.session("s")
    fork = parent.fork("f", turn=1)
    fork.record(request(OTHER))
    deep = fork.fork("g", call=1)
    assert shown(deep, 1) == shown(parent, 1)
    deep.record(request([*HEAD, model_text("third way")]))
    assert (deep.calls()[-1].call, deep.wire.request()) == (2, request([*HEAD, model_text("third way")]))
    assert store.verify().ok


def test_a_fork_before_everything_shares_nothing(store: Store) -> None:
    """A fork at turn 0 has the session's opening behind it and no call, page or turn."""
    fork = store.session("s").fork("f", turn=0)
    assert (fork.pages(), fork.calls(), fork.turns()) == ([], [], [])
    assert fork.record(request(HEAD)).call == 1
    assert fork.info().turns == 1


def test_only_commit_ends_can_be_forked_at(store: Store) -> None:
    """A position within a commit is refused, naming the next one that ends one; nothing is written."""
    parent = store.session("s")
    before = store.info().commits
    ends, refused = [], {}
    for position in range(1, parent.info().position + 1):
        try:
            parent.fork(f"f{position}", position=position)
            ends.append(position)
        except RefusedError as error:
            refused[position] = str(error)
    assert store.info().commits == before + len(ends)
    assert {call.position for call in parent.calls()} <= set(ends)
    for position, text in refused.items():
        nearest = next(end for end in ends if end > position)
        assert f"position {position} is no commit end" in text and f"the next one is {nearest}" in text
    assert ends[-1] == parent.info().position and refused


def test_a_moment_that_is_not_is_no_fork(store: Store) -> None:
    """Forking at an unknown call, turn or future position is an error that names the nearest."""
    for moment in (Call(9), Turn(9), Position(9999)):
        with refusals.refused("no-call", UnknownError):
            store.session("s").fork("f", moment)
    assert len(store.sessions()) == 1


def test_a_fork_is_an_open_question_where_its_call_was(store: Store) -> None:
    """Forked at a call, before its answer came: the fork knows of no answer, usage or reply."""
    fork = store.session("s").fork("f", call=2)
    last = fork.calls()[-1]
    assert (last.call, last.status, last.tokens_reported, last.stop) == (2, "open", None, None)
    assert fork.context().tokens_reported is None
    assert store.session("s").calls()[1].status == "ok"
    assert "Sixty lines." not in [fork.content(page.page).decode() for page in fork.pages()]


def test_turns_are_counted_on_each_side(store: Store) -> None:
    """A fork after a final answer opens the next turn with the next word, as its parent did."""
    fork = store.session("s").fork("f", turn=1)
    assert fork.record(request(OTHER)).turn == 2
    early = store.session("s").fork("g", call=1)
    assert early.record(request([*HEAD, user("And?")])).turn == 1


def test_a_diff_within_a_fork_spans_its_past(store: Store) -> None:
    """Differences between an inherited and an own call are those of one conversation."""
    fork = store.session("s").fork("f", turn=1)
    fork.record(request(OTHER))
    diff = fork.diff(Call(2), Call(3))
    assert ({change.change for change in diff.changes}, diff.unchanged) == ({"entered"}, 4)


def test_forks_outlive_the_views_and_the_handle(store_path: Path) -> None:
    """Reopened and with views folded again, forks give the answers they gave."""
    with told_at(store_path) as store:
        fork = store.session("s").fork("f", call=3)
        fork.record(request(OTHER), answer(model_text("x")))
        fork.fork("g", turn=1).record(request(CALLS[0][0]))
        before = [shown(store.session(name), *range(1, last + 1)) for name, last in (("s", 4), ("f", 4), ("g", 3))]
    for file in (store_path / "default").glob("views-*"):
        file.unlink()
    with open_store(store_path) as store:
        after = [shown(store.session(name), *range(1, last + 1)) for name, last in (("s", 4), ("f", 4), ("g", 3))]
        assert after == before
        assert store.session("f").record(request([*OTHER, model_text("x"), user("y")])).call == 5
        assert store.verify().ok
