"""Skills: which sequences become one, what is counted, and what they are described with."""

from __future__ import annotations

import json

import pytest

from vmstore.errors import InputError
from vmstore.work.cost import ToolNeed, cheapest, need
from vmstore.work.past_call import PastCall
from vmstore.work.skill import commonly_read, skills, typical_arguments


def turn(number: int, *tools: str, failed: str = "", **fields: object) -> list[PastCall]:
    """The calls of a turn, of which one tool fails."""
    calls = []
    for at, tool in enumerate(tools):
        page = number * 100 + at
        arguments = {"q": number, "lang": "en"}
        calls.append(PastCall("s", page, number, tool, arguments, tool == failed, **fields))  # type: ignore[arg-type]
    return calls


def test_a_sequence_is_a_skill_at_its_fifth_success() -> None:
    """Four successes are none, five are one, with its rate over all the times it was tried."""
    four = [item for n in range(4) for item in turn(n, "search", "read")]
    assert skills(four) == []
    (skill,) = skills([*four, *turn(4, "search", "read"), *turn(5, "search", "read", failed="read")])
    assert (skill.name, skill.successes, skill.tries) == ("search_then_read", 5, 6)
    assert skill.importance == 500_000 + round(400_000 * 5 / 6) and len(skill.calls) == 10


def test_what_fails_too_often_is_no_skill() -> None:
    """Five successes of ten tries are not learned."""
    calls = [item for n in range(10) for item in turn(n, "search", "read", failed="read" if n % 2 else "")]
    assert skills(calls) == [] and len(skills(calls, rate=0.5)) == 1


def test_a_retry_is_one_step_and_a_turn_ends_a_sequence() -> None:
    """A tool called again at once is the same step, judged by its last call; calls of two turns are no sequence."""
    retried = []
    for n in range(5):
        search, read = turn(n, "search", "read")
        retried += [search._replace(failed=True), search, read]
    assert [skill.name for skill in skills(retried)] == ["search_then_read"]
    apart = [item for n in range(10) for item in turn(n, "search" if n % 2 else "read")]
    assert skills(apart) == []


def test_a_part_of_a_longer_skill_is_none_of_its_own() -> None:
    """Where three tools always come together, the skill is of three."""
    calls = [item for n in range(6) for item in turn(n, "search", "read", "write")]
    assert [skill.tools for skill in skills(calls)] == [("search", "read", "write")]


def test_importance_is_at_most_nine_tenths() -> None:
    """min(0.9, 0.5 + 0.4 of the rate): a skill that never failed has 0.9."""
    (skill,) = skills([item for n in range(5) for item in turn(n, "a1", "b1")])
    assert skill.importance == 900_000 and json.loads(skill.described())["success_rate"] == 1.0


def test_typical_arguments_are_those_of_most_calls() -> None:
    """A value that most calls share is told, of another only that there is one, and rare arguments are left out."""
    calls = [*turn(1, "a"), *turn(2, "a"), turn(3, "a")[0]._replace(arguments={"q": 1, "lang": "de", "rare": 1})]
    assert typical_arguments(calls) == {"lang": "en", "q": 1}
    assert typical_arguments(turn(1, "a")[:1] + turn(2, "a")) == {"lang": "en", "q": None}


def test_commonly_read_pages_are_those_most_calls_read_and_numbers_make_a_pattern() -> None:
    """Names in most of the reading calls, the most frequent first; names alike but for a number become one with `*`."""
    reads = [("city", "claim_location_1"), ("city", "claim_location_2"), ("city", "other")]
    calls = [turn(n, "weather")[0]._replace(read=names) for n, names in enumerate(reads)]
    assert commonly_read(calls) == ("city", "claim_location_*")
    assert commonly_read([call._replace(failed=True) for call in calls]) == ()


@pytest.mark.parametrize(
    ("text", "actual_need"),
    [
        ("10K tokens", ToolNeed(10_000)),
        ("needs 2,500 tokens", ToolNeed(2_500)),
        ("1.5k tokens, creates large pages", ToolNeed(1_500, True)),
        ("creates large pages", ToolNeed(10_000, True)),
    ],
)
def test_a_need_is_read_from_words(text: str, actual_need: ToolNeed) -> None:
    """What a tool declares is a number of tokens, large pages, or both."""
    assert need(text) == actual_need


def test_what_is_no_need_is_refused_and_the_cheapest_that_fits_comes_first() -> None:
    """A wish in other words is refused by name; what was measured counts where it is more than what was declared."""
    with pytest.raises(InputError) as refusal:
        need("plenty")
    assert refusal.value.code == "no-tool-need"
    needs = {"scan": need("10K tokens"), "grep": need("500 tokens"), "ask": need("200 tokens")}
    assert cheapest(needs, 1_000) == ["ask", "grep", "scan"]
    assert cheapest(needs, 1_000, {"ask": 5_000.0}) == ["grep", "ask", "scan"]
