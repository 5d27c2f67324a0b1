"""Digests of tasks: made from plans as they stand, opened by depth, packed with cards into a budget."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vmstore
from tests.refusals import refused
from tests.work.agents import failing, worked
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import InputError, UnknownError
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store
from vmstore.work.digest import Expansion, TaskDigest, pack
from vmstore.work.observation import tokens

STEPS: list[Any] = ["Design", {"text": "Build", "after": ["Design"]}]


@pytest.fixture
def store() -> Store:
    """A store in memory whose runs are alike."""
    return vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(5))


@pytest.fixture
def session(store: Store) -> Live:
    """A session of Ann's with a task and a decision of it."""
    live = store.live_session("s1", user="ann", l0_tokens_max=4_000, rules="short")
    live.user("Build us a login.")
    live.work.plans.create("login", goals=["users can log in"], steps=STEPS)
    live.work.plans.decide("login", "We use JWT.")
    return live


def uri(session: Live, depth: int) -> str:
    """The reference of the session's task at a depth."""
    return f"expand://task/{session.work.plans.get('login').page}?depth={depth}"


def test_a_digest_follows_its_plan_and_the_past_has_its_own(session: Live) -> None:
    """After a change the digest says what the plan says, and at an earlier position what it said then."""
    before, position = session.work.digests.get("login"), session.info().position
    assert before.short == "login: active, 0 of 2 steps done."
    assert before.tokens == tokens(before.paragraph) and "Next: Design." in before.paragraph
    session.work.plans.done("login", "Design")
    assert session.work.digests.get("login").short == "login: active, 1 of 2 steps done."
    assert session.work.digests.get("login", position=position) == before
    fork = session.fork("f", position=position)
    assert fork.work.digests.get("login") == before
    assert session.work.digests.all(position=position) == [before] != session.work.digests.all()


def test_a_task_opens_step_by_step_within_its_budget(session: Live) -> None:
    """Each depth says more, the last a decision in its words, and one over the budget is refused by its number."""
    texts = [session.work.digests.expand(uri(session, depth)) for depth in range(4)]
    assert "We use JWT." in texts[3] and "We use JWT." not in texts[2] and "(after Design)" in texts[2]
    with refused("over-budget", InputError, "depth 3", "depth 2"):
        session.work.digests.expand(uri(session, 3), tokens(texts[3]) - 1)
    assert session.work.digests.expand(uri(session, 3), tokens(texts[3])) == texts[3]


def test_what_was_erased_is_in_no_digest(store: Store, session: Live) -> None:
    """A decision that was erased is said to be gone, and a task whose plan was erased is none."""
    plan = session.work.plans.get("login")
    store.trust.erase(page=plan.decisions[0])
    text = session.work.digests.expand(uri(session, 3))
    assert "JWT" not in text and "no longer there" in text
    store.trust.erase(page=f"s1/{plan.page}")
    with refused("no-plan", UnknownError):
        session.work.digests.expand(f"expand://task/{plan.page}")


def test_a_fork_keeps_the_words_of_decisions(session: Live) -> None:
    """A decision of the session that a fork goes on from is opened there too."""
    assert "We use JWT." in session.fork("f").work.digests.expand(uri(session, 3))


def test_cards_are_of_the_user_and_go_with_what_was_erased(store: Store, session: Live) -> None:
    """A warning of the user's other session is a card, one of another user is none, nor is one that was erased."""
    worked(store, "other", failing(3), "ben")
    store.work.learn()
    assert session.work.digests.cards() == []
    worked(store, "own", failing(3), "ann")
    store.work.learn()
    (card,) = session.work.digests.cards()
    assert "book" in card and card in session.work.digests.pack(500).text
    assert session.work.digests.cards(0) == []
    (guard,) = store.work.guards(user="ann")
    store.trust.erase(page=guard.page, in_session="own")
    assert session.work.digests.cards() == []


def test_what_opens_nothing_is_refused(session: Live) -> None:
    """A reference that is none, a depth there is not, a budget of nothing."""
    digests = session.work.digests
    for reference, code in (("expand://task/", "not-an-address"), (uri(session, 4), "no-level")):
        with refused(code, InputError):
            digests.expand(reference)
    with refused("not-a-limit", InputError):
        digests.pack(0)
    with refused("over-budget", InputError):
        digests.pack(3)


def test_the_packer_names_the_task_and_what_it_opened(session: Live) -> None:
    """The newest active task is in the text, and an expansion is opened as far as the budget goes."""
    reference = uri(session, 3)
    whole = session.work.digests.pack(1_000, expand=[reference])
    assert whole.expanded == [reference] and whole.dropped == [] and "Goals: users can log in." in whole.text
    less = session.work.digests.pack(whole.tokens - 1, expand=[reference])
    assert less.dropped == [reference] and less.expanded == [uri(session, 2)]


def test_the_last_expansion_goes_first() -> None:
    """Of two expansions the one asked for first is there whole while the other is opened less far, then not at all."""
    both = [Expansion(name, ["b" * 20, "a" * 200]) for name in ("p1", "p2")]
    first = "expand://task/p1?depth=1"
    assert pack("", None, [], both, 60).expanded == [first, "expand://task/p2?depth=0"]
    assert pack("", None, [], both, 50).expanded == [first]


@given(
    st.lists(st.text("abc ", min_size=1, max_size=80), max_size=6),
    st.lists(st.lists(st.text("xyz", min_size=1, max_size=90), min_size=1, max_size=4), max_size=4),
    st.integers(1, 120),
)
def test_the_budget_holds_and_expansions_go_before_cards(cards: list[str], texts: list[list[str]], budget: int) -> None:
    """A pack is within its budget, no card is left out while an expansion is in, and the last ones go first."""
    ordered = [sorted(each, key=len) for each in texts]
    expansions = [Expansion(f"p{at + 1}", each) for at, each in enumerate(ordered)]
    task = TaskDigest("p9", "t", "active", "short", "short and long", 4)
    try:
        packed = pack("system", task, cards, expansions, budget)
    except InputError:
        assert tokens("system\n\nshort") > budget
        return
    assert tokens(packed.text) == packed.tokens <= budget
    assert packed.text.startswith("system\n\nshort")
    assert packed.cards == cards[: len(packed.cards)]
    assert not packed.expanded or packed.cards == cards
    opened = [reference.split("/")[3].split("?")[0] for reference in packed.expanded]
    assert opened == [each.task for each in expansions][: len(opened)]
