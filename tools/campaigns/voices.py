"""How four providers answer: a text and calls in a body, or in the parts of a stream, with what the request took."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
Call = tuple[str, Json]  # a tool, its arguments
PIECE = 17  # characters of a text that come at once


def tokens_of(body: bytes) -> int:
    """The tokens of a request as a provider receives it: a quarter of its characters, rounded up."""
    return -(-len(json.dumps(json.loads(body), ensure_ascii=False)) // 4)


def _pieces(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def _chat(text: str, calls: list[Call], tokens: int) -> Json:
    message: Json = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for n, (name, arguments) in enumerate(calls)
        ]
    usage = {"prompt_tokens": tokens, "completion_tokens": 12}
    finish = "tool_calls" if calls else "stop"
    return {"id": "r", "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}


def _chat_parts(whole: Json) -> list[Json]:
    (choice,), message = whole["choices"], whole["choices"][0]["message"]
    deltas: list[Json] = [{"content": piece} for piece in _pieces(message["content"] or "")]
    for index, call in enumerate(message.get("tool_calls", ())):
        arguments = call["function"]["arguments"]
        deltas.append(
            {"tool_calls": [{"index": index, **call, "function": {**call["function"], "arguments": arguments[:3]}}]}
        )
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": arguments[3:]}}]})
    last = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    parts = [*({"index": 0, "delta": delta} for delta in deltas), last]
    return [*({"id": "r", "choices": [part]} for part in parts), {"choices": [], "usage": whole["usage"]}]


def _anthropic(text: str, calls: list[Call], tokens: int) -> Json:
    records = [{"type": "text", "text": text}] if text else []
    asked = [
        {"type": "tool_use", "id": f"c{n}", "name": name, "input": arguments}
        for n, (name, arguments) in enumerate(calls)
    ]
    finish, usage = "tool_use" if calls else "end_turn", {"input_tokens": tokens, "output_tokens": 12}
    return {
        "type": "message",
        "role": "assistant",
        "content": [*records, *asked],
        "stop_reason": finish,
        "usage": usage,
    }


def _anthropic_parts(whole: Json) -> list[Json]:
    parts: list[Json] = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty, deltas = {"text": ""}, [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        else:
            text = json.dumps(block["input"])
            empty = {"input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": half} for half in (text[:3], text[3:])]
        parts.append({"type": "content_block_start", "index": index, "content_block": {**block, **empty}})
        parts += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        parts.append({"type": "content_block_stop", "index": index})
    ended = {"type": "message_delta", "delta": {"stop_reason": whole["stop_reason"]}, "usage": {"output_tokens": 12}}
    return [*parts, ended, {"type": "message_stop"}]


def _gemini(text: str, calls: list[Call], tokens: int) -> Json:
    records = [{"text": text}] if text else []
    asked = [{"functionCall": {"name": name, "args": arguments}} for name, arguments in calls]
    usage = {"promptTokenCount": tokens, "candidatesTokenCount": 12}
    content = {"role": "model", "parts": [*records, *asked]}
    return {"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage}


def _gemini_parts(whole: Json) -> list[Json]:
    other_parts = whole["candidates"][0]["content"]["parts"]
    parts = [{"candidates": [{"content": {"role": "model", "parts": [part]}}]} for part in other_parts]
    ended = {"content": {"role": "model", "parts": []}, "finishReason": "STOP"}
    return [*parts, {"candidates": [ended], "usageMetadata": whole["usageMetadata"]}]


def _responses(text: str, calls: list[Call], tokens: int) -> Json:
    content = [{"type": "output_text", "text": text}]
    records = [{"type": "message", "role": "assistant", "content": content}] if text else []
    asked = [
        {"type": "function_call", "id": f"f{n}", "call_id": f"c{n}", "name": name, "arguments": json.dumps(arguments)}
        for n, (name, arguments) in enumerate(calls)
    ]
    usage = {"input_tokens": tokens, "output_tokens": 12}
    return {"object": "response", "status": "completed", "output": [*records, *asked], "usage": usage}


def _responses_parts(whole: Json) -> list[Json]:
    text = "".join(record["content"][0]["text"] for record in whole["output"] if record["type"] == "message")
    begun = {"object": "response", "status": "in_progress", "output": []}
    deltas = [{"type": "response.output_text.delta", "output_index": 0, "delta": piece} for piece in _pieces(text)]
    return [{"type": "response.created", "response": begun}, *deltas, {"type": "response.completed", "response": whole}]


WHOLE = {"chat": _chat, "anthropic": _anthropic, "gemini": _gemini, "responses": _responses}
PARTS = {
    "chat": _chat_parts,
    "anthropic": _anthropic_parts,
    "gemini": _gemini_parts,
    "responses": _responses_parts,
}
