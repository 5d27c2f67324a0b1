"""Whose sessions are and what they cost: forks belong to their user, and what a re-drive says again was paid once."""

from __future__ import annotations

from typing import Any

import pytest

import vmstore
from vmstore.shell.demo.demo import SHIPPED

REQUEST: dict[str, Any] = {"model": "m-1", "messages": [{"role": "user", "content": "Where is Kyoto?"}]}
SAID = {"role": "assistant", "content": "In Japan."}
LATER = {"model": "m-1", "messages": [*REQUEST["messages"], SAID, {"role": "user", "content": "And Nara?"}]}


@pytest.fixture
def store() -> vmstore.Store:
    """A session of a user, a fork of it, and a fork of that, each with a call of its own; and nobody's session."""
    made = vmstore.memory_store()
    made.session("trip", create=True, user="anna").record(REQUEST, {"choices": [{"message": SAID}]})
    made.session("trip").fork("trip-b").record(LATER, {"choices": [{"message": SAID}]})
    again = {"model": "m-1", "messages": [*LATER["messages"], SAID, {"role": "user", "content": "And Osaka?"}]}
    made.session("trip-b").fork("trip-c").record(again, {"choices": [{"message": SAID}]})
    made.record("other", REQUEST, {"choices": [{"message": SAID}]})
    return made


def test_a_fork_belongs_to_the_user_of_what_it_left(store: vmstore.Store) -> None:
    """What is asked of a user's sessions is asked of their forks too, and each says whose it is."""
    whose = {"trip": "anna", "trip-b": "anna", "trip-c": "anna", "other": None}
    assert dict(store.query("SESSIONS session, user")) == whose
    assert {name: store.session(name).info().user for name in whose} == whose
    of_anna = "CALLS session, user ACROSS SESSIONS OF USER anna"
    assert list(store.query(of_anna)) == [(name, "anna") for name in ("trip", "trip-b", "trip-c")]
    assert [info.session for info in store.sessions(user="anna")] == ["trip", "trip-b", "trip-c"]
    store.admin.rebuild()
    assert dict(store.query("SESSIONS session, user")) == whose


def test_a_fork_is_nobodys_once_its_user_was_erased(store: vmstore.Store) -> None:
    """Where the words of who it was are destroyed no fork tells them either."""
    store.trust.erase(user="anna")
    assert {user for (user,) in store.query("SESSIONS user")} == {None}


def test_what_is_driven_again_was_paid_once() -> None:
    """The cost of all sessions stays what the source cost when it is re-driven into a memory that manages itself."""
    with vmstore.memory_store() as made:
        made.import_file(SHIPPED)
        (before,) = made.query("CALLS sum(cost), sum(cost_estimated) ACROSS SESSIONS")
        assert before[0] and before[0] > 0
        made.admin.redrive("planning-220", "again", l0_tokens_max=8_000)
        assert list(made.query("CALLS sum(cost), sum(cost_estimated) ACROSS SESSIONS")) == [before]
        assert dict(made.query("SESSIONS session, cost"))["again"] is None
