"""The shape of chat completions, which most endpoints understand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vmstore.core.page import Role
from vmstore.vm.protocol.conversation import CallPart, ChatMessage, Part, ResultPart, TextPart, words
from vmstore.vm.protocol.dialects.dialect import ParsedResponse, ToolCall, all_drawn, definitions, listed, taken
from vmstore.vm.protocol.escape import dumps
from vmstore.vm.protocol.memo import Memo
from vmstore.vm.protocol.picture import Picture
from vmstore.vm.protocol.tools import VM_TOOLS

SHAPE = "chat"


class Chat:
    """Messages with roles; `instructing` is the role of what instructs: endpoints of old know only `system`."""

    def __init__(self, instructing: str = "developer") -> None:
        self._instructing = instructing

    def request(self, instructions: str, turns: Sequence[ChatMessage], memo: Memo) -> dict[str, Any]:
        """`messages`: results as `tool` messages right after the calls, their pictures in a user's message after."""
        system = {"role": self._instructing, "content": instructions}
        head = [memo.of(("head", self._instructing, instructions), lambda: system)] if instructions else []
        return {"messages": head + [message for some in all_drawn(memo, turns, _messages) for message in some]}

    def tools(self, tools: Sequence[str] = VM_TOOLS, *, short: bool = False) -> list[Any]:
        """`tools` with their functions."""
        return [{"type": "function", "function": definition} for definition in definitions(tools, short=short)]

    def names(self, tools: Sequence[Any]) -> list[str]:
        """The functions' names."""
        return [str((tool.get("function") or tool.get("custom") or tool).get("name")) for tool in listed(list(tools))]

    def said(self, response: Mapping[str, Any]) -> ParsedResponse:
        """The first choice's words and calls."""
        message = taken(response, SHAPE, "choices", 0, "message")
        if not isinstance(message, Mapping):
            return ParsedResponse("", ())
        calls = map(_asked, listed(message.get("tool_calls")))
        content = message.get("content")
        texts = [content] if isinstance(content, str) else [str(part.get("text") or "") for part in listed(content)]
        return ParsedResponse("".join(texts), tuple(calls))


def _asked(call: Mapping[str, Any]) -> ToolCall:
    asked = call.get("function") or call.get("custom") or {}
    return ToolCall(str(call.get("id") or ""), str(asked.get("name")), asked.get("arguments", asked.get("input")))


def _messages(turn: ChatMessage) -> list[dict[str, Any]]:
    if turn.role is Role.TOOL:
        return _results([part for part in turn.parts if isinstance(part, ResultPart)])
    if turn.role is Role.USER:
        return [{"role": "user", "content": _content(turn.parts)}]
    calls = [part for part in turn.parts if isinstance(part, CallPart)]
    message: dict[str, Any] = {"role": "assistant", "content": words(turn.parts) or None}
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": dumps(call.arguments)}}
            for call in calls
        ]
    return [message]


def _results(results: list[ResultPart]) -> list[dict[str, Any]]:
    messages = [{"role": "tool", "tool_call_id": result.id, "content": words(result.parts)} for result in results]
    # No tool message can hold a picture.
    shown = [part for result in results if _has_picture(result.parts) for part in result.parts]
    return [*messages, {"role": "user", "content": _content(shown)}] if shown else messages


def _has_picture(parts: Sequence[Part]) -> bool:
    return any(isinstance(part, Picture) for part in parts)


def _content(parts: Sequence[Part]) -> Any:
    if not _has_picture(parts):
        return words(parts)
    content: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Picture):
            url = part.url or f"data:{part.mime};base64,{part.base64}"
            content.append({"type": "image_url", "image_url": {"url": url}})
        elif isinstance(part, TextPart):
            content.append({"type": "text", "text": part.text})
    return content
