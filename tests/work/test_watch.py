"""Guards: when each speaks up, and when it is silent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vmstore.core.work.trace import GuardType
from vmstore.work.past_call import PastCall, answer_of
from vmstore.work.watch import Alarm, CallWatch, identifiers


def call(page: int, failed: bool | None = None, reason: str = "", **fields: object) -> PastCall:
    """A call."""
    input_fields = {"session": "s", "turn": 1, "tool": "read", "arguments": {"n": page}, **fields}
    return PastCall(page=page, failed=failed, reason=reason, **input_fields)  # type: ignore[arg-type]


def alarms(calls: list[PastCall], watch: CallWatch | None = None) -> list[tuple[str, int, int]]:
    """The alarms of calls: which guard, what it counted, at which call."""
    watch = watch or CallWatch()
    return [(alarm.type.word, alarm.times, alarm.call.page) for each in calls for alarm in watch.take(each)]


def test_a_failure_is_warned_of_at_the_third_and_at_each_doubling() -> None:
    """Of thirteen failures the third, the sixth and the twelfth are told, in whatever turns they were."""
    calls = [call(n, True, f"no file {n}", turn=n) for n in range(1, 14)]
    assert alarms(calls) == [("failure", 3, 3), ("failure", 6, 6), ("failure", 12, 12)]


def test_two_failures_and_failures_of_two_kinds_are_not_warned_of() -> None:
    """Below three of the same nothing is said."""
    assert alarms([call(1, True, "no file"), call(2, True, "no seats"), call(3, True, "no file")]) == []


def test_the_same_call_with_the_same_answer_is_a_runaway_within_a_turn() -> None:
    """Three times the same in a turn is told; in three turns, or with other answers, it is not."""
    same = [call(n, False, arguments={}, answer=answer_of("x")) for n in (1, 2, 3)]
    assert alarms(same) == [("runaway", 3, 3)]
    assert alarms([row._replace(turn=row.page) for row in same]) == []
    assert alarms([row._replace(answer=str(row.page)) for row in same]) == []


def test_the_same_call_after_much_else_is_no_runaway() -> None:
    """A check that is run again after each of many edits repeats nothing."""
    calls = []
    for n in range(1, 40):
        checks = n % 12 == 0
        fields = {"tool": "check", "arguments": {}, "answer": answer_of("fine")} if checks else {"answer": str(n)}
        calls.append(call(n, False, **fields))
    assert alarms(calls) == []


def test_a_long_answer_that_ignores_what_is_asked_is_a_runaway() -> None:
    """Three other questions in a row that get one long page back are told; short acknowledgements are not."""
    page = "a form that says nothing new " * 30
    assert alarms([call(n, None, answer=answer_of(page)) for n in (1, 2, 3)]) == [("runaway", 3, 3)]
    assert alarms([call(n, None, answer=answer_of("done")) for n in (1, 2, 3)]) == []


def test_a_failed_call_that_names_what_nobody_said_is_ungrounded() -> None:
    """Ids of a failed call are looked for before it; one that succeeded, or names what is known, is left alone."""
    made_up = call(1, True, "card not found", arguments={"card": "card_7334", "cabin": "economy"})
    twice = [made_up, made_up._replace(page=2)]
    assert alarms(twice, CallWatch(None, lambda of, words: words)) == [("ungrounded", 1, 1)]
    assert alarms([made_up], CallWatch(None, lambda of, words: ())) == []
    assert alarms([made_up._replace(failed=False)], CallWatch(None, lambda of, words: words)) == []


def test_answers_over_the_room_of_the_prompt_are_told_once_a_turn() -> None:
    """The sum of a turn's answers is compared with the room, and starts at nothing in the next turn."""
    calls = [call(n, False, tokens=60, turn=1 + n // 4, answer=str(n)) for n in range(8)]
    assert alarms(calls, CallWatch(100)) == [("budget", 2, 1), ("budget", 2, 5)]
    assert alarms(calls, CallWatch(240)) == []


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 2)), max_size=60))
def test_every_alarm_of_failures_counts_what_is_there(story: list[tuple[int, bool, int]]) -> None:
    """An alarm's calls are failures of its tool up to its call, as many as it says, and it speaks at 3, 6, 12."""
    watch, taken = CallWatch(), []
    for page, (tool, failed, reason) in enumerate(story, 1):
        taken.append(call(page, failed, f"{'abc'[reason]} went wrong" if failed else "", tool=f"t{tool}"))
        for alarm in watch.take(taken[-1]):
            check(alarm, taken)


def check(alarm: Alarm, taken: list[PastCall]) -> None:
    """Holds an alarm against the calls so far."""
    assert alarm.type is GuardType.FAILURE and alarm.call is taken[-1] and alarm.call.failed
    assert alarm.times == len(alarm.calls) and alarm.times in (3, 6, 12, 24, 48)
    assert all(call in taken and call.failed and call.tool == alarm.call.tool for call in alarm.calls)


def test_identifiers_are_words_of_letters_and_digits() -> None:
    """Numbers, dates and plain words name nothing that could be looked up; ids do, however deep they stand."""
    fields = {"a": ["card_7334", {"b": "HAT0123"}], "day": "2024-05-01", "n": 3, "cabin": "economy", "zip": "10011"}
    assert identifiers(fields) == ["card_7334", "HAT0123"]
