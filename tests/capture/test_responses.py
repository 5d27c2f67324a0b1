"""What came back for a call can be asked back, equal in every field to what was handed in."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.capture.test_replies import ANSWERS
from tests.capture.test_streams import STREAMS
from tests.capture.words import request, user
from tests.erasure.found import found_in
from tests.refusals import refused
from vmstore.core.mutation import Reply
from vmstore.erasure.erase import erase
from vmstore.providers import Shape
from vmstore.store.store import memory_store, open_store

ASKED: dict[Shape, dict[str, Any]] = {
    Shape.CHAT: {"model": "m", "messages": [{"role": "user", "content": "Where?"}]},
    Shape.RESPONSES: {"model": "m", "input": "Where?"},
    Shape.ANTHROPIC: {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "Where?"}]},
    Shape.GEMINI: {"model": "g", "contents": "Where?"},
}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
TOOLS = [{"type": "function", "name": f"tool_{n}", "description": "It looks. " * 9} for n in range(20)]


def choice(message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A chat completion as a provider writes it, its empty fields included."""
    other_fields = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop", **fields}
    return {
        "id": "chatcmpl-1",
        "created": 1,
        "choices": [other_fields],
        "usage": {"total_tokens": 3},
        "service_tier": None,
    }


def bodies() -> list[tuple[Shape, dict[str, Any]]]:
    """Responses of every shape, with what a capture would rather leave out."""
    chat, anthropic, gemini = Shape.CHAT, Shape.ANTHROPIC, Shape.GEMINI
    fields = {"role": "assistant", "content": "Here.", "refusal": None, "annotations": [], "audio": None}
    asks = {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None}
    content = [{"type": "text", "text": "Here.", "citations": None}]
    tool = [{"type": "tool_use", "id": "t", "name": "look", "input": {"b": -0.0, "a": 1.0}, "caller": None}]
    anthropic_body = {"id": "m", "type": "message", "role": "assistant", "model": "c", "stop_sequence": None}
    reasoning = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": None}
    items = [reasoning, {"type": "function_call", "arguments": "{}", "name": "look", "call_id": "c1", "id": "f"}]
    return [
        *ANSWERS.items(),
        (chat, choice(fields)),
        (chat, choice(asks, finish_reason="tool_calls")),
        (chat, {"choices": [{"message": fields}, {"index": 1, "message": {"role": "assistant", "content": "There."}}]}),
        (chat, choice({"content": "no role"})),
        (chat, choice({"role": "assistant", "content": ""})),
        (chat, choice({"role": "assistant", "content": [], "tool_calls": []})),
        (chat, {"choices": []}),
        (chat, {"choices": None, "error": {"message": "bad", "code": None}}),
        (chat, choice({"role": "assistant", "content": "x", "\0t": 0})),
        (chat, {**choice(fields), "\0m": [0], "x": {"\0c": 1, "\0\0k": None}}),
        (chat, {"role": "assistant", "content": "Here.", "refusal": None, "tool_calls": None}),
        (chat, choice({"role": "assistant", "content": "half \ud83d an emoji"})),
        (anthropic, {**anthropic_body, "content": content, "stop_reason": "end_turn", "container": None}),
        (anthropic, {**anthropic_body, "content": tool, "stop_reason": "tool_use"}),
        (anthropic, {**anthropic_body, "content": [], "stop_reason": "end_turn"}),
        (Shape.RESPONSES, {"object": "response", "status": "completed", "output": items, "error": None}),
        (Shape.RESPONSES, {"object": "response", "output": [], "incomplete_details": None, "tools": TOOLS}),
        (gemini, {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "avgLogprobs": -0.0}], "usageMetadata": {}}),
        (gemini, {"candidates": [{"content": {"parts": []}, "index": 0}], "promptFeedback": None}),
    ]


@pytest.mark.parametrize(("shape", "body"), bodies())
def test_a_response_comes_back_equal_in_every_field(shape: Shape, body: dict[str, Any], store_path: Path) -> None:
    """Null fields, empty lists, indexes, the order of keys and signs of zeros come back, in a new process too."""
    with open_store(store_path) as store:
        store.record("s", ASKED[shape], body)
        assert json.dumps(store.session("s").wire.response(call=1).body) == json.dumps(body)
    with open_store(store_path) as store:
        store.admin.rebuild()
        response = store.session("s").wire.response(call=1)
        assert (response.fidelity, response.rule, json.dumps(response.body)) == ("recorded", None, json.dumps(body))
        (row,) = store.query("CALLS response IN SESSION s").to_dicts()
        assert json.dumps(row["response"]) == json.dumps(body)


@pytest.mark.parametrize("shape", list(Shape))
def test_the_parts_of_a_stream_are_said_to_be_put_together(shape: Shape) -> None:
    """A stream's response is the body its parts add up to, and never said to be recorded."""
    with memory_store() as store:
        store.record("s", ASKED[shape], STREAMS[shape])
        response = store.session("s").wire.response(call=1)
        assert (response.fidelity, response.rule) == ("derived", "stream")
        assert "Let me look." in json.dumps(response.body)
        store.record("t", ASKED[shape], [*STREAMS[shape][:4], ConnectionError("reset")])
        response = store.session("t").wire.response(call=1)
        assert (response.status, response.error, response.exception) == ("failed", "reset", "ConnectionError")
        assert response.rule == "stream"


class RateError(Exception):
    """As an SDK's."""

    status_code = 429


def test_an_exception_comes_back_as_its_class_its_words_and_its_status() -> None:
    """What was raised is told; where nothing came there is no body, and an open call or a gap is refused."""
    with memory_store() as store:
        store.record("s", ASKED[Shape.CHAT], RateError("slow down"))
        store.record("s", ASKED[Shape.CHAT], None)
        store.admin.record_gap("s", "it was full")
        session = store.session("s")
        raised, none = session.wire.response(call=1), session.wire.response(call=2)
        assert (raised.status, raised.error, raised.exception, raised.status_code, raised.body) == (
            ("failed", "slow down", "RateError", 429, None)
        )
        assert (none.status, none.body, none.error, none.fidelity) == ("aborted", None, None, "recorded")
        with refused("no-response", vmstore.UnknownError):
            session.wire.response(call=3)
        with refused("no-response", vmstore.UnknownError):
            session.fork("f", call=1).wire.response(call=1)


def test_what_a_response_repeats_is_written_once() -> None:
    """Tools echoed by a hundred responses are one field in the log, and stand in each response."""
    body = {"object": "response", "tools": TOOLS, "output": []}
    with memory_store() as store:
        for n in range(100):
            store.record("s", ASKED[Shape.RESPONSES], {**body, "id": f"r{n}"})
        session = store.session("s")
        assert all(session.wire.response(call=n + 1).body == {**body, "id": f"r{n}"} for n in (0, 50, 99))
        commits = store.admin.log.tail(0, 1000)
        size = sum(len(cell.content) for commit in commits for cell in commit.cells)
        assert size < 3 * len(json.dumps(TOOLS)) + 100 * 200


def test_a_reply_written_by_an_earlier_version_is_said_to_be_derived() -> None:
    """A reply without a body answers with its messages and what stands beside them, and says so."""
    with memory_store() as store:
        store.record("s", ASKED[Shape.CHAT], choice({"role": "assistant", "content": "Here."}))
        with store.session("s").batch() as batch:
            beside = {"stop": "stop", "response": {"id": "chatcmpl-0"}}
            batch.add(Reply(1, 1, 1, aside=batch.cell(json.dumps(beside).encode())))
        response = store.session("s").wire.response(call=1)
        assert (response.fidelity, response.rule, response.body, response.stop) == ("derived", "messages", None, "stop")
        assert response.messages == [{"role": "assistant", "content": "Here."}]
        assert response.beside == {"id": "chatcmpl-0"}


@pytest.mark.parametrize("named", ["sk-proj-" + "Zb4" * 16, "password = hunter2hunter2"])
def test_a_masking_session_masks_every_field_of_a_response(named: str) -> None:
    """A secret in an answer, a further choice, a token or a field stands nowhere in the log; the body has it masked."""
    body = choice({"role": "assistant", "content": f"It is {named}.", "note": named})
    body["choices"].append({"index": 1, "message": {"role": "assistant", "content": named}, "logprobs": {"x": [named]}})
    body["echo"] = {"password": "hunter2hunter2", "said": named}
    with memory_store() as store:
        store.record("s", ASKED[Shape.CHAT], body, redaction="mask")
        secret = named.rpartition(" ")[2].encode()
        contents = [cell.content for commit in store.admin.log.tail(0, 99) for cell in commit.cells]
        assert not [content for content in contents if secret in content]
        actual_body = store.session("s").wire.response(call=1).body
        assert "[" in actual_body["choices"][0]["message"]["content"]
        assert actual_body.keys() == body.keys() and actual_body["choices"][1]["index"] == 1
        with pytest.raises(vmstore.RefusedError):
            store.record("t", ASKED[Shape.CHAT], body, redaction="refuse")


def test_an_erased_answer_is_nowhere_in_its_response(store_path: Path) -> None:
    """Erasing an answer's page takes the body, further choices and token lists that repeat its words."""
    body = choice(
        {"role": "assistant", "content": "The word is xylophone."}, logprobs={"content": [{"token": "xylophone"}]}
    )
    with open_store(store_path) as store:
        store.record("s", ASKED[Shape.CHAT], body)
        (page,) = (page.page for page in store.session("s").pages(role="assistant"))
        erase(store, page=page, in_session="s")
        assert not found_in(store_path, [b"xylophone"])
        response = store.session("s").wire.response(call=1)
        assert response.body is None and response.erased is not None
        assert "xylophone" not in json.dumps([response.messages, response.error])
        assert store.verify().ok


def test_a_response_is_awaited() -> None:
    """The async twin answers what the session answers."""

    async def asked() -> Any:
        async with vmstore.aio.memory_store() as store:
            await store.record("s", ASKED[Shape.CHAT], choice({"role": "assistant", "content": "Here."}))
            session = await store.session("s")
            return await session.wire.response(call=1)

    assert asyncio.run(asked()).body == choice({"role": "assistant", "content": "Here."})


# ---- the order of keys


def test_the_order_of_keys_comes_back_and_a_change_of_it_voids_the_cache() -> None:
    """Messages, calls and tool inputs whose keys moved come back as sent; `invalidated` counts what that voids."""
    talk: list[Any] = request([user("one"), user("two")])["messages"]
    moved = [{"content": "one", "role": "user"}, talk[1]]
    asks = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    other = {"role": "assistant", "content": None, "tool_calls": [dict(reversed(CALL.items()))]}
    tool = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {"b": 0.0, "a": 1}}]}
    turned = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1, "b": -0.0}}],
    }
    with memory_store() as store:
        for messages in (talk, moved, [*moved, asks], [*moved, other], [*moved, other, tool], [*moved, other, turned]):
            sent = {"model": "m", "messages": messages}
            written = store.record("s", sent)
            assert json.dumps(store.session("s").wire.request(call=written.call)) == json.dumps(sent)
        calls = store.session("s").calls()
        assert [bool(call.invalidated) for call in calls] == [False, True, False, True, False, True]
        rows = store.query("CALLS invalidated IN SESSION s").to_dicts()
        assert [row["invalidated"] for row in rows] == [call.invalidated for call in calls]
