"""The kernel held against a slow obvious reference over random sessions, and seen to fail where it is broken."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given

from tests.vm.played import STEPS, Played, Step
from tests.vm.slow import DECISIONS, Contest, Facts, contests, held_true, policy_order
from vmstore.core import mutation as m
from vmstore.core.decision import Use
from vmstore.vm.kernel.decide import decide
from vmstore.vm.kernel.state import State

# Every kind of pressure once: what arrives too large, faults, what came back, the last turns, smaller budgets.
CROWDED: list[Step] = [
    step
    for turn in range(12)
    for step in (
        ("turn", 40 + turn, 0, 0),
        ("model", 250, 0, turn % 4),
        ("tool", 60_000 if turn % 4 == 1 else 900, turn, 0),
        ("tool", 302, turn, 1),
        ("pack", 1, 0, 0),
        ("fault", 8, 5 * turn, 2),
        ("tool", 1_500, turn, 0),
        ("pack", 1, 0, 0),
        ("tool", 900, turn, 0),
        ("fault", 8, 6 * turn, 2),
        ("fault", 8, 6 * turn + 1, 3),
        ("fault", 8, 6 * turn + 2, 2),
        ("use", 12, 7 * turn, 2),
        ("wish", 3, turn, 0),
        ("settings" if turn % 3 == 2 else "pin", 64, 3 * turn, turn % 4),
    )
]


def played(steps: list[Step]) -> Iterator[Played]:
    """A session after each of its steps."""
    session = Played()
    for step in steps:
        session.play(step)
        yield session


def facts_of(session: Played, upto: int | None = None) -> Facts:
    """What is counted of a session up to a position."""
    return Facts(session.log[:upto], session.cells)


def refolded(session: Played, upto: int | None = None) -> State:
    """A state folded again from the log up to a position."""
    state = State(lambda position, _: session.cells[position])
    for position, mutation in session.log[:upto]:
        state.apply(position, mutation)
    return state


def fields(state: State) -> dict[str, Any]:
    """All a state holds, in plain values; of a policy the order it gives."""
    values = {name: value for name, value in vars(state).items() if name not in ("_read", "policy")}
    return {**values, "order": policy_order(state) if state.policy else None}


def same_as_counted(session: Played) -> None:
    """Every running total and set of the state equals what is counted from the list of mutations."""
    state, facts = session.state, facts_of(session)
    assert {page: item.level for page, item in state.here.items()} == facts.here()
    assert state.used == facts.used()
    assert {page for page in state.here if state.pages[page].pinned} == facts.pinned()
    assert state.pinned == sum(facts.tokens(page, facts.here()[page]) for page in facts.pinned())
    assert state.pinned_pages == len(facts.pinned())
    assert list(state.yielding()) == facts.last()
    assert set(state.guarded()) == facts.guarded()
    assert (state.budget, state.room) == (facts.budget, facts.room)
    assert (state.faults, state.fault_tokens) == facts.faults()
    shown = sorted(state.here.values(), key=lambda value: value.rank)
    assert [row.page for row in shown] == list(facts.here()), "pages stand in the order they came"


def within_budget(session: Played) -> None:
    """What is in the prompt is within the budget after every reaction, and what is pinned is in it."""
    for end in session.ends:
        facts = facts_of(session, end)
        assert facts.used() <= facts.budget, f"{facts.used()} of {facts.budget} at {end}"
    pinned: set[int] = set()
    for _, mutation in session.log:
        if isinstance(mutation, m.Pin):
            pinned.add(mutation.page)
        elif isinstance(mutation, m.Unpin) and mutation.holder == 0:
            pinned.discard(mutation.page)
        assert not isinstance(mutation, m.Evict) or mutation.page not in pinned, "a pinned page gave way"


def reasons_hold(session: Played) -> int:
    """Every number of every contest is what is counted and simulated at its place; how many there were."""
    number = 0
    for contest in contests(session.log):
        start = decided_from(session, contest)
        before = refolded(session, start - 1)
        assert before.policy is not None
        let_in = (m.FaultIn, m.Prefetch)
        kept = {row.page for _, row in session.log[start - 1 : contest.start - 1] if isinstance(row, let_in)}
        began = max((end for end in session.ends if end < contest.start), default=0)
        asked = [item for _, item in session.log[began : start - 1] if isinstance(item, m.Reference)]
        kept |= {page.page for page in asked if page.use in (Use.FAULT, Use.ASKED)}
        facts = facts_of(session, contest.start - 1)
        held_true(contest, facts, policy_order(before), kept, before.pages, before.policy.NUMBER)
        number += 1
    return number


def decided_from(session: Played, contest: Contest) -> int:
    """The position of the first decision of the reaction a contest is of."""
    at = contest.start
    while at > 1 and isinstance(session.log[at - 2][1], DECISIONS) and at - 1 not in session.ends:
        at -= 1
    return at


@given(STEPS)
def test_the_state_is_what_is_counted(steps: list[Step]) -> None:
    """After every step each total, each set and the order of the state equal those counted from the list."""
    for session in played(steps):
        same_as_counted(session)


@given(STEPS)
def test_the_prompt_stays_in_its_budget(steps: list[Step]) -> None:
    """After every reaction the prompt is within the budget, and nothing that is pinned ever gave way (law 6)."""
    *_, session = played(steps)
    within_budget(session)


@given(STEPS)
def test_every_reason_is_true(steps: list[Step]) -> None:
    """Policy, budget, used, candidates, cut-off and losers of every contest are what a simulation finds (law 4)."""
    *_, session = played(steps)
    reasons_hold(session)


def test_every_kind_of_contest_is_met() -> None:
    """A crowded session has contests of each cause, and all of their numbers are true."""
    *_, session = played(CROWDED)
    same_as_counted(session)
    within_budget(session)
    assert reasons_hold(session) > 20
    assert {contest.cause for contest in contests(session.log)} == {0, 1, 2, 3}


@given(STEPS)
def test_a_state_folded_anew_is_the_one_that_lived(steps: list[Step]) -> None:
    """Folding the log again gives the same state, field by field, and the policy's order with it."""
    *_, session = played(steps)
    assert fields(refolded(session)) == fields(session.state)


@given(STEPS)
def test_deciding_changes_nothing(steps: list[Step]) -> None:
    """`decide` leaves the state as it was, and decides the same when it is asked twice."""
    *_, session = played(steps)
    before = refolded(session)
    rows = [(len(session.log), session.log[-1][1])]
    assert decide(session.state, rows) == decide(session.state, rows)
    assert fields(session.state) == fields(before)
