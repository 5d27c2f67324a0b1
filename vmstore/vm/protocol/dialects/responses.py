"""The shape of OpenAI's Responses: instructions beside a list of items, calls and their outputs items too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vmstore.core.page import Role
from vmstore.vm.protocol.conversation import CallPart, ChatMessage, Part, ResultPart, TextPart, words
from vmstore.vm.protocol.dialects.dialect import ParsedResponse, ToolCall, definitions, drawn, listed, taken
from vmstore.vm.protocol.escape import dumps
from vmstore.vm.protocol.memo import Memo
from vmstore.vm.protocol.picture import Picture
from vmstore.vm.protocol.tools import VM_TOOLS

SHAPE = "responses"


class Responses:
    """`instructions` beside `input`."""

    def request(self, instructions: str, turns: Sequence[ChatMessage], memo: Memo) -> dict[str, Any]:
        """`input`: messages, calls and outputs, each an item; the pictures of outputs in a user's message after."""
        system = {"instructions": instructions} if instructions else {}
        return {**system, "input": [item for turn in turns for item in drawn(memo, turn, _items)]}

    def tools(self, tools: Sequence[str] = VM_TOOLS, *, short: bool = False) -> list[Any]:
        """`tools` with their functions."""
        return [{"type": "function", **definition} for definition in definitions(tools, short=short)]

    def names(self, tools: Sequence[Any]) -> list[str]:
        """The functions' names."""
        return [str(tool.get("name")) for tool in listed(list(tools))]

    def said(self, response: Mapping[str, Any]) -> ParsedResponse:
        """The words and calls of its items."""
        items = listed(taken(response, SHAPE, "output"))
        calls = [
            ToolCall(str(item.get("call_id") or ""), str(item.get("name")), item.get("arguments", item.get("input")))
            for item in items
            if item.get("type") in ("function_call", "custom_tool_call")
        ]
        parts = [part for item in items if item.get("type") == "message" for part in listed(item.get("content"))]
        texts = [str(part.get("text") or "") for part in parts if part.get("type") == "output_text"]
        return ParsedResponse("".join(texts), tuple(calls))


def _items(turn: ChatMessage) -> list[dict[str, Any]]:
    if turn.role is Role.TOOL:
        return _outputs([part for part in turn.parts if isinstance(part, ResultPart)])
    if turn.role is Role.USER:
        return [{"role": "user", "content": _content(turn.parts)}]
    calls = [part for part in turn.parts if isinstance(part, CallPart)]
    text = words(turn.parts)
    messages = [{"role": "assistant", "content": [{"type": "output_text", "text": text}]}] if text else []
    return [*messages, *map(_call, calls)]


def _call(call: CallPart) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call.id, "name": call.tool, "arguments": dumps(call.arguments)}


def _outputs(results: list[ResultPart]) -> list[dict[str, Any]]:
    outputs = [
        {"type": "function_call_output", "call_id": result.id, "output": words(result.parts)} for result in results
    ]
    pictured = [result for result in results if any(isinstance(part, Picture) for part in result.parts)]
    shown = [part for result in pictured for part in result.parts]
    return [*outputs, {"role": "user", "content": _content(shown)}] if shown else outputs


def _content(parts: Sequence[Part]) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Picture):
            content.append({"type": "input_image", "image_url": part.url or f"data:{part.mime};base64,{part.base64}"})
        elif isinstance(part, TextPart):
            content.append({"type": "input_text", "text": part.text})
    return content
