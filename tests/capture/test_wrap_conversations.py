"""Which conversation a request belongs to is told from what it begins with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from vmstore.capture.client import conversations as module
from vmstore.capture.client.conversations import ClientConversations

Json = dict[str, Any]


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def model(text: str) -> Json:
    return {"role": "assistant", "content": text}


class Talks:
    """Asks, and tells the number of the conversation that was found."""

    def __init__(self) -> None:
        self.conversations = ClientConversations(str)

    def __call__(self, *messages: Json, answer: Any = "In Japan.", **fields: Any) -> int:
        if isinstance(answer, str):
            answer = {"choices": [{"message": model(answer), "finish_reason": "stop"}]}
        return self.ask({"messages": list(messages), **fields}, answer)

    def ask(self, request: Json, answer: Any) -> int:
        actual, asked = self.conversations.of(request)
        self.conversations.note(actual, asked, answer)
        return int(actual.name)


KYOTO = [user("Where is Kyoto?"), model("In Japan.")]


def test_a_request_goes_on_where_the_last_one_ended() -> None:
    """Each conversation is continued by the requests that extend it, however they take turns."""
    talks = Talks()
    for turn in range(3):
        for n in range(5):
            items = [user(f"question {n}"), *(message for t in range(turn) for message in (model("a"), user(f"{t}")))]
            assert talks(*items, answer="a") == n + 1


def test_instructions_may_change() -> None:
    """What the agent is told to be is no part of what its conversation begins with: it often holds the time."""
    talks = Talks()
    for turn in range(3):
        items = [*KYOTO, user("a"), model("b"), user("c")][: 2 * turn + 1]
        assert talks({"role": "system", "content": f"It is {turn} o'clock."}, *items) == 1


def test_another_first_question_is_another_conversation() -> None:
    """Under the same instructions, with the same tools, it is the first question that counts."""
    talks = Talks()
    rules = {"role": "system", "content": "Be brief."}
    assert [talks(rules, user(text)) for text in ("Where is Kyoto?", "Where is Nara?", "Where?")] == [1, 2, 3]


def test_the_same_greeting_is_another_conversation() -> None:
    """People begin alike: the same first question, answered before, begins a conversation that goes its own way."""
    talks = Talks()
    assert talks(user("hi"), answer="Hello anna") == 1
    assert talks(user("hi"), answer="Hello bert") == 2
    assert talks(user("hi"), model("Hello bert"), user("b")) == 2
    assert talks(user("hi"), model("Hello anna"), user("a")) == 1
    assert talks(user("hi"), model("Hello bert"), user("b"), model("In Japan."), user("bb")) == 2
    assert talks(user("hi"), model("Hello anna"), user("a"), model("In Japan."), user("aa")) == 1


@pytest.mark.parametrize("answer", [None, RuntimeError("slow down")])
def test_a_call_that_failed_is_made_again_in_its_conversation(answer: Any) -> None:
    """The same first question after a failure is the same conversation."""
    talks = Talks()
    assert talks(user("hi"), answer=answer) == 1
    assert talks(user("hi"), answer="Hello") == 1
    assert talks(user("hi"), answer="Hello") == 2


@pytest.mark.parametrize(
    "next_",
    [
        [*KYOTO, user("And Nara?")],  # asked again, or by another parameter
        [*KYOTO, user("And Osaka?")],  # its last question put otherwise
        [KYOTO[0], model("It is in Japan."), user("And Nara?"), model("Near."), user("Thanks")],  # an answer edited
        [user("<summary>Kyoto.</summary>"), model("Near."), user("And Osaka?"), model("Too."), user("Why?")],
        [user("And Nara?"), model("Near."), user("And Osaka?"), model("Too."), user("Why?")],  # the oldest cut off
    ],
)
def test_what_is_changed_stays_the_same_conversation(next_: Sequence[Json]) -> None:
    """A regenerated, edited, summed up or shortened conversation is the one it was."""
    talks = Talks()
    assert talks(user("Another")) == 1
    assert talks(*KYOTO, user("And Nara?"), model("Near."), user("And Osaka?"), answer="Too.") == 2
    assert talks(*next_) == 2
    assert talks(user("Another"), model("In Japan."), user("Yes?")) == 1


def test_equal_words_in_the_middle_join_nothing() -> None:
    """A conversation met in its middle is another one, however alike its end is to that of one known."""
    talks = Talks()
    assert talks(user("a"), model("Fine."), user("Go on."), answer="Done.") == 1
    assert talks(user("b"), model("Fine."), user("Go on."), answer="Never.") == 2
    assert talks(user("c"), model("Fine."), user("Go on."), model("What?"), user("Go on.")) == 3


def test_an_answer_named_as_the_one_before_tells() -> None:
    """Where the provider keeps the conversation, a request is found by what it names."""
    talks = Talks()
    for n, name in ((1, "r1"), (2, "r2")):
        assert talks.ask({"input": "Where is Kyoto?"}, {"object": "response", "id": name, "output": []}) == n
    events = [{"type": "response.created", "response": {"id": "r3"}}]
    assert talks.ask({"input": "And?", "previous_response_id": "r1"}, events) == 1
    assert talks.ask({"input": "And?", "previous_response_id": "r3"}, None) == 1
    assert talks.ask({"input": "And?", "previous_response_id": "r2"}, None) == 2
    assert talks.ask({"input": "hi", "conversation": "c1"}, None) == 3
    assert talks.ask({"input": "ho", "conversation": {"id": "c1"}}, None) == 3


def test_all_shapes_are_told_apart() -> None:
    """Contents, messages beside a system prompt and input items are compared alike."""
    talks = Talks()
    part = {"role": "user", "parts": [{"text": "hi"}]}
    fields = {"role": "model", "parts": [{"text": "Hello"}]}
    answer = {"candidates": [{"content": fields, "finishReason": "STOP"}]}
    assert talks.ask({"contents": [part]}, answer) == 1
    assert talks.ask({"contents": [part, fields, part]}, answer) == 1
    other_fields = {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]}
    message = {"type": "message", "stop_reason": "end_turn", **other_fields}
    assert talks.ask({"system": "a", "max_tokens": 9, "messages": [user("hi")]}, message) == 2
    assert talks.ask({"system": "b", "max_tokens": 9, "messages": [user("hi"), other_fields, user("b")]}, message) == 2
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]}
    assert talks.ask({"input": "ho"}, {"object": "response", "output": [item], "status": "completed"}) == 3
    assert talks.ask({"input": [user("x"), {"half": "\ud83d"}, {"big": 10**30}]}, None) == 4


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many conversations the least lately active are forgotten, and nothing is left of them."""
    monkeypatch.setattr(module, "CONVERSATIONS_MAX", 10)
    talks = Talks()
    for n in range(50):
        talks(user(f"{n}"), model("a"), user("b"))
        if n:
            assert talks(user("0"), model("a"), user("b"), *[user("x")] * n) == 1
    conversations = talks.conversations
    assert len(conversations._open) == 10
    assert len(conversations._by_opener) == 10
    assert len(conversations._by_end) <= 10
    assert not conversations._by_id
