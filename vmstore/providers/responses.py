"""Items of the Responses API: messages, tool calls and outputs, reasoning; and its replies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vmstore.core.draft import Draft, ReplyDraft, TokenUsage
from vmstore.core.page import Role
from vmstore.providers.chat_completions import take_turn
from vmstore.providers.message import Holes, closed, spoken, whole
from vmstore.providers.parts import take_base64, take_output, take_part
from vmstore.providers.reply import counted, pick, settled
from vmstore.providers.stream import add, joined, numbered

ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
# Where the pieces of each kind of delta go: (list in the item, its index in the event, type, key).
PARTS = {
    "response.output_text.delta": ("content", "content_index", "output_text", "text"),
    "response.refusal.delta": ("content", "content_index", "refusal", "refusal"),
    "response.reasoning_text.delta": ("content", "content_index", "reasoning_text", "text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_index", "summary_text", "text"),
}
FIELDS = {
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}


def take_item(item: Any) -> Draft:
    """One input or output item; each is a message of its own."""
    if isinstance(item, str):
        return spoken(item, Role.USER)
    if not isinstance(item, dict):
        return whole(item)
    kind = item.get("type")
    if kind == "message" or (kind is None and "role" in item):
        return take_turn(item)
    if not isinstance(kind, str):
        return whole(item)
    if kind == "reasoning":
        return _reasoning(item)
    if kind.endswith("_output"):
        return _output(item)
    if kind.endswith("_call"):
        return _call(item, kind)
    return whole(item)


def _reasoning(item: dict[str, Any]) -> Draft:
    """The model's thinking: the texts of its summary, then the thoughts themselves where they are shown."""
    holes, taken = Holes(), dict(item)
    for key in ("summary", "content"):
        if isinstance(texts := item.get(key), list):
            taken[key] = [take_part(holes, text) for text in texts]
    return closed(holes, taken, item, Role.ASSISTANT)


def _output(item: dict[str, Any]) -> Draft:
    holes, taken = Holes(), dict(item)
    if item.get("output") is not None:
        taken["output"] = take_output(holes, item["output"])
    else:
        taken = holes.json(item)
    holes.answers(0, item.get("call_id"))
    return closed(holes, taken, item, Role.TOOL)


def _call(item: dict[str, Any], kind: str) -> Draft:
    holes = Holes()
    if picture := take_base64(holes, item.get("result"), "image/png"):
        return closed(holes, {**item, "result": picture}, item, Role.ASSISTANT)
    if "call_id" not in item:
        # A tool the provider ran itself: nobody is asked for anything.
        return whole(item, Role.ASSISTANT)
    tool = item.get("name") or kind.removesuffix("_call")
    return closed(holes, holes.call(item, item["call_id"], tool), item, Role.ASSISTANT)


def responses_reply(body: dict[str, Any], ended: bool) -> ReplyDraft:
    """The reply in a response object: each output item is a message."""
    output = body.get("output")
    status = body.get("status")
    stop = pick(body.get("incomplete_details"), "reason") or status
    return settled(
        body,
        [take_item(item) for item in output] if isinstance(output, list) else [],
        stop=stop,
        model=body.get("model"),
        usage=responses_usage(body.get("usage")),
        ended=ended,
    )


def responses_usage(usage: Any) -> TokenUsage:
    """Usage as the Responses API reports it; input tokens include the cached ones."""
    if not isinstance(usage, dict):
        return TokenUsage()
    return TokenUsage(
        tokens_in=counted(usage.get("input_tokens")),
        tokens_cached=counted(pick(usage.get("input_tokens_details"), "cached_tokens")),
        tokens_out=counted(usage.get("output_tokens")),
    )


def responses_stream(events: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], bool]:
    """The response its events add up to, and whether its end arrived.

    The last event carries the whole response; before it, items are what arrived of them.
    """
    body: dict[str, Any] = {}
    items: dict[int, dict[str, Any]] = {}
    ended = False
    for event in events:
        kind = str(event.get("type"))
        index = counted(event.get("output_index")) or 0
        if isinstance(response := event.get("response"), dict):
            body, ended = dict(response), kind in ENDS
        elif kind in ("response.output_item.added", "response.output_item.done"):
            item = event.get("item")
            items[index] = joined(item) if isinstance(item, dict) else {}
        elif kind == "error":
            body["error"] = event.get("error") or {"code": event.get("code"), "message": event.get("message")}
        elif isinstance(piece := event.get("delta"), str):
            _grow_item(items.setdefault(index, {}), kind, event, piece)
    if not body.get("output"):
        body["output"] = [joined(items[index]) for index in sorted(items) if items[index]]
    return body, ended


def _grow_item(item: dict[str, Any], kind: str, event: dict[str, Any], piece: str) -> None:
    if kind in FIELDS:
        add(item, FIELDS[kind], piece)
    elif kind in PARTS:
        listed, counted_by, word, key = PARTS[kind]
        if not isinstance(item.get(listed), list):
            item[listed] = []
        part = numbered(item[listed], event.get(counted_by))
        part.setdefault("type", word)
        add(part, key, piece)
