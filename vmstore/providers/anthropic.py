"""Anthropic replies; their messages are taken as chat's are, by the types of their parts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from vmstore.core.draft import ReplyDraft, TokenUsage
from vmstore.errors import InputError
from vmstore.providers.chat_completions import take_turn
from vmstore.providers.jsonable import plain
from vmstore.providers.reply import added, counted, settled
from vmstore.providers.stream import add, joined, numbered

INPUT = "\0input"  # a tool's input while it arrives; no provider's key begins like that
DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", INPUT),
}


def anthropic_reply(body: dict[str, Any], ended: bool) -> ReplyDraft:
    """The reply in an Anthropic message: one assistant message with all its parts."""
    content = body.get("content")
    message = {"role": body.get("role") or "assistant", "content": content}
    return settled(
        body,
        [take_turn(message)] if content else [],
        stop=body.get("stop_reason"),
        model=body.get("model"),
        usage=anthropic_usage(body.get("usage")),
        ended=ended and content is not None,
    )


def anthropic_usage(usage: Any) -> TokenUsage:
    """Usage as Anthropic reports it, whose input tokens leave out what the cache read or wrote."""
    if not isinstance(usage, dict):
        return TokenUsage()
    read, written = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    return TokenUsage(
        tokens_in=added(usage.get("input_tokens"), read, written),
        tokens_cached=counted(read),
        tokens_out=counted(usage.get("output_tokens")),
        tokens_written=counted(written) or None,
    )


def anthropic_stream(events: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
    """The message its events add up to, and whether its stop arrived."""
    body: dict[str, Any] = {}
    blocks: list[Any] = []
    ended = False
    for event in events:
        kind = event.get("type")
        if kind == "message_start" and isinstance(message := event.get("message"), dict):
            body, blocks = dict(message), []
        elif kind == "content_block_start" and isinstance(block := event.get("content_block"), dict):
            blocks.append(dict(block))
        elif kind == "content_block_delta" and isinstance(delta := event.get("delta"), dict):
            _grow_block(numbered(blocks, event.get("index")), delta)
        elif kind == "message_delta":
            body.update(_said(event.get("delta")))
            body["usage"] = {**_said(body.get("usage")), **_said(event.get("usage"))}
        elif kind == "error":
            body["error"] = event.get("error") or event
        ended = ended or kind == "message_stop" or body.get("stop_reason") is not None
    body["content"] = [_whole_block(joined(block)) for block in blocks]
    return body, ended


def _said(value: Any) -> dict[str, Any]:
    return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else {}


def _grow_block(block: dict[str, Any], delta: dict[str, Any]) -> None:
    kind = str(delta.get("type"))
    if kind == "citations_delta":
        known = block.get("citations")
        block["citations"] = [*(known if isinstance(known, list) else ()), delta.get("citation")]
    elif kind in DELTAS:
        field, key = DELTAS[kind]
        if isinstance(text := delta.get(field), str):
            add(block, key, text)


def _whole_block(block: dict[str, Any]) -> dict[str, Any]:
    """A block with its tool input read; one cut short keeps the text it got to."""
    text = block.pop(INPUT, "")
    if text:
        try:
            block["input"] = plain(json.loads(text))
        except (ValueError, RecursionError, InputError):
            block["input"] = text
    return block
