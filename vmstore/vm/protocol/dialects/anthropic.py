"""The shape of Anthropic's messages: roles alternate, results stand first in the message after the calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vmstore.core.page import Role
from vmstore.vm.protocol.conversation import CallPart, ChatMessage, Part, TextPart, merged
from vmstore.vm.protocol.dialects.dialect import ParsedResponse, ToolCall, begun, definitions, drawn, listed, taken
from vmstore.vm.protocol.escape import harmless
from vmstore.vm.protocol.memo import Memo
from vmstore.vm.protocol.picture import Picture
from vmstore.vm.protocol.tools import VM_TOOLS

SHAPE = "anthropic"


class Anthropic:
    """`system` beside `messages` of content blocks."""

    def request(self, instructions: str, turns: Sequence[ChatMessage], memo: Memo) -> dict[str, Any]:
        """`system` and `messages`, the user's first, each other role than the one before."""
        spoken = [ChatMessage(Role.USER, turn.parts) if turn.role is Role.TOOL else turn for turn in begun(turns)]
        messages = [drawn(memo, turn, _message) for turn in merged(spoken)]
        if messages and messages[-1]["role"] == "assistant":
            *before, last = messages[-1]["content"]
            if last["type"] == "text":  # the answer continues this text, and providers refuse one that ends in a blank
                ends = {**last, "text": last["text"].rstrip()}
                messages[-1] = {**messages[-1], "content": [*before, ends]}
        return {"system": instructions, "messages": messages} if instructions else {"messages": messages}

    def tools(self, tools: Sequence[str] = VM_TOOLS, *, short: bool = False) -> list[Any]:
        """`tools` with their schemas."""
        return [
            {
                "name": definition["name"],
                "description": definition["description"],
                "input_schema": definition["parameters"],
            }
            for definition in definitions(tools, short=short)
        ]

    def names(self, tools: Sequence[Any]) -> list[str]:
        """The tools' names."""
        return [str(tool.get("name")) for tool in listed(list(tools))]

    def said(self, response: Mapping[str, Any]) -> ParsedResponse:
        """The words and calls of its content blocks."""
        blocks = listed(taken(response, SHAPE, "content"))
        calls = [
            ToolCall(str(block.get("id") or ""), str(block.get("name")), block.get("input"))
            for block in blocks
            if block.get("type") == "tool_use"
        ]
        texts = [str(block.get("text") or "") for block in blocks if block.get("type") == "text"]
        return ParsedResponse("".join(texts), tuple(calls))


def _message(turn: ChatMessage) -> dict[str, Any]:
    return {"role": turn.role.word, "content": list(map(_block, turn.parts))}


def _block(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    if isinstance(part, Picture):
        lies = {"type": "url", "url": part.url}
        source = lies if part.url else {"type": "base64", "media_type": part.mime, "data": part.base64}
        return {"type": "image", "source": source}
    if isinstance(part, CallPart):
        return {"type": "tool_use", "id": part.id, "name": part.tool, "input": harmless(part.arguments)}
    return {"type": "tool_result", "tool_use_id": part.id, "content": list(map(_block, part.parts))}
