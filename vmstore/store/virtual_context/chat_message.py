"""The messages of a client, of any provider's shape, as what a live session is told of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from vmstore.errors import InputError


class ClientMessage(msgspec.Struct, frozen=True):
    """A message of a conversation: who says it, what, when it was said, and what else is known of it."""

    role: str
    content: Any
    timestamp_us: int | None = None
    metadata: dict[str, Any] = {}


class Spoken(NamedTuple):
    """A message taken apart: words, tool calls by id, and results by the id of their call."""

    role: str
    text: str
    calls: tuple[tuple[str, str, str], ...]
    results: tuple[tuple[str, str], ...]
    at_us: int | None


def plain(message: ClientMessage | dict[str, Any]) -> dict[str, Any]:
    """A message as a plain value."""
    if isinstance(message, ClientMessage):
        return {"role": message.role, "content": message.content}
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise InputError(f"{message!r:.60} is no message; give {{'role': …, 'content': …}} or a ClientMessage")
    return message


def spoken(message: ClientMessage | dict[str, Any]) -> Spoken:
    """Takes a message apart."""
    value = plain(message)
    at = message.timestamp_us if isinstance(message, ClientMessage) else None
    content = value.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [content] if isinstance(content, str) else [str(block["text"]) for block in blocks if "text" in block]
    calls = [_call(call) for call in value.get("tool_calls") or () if isinstance(call, dict)]
    calls += [
        (str(block.get("id")), str(block.get("name")), json.dumps(block.get("input") or {}))
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    results = [
        (str(block.get("tool_use_id")), words(block.get("content")))
        for block in blocks
        if block.get("type") == "tool_result"
    ]
    if "tool_call_id" in value:
        results, texts = [(str(value["tool_call_id"]), "\n".join(texts))], []
    return Spoken(value["role"], "\n".join(texts), tuple(calls), tuple(results), at)


def words(content: Any) -> str:
    """The words of a content."""
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content or () if isinstance(block, dict))


def new_ones(seen: Sequence[Spoken], messages: Sequence[Spoken]) -> list[Spoken]:
    """The messages that come after those that were seen: behind the last place where both say the same."""
    if not seen:
        return list(messages)
    known = [_key(one) for one in seen]
    given = [_key(one) for one in messages]
    for end in range(len(given), 0, -1):
        length = min(end, len(known), OVERLAP)
        if given[end - length : end] == known[-length:]:
            return list(messages[end:])
    missing = set(known)
    return [one for one, key in zip(messages, given, strict=True) if key not in missing]


def _key(one: Spoken) -> tuple[Any, ...]:
    return one.role, one.text.strip(), tuple(call[0] for call in one.calls), tuple(result[0] for result in one.results)


def _call(call: dict[str, Any]) -> tuple[str, str, str]:
    function = call.get("function")
    named = function if isinstance(function, dict) else {}
    return str(call.get("id")), str(named.get("name")), str(named.get("arguments") or "{}")


def talk(messages: Iterable[Spoken]) -> list[Spoken]:
    """Those of some messages that are part of the conversation: no instructions, and not nothing."""
    said = (one for one in messages if one.role not in ("system", "developer"))
    return [one for one in said if one.text.strip() or one.calls or one.results]


OVERLAP = 3  # messages that must be the same for two conversations to be one
