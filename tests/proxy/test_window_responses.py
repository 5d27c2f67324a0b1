"""The memory's tools in OpenAI's Responses: one answer of all rounds, whole and in a stream, by the official client."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import openai
import pytest

import vmstore
from tests.proxy.running import RunningProxy, chat, proxied
from tests.proxy.test_window import ANSWER, FACT, MANAGED, TALK, asked
from tests.proxy.upstream import Act, RawRequest, begin_stream, end_stream, piece, send, upstream

THOUGHT = {"type": "reasoning", "id": "rs_0", "summary": []}
WORDS = "Let me look."


def message(text: str, number: int) -> dict[str, Any]:
    """An item that says a text."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": f"msg_{number}", "status": "completed", "role": "assistant", "content": [part]}


def call(tool: str, number: int) -> dict[str, Any]:
    """An item that calls a tool."""
    arguments = '{"text": "ledger"}'
    kind = {"type": "function_call", "id": f"fc_{number}", "status": "completed"}
    return {**kind, "call_id": f"c{number}", "name": tool, "arguments": arguments}


def response(output: list[dict[str, Any]], number: int) -> dict[str, Any]:
    """A response of some items."""
    about = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": "m", "status": "completed"}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": {"cached_tokens": 0}}
    return {
        **about,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {**usage, "output_tokens_details": {"reasoning_tokens": 0}},
    }


def events_of(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """A response as its events."""
    begun = {**whole, "output": [], "status": "in_progress", "usage": None}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for place, item in enumerate(whole["output"]):
        at = {"output_index": place}
        of = {**at, "item_id": item["id"]}
        empty = {**item, "content": []} if item["type"] == "message" else {**item, "arguments": ""}
        events.append({"type": "response.output_item.added", **at, "item": item if item is THOUGHT else empty})
        if item["type"] == "function_call":
            events.append({"type": "response.function_call_arguments.delta", **of, "delta": item["arguments"]})
            events.append({"type": "response.function_call_arguments.done", **of, "arguments": item["arguments"]})
        if item["type"] == "message":
            part = {**of, "content_index": 0}
            text = item["content"][0]["text"]
            events.append({"type": "response.content_part.added", **part, "part": {**item["content"][0], "text": ""}})
            events.append({"type": "response.output_text.delta", **part, "delta": text, "logprobs": []})
            events.append({"type": "response.output_text.done", **part, "text": text, "logprobs": []})
            events.append({"type": "response.content_part.done", **part, "part": item["content"][0]})
        events.append({"type": "response.output_item.done", **at, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def responding(tool: str = "find_quote", *beside: str) -> Act:
    """Asks a tool once where tools are offered, others beside it, then answers; as a stream where one is asked for."""

    def act(request: RawRequest, connection: socket.socket) -> None:
        body = json.loads(request.body)
        if not body.get("tools") or body["input"][-1].get("type") == "function_call_output":
            whole = response([message(ANSWER, 1)], 1)
        else:
            whole = response(
                [THOUGHT, message(WORDS, 0), *(call(name, n) for n, name in enumerate((tool, *beside)))], 0
            )
        if not body.get("stream"):
            return send(connection, json.dumps(whole).encode())
        begin_stream(connection)
        for event in events_of(whole):
            piece(connection, f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        return end_stream(connection)

    return act


def answered(proxy: RunningProxy, *, stream: bool, **fields: Any) -> Any:
    """The response that OpenAI's client makes of an answer; of a stream all its events are held against it."""
    client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="sk-0", max_retries=0)
    fields = {"model": "m", "input": chat(*TALK)["messages"], "store": False, **fields}
    if not stream:
        return client.responses.create(**fields)
    with client.responses.stream(**fields) as events:
        seen = list(events)
        whole = events.get_final_response()
    done = [event.item for event in seen if event.type == "response.output_item.done"]
    assert [event.sequence_number for event in seen] == list(range(len(seen)))
    assert [event.output_index for event in seen if event.type == "response.output_item.done"] == list(range(len(done)))
    assert {item.id for item in whole.output} <= {item.id for item in done}
    return whole


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_of_the_memory_s_is_answered_within_one_response(path: Path, stream: bool) -> None:
    """The client gets the messages of both rounds and no call; of what is not stored no id is sent again."""
    with upstream(responding()) as far, proxied(path, "--upstream", far.url, port=MANAGED) as proxy:
        whole = answered(proxy, stream=stream)
        assert whole.output_text == WORDS + ANSWER and whole.status == "completed"
        assert [item.type for item in whole.output] == ["message", "message"]
        assert proxy.settled(2)["rounds"] == 1
        items = asked(far)["input"]
        assert [item.get("type") for item in items[-3:]] == ["message", "function_call", "function_call_output"]
        assert not any("id" in item for item in items[-3:])
        assert FACT in json.loads(items[-1]["output"])["quotes"][0]["excerpt"] and items[-1]["call_id"] == "c0"
        sent = [asked(far, 0), asked(far, 1)]
    with vmstore.open(path) as store:
        session = store.session(store.sessions()[0].session)
        assert [session.wire.request(call=info.call) for info in session.calls()] == sent
        assert [info.component for info in session.calls()] == [None, "tool_loop"]


@pytest.mark.parametrize("stream", [False, True])
def test_beside_a_call_of_the_client_s_the_memory_s_is_left_out(path: Path, stream: bool) -> None:
    """The client answers its own, and no further round is asked."""
    own = {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}, "strict": False}
    with upstream(responding("find_quote", "read")) as far, proxied(path, "--upstream", far.url, port=MANAGED) as proxy:
        whole = answered(proxy, stream=stream, tools=[own])
        assert [item.type for item in whole.output] == ["reasoning", "message", "function_call"]
        assert whole.output[-1].name == "read" and len(far.seen) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_provider_stores_is_sent_again_whole(path: Path, stream: bool) -> None:
    """A thought goes back with its call; a stream that a later request may go on from offers no tools."""
    with upstream(responding()) as far, proxied(path, "--upstream", far.url, port=MANAGED) as proxy:
        whole = answered(proxy, stream=stream, store=True)
        assert whole.id == "resp_1" and len(far.seen) == (1 if stream else 2)
        if not stream:
            assert [item.get("id") for item in asked(far)["input"][-4:]] == ["rs_0", "msg_0", "fc_0", None]


def test_what_the_memory_cannot_manage_is_counted_and_said(path: Path) -> None:
    """Where the provider holds the history, and where there are no messages, a large request passes as it came."""
    items = chat(*TALK)["messages"]
    with upstream(responding()) as far, proxied(path, "--upstream", far.url, port=MANAGED) as proxy:
        proxy.ask({"model": "m", "input": items, "previous_response_id": "r"}, path="/v1/responses")
        assert asked(far)["input"] == items
        proxy.ask({"model": "m", "input": "x" * 10_000}, path="/v1/responses")
        figures = proxy.settled(2)
        assert (figures["managed"], figures["unmanaged"]) == (0, 2)
        assert "holds the history" in figures["problems"][0] and "no list of messages" in figures["problems"][1]
