"""A request that begins with the one before is told at once, and by nothing else than message by message."""

from __future__ import annotations

import copy
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.capture.test_record_growth import CODE
from vmstore.capture.conversation import message_state
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.store.store import Store, memory_store

Request = list[dict[str, Any]]
NUMBERS: list[Any] = [1, 1.0, True, 0, 0.0, -0.0, None, 10**30]
ODD = [*NUMBERS, "1", "\ud800", [1], [1.0], {"a": 1, "b": 2}, {"b": 2, "a": 1}]


def message(n: int, odd: Any) -> dict[str, Any]:
    """A message with a field of its own that the store has to keep to the letter."""
    return {"role": ("user", "assistant")[n % 2], "content": f"message {n}", "own": copy.deepcopy(odd)}


@st.composite
def talks(draw: st.DrawFn) -> list[Request]:
    """Requests that go on from one another: longer, shorter, with fields that look alike changed in the middle."""
    sofar: Request = []
    requests = []
    for _ in range(draw(st.integers(2, 6))):
        change = draw(st.integers(0, 5))
        if change == 0 and sofar:
            del sofar[draw(st.integers(0, len(sofar) - 1)) :]
        elif change == 1 and sofar:
            at = draw(st.integers(0, len(sofar) - 1))
            sofar[at] = {**sofar[at], "own": draw(st.sampled_from(ODD))}
        elif change == 2 and sofar:
            at = draw(st.integers(0, len(sofar) - 1))
            sofar[at] = dict(reversed(sofar[at].items()))
        sofar += [message(len(sofar) + n, draw(st.sampled_from(ODD))) for n in range(draw(st.integers(0, 3)))]
        requests.append(copy.deepcopy(sofar))
    return requests


def recorded(requests: list[Request]) -> list[bytes]:
    """The commits that recording them makes; a request that is refused makes none."""
    with memory_store(clock=ManualClock(5_000_000), ids=SeededIds(4)) as store:
        for messages in requests:
            store.record("s", {"model": "m", "messages": messages})
        return [commit.hash for commit in store.admin.log.tail(0, 1000)]


@settings(deadline=None)
@given(talks())
def test_what_is_told_at_once_is_what_each_message_tells(requests: list[Request]) -> None:
    """With requests compared as a whole and without, the log is the same to the byte."""
    contents = recorded(requests)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(message_state, "WRITTEN_MAX", -1)
        assert recorded(requests) == contents


def lines_of_a_call(store: Store, messages: Request) -> int:
    """How many lines of capture's code a call takes."""
    count = 0

    def tick(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        if CODE not in frame.f_code.co_filename:
            return None
        count += 1
        return tick

    sys.settrace(tick)
    try:
        store.record("s", {"model": "m", "messages": copy.deepcopy(messages)})
    finally:
        sys.settrace(None)
    return count


def test_a_call_takes_the_work_of_what_is_new_in_it() -> None:
    """Three messages after four hundred take the steps that three after fifty take, but for lists copied whole."""
    work = {}
    for count in (50, 400):
        with memory_store() as store:
            messages = [message(n, 1) for n in range(count)]
            for _ in range(3):
                store.record("s", {"model": "m", "messages": copy.deepcopy(messages)})
                messages += [message(len(messages) + n, 1) for n in range(3)]
            work[count] = lines_of_a_call(store, messages)
    assert work[400] < 1.5 * work[50] + 4 * 350


def test_what_left_the_context_is_not_kept_as_it_was_sent() -> None:
    """Of a conversation that is sent as a window the words of the window alone are in memory, and others come back."""
    with memory_store() as store:
        messages = [message(n, n) for n in range(40)]
        for end in range(4, 41, 4):
            store.record("s", {"model": "m", "messages": copy.deepcopy(messages[max(0, end - 8) : end])})
        (key,) = store._ns.conversations
        _, conversation = store._ns.conversations[key]
        assert [message.value for message in conversation.messages if message.value is not None] == messages[-8:]
        assert len(conversation.messages) == 40
        store.record("s", {"model": "m", "messages": copy.deepcopy(messages[:8])})
        assert len(conversation.messages) == 40
        assert store.session("s").wire.request(call=11)["messages"] == messages[:8]
