"""Streams in the providers' public formats, whole and cut anywhere."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.core.draft import ReplyDraft, TokenUsage
from vmstore.core.page import Status
from vmstore.errors import InputError
from vmstore.providers import Shape, give_message, take_reply


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "model": "gpt-x",
        "choices": [choice],
        "usage": None,
    }


def call(index: int, **function: str) -> dict[str, Any]:
    named = {"id": f"c{index}", "type": "function"} if "name" in function else {}
    return {"tool_calls": [{"index": index, **named, "function": function}]}


CHAT = [
    chunk({"role": "assistant", "content": "", "refusal": None}),
    chunk({"reasoning_content": "h"}),
    chunk({"reasoning_content": "m"}),
    chunk({"content": "Let me "}),
    chunk({"content": "look."}),
    chunk(call(0, name="look", arguments="")),
    chunk(call(0, arguments='{"at":')),
    chunk(call(0, arguments=' "a"}')),
    chunk(call(1, name="listen", arguments="{}")),
    chunk({}, "tool_calls"),
    {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "model": "gpt-x",
        "choices": [],
        "usage": {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}},
    },
]
CHAT_SAID = {
    "role": "assistant",
    "content": "Let me look.",
    "reasoning_content": "hm",
    "tool_calls": [
        {"id": "c0", "type": "function", "function": {"name": "look", "arguments": '{"at": "a"}'}},
        {"id": "c1", "type": "function", "function": {"name": "listen", "arguments": "{}"}},
    ],
}


def delta(index: int, kind: str, **text: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **text}}


def begin(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


ANTHROPIC = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-x",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 2, "cache_read_input_tokens": 8, "output_tokens": 1},
        },
    },
    {"type": "ping"},
    begin(0, type="thinking", thinking="", signature=""),
    delta(0, "thinking_delta", thinking="h"),
    delta(0, "thinking_delta", thinking="m"),
    delta(0, "signature_delta", signature="sig"),
    {"type": "content_block_stop", "index": 0},
    begin(1, type="text", text=""),
    delta(1, "text_delta", text="Let me "),
    delta(1, "text_delta", text="look."),
    {"type": "content_block_stop", "index": 1},
    begin(2, type="tool_use", id="c1", name="look", input={}),
    delta(2, "input_json_delta", partial_json=""),
    delta(2, "input_json_delta", partial_json='{"at":'),
    delta(2, "input_json_delta", partial_json=' "a"}'),
    {"type": "content_block_stop", "index": 2},
    begin(3, type="tool_use", id="c2", name="listen", input={}),
    {"type": "content_block_stop", "index": 3},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 3},
    },
    {"type": "message_stop"},
]
ANTHROPIC_SAID = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "a"}},
        {"type": "tool_use", "id": "c2", "name": "listen", "input": {}},
    ],
}

ITEMS = [
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
    },
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": '{"at": "a"}'},
]
BEGUN = {
    "id": "resp_1",
    "object": "response",
    "status": "in_progress",
    "model": "gpt-x",
    "output": [],
    "usage": None,
}
USAGE = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 8}, "output_tokens": 3}


def event(kind: str, index: int | None = None, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **({} if index is None else {"output_index": index}), **fields}


RESPONSES = [
    event("created", response=BEGUN),
    event("in_progress", response=BEGUN),
    event("output_item.added", 0, item={"type": "reasoning", "id": "rs_1", "summary": []}),
    event("reasoning_summary_text.delta", 0, summary_index=0, delta="h"),
    event("reasoning_summary_text.delta", 0, summary_index=0, delta="m"),
    event("output_item.done", 0, item=ITEMS[0]),
    event("output_item.added", 1, item={**ITEMS[1], "status": "in_progress", "content": []}),
    event("content_part.added", 1, content_index=0, part={"type": "output_text", "text": ""}),
    event("output_text.delta", 1, content_index=0, delta="Let me "),
    event("output_text.delta", 1, content_index=0, delta="look."),
    event("output_text.done", 1, content_index=0, text="Let me look."),
    event("output_item.done", 1, item=ITEMS[1]),
    event("output_item.added", 2, item={**ITEMS[2], "arguments": ""}),
    event("function_call_arguments.delta", 2, delta='{"at":'),
    event("function_call_arguments.delta", 2, delta=' "a"}'),
    event("function_call_arguments.done", 2, arguments='{"at": "a"}'),
    event("output_item.done", 2, item=ITEMS[2]),
    event("completed", response={**BEGUN, "status": "completed", "output": ITEMS, "usage": USAGE}),
]


def piece(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "candidates": [{"content": {"parts": list(parts), "role": "model"}, "index": 0, **more}],
        "usageMetadata": {"promptTokenCount": 10, "cachedContentTokenCount": 8, "candidatesTokenCount": 3},
        "modelVersion": "gemini-x",
    }


LOOK = {"functionCall": {"name": "look", "args": {"at": "a"}}, "thoughtSignature": "sig"}
GEMINI = [
    piece({"text": "h", "thought": True}),
    piece({"text": "m", "thought": True}),
    piece({"text": "Let me "}),
    piece({"text": "look."}),
    piece(LOOK, finishReason="STOP"),
]
GEMINI_SAID = {"parts": [{"text": "hm", "thought": True}, {"text": "Let me look."}, LOOK], "role": "model"}

STREAMS = {Shape.CHAT: CHAT, Shape.RESPONSES: RESPONSES, Shape.ANTHROPIC: ANTHROPIC, Shape.GEMINI: GEMINI}
SAID: dict[Shape, list[Any]] = {
    Shape.CHAT: [CHAT_SAID],
    Shape.RESPONSES: ITEMS,
    Shape.ANTHROPIC: [ANTHROPIC_SAID],
    Shape.GEMINI: [GEMINI_SAID],
}
ENDS = {Shape.CHAT: 2, Shape.RESPONSES: 1, Shape.ANTHROPIC: 2, Shape.GEMINI: 1}  # parts from the end mark on


def messages_of(reply: ReplyDraft) -> list[Any]:
    return [give_message(d.skeleton, [part.content for part in d.parts]) for d in reply.drafts]


@pytest.mark.parametrize("shape", Shape)
def test_a_stream_adds_up_to_its_answer(shape: Shape) -> None:
    """The parts of a stream are one answer, as if it had come at once, and stay as they were."""
    parts = copy.deepcopy(STREAMS[shape])
    reply = take_reply(shape, parts)
    assert messages_of(reply) == SAID[shape]
    assert (reply.status, reply.final) == (Status.OK, False)
    assert reply.usage == TokenUsage(tokens_in=10, tokens_cached=8, tokens_out=3)
    assert parts == STREAMS[shape]


@pytest.mark.parametrize("other_shape", Shape)
@pytest.mark.parametrize("shape", Shape)
def test_a_stream_tells_its_own_shape(shape: Shape, other_shape: Shape) -> None:
    """A stream is read by what its parts are, whatever the request was taken for."""
    assert take_reply(other_shape, STREAMS[shape]) == take_reply(shape, STREAMS[shape])


@pytest.mark.parametrize("shape", Shape)
def test_a_stream_cut_anywhere_is_aborted(shape: Shape) -> None:
    """Wherever a stream breaks before its end mark it is aborted and keeps what had arrived."""
    parts = STREAMS[shape]
    lengths = []
    for cut in range(len(parts) - ENDS[shape] + 1):
        reply = take_reply(shape, parts[:cut])
        assert (reply.status, reply.final) == (Status.ABORTED, False)
        lengths.append(sum(len(part.content) for draft in reply.drafts for part in draft.parts))
    assert lengths[0] == 0
    assert lengths[-1] >= len("hmLet me look.")


def test_a_tool_input_cut_short_keeps_its_text() -> None:
    """A tool's half input is kept as the text it got to."""
    (message,) = messages_of(take_reply(Shape.ANTHROPIC, ANTHROPIC[:14]))
    assert message["content"][-1]["input"] == '{"at":'


def test_deltas_alone_tell_the_items() -> None:
    """Without the last event, items not yet done are what their deltas add up to."""
    parts = [part for part in RESPONSES[:-1] if not part["type"].endswith(".done")]
    reply = take_reply(Shape.RESPONSES, parts)
    texts = [part.content for draft in reply.drafts[:2] for part in draft.parts]
    assert texts == [b"hm", b"Let me look."]
    assert reply.drafts[2].parts[0].call_id == "c1"
    assert messages_of(reply)[2] == ITEMS[2]


@pytest.mark.parametrize("shape", Shape)
def test_a_stream_that_broke_tells_why(shape: Shape) -> None:
    """A stream whose last part is an exception failed with its text, and keeps what had arrived."""
    reply = take_reply(shape, [*STREAMS[shape][:4], ConnectionError("reset")])
    assert (reply.status, reply.error) == (Status.FAILED, "reset")
    assert reply.drafts
    interrupted = take_reply(shape, [*STREAMS[shape][:4], KeyboardInterrupt()])
    assert interrupted.status is Status.ABORTED


@pytest.mark.parametrize(
    ("shape", "part"),
    [
        (Shape.CHAT, {"error": {"message": "busy", "code": 529}, "choices": []}),
        (Shape.ANTHROPIC, {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
        (Shape.RESPONSES, {"type": "error", "message": "busy", "code": "x"}),
        (Shape.GEMINI, {"error": {"code": 503, "message": "busy"}}),
    ],
)
def test_an_error_inside_a_stream_is_a_failure(shape: Shape, part: dict[str, Any]) -> None:
    """An error the provider sends in the middle fails the call with its text."""
    reply = take_reply(shape, [*STREAMS[shape][:4], part])
    assert (reply.status, reply.error) == (Status.FAILED, "busy")


def test_parallel_calls_under_one_index_stay_apart() -> None:
    """Providers that number no calls, or all of them 0, still yield one call for each id."""
    pieces = [{"id": f"c{n}", "index": 0, "function": {"name": "look", "arguments": "{}"}} for n in range(2)]
    bare = [{k: v for k, v in p.items() if k != "index"} for p in pieces]
    for calls in (pieces, bare):
        parts = [*(chunk({"tool_calls": [p]}) for p in calls), chunk({}, "tool_calls")]
        (message,) = messages_of(take_reply(Shape.CHAT, parts))
        assert [c["id"] for c in message["tool_calls"]] == ["c0", "c1"]


def test_a_name_said_twice_is_one_name() -> None:
    """A provider that repeats id and name in each piece does not double them."""
    piece_ = {"index": 0, "id": "c0", "type": "function", "function": {"name": "look", "arguments": "1"}}
    (message,) = messages_of(take_reply(Shape.CHAT, [chunk({"tool_calls": [piece_]}), chunk({"tool_calls": [piece_]})]))
    assert message["tool_calls"] == [{"id": "c0", "type": "function", "function": {"name": "look", "arguments": "11"}}]


@pytest.mark.parametrize("bad", [["data: {}"], [None], [{"choices": []}, b"x"]])
def test_what_is_no_part_is_refused(bad: list[Any]) -> None:
    """A stream part that is no object is refused with its number."""
    with pytest.raises(InputError, match="stream part"):
        take_reply(Shape.CHAT, bad)


odd = st.none() | st.integers() | st.text(max_size=2) | st.just([]) | st.just({}) | st.just([{}]) | st.just({"a": [1]})


@given(st.data(), st.sampled_from(Shape))
def test_no_stream_is_too_odd(data: st.DataObject, shape: Shape) -> None:
    """A stream with parts out of order, missing, or with anything in any place is still read."""
    parts = data.draw(st.lists(st.sampled_from(STREAMS[shape]), max_size=8))
    for n, part in enumerate(parts):
        if data.draw(st.booleans()):
            spoiled = copy.deepcopy(part)
            place = spoiled
            while True:
                key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
                if isinstance(place[key], (dict, list)) and place[key] and data.draw(st.booleans()):
                    place = place[key]
                    continue
                place[key] = data.draw(odd)
                break
            parts[n] = spoiled
    before = copy.deepcopy(parts)
    assert isinstance(take_reply(shape, parts).status, Status)
    assert parts == before
