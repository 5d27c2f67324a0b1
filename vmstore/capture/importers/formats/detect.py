"""Tells in which of the four shapes the values of a file are written: messages, objects that hold them, exchanges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vmstore.capture.importers.formats.jsonl import SourceFile
from vmstore.errors import InputError
from vmstore.providers import Shape, shape_of
from vmstore.providers.request import shape_of_body, tells_anthropic

FORMATS = {
    Shape.CHAT: "chat-completions",
    Shape.RESPONSES: "responses",
    Shape.ANTHROPIC: "anthropic",
    Shape.GEMINI: "gemini",
}
HOLDS = {Shape.CHAT: "messages", Shape.RESPONSES: "input", Shape.ANTHROPIC: "messages", Shape.GEMINI: "contents"}
# The calls among the items of the Responses API; most have an output of the same name.
ITEM_CALLS = ("function", "custom_tool", "computer", "local_shell", "shell", "apply_patch", "tool_search", "mcp")
HOSTED_CALLS = ("web_search", "file_search", "image_generation", "code_interpreter")
ITEMS = frozenset(
    [f"{name}_call" for name in ITEM_CALLS + HOSTED_CALLS]
    + [f"{name}_call_output" for name in ITEM_CALLS]
    + ["compaction", "item_reference", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response"]
)
REQUESTED = (
    "model",
    "output",
    "instructions",
    "previous_response_id",
)  # what stands beside an `input` that is a request's
ANSWERED = ("stop_reason", "usage")  # what an Anthropic answer has beside its role


def is_written(shape: Shape, source: SourceFile) -> bool:
    """Whether a file holds messages, objects with messages or exchanges of a shape."""
    document = source.document
    values = [line.value for line in source.lines]
    if isinstance(document, list):
        return any(is_message(shape, item) or is_exchange(item, shape) for item in document)
    if not values:
        return holds(shape, document) or is_exchange(document, shape)
    return any(is_message(shape, v) or holds(shape, v) or is_exchange(v, shape) for v in values)


def is_message(shape: Shape, value: Any) -> bool:
    """Whether a value is a message of a shape, or for chat also the header of a file of them."""
    return isinstance(value, dict) and MESSAGES[shape](value)


def is_header(value: Any) -> bool:
    """Whether a value says what a conversation is called."""
    return (
        isinstance(value, dict) and isinstance(value.get("vm"), dict) and not (value.keys() & {"role", "type", "parts"})
    )


def holds(shape: Shape, value: Any) -> bool:
    """Whether a value is an object that holds a conversation: a request's body, for Responses also an answer's."""
    if not isinstance(value, dict):
        return False
    member = value.get(HOLDS[shape])
    if shape is Shape.RESPONSES:
        asked = isinstance(member, (list, str)) and any(key in value for key in REQUESTED)
        return asked or (is_answer(shape, value) and isinstance(value.get("output"), list))
    if shape is Shape.GEMINI:
        contents = member if isinstance(member, list) else [member]
        return any(is_message(shape, content) for content in contents) or (isinstance(member, str) and "model" in value)
    return isinstance(member, list) and shape_of(value) is shape


def is_exchange(value: Any, shape: Shape | None = None) -> bool:
    """Whether a value is a recorded call, and of this shape where one is given."""
    if not isinstance(value, dict) or not isinstance(value.get("request"), dict):
        return False
    if shape is None:
        return True
    try:
        return shape_of(value["request"]) is shape
    except InputError:
        return shape is Shape.CHAT  # which says what is wrong with it


def is_answer(shape: Shape, value: Any) -> bool:
    """Whether a value is the whole answer to a call, as a provider gives it, with its usage."""
    if not isinstance(value, dict):
        return False
    if shape is Shape.ANTHROPIC:
        return value.get("type") == "message" and any(key in value for key in ANSWERED)
    return shape in (Shape.RESPONSES, Shape.GEMINI) and shape_of_body(value) is shape


def _is_chat(value: dict[str, Any]) -> bool:
    return isinstance(value.get("role"), str) or is_header(value)


def _is_item(value: dict[str, Any]) -> bool:
    kind = value.get("type")
    if kind == "message":
        return isinstance(value.get("role"), str) and not any(key in value for key in ANSWERED)
    return isinstance(kind, str) and (kind in ITEMS or (kind == "reasoning" and "summary" in value))


def _is_content(value: dict[str, Any]) -> bool:
    return isinstance(value.get("parts"), list) or is_answer(Shape.GEMINI, value)


def _is_anthropic(value: dict[str, Any]) -> bool:
    return tells_anthropic(value) is True or is_answer(Shape.ANTHROPIC, value)


MESSAGES: dict[Shape, Callable[[dict[str, Any]], bool]] = {
    Shape.CHAT: _is_chat,
    Shape.RESPONSES: _is_item,
    Shape.ANTHROPIC: _is_anthropic,
    Shape.GEMINI: _is_content,
}
