"""What models say in the parts of a stream, as each provider sends them."""

from __future__ import annotations

import json
from typing import Any

Call = tuple[str, str, dict[str, Any]]  # its id, the tool, the arguments


def chat(pieces: list[str], calls: list[Call]) -> list[dict[str, Any]]:
    """Chat completions: deltas of the first choice, the arguments of calls in two pieces."""
    parts: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, *({"content": text} for text in pieces)]
    for index, (call, tool, arguments) in enumerate(calls):
        text = json.dumps(arguments)
        named = {"index": index, "id": call, "type": "function", "function": {"name": tool, "arguments": text[:3]}}
        parts += [
            {"tool_calls": [named]},
            {"tool_calls": [{"index": index, "function": {"arguments": text[3:]}}]},
        ]
    stop = "tool_calls" if calls else "stop"
    chunks = [{"id": "x", "model": "m-1", "choices": [{"index": 0, "delta": part}]} for part in parts]
    usage = {"prompt_tokens": 70, "completion_tokens": 9}
    return [
        *chunks,
        {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]},
        {"choices": [], "usage": usage},
    ]


def anthropic(pieces: list[str], calls: list[Call]) -> list[dict[str, Any]]:
    """Anthropic: a block of text and one for each call, thoughts before."""
    begun = {"type": "message", "role": "assistant", "content": [], "usage": {"input_tokens": 70, "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        ({"type": "thinking", "thinking": ""}, [{"type": "thinking_delta", "thinking": "Hm."}]),
        ({"type": "text", "text": ""}, [{"type": "text_delta", "text": text} for text in pieces]),
    ]
    for call, tool, arguments in calls:
        text = json.dumps(arguments)
        halves = [{"type": "input_json_delta", "partial_json": half} for half in (text[:3], text[3:])]
        blocks.append(({"type": "tool_use", "id": call, "name": tool, "input": {}}, halves))
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    stop = "tool_use" if calls else "end_turn"
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}})
    return [*events, {"type": "message_stop"}]


def responses(pieces: list[str], calls: list[Call]) -> list[dict[str, Any]]:
    """Responses: deltas, then the whole response in the last event."""
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "".join(pieces)}]}
    asked = [
        {"type": "function_call", "id": f"fc_{call}", "call_id": call, "name": tool, "arguments": json.dumps(arguments)}
        for call, tool, arguments in calls
    ]
    usage = {"input_tokens": 70, "output_tokens": 9}
    whole = {"object": "response", "status": "completed", "output": [*([text] if pieces else []), *asked]}
    deltas = [{"type": "response.output_text.delta", "output_index": 0, "delta": piece} for piece in pieces]
    message = {"type": "message", "role": "assistant", "content": []}
    return [
        {"type": "response.created", "response": {"object": "response", "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": message},
        *deltas,
        {"type": "response.completed", "response": {**whole, "usage": usage}},
    ]


def gemini(pieces: list[str], calls: list[Call]) -> list[dict[str, Any]]:
    """Gemini: parts of the first candidate, a thought before."""
    parts: list[dict[str, Any]] = [{"text": "Hm.", "thought": True}, *({"text": text} for text in pieces)]
    parts += [{"functionCall": {"name": tool, "args": arguments}} for _, tool, arguments in calls]
    chunks = [{"candidates": [{"content": {"role": "model", "parts": [part]}}]} for part in parts]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    return [*chunks, {"usageMetadata": {"promptTokenCount": 70, "candidatesTokenCount": 9}}]


STREAMS = {"chat": chat, "responses": responses, "anthropic": anthropic, "gemini": gemini}
