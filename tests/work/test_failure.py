"""Failures: the reason of an answer, which are the same, and what a warning says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vmstore.work.failure import avoidance, pattern_of, reason_of, same_failures
from vmstore.work.past_call import PastCall, answer_of


def failed(number: int, reason: str, tool: str = "book", arguments: object = None) -> PastCall:
    """A failed call."""
    return PastCall("s", number, 1, tool, arguments if arguments is not None else {"n": number}, True, reason)


def test_a_reason_is_the_error_of_an_object_or_the_first_line() -> None:
    """What a tool answered with is read where it says why, and no stack trace is carried along."""
    assert reason_of('{"error": "no such flight", "code": 4}') == "no such flight"
    assert reason_of("\n\nError: no seats\nTraceback …") == "Error: no seats"
    assert reason_of('{"error": ""}') == '{"error": ""}' and reason_of("") == ""


def test_what_differs_from_call_to_call_is_no_part_of_a_pattern() -> None:
    """Ids, numbers, paths and quoted words do not tell two failures apart, words do."""
    assert pattern_of("Error: card card_12 not found") == pattern_of("Error: card card_9876 not found")
    assert pattern_of("No file /a/b.py here") == pattern_of("No file /c/d/e.py here")
    assert pattern_of("key 'a' missing") == pattern_of("key 'b c' missing")
    assert pattern_of("no seats") != pattern_of("no balance")


def test_failures_are_the_same_by_reason_or_by_arguments_and_never_of_two_tools() -> None:
    """The last call is counted with those of its tool that failed alike; what succeeded counts for nothing."""
    calls = [
        failed(1, "no seats on 1"),
        failed(2, "no seats on 2"),
        failed(3, "no balance"),
        failed(4, "no seats on 3"),
    ]
    assert [call.page for call in same_failures(calls)] == [1, 2, 4]
    again = [failed(1, "boom", arguments={"a": 1}), failed(2, "bang", arguments={"a": 1})]
    assert [call.page for call in same_failures(again)] == [1, 2]
    assert same_failures([failed(1, "x", tool="other"), failed(2, "x")]) == [failed(2, "x")]
    assert same_failures([failed(1, "x"), failed(2, "x")._replace(failed=False)]) == []


def test_a_warning_names_tool_count_reason_and_what_all_calls_shared() -> None:
    """An agent reads what not to do again: with which arguments, how often, and why."""
    calls = [failed(n, f"no seats on {n}", arguments={"cabin": "economy", "flight": n}) for n in (1, 2, 3)]
    text = avoidance(calls)
    assert "book" in text and 'cabin="economy"' in text and "3 times" in text and "no seats on 3" in text
    assert "flight" not in text.partition("has failed")[0]


@given(st.text(max_size=300))
def test_any_answer_has_a_reason_of_bounded_length(text: str) -> None:
    """Whatever a tool answers, its reason and pattern are found, short, and a pattern's pattern is itself."""
    reason = reason_of(text)
    assert len(reason) <= 200 and "\n" not in reason
    assert pattern_of(pattern_of(reason)) == pattern_of(reason)


def test_a_long_answer_is_compared_without_its_numbers() -> None:
    """The figures of a progress line tell two long answers no more apart; two short ones they do."""
    page = "<html>" + "a form with words " * 40
    assert answer_of(page + " 257 B/s") == answer_of(page + " 268 B/s")
    assert answer_of("12") != answer_of("13") and answer_of(page) != answer_of(page + " flag")
