"""Responses as providers send them become replies: messages, status, usage, and all the rest beside."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.core.draft import ReplyDraft, TokenUsage
from vmstore.core.page import Modality, Role, Slot, Status
from vmstore.errors import InputError
from vmstore.providers import Shape, give_message, take_message, take_reply

CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-x",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "logprobs": None,
            "message": {"role": "assistant", "content": "Hi", "refusal": None, "annotations": []},
        }
    ],
    "usage": {
        "prompt_tokens": 10,
        "completion_tokens": 3,
        "total_tokens": 13,
        "prompt_tokens_details": {"cached_tokens": 8},
    },
}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
RESPONSES = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "instructions": "be kind",
    "model": "gpt-x",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi", "annotations": []}],
        },
    ],
    "tools": [{"type": "function", "name": "look"}],
    "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 3},
}
ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "Hi"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 1,
        "cache_read_input_tokens": 8,
        "cache_creation_input_tokens": 1,
        "output_tokens": 3,
    },
}
GEMINI = {
    "candidates": [{"content": {"parts": [{"text": "Hi"}], "role": "model"}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": {
        "promptTokenCount": 10,
        "cachedContentTokenCount": 8,
        "candidatesTokenCount": 1,
        "thoughtsTokenCount": 2,
    },
    "modelVersion": "gemini-x",
    "responseId": "r1",
}
ANSWERS = {Shape.CHAT: CHAT, Shape.RESPONSES: RESPONSES, Shape.ANTHROPIC: ANTHROPIC, Shape.GEMINI: GEMINI}
STOPS = {Shape.CHAT: "stop", Shape.RESPONSES: "completed", Shape.ANTHROPIC: "end_turn", Shape.GEMINI: "STOP"}


def messages_of(reply: ReplyDraft) -> list[Any]:
    return [give_message(d.skeleton, [part.content for part in d.parts]) for d in reply.drafts]


def chat(**message: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}]}


@pytest.mark.parametrize("shape", Shape)
def test_an_answer_is_read_in_every_shape(shape: Shape) -> None:
    """Status, stop reason, model and usage with cached tokens are told in one vocabulary."""
    reply = take_reply(shape, ANSWERS[shape])
    assert reply.status is Status.OK
    assert reply.final
    assert reply.stop == STOPS[shape]
    assert reply.model is not None
    written = 1 if shape is Shape.ANTHROPIC else None  # the others do not say
    assert reply.usage == TokenUsage(tokens_in=10, tokens_cached=8, tokens_out=3, tokens_written=written)
    assert reply.drafts[-1].role is Role.ASSISTANT
    assert reply.drafts[-1].parts[-1].content == b"Hi"
    assert not any(draft.human for draft in reply.drafts)


@pytest.mark.parametrize("other_shape", Shape)
@pytest.mark.parametrize("shape", Shape)
def test_the_answer_itself_tells_its_shape(shape: Shape, other_shape: Shape) -> None:
    """A request guessed wrong does not hurt: the response is read in its own shape."""
    assert take_reply(other_shape, ANSWERS[shape]) == take_reply(shape, ANSWERS[shape])


@pytest.mark.parametrize(
    ("shape", "carried"),
    [
        (Shape.CHAT, [{"role": "assistant", "content": "Hi"}]),
        (Shape.RESPONSES, RESPONSES["output"]),
        (Shape.ANTHROPIC, [{"role": "assistant", "content": ANTHROPIC["content"]}]),
        (Shape.GEMINI, [{"role": "model", "parts": [{"text": "Hi"}]}]),
    ],
)
def test_a_reply_is_the_message_the_next_request_carries(shape: Shape, carried: list[Any]) -> None:
    """A reply's drafts equal those of the messages an agent sends back."""
    reply = take_reply(shape, ANSWERS[shape])
    assert messages_of(reply) == carried
    assert list(reply.drafts) == [take_message(shape, Slot.MESSAGES, message) for message in carried]


def test_what_is_no_message_stays_beside() -> None:
    """Ids, times and usage details are kept in the body; its message is a hole, and not kept twice."""
    body = json.loads(take_reply(Shape.CHAT, CHAT).body or b"")
    assert {key: body[key] for key in ("id", "object", "created", "usage")} == {
        key: CHAT[key] for key in ("id", "object", "created", "usage")
    }
    assert next(iter(body["choices"][0]["message"])).startswith("\0")


def test_further_choices_stay_beside() -> None:
    """Of several choices the first is the answer, the others are kept."""
    other = {"index": 1, "finish_reason": "stop", "message": {"role": "assistant", "content": "Ho"}}
    reply = take_reply(Shape.CHAT, {"choices": [*chat(content="Hi")["choices"], other]})
    assert [part.content for draft in reply.drafts for part in draft.parts] == [b"Hi"]
    assert json.loads(reply.body or b"")["choices"][1] == other


@pytest.mark.parametrize(
    ("shape", "response"),
    [
        (Shape.CHAT, chat(content=None, tool_calls=[CHAT_CALL])),
        (Shape.CHAT, chat(content=None, function_call={"name": "look", "arguments": "{}"})),
        (
            Shape.RESPONSES,
            {
                "status": "completed",
                "output": [{"type": "function_call", "call_id": "c1", "arguments": "{}"}],
            },
        ),
        (
            Shape.ANTHROPIC,
            {"type": "message", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
        ),
        (Shape.ANTHROPIC, {**ANTHROPIC, "stop_reason": "pause_turn"}),
        (Shape.GEMINI, {"candidates": [{"content": {"parts": [{"functionCall": {"name": "look"}}]}}]}),
    ],
)
def test_an_answer_that_asks_for_a_tool_is_not_final(shape: Shape, response: dict[str, Any]) -> None:
    """While a tool is asked for, or more is announced, the turn is not over."""
    reply = take_reply(shape, response)
    assert (reply.status, reply.final) == (Status.OK, False)


def test_a_hosted_tool_that_answered_is_final() -> None:
    """A tool the provider ran itself, its result in the same answer, asks nobody for anything."""
    content = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result"}]},
        {"type": "text", "text": "found"},
    ]
    assert take_reply(Shape.ANTHROPIC, {**ANTHROPIC, "content": content}).final


@pytest.mark.parametrize(
    ("shape", "response", "error"),
    [
        (Shape.CHAT, {"error": {"message": "no quota", "type": "x"}}, "no quota"),
        (
            Shape.ANTHROPIC,
            {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
            "busy",
        ),
        (Shape.GEMINI, {"error": {"code": 400, "message": "bad", "status": "X"}}, "bad"),
        (Shape.GEMINI, {"promptFeedback": {"blockReason": "SAFETY"}}, "the prompt was blocked: SAFETY"),
        (Shape.RESPONSES, {**RESPONSES, "status": "failed", "error": {"code": "x", "message": "oh"}}, "oh"),
        (Shape.CHAT, ValueError("broken pipe"), "broken pipe"),
        (Shape.CHAT, TimeoutError(), "TimeoutError"),
    ],
)
def test_a_failure_tells_its_reason(shape: Shape, response: Any, error: str) -> None:
    """Error payloads and exceptions are failed replies with their text."""
    reply = take_reply(shape, response)
    assert (reply.status, reply.error, reply.final) == (Status.FAILED, error, False)


@pytest.mark.parametrize(
    ("shape", "response"),
    [
        (Shape.CHAT, None),
        (Shape.CHAT, []),
        (Shape.CHAT, KeyboardInterrupt()),
        (Shape.RESPONSES, {**RESPONSES, "status": "cancelled"}),
        (Shape.RESPONSES, {**RESPONSES, "status": "queued", "output": []}),
        (Shape.CHAT, {"choices": []}),
    ],
)
def test_what_was_cut_off_is_aborted(shape: Shape, response: Any) -> None:
    """No answer, an interrupted one and one still under way are aborted, not failed."""
    reply = take_reply(shape, response)
    assert (reply.status, reply.final) == (Status.ABORTED, False)


def test_an_answer_cut_at_its_length_is_an_answer() -> None:
    """A token limit is a stop reason like another."""
    response = {**RESPONSES, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    reply = take_reply(Shape.RESPONSES, response)
    assert (reply.status, reply.stop) == (Status.OK, "max_output_tokens")


def test_sdk_objects_and_bare_messages_are_answers_too() -> None:
    """A response may be an SDK object; the bare message is enough."""

    class Completion:
        def model_dump(self, **_: Any) -> dict[str, Any]:
            return CHAT

    assert take_reply(Shape.CHAT, Completion()) == take_reply(Shape.CHAT, CHAT)
    assert messages_of(take_reply(Shape.CHAT, {"role": "assistant", "content": "Hi"})) == [
        {"role": "assistant", "content": "Hi"}
    ]


def test_a_spoken_answer_is_its_words_and_its_sound() -> None:
    """Audio becomes a page of its transcript and a page of its decoded sound."""
    reply = take_reply(Shape.CHAT, chat(content=None, audio={"id": "a1", "data": "UklGRg==", "transcript": "Hi"}))
    words, sound = reply.drafts[0].parts
    assert (words.content, sound.content, sound.modality) == (b"Hi", b"RIFF", Modality.AUDIO)


def test_a_price_is_counted_in_nano_dollars() -> None:
    """Where a provider tells the price, it is kept as whole nano-dollars."""
    assert take_reply(Shape.CHAT, {**CHAT, "usage": {"cost": 0.0012}}).usage.cost == 1_200_000


@pytest.mark.parametrize("bad", ["hi", 5, b"x", object(), {"a": b"x"}])
def test_what_is_no_response_is_refused(bad: Any) -> None:
    """A response that is no JSON object is refused with the reason."""
    with pytest.raises(InputError, match="response"):
        take_reply(Shape.CHAT, bad)


odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(), max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def spoiled(draw: Any, value: Any) -> Any:
    """`value` with something in it replaced by something nobody expects."""
    if draw(st.integers(0, 4)) == 0 or not isinstance(value, (dict, list)) or not value:
        return draw(odd)
    key = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
    return (
        {**value, key: spoiled(draw, value[key])}
        if isinstance(value, dict)
        else [spoiled(draw, item) if n == key else item for n, item in enumerate(value)]
    )


@given(st.data(), st.sampled_from(Shape))
def test_no_response_is_too_odd(data: st.DataObject, shape: Shape) -> None:
    """A response with anything in any place is read or refused, and never changed."""
    response = spoiled(data.draw, ANSWERS[shape])
    before = copy.deepcopy(response)
    try:
        reply = take_reply(shape, response)
    except InputError:
        assert not isinstance(response, dict)
    else:
        assert isinstance(reply.status, Status)
    assert response == before
