"""A session goes on from an earlier one: with a link to it, its user, and copies of what was summed up and claimed."""

from __future__ import annotations

import json
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import ConflictError, InputError, UnknownError
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store

BUDGET: dict[str, Any] = {"l0_tokens_max": 6_000, "rules": "short"}


@pytest.fixture
def store() -> Store:
    """A store in memory whose runs are alike."""
    return vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(5))


@pytest.fixture
def earlier(store: Store) -> Live:
    """A session of Ann's with a summary, a claim that holds and one that was replaced."""
    session = store.live_session("s1", user="ann", agent="planner", **BUDGET)
    session.user("Which ferry do we take to Naxos?")
    session.pack()
    session.assistant("The one at seven.")
    old = session.claim("The budget is 900 EUR.")
    session.claim("The budget is 1,100 EUR.", supersedes=old)
    session.segment("ferry", summary="They take the ferry to Naxos at seven.")
    return session


def texts(session: Live) -> list[str]:
    """What the pages of a session say that stand in no message."""
    return [session.content(page.page).decode() for page in session.pages() if page.type in ("summary", "claim")]


def test_a_session_begins_where_an_earlier_one_ended(store: Store, earlier: Live) -> None:
    """Its first prompt holds the summary and the claim that holds, its opening says what it goes on from."""
    session = store.live_session("s2", continues="s1", **BUDGET)
    info = session.info()
    assert (info.origin, info.parent, info.user, info.agent) == ("continue", "s1", "ann", "planner")
    assert texts(session) == ["They take the ferry to Naxos at seven.", "The budget is 1,100 EUR."]
    session.user("When do we leave?")
    request = json.dumps(session.pack().request)
    assert "ferry to Naxos at seven" in request and "1,100" in request and "900" not in request
    assert [segment.session for segment in session.memory.segments.ancestors()] == ["s1"]
    assert session.debug.check().ok and store.verify().ok
    assert store.query("SESSIONS session, origin, parent WHERE origin = continue").to_dicts() == [
        {"session": "s2", "origin": "continue", "parent": "s1"}
    ]


def test_what_is_brought_over_stays_as_it_was_and_says_where_it_is_from(store: Store, earlier: Live) -> None:
    """A later change of the earlier session reaches no copy, an erasure with copies does; both rebuild to the same."""
    session = store.live_session("s2", continues="s1", **BUDGET)
    (claim,) = session.pages(type="claim")
    source = next(page for page in earlier.pages(type="claim") if b"1,100" in earlier.content(page.page))
    assert vmstore.origin(session, claim.page) == f"vm://default/s1/{source.page}@position:{source.page[1:]}"
    earlier.update(source.page, "The budget is 2,000 EUR.")
    assert session.content(claim.page) == b"The budget is 1,100 EUR."
    store.admin.rebuild()
    assert store.verify().ok
    vmstore.erase(store, page=source.page, in_session="s1", copies=True, reason="asked")
    assert "1,100" not in str(store.query("PAGES text ACROSS SESSIONS").to_dicts())


def test_a_small_budget_brings_over_what_fits_a_quarter(store: Store, earlier: Live) -> None:
    """What is longer than a quarter of the new budget stays behind, and what is short comes."""
    earlier.user("And what is there?")
    earlier.segment("long", summary="Naxos has beaches. " * 200)
    session = store.live_session("s2", continues="s1", l0_tokens_max=2_000, rules="short")
    assert texts(session) == ["They take the ferry to Naxos at seven.", "The budget is 1,100 EUR."]


def test_what_cannot_be_continued_is_refused(store: Store, earlier: Live) -> None:
    """An unknown session, itself, another user's, and one that exists without going on from it: nothing is written."""
    store.live_session("alone", **BUDGET)
    before = len(list(store.tail()))
    for name, options, kind in (
        ("s2", {"continues": "s9"}, UnknownError),
        ("s2", {"continues": "s1", "user": "bob"}, ConflictError),
        ("alone", {"continues": "s1"}, ConflictError),
        ("s1", {"continues": "s1"}, ConflictError),
    ):
        with pytest.raises(kind):
            store.live_session(name, **BUDGET, **options)
    with refused("no-budget", InputError):
        store.live_session("s2", continues="s1")
    after = len(list(store.tail()))
    assert before == after and [info.session for info in store.sessions()] == ["alone", "s1"]
    session = store.live_session("s2", continues="s1", **BUDGET)
    pages = len(session.pages())
    assert len(store.live_session("s2", continues="s1").pages()) == pages, "opened again it brings nothing twice"
