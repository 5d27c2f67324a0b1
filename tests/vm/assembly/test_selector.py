"""What of some candidates a prompt holds: its classes, its budget, its levels, and why the others stay out."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lanes import tries
from tests.refusals import refused
from vmstore.core.decision import PromptPart
from vmstore.errors import InputError
from vmstore.vm.assembly.candidate import CandidateForm, PromptCandidate
from vmstore.vm.assembly.selector import (
    OTHER_TOPIC,
    PPM,
    SAME_FACT,
    SHARES,
    SHOWN_ALREADY,
    Assembly,
    assemble,
)


def candidate(name: str, part: PromptPart, tokens: int, lower: tuple[int, ...] = (), **fields: Any) -> PromptCandidate:
    """A candidate with a form of so many tokens, and shorter ones."""
    others = tuple(CandidateForm(level, size) for level, size in enumerate(lower, 1))
    return PromptCandidate(name=name, part=part, form=CandidateForm(0, tokens), others=others, **fields)


def turn(number: int, tokens: int = 10, lower: tuple[int, ...] = (), **fields: Any) -> PromptCandidate:
    """A turn of the conversation, one chain long."""
    name = fields.pop("name", f"m{number}")
    return candidate(name, PromptPart.CONVERSATION, tokens, lower, turn=number, first=True, **fields)


def shown(choice: Assembly) -> dict[str, int]:
    """What stands in the prompt, and its level."""
    return {each.name: each.level for each in choice.shown}


def why(choice: Assembly) -> dict[str, str]:
    """What does not, and why."""
    return {left.name: left.why for left in choice.left}


def test_what_instructs_is_never_left_out() -> None:
    """What instructs and the message stand in every prompt, and one too small for them is refused."""
    core = candidate("instructions", PromptPart.CORE, 30), candidate("message", PromptPart.CORE, 10)
    assert shown(assemble([*core, turn(1, 50)], 45)) == {"instructions": 0, "message": 0}
    with refused("over-budget", InputError):
        assemble(core, 39)


def test_protected_turns_give_levels_before_turns() -> None:
    """The newest turns stand before facts and passages; the oldest of them gives a level first, then goes whole."""
    turns = [turn(number, 30, (20, 5)) for number in (1, 2, 3, 4)]
    fact = candidate("p9", PromptPart.FACTS, 5, score=1.0)
    assert shown(assemble([*turns, fact], 90)) == {"m2": 0, "m3": 0, "m4": 0}
    assert shown(assemble([*turns, fact], 80)) == {"m2": 1, "m3": 0, "m4": 0}
    assert shown(assemble([*turns, fact], 12)) == {"m3": 2, "m4": 2}


def test_of_a_turn_that_does_not_fit_its_question_stays() -> None:
    """Where not even the newest turn fits, what began it stays, and the chains that came last."""
    chains = [
        candidate(f"c{order}", PromptPart.CONVERSATION, 10, turn=1, order=order, first=not order) for order in range(4)
    ]
    assert shown(assemble(chains, 25)) == {"c0": 0, "c3": 0}


def test_a_part_takes_its_share_and_the_best_of_it() -> None:
    """Passages take their share of the budget, the best first, at the highest level that fits; the others lose."""
    candidates = [candidate(f"p{at}", PromptPart.RECALLED, 20, (8,), score=1 / at) for at in (1, 2, 3)]
    choice = assemble(candidates, 100, shares={PromptPart.RECALLED: 300_000})
    assert shown(choice) == {"p1": 0, "p2": 1}
    (contest,) = choice.contests
    assert (contest.candidates, contest.chosen, contest.cutoff) == (3, 2, 0.5)
    assert contest.losers == ((1 / 3, "p3"),)


def test_what_stands_in_the_prompt_is_not_recalled_again() -> None:
    """A page of the conversation, or of a fact that was chosen, is in no other part."""
    spoken = turn(3, pages=(7,))
    fact = candidate("p9", PromptPart.FACTS, 5, pages=(9,))
    twice = [candidate(f"r{page}", PromptPart.RECALLED, 5, pages=(page,)) for page in (7, 9, 11)]
    assert why(assemble([spoken, fact, *twice], 100)) == {"r7": SHOWN_ALREADY, "r9": SHOWN_ALREADY}


def test_a_fact_is_told_once() -> None:
    """Of facts that say the same the best is told, and the others say why they are not."""
    facts = [candidate(f"p{at}", PromptPart.FACTS, 5, score=at, subject="the database") for at in (1, 2)]
    choice = assemble(facts, 100)
    assert (shown(choice), why(choice)) == ({"p2": 0}, {"p1": SAME_FACT})


def test_turns_of_other_topics_stay_out() -> None:
    """Beyond the protected turns those of another topic are dropped; what has no topic stays."""
    tags = {1: ("css",), 2: ("db",), 3: (), 4: ("db",), 5: ("db",), 6: ("db",)}
    turns = [turn(number, tags=tags[number]) for number in tags]
    choice = assemble(turns, 1_000, topics=frozenset({"css"}))
    assert [*shown(choice)] == ["m1", "m3", "m4", "m5", "m6"]
    assert why(choice) == {"m2": OTHER_TOPIC}


def test_priority_goes_before_score() -> None:
    """A summary of a topic with a higher priority is taken before one that fits the message better."""
    summaries = [
        candidate("low", PromptPart.SUMMARIES, 10, score=9, priority=5),
        candidate("high", PromptPart.SUMMARIES, 10, score=1, priority=10),
    ]
    assert shown(assemble(summaries, 15, shares={PromptPart.SUMMARIES: PPM})) == {"high": 0}


@st.composite
def candidates(draw: st.DrawFn) -> list[PromptCandidate]:
    """Candidates of any part, with any forms."""
    made = []
    for at in range(draw(st.integers(0, 12))):
        part = draw(st.sampled_from([*SHARES]))
        sizes = sorted(draw(st.lists(st.integers(0, 60), min_size=1, max_size=4)), reverse=True)
        fields: dict[str, Any] = {"score": draw(st.floats(0, 1)), "turn": draw(st.integers(0, 5)), "order": at}
        pages = tuple(draw(st.lists(st.integers(1, 9), max_size=2)))
        subject = draw(st.sampled_from(["", "", "same"]))
        made.append(candidate(f"x{at}", part, sizes[0], tuple(sizes[1:]), pages=pages, subject=subject, **fields))
    return made


@settings(max_examples=tries(40))
@given(candidates(), st.integers(0, 200), st.integers(0, 4))
def test_no_prompt_is_over_its_budget(prompt_case: list[PromptCandidate], budget: int, protected: int) -> None:
    """Whatever there is to choose from: never over the budget, each candidate decided once, the parts add up."""
    choice = assemble(prompt_case, budget, protected=protected)
    assert choice.tokens == sum(each.tokens for each in choice.shown) == sum(choice.breakdown.values()) <= budget
    names = [each.name for each in choice.shown] + [left.name for left in choice.left]
    assert sorted(names) == sorted(each.name for each in prompt_case)
    assert all(left.why for left in choice.left)
    assert assemble(prompt_case, budget, protected=protected) == choice
