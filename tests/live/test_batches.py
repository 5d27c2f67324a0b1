"""Pages leave together, from where that voids least of what a provider has kept."""

from __future__ import annotations

from typing import Any

import pytest

import vmstore
from tests.live.small import PROSE, call
from tests.replay.told import Life
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.decision import Cause, FaultReason, Use
from vmstore.core.mutation import Create, Evict, FaultDenied, Message, Reference
from vmstore.core.page import Level, Modality, PageType, Role
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store
from vmstore.vm.kernel.eviction import EvictionPlan
from vmstore.vm.kernel.settings import BEFORE, KernelSettings, decoded
from vmstore.vm.policies.demand import Demand1

TOLD: dict[str, Any] = {"l0_tokens_max": 6_000, "rules": "passive", "recall_share": 0.0}


@pytest.fixture
def store() -> Store:
    """A store in memory with a clock and ids of its own."""
    return vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(1))


def worked(store: Store, name: str, **fields: Any) -> Live:
    """A session in which a model calls a tool eighty times, and goes back to an older answer now and then."""
    session = store.live_session(name, **{**TOLD, **fields})
    session.user("Look at every line of the timetable.")
    for number in range(80):
        session.pack()
        session.tool(call(session, number), f"Line {number} begins at dawn and stops at station {number * 7}. " * 8)
        if number % 9 == 8:
            older = [page.page for page in session.pages(role="tool")][(number * 5) % (number - 3)]
            session.page_fault(older)
    session.pack()
    return session


def test_batches_void_less(store: Store) -> None:
    """The same work with the same marks loses less than half of what a cache kept, and costs less."""
    marks = {"mark_soft": 0.7, "mark_hard": 0.85}
    single, batched = worked(store, "single", batches=False, **marks), worked(store, "batched", **marks)
    lost = [[call.invalidated for call in session.calls() if call.invalidated] for session in (single, batched)]
    assert sum(lost[1]) < 0.5 * sum(lost[0])
    before, now = single.stats(), batched.stats()
    assert before.call_cost is not None and now.call_cost is not None and now.call_cost < before.call_cost
    assert now.calls_over_budget == 0 and store.verify().ok
    assert batched.debug.check().ok and single.debug.check().ok


@pytest.mark.parametrize("soft", [0.2, 0.3, 0.4, 0.6])
def test_a_call_leaves_with_its_result(store: Store, soft: float) -> None:
    """No request has room taken by a call whose result is out, wherever a batch begins: such a call is not sent."""
    session = worked(store, "s", mark_soft=soft)
    session.pack()
    here = session.runtime().current().here
    calls = {page for page, item in here.items() if item.role == Role.ASSISTANT}
    assert session.stats().evictions > 20 and calls
    assert calls <= {item.answers for item in here.values()}


def test_what_came_back_is_shown_before_it_goes(store: Store) -> None:
    """A page that was asked for is in the next request, however full the room is."""
    session = worked(store, "s")
    out = [page.page for page in session.pages(role="tool") if page.tier == "L2"]
    for name in out[:12]:
        session.page_fault(name)
        session.tool(call(session, int(name[1:])), PROSE[:3_000])
        assert name in session.pack().pages


def test_the_newest_question_stays_where_one_page_fills_the_room(store: Store) -> None:
    """A call whose arguments take more than the room leaves before what the user asked."""
    session = store.live_session("s", l0_tokens_max=2_000, rules="passive", pinned_turns=1)
    session.user("Which of the two tickets is the cheaper one?")
    question = session.pages(role="user")[0].page
    session.pack()
    asked = {"name": "write", "arguments": '{"text": "' + "tariff " * 1_500 + '"}'}
    fields = {"id": "c1", "type": "function", "function": asked}
    session.assistant({"role": "assistant", "content": None, "tool_calls": [fields]})
    session.tool("c1", "Written.")
    packed = session.pack()
    assert question in packed.pages and packed.tokens <= packed.budget


def test_no_policy_is_asked_where_nothing_may_go(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of parallel calls, which all are held until a call shows them, reorder no page."""
    asked = 0
    victims = Demand1.victims

    def counted(self: Demand1, now: Any) -> Any:
        nonlocal asked
        asked += 1
        return victims(self, now)

    session = store.live_session("s", l0_tokens_max=2_000, rules="passive")
    session.user("Read all of them.")
    session.pack()
    calls = [{"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}} for n in range(60)]
    session.assistant({"role": "assistant", "content": None, "tool_calls": calls})
    monkeypatch.setattr(Demand1, "victims", counted)
    for n in range(60):
        session.tool(f"c{n}", "Line of the timetable, and what it says. " * 4)
    assert asked == 0
    assert session.pack().tokens <= 2_000


def test_older_logs_let_pages_go_as_they_did() -> None:
    """Settings that do not tell of batches are those of a session without, with the marks and the recall of then."""
    run = decoded(None, b'{"l0_tokens_max":3000}')
    assert (run.batches, run.mark_soft, run.mark_hard) == (False, 0.7, 0.85)
    assert run.recall_tokens_max > 10**8 and run.returned_tokens_max > 10**8
    assert run.behaviour == 1
    assert BEFORE.batches is not KernelSettings().batches


@pytest.mark.parametrize(("use", "most"), [(Use.QUOTE, 512), (Use.REUSE, 512), (Use.ASKED, 3_000), (Use.FAULT, 3_000)])
def test_a_long_page_that_was_used_comes_back_short(use: Use, most: int) -> None:
    """A long page that an answer used comes back in as much as a setting says, and whole where it is asked for."""
    life = Life(20_000, returned_tokens_max=512, batches=True)
    page, other = life.say(Role.TOOL, 3_000), life.say(Role.TOOL, 400)
    life.act(pack=True)
    for case in (page, other):
        life.tell(Evict(case, Cause.ASKED, life.state.here[case].tokens))
    life.act(pack=True)
    for case in (page, other):
        life.tell(Reference(case, use, 1, reason=FaultReason.RESOLVE_REFERENCE))
    life.act(pack=True)
    assert 0 < life.state.here[page].tokens <= most and life.state.here[page].level == (
        0 if most > 512 else Level.ABSTRACT
    )
    assert (life.state.here[other].tokens, life.state.here[other].level) == (400, 0), "a short one comes whole"


@pytest.mark.parametrize(
    ("behaviour", "use", "comes"), [(1, Use.QUOTE, True), (2, Use.QUOTE, False), (2, Use.ASKED, True)]
)
def test_a_long_call_that_was_used_comes_back_where_it_is_asked_for(behaviour: int, use: Use, comes: bool) -> None:
    """Of a tool call nothing but the whole is one, so a long one comes if asked for; older logs brought it back."""
    life = Life(20_000, returned_tokens_max=512, batches=True, behaviour=behaviour)
    message = life.tell(Message(Role.ASSISTANT, 2, 0))
    asked = life.tell(Create(0, Modality.STRUCTURED, Role.ASSISTANT, message, 0, 0, 8_000, 2_000))
    life.act(pack=True)
    life.tell(Evict(asked, Cause.ASKED, 2_000))
    life.act(pack=True)
    life.tell(Reference(asked, use, 1))
    life.act(pack=True)
    assert (asked in life.state.here) is comes
    assert (
        any(isinstance(mutation, FaultDenied) for commit in life.commits for _, mutation in commit.mutations)
        is not comes
    )


@pytest.mark.parametrize("policy", ["default", "lru"])
@pytest.mark.parametrize("batches", [True, False])
def test_what_was_just_said_is_shown_whole(policy: str, batches: bool) -> None:
    """A message that fits beside what is held is shown whole: older ones make room, and `arrivals_last` sees to it."""
    shown = {}
    for last in (True, False):
        with vmstore.memory_store() as store:
            session = store.live_session(
                "notes", l0_tokens_max=4_000, policy=policy, batches=batches, arrivals_last=last
            )
            for note in range(8):
                session.user(f"Note {note}: " + "a fact worth keeping " * 120)
                session.pack()
                session.assistant(f"Noted, {note}.")
            shown[last] = [int(page.level) for page in session.pages(role="user") if page.tier == 0][-3:]
            assert session.debug.check().ok
    assert shown[True] == [0, 0, 0] and shown[False] != [0, 0, 0]


def test_what_was_decided_to_go_is_not_shortened_as_it_arrives() -> None:
    """A page no call has shown yet that leaves for room has that one decision, and no form is made of it."""
    life = Life(20_000, batches=True, compress=False, bare=True)
    file = life.tell(Create(PageType.ARTIFACT, Modality.TEXT, Role.TOOL, 0, 0, 0, 12_000, 3_000))
    plan = EvictionPlan(life.state)
    assert plan.make(1_000, 500, Cause.PRESSURE)
    plan.arrive(100)
    assert [row.page for row in plan.decided if isinstance(row, Evict)] == [file] and not plan.requests
