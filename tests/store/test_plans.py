"""Plans: pages that stay in the prompt while they are active, change by versions, and go on in the next session."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import InputError, RefusedError, UnknownError
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store
from vmstore.store.work.plans import Plans
from vmstore.work.plan import PlanStep

BUDGET: dict[str, Any] = {"l0_tokens_max": 4_000, "rules": "short"}
STEPS: list[Any] = ["Design", {"text": "Build", "after": ["Design"]}, {"text": "Test", "after": ["Build"]}]
CYCLE: list[Any] = [{"text": "a", "after": ["b"]}, {"text": "b", "after": ["a"]}]


@pytest.fixture
def store() -> Store:
    """A store in memory whose runs are alike."""
    return vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(5))


@pytest.fixture
def session(store: Store) -> Live:
    """A session of Ann's with a plan of three steps."""
    live = store.live_session("s1", user="ann", **BUDGET)
    live.user("Build us a login.")
    live.work.plans.create("login", goals=["users can log in"], steps=STEPS)
    return live


def test_a_plan_is_counted_by_its_steps(session: Live) -> None:
    """Progress is the share of steps that are done, and a step can be taken once those before it are."""
    plans = session.work.plans
    plan = plans.get("login")
    assert (plan.status, plan.progress, plan.ready) == ("active", 0.0, ["Design"])
    plan = plans.done("login", "Design", "Build")
    assert (plan.progress, plan.ready) == (0.667, ["Test"])
    plan = plans.update("login", steps=[*STEPS, "Ship"])
    assert plan.steps[0] == PlanStep("Design", done=True) and (plan.progress, plan.ready) == (0.5, ["Test", "Ship"])
    loose = plans.create("read", goals=["know it"])
    assert plans.update("read", progress=0.25).progress == 0.25
    assert [text.title for text in plans.all()] == ["login", "read"] and plans.get(loose.page).title == "read"


def test_an_active_plan_stays_in_the_prompt(session: Live) -> None:
    """However much is said, the prompt holds it; once it is completed it may leave, and is weighed less."""
    for n in range(40):
        session.user(f"Look at file {n}. " + "It is long. " * 60)
        request = session.pack().request
        session.assistant("Seen. " * 30)
    assert "users can log in" in json.dumps(request)
    asked = "PAGES type, status, importance, pinned WHERE 'plan' IN tags"
    assert list(session._ns.query(asked, session="s1")) == [("claim", "active", 0.99, True)]
    session.work.plans.complete("login")
    assert list(session._ns.query(asked, session="s1")) == [("claim", "completed", 0.5, False)]


def test_a_decision_is_a_part_of_its_plan(session: Live) -> None:
    """A decision is a claim linked to the plan and to what it was made from, and the plan names it."""
    message = session.pages()[0].page
    claim = session.work.plans.decide("login", "We use JWT.", sources=[message])
    plan = session.work.plans.get("login")
    assert plan.decisions == [f"s1/{claim}"] and session.content(claim) == b"We use JWT."
    links = {(link.kind, link.target) for link in session.lineage.ancestors(claim, depth=1)}
    assert links == {("derives", message), ("part_of", plan.page)}


def test_plans_are_as_of_the_moment_asked_of(session: Live) -> None:
    """Earlier moments have the plan as it stood, or none; a fork goes on with it by itself."""
    plans = session.work.plans
    session.pack()
    before = session.info().position
    plans.done("login", "Design")
    assert plans.get("login", position=before).progress == 0.0 and plans.get("login").progress == 0.333
    assert plans.all(position=1) == []
    fork = session.fork("other", position=before)
    fork.work.plans.done("login", "Design")
    fork.work.plans.complete("login")
    assert (plans.get("login").status, Plans(fork).get("login").status) == ("active", "completed")


def test_the_next_session_goes_on_with_the_plan(store: Store, session: Live) -> None:
    """By continues, by remembering the user, or by hand: in the same bytes, once, and never with somebody else's."""
    session.work.plans.decide("login", "We use JWT.")
    session.work.plans.done("login", "Design")
    stranger = store.live_session("b1", user="bob", remembers="user", **BUDGET)
    assert stranger.work.plans.all() == [] == stranger.work.plans.elsewhere()
    second = store.live_session("s2", continues="s1", **BUDGET)
    (plan,) = second.work.plans.all()
    assert (plan.title, plan.ready, plan.continues) == ("login", ["Build"], "vm://default/s1/p7")
    assert second.content(plan.page) == session.content("p7") and plan.decisions == ["s1/p10"]
    second.work.plans.done("login", "Build")
    assert session.work.plans.get("login").progress == 0.333, "the earlier session keeps it as it was"
    third = store.live_session("s3", user="ann", remembers="user", **BUDGET)
    assert [(plan.continues, plan.ready) for plan in third.work.plans.all()] == [
        ("vm://default/s2/" + plan.page, ["Test"])
    ]
    fourth = store.live_session("s4", user="ann", **BUDGET)
    assert [item.session for item in fourth.work.plans.elsewhere()] == ["s3"] and fourth.work.plans.all() == []
    assert fourth.work.plans.resume().ready == ["Test"] and store.verify().ok
    with refused("no-plan", UnknownError):
        store.live_session("s5", user="ann", **BUDGET).work.plans.resume("read")


@pytest.mark.parametrize(
    ("ask", "code", "kind"),
    [
        (lambda p: p.create("x", steps=CYCLE), "plan-cycle", InputError),
        (lambda p: p.create("x", steps=[{"text": "a", "after": ["a"]}]), "plan-cycle", InputError),
        (lambda p: p.create("x", steps=["a", "a"]), "step-twice", InputError),
        (lambda p: p.create("x", steps=[{"text": "a", "after": ["b"]}]), "no-step", UnknownError),
        (lambda p: p.create("x", steps=[{"what": "a"}]), "not-a-step", InputError),
        (lambda p: p.create("x", steps="abc"), "not-a-list", InputError),
        (lambda p: p.create(" "), "not-a-text", InputError),
        (lambda p: p.create("x", goals=[7]), "not-a-text", InputError),
        (lambda p: p.done("login", "Test"), "step-waits", InputError),
        (lambda p: p.done("login", "Ship"), "no-step", UnknownError),
        (lambda p: (p.create("x"), p.update("x", progress=2)), "not-a-share", InputError),
        (lambda p: p.update("login", progress=0.5), "counted", InputError),
        (lambda p: p.get("logout"), "no-plan", UnknownError),
        (lambda p: p.all(status="planned"), "no-status", UnknownError),
        (lambda p: p.decide("login", ""), "not-a-text", InputError),
        (lambda p: (p.abandon("login"), p.done("login", "Design")), "plan-ended", InputError),
    ],
)  # fmt: skip
def test_what_is_no_plan_is_refused(session: Live, ask: Callable[[Plans], Any], code: str, kind: type) -> None:
    """A cycle, a step twice, one that waits, a plan that ended and what is no text are refused by name."""
    with refused(code, kind):
        ask(session.work.plans)
    assert session.work.plans.get("login").progress == 0.0


def test_a_plan_that_does_not_fit_is_refused_whole(session: Live) -> None:
    """A plan too large to be held leaves nothing behind, and neither does one that grows too large."""
    before = session.info().position
    steps = [f"step {n} " + "of many words " * 20 for n in range(90)]
    with pytest.raises(RefusedError):
        session.work.plans.create("huge", steps=steps)
    with pytest.raises(RefusedError):
        session.work.plans.update("login", steps=steps)
    assert session.info().position == before and session.debug.check().ok


def test_plans_of_a_recorded_session_are_read_alone(store: Store) -> None:
    """A recorded session has none, and says where to plan."""
    store.record("old", {"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
    assert store.session("old").work.plans.all() == []
    with refused("recorded-session", RefusedError):
        store.session("old").work.plans.create("x")


def test_an_erased_plan_is_none(store: Store, session: Live) -> None:
    """Erased with its copies it is listed in no session and stands in no page; the rest of the views rebuilds."""
    store.live_session("s2", continues="s1", **BUDGET)
    vmstore.erase(store, page="p7", in_session="s1", copies=True, reason="asked")
    assert [store.session(name).work.plans.all() for name in ("s1", "s2")] == [[], []]
    store.admin.rebuild()
    assert store.verify().ok and "users can log in" not in str(store.query("PAGES text ACROSS SESSIONS").to_dicts())


def test_secrets_in_a_plan_are_masked(store: Store) -> None:
    """Where a session masks secrets, a plan has none, neither when it begins nor when it changes."""
    live = store.live_session("m", redaction="mask", **BUDGET)
    live.work.plans.create("mail", goals=["write to ada@lovelace.dev"])
    live.work.plans.update("mail", goals=["write to bob@lovelace.dev"])
    plan = live.work.plans.get("mail")
    assert (
        "lovelace.dev" not in str(store.query("VERSIONS OF " + plan.page + " IN SESSION m").to_dicts()) and plan.goals
    )
    assert "lovelace" not in plan.goals[0]
