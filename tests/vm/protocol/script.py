"""A model that follows a script."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

LABEL = re.compile(r"^\[[^]\s]+\] ")  # of a page, before what it says


class Script:
    """A model that says what it is told to, in any provider's shape, and keeps each request it was sent.

    A step is a text to answer with, a list of `(tool, arguments)` to call, or a function from the
    request to either.
    """

    def __init__(self, shape: str, *steps: Any) -> None:
        self._shape = shape
        self._steps = list(steps)
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(json.loads(json.dumps(request)))
        step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        step = step(request) if callable(step) else step
        text, calls = (step, []) if isinstance(step, str) else ("", step)
        return WRITES[self._shape](text, [(f"call_{len(self.requests)}_{n}", *call) for n, call in enumerate(calls)])

    def tool_answers(self) -> list[dict[str, Any]]:
        """What the tools answered in the last request, in order."""
        return [json.loads(LABEL.sub("", text)) for text in READS[self._shape](self.requests[-1])]


Calls = list[tuple[str, str, Any]]


def _chat(text: str, calls: Calls) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None}
    if calls:
        message["tool_calls"] = [
            {
                "id": call,
                "type": "function",
                "function": {
                    "name": tool,
                    "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
                },
            }
            for call, tool, arguments in calls
        ]
    return {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def _written(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _anthropic(text: str, calls: Calls) -> dict[str, Any]:
    records = [{"type": "text", "text": text}] if text else []
    asked = [{"type": "tool_use", "id": call, "name": tool, "input": arguments} for call, tool, arguments in calls]
    return {"role": "assistant", "content": [*records, *asked], "stop_reason": "end_turn"}


def _responses(text: str, calls: Calls) -> dict[str, Any]:
    records = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]
    asked = [
        {"type": "function_call", "call_id": call, "name": tool, "arguments": _written(arguments)}
        for call, tool, arguments in calls
    ]
    return {"object": "response", "status": "completed", "output": [*(records if text else []), *asked]}


def _gemini(text: str, calls: Calls) -> dict[str, Any]:
    records = [{"text": text}] if text else []
    asked = [{"functionCall": {"name": tool, "args": arguments}} for _, tool, arguments in calls]
    return {"candidates": [{"content": {"role": "model", "parts": [*records, *asked]}, "finishReason": "STOP"}]}


def _chat_told(request: Mapping[str, Any]) -> list[str]:
    messages = request["messages"]
    last = max(n for n, message in enumerate(messages) if message["role"] == "assistant")
    return [message["content"] for message in messages[last:] if message["role"] == "tool"]


def _responses_told(request: Mapping[str, Any]) -> list[str]:
    outputs = [item for item in request["input"] if item.get("type") == "function_call_output"]
    last = outputs[-1]["call_id"].rpartition("_")[0]  # of one request
    return [item["output"] for item in outputs if item["call_id"].rpartition("_")[0] == last]


def _anthropic_told(request: Mapping[str, Any]) -> list[str]:
    blocks = [block for block in request["messages"][-1]["content"] if block["type"] == "tool_result"]
    return [block["content"][0]["text"] for block in blocks]


def _gemini_told(request: Mapping[str, Any]) -> list[str]:
    contents = [c for c in request["contents"] if any("functionResponse" in part for part in c["parts"])]
    return [part["functionResponse"]["response"]["result"] for part in contents[-1]["parts"]]


WRITES: dict[str, Callable[[str, Calls], dict[str, Any]]] = {
    "chat": _chat,
    "responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
}
READS: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "chat": _chat_told,
    "responses": _responses_told,
    "anthropic": _anthropic_told,
    "gemini": _gemini_told,
}
