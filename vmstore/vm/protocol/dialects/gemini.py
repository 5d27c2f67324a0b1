"""The shape of Gemini's contents: roles `user` and `model`, calls and their responses in contents of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vmstore.core.page import Role
from vmstore.vm.protocol.conversation import CallPart, ChatMessage, Part, ResultPart, TextPart, merged, words
from vmstore.vm.protocol.dialects.dialect import ParsedResponse, ToolCall, begun, definitions, drawn, listed, taken
from vmstore.vm.protocol.escape import harmless
from vmstore.vm.protocol.memo import Memo
from vmstore.vm.protocol.picture import Picture
from vmstore.vm.protocol.tools import VM_TOOLS

SHAPE = "gemini"


class Gemini:
    """`systemInstruction` beside `contents`, in the camel case of the REST API."""

    def request(self, instructions: str, turns: Sequence[ChatMessage], memo: Memo) -> dict[str, Any]:
        """`contents`: as many functionResponse parts as functionCall parts in the content before, nothing beside."""
        contents = [drawn(memo, turn, _content) for turn in merged(_spread(begun(turns)))]
        system = {"systemInstruction": {"parts": [{"text": instructions}]}} if instructions else {}
        return {**system, "contents": contents}

    def tools(self, tools: Sequence[str] = VM_TOOLS, *, short: bool = False) -> list[Any]:
        """`tools` with their function declarations."""
        return [{"functionDeclarations": definitions(tools, short=short)}]

    def names(self, tools: Sequence[Any]) -> list[str]:
        """The functions' names."""
        groups = [tool.get("functionDeclarations", tool.get("function_declarations")) for tool in listed(list(tools))]
        return [str(declared.get("name")) for group in groups for declared in listed(group)]

    def said(self, response: Mapping[str, Any]) -> ParsedResponse:
        """The first candidate's words and calls; one that was stopped before it spoke says nothing."""
        candidate = taken(response, SHAPE, "candidates", 0)
        content = candidate.get("content") if isinstance(candidate, Mapping) else None
        parts = listed(content.get("parts")) if isinstance(content, Mapping) else []
        calls = []
        for part in parts:
            if isinstance(call := part.get("functionCall", part.get("function_call")), dict):
                calls.append(ToolCall(str(call.get("id") or ""), str(call.get("name")), call.get("args") or {}))
        return ParsedResponse(
            "".join(str(part.get("text") or "") for part in parts if not part.get("thought")), tuple(calls)
        )


def _content(turn: ChatMessage) -> dict[str, Any]:
    return {"role": "model" if turn.role is Role.ASSISTANT else "user", "parts": list(map(_part, turn.parts))}


def _spread(turns: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages, the pictures of results in a user's message after them: a response holds words alone."""
    spread: list[ChatMessage] = []
    for turn in turns:
        results = [part for part in turn.parts if isinstance(part, ResultPart)]
        pictured = [result for result in results if any(isinstance(part, Picture) for part in result.parts)]
        shown = [part for result in pictured for part in result.parts]
        spread += [turn, ChatMessage(Role.USER, tuple(shown))] if shown else [turn]
    return spread


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"text": part.text}
    if isinstance(part, Picture) and part.url:
        return {"fileData": {"fileUri": part.url}}
    if isinstance(part, Picture):
        return {"inlineData": {"mimeType": part.mime, "data": part.base64}}
    if isinstance(part, CallPart):
        return {"functionCall": {"name": part.tool, "args": harmless(part.arguments)}}
    return {"functionResponse": {"name": part.tool, "response": {"result": words(part.parts)}}}
