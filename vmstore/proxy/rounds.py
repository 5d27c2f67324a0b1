"""The rounds of the memory's tools: reads what a model asked of them, answers, and makes the next request of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vmstore.errors import InputError, VmstoreError
from vmstore.providers import Shape, assembled, shape_of, shape_of_body
from vmstore.providers.request import MESSAGES
from vmstore.proxy.window import DIALECTS, encoded
from vmstore.store.recall.envelopes import recalled_json, topic_json
from vmstore.store.session import Session
from vmstore.vm.protocol.dialects.dialect import ToolCall
from vmstore.vm.protocol.escape import dumps
from vmstore.vm.protocol.loop import CALLS_MAX, NO_ROUNDS
from vmstore.vm.protocol.messages import dialect
from vmstore.vm.protocol.tool_results import Budget, recall_result, refusal
from vmstore.vm.protocol.tools import TOPIC_TOOLS, arguments_of

Json = dict[str, Any]


def next_request(session: Session, sent: Json, answer: Any, tools: Sequence[str], left: int) -> bytes | None:
    """The request that follows an answer: the same, with what the model asked and what the memory answered.

    None where it asked nothing of the memory, or something of others too, which are the client's to answer.
    `left` are the rounds that there are after this one; in the round after the last nothing is answered but that.
    """
    shape = shape_of(sent)
    body = _whole(shape, answer)
    calls = [] if body is None else list(dialect(DIALECTS[shape]).said(body).calls)
    if body is None or not calls or any(call.tool not in tools for call in calls) or left < -1:
        return None
    answers = [dumps(_answer(session, call, place, left)) for place, call in enumerate(calls)]
    key = MESSAGES[shape]
    return encoded({**sent, key: [*sent[key], *_said(sent, body, calls, answers)]})


def _whole(shape: Shape, answer: Any) -> Json | None:
    """The body of an answer, put together where it came as a stream; None where it broke or is a refusal."""
    if isinstance(answer, list):
        if any(not isinstance(part, dict) for part in answer):
            return None
        _, body, ended = assembled(shape, answer)
        return body if ended else None
    return answer if isinstance(answer, dict) and shape_of_body(answer) is not None else None


def _answer(session: Session, call: ToolCall, place: int, left: int) -> Json:
    """The memory's answer to one call of a tool."""
    budget = Budget(rounds=max(left, 0), faults=0, fault_tokens=0)  # nothing is loaded here, it is told
    if left < 0:
        return refusal("no_rounds_left", NO_ROUNDS, budget)
    if place >= CALLS_MAX:
        return refusal("too_many_calls", f"only {CALLS_MAX} calls are answered at once; ask again, for less", budget)
    try:
        given = arguments_of(call.tool, call.arguments)
        if call.tool in TOPIC_TOOLS:
            return recall_result(topic_json(session, call.tool, given), budget)
        return recall_result(recalled_json(session.memory, call.tool, given), budget)
    except InputError as error:
        return refusal("bad_arguments", str(error), budget)
    except VmstoreError as error:
        return refusal("denied", str(error), budget)


def _said(sent: Json, body: Json, calls: Sequence[ToolCall], answers: Sequence[str]) -> list[Json]:
    """The messages that say what was asked and answered, for the request after the one that was sent."""
    shape = shape_of(sent)
    if shape is Shape.ANTHROPIC:
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": text}
            for call, text in zip(calls, answers, strict=True)
        ]
        return [{"role": "assistant", "content": body["content"]}, {"role": "user", "content": results}]
    if shape is Shape.GEMINI:
        content = body["candidates"][0]["content"]
        parts = [
            {
                "functionResponse": {
                    **({"id": call.id} if call.id else {}),
                    "name": call.tool,
                    "response": json.loads(text),
                }
            }
            for call, text in zip(calls, answers, strict=True)
        ]
        return [{"role": "model", **content}, {"role": "user", "parts": parts}]
    if shape is Shape.RESPONSES:
        results = [
            {"type": "function_call_output", "call_id": call.id, "output": text}
            for call, text in zip(calls, answers, strict=True)
        ]
        return [*_again(sent, body["output"]), *results]
    message: Mapping[str, Any] = body["choices"][0]["message"]
    asked = {key: value for key, value in message.items() if value is not None or key == "content"}
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": text} for call, text in zip(calls, answers, strict=True)
    ]
    return [{"role": "assistant", "content": None, **asked}, *results]


def _again(sent: Json, output: Sequence[Json]) -> list[Json]:
    """The items of an answer as they are sent again; the provider knows no ids of items that it was not to store."""
    if sent.get("store") is not False:
        return list(output)
    items = [item for item in output if item.get("type") != "reasoning" or item.get("encrypted_content")]
    return [{key: value for key, value in item.items() if key != "id"} for item in items]
