"""The four shapes of requests: telling them apart, taking their messages out, putting them back.

`rest` is the request's JSON with a hole where each slot's messages stood. A user's key that
begins like a hole's gets one more NUL in front, so that it comes back as what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from typing import Any, NamedTuple

from vmstore.core.page import Slot, WordEnum
from vmstore.core.text.skeleton import LIST, VALUE, loads
from vmstore.errors import InputError
from vmstore.providers.jsonable import absent, plain
from vmstore.providers.message import NUL, json_bytes, name_of


class Shape(WordEnum):
    """The provider's shape that a request is written in."""

    CHAT = 0
    RESPONSES = 1
    ANTHROPIC = 2
    GEMINI = 3


class Split(NamedTuple):
    """A request taken apart, its messages still as they stood, in the order of the prompt."""

    shape: Shape
    messages: list[tuple[Slot, Any]]
    rest: bytes
    model: str | None


Path = tuple[str, ...]
Taken = dict[Path, tuple[Slot, str]]  # where messages stood, whose, and the kind of hole they left
MESSAGES = {
    Shape.CHAT: "messages",
    Shape.RESPONSES: "input",
    Shape.ANTHROPIC: "messages",
    Shape.GEMINI: "contents",
}
TOOLS: dict[Shape, tuple[Path, ...]] = {
    Shape.CHAT: (("tools",), ("functions",)),
    Shape.RESPONSES: (("tools",),),
    Shape.ANTHROPIC: (("tools",),),
    Shape.GEMINI: (("tools",), ("config", "tools")),
}
SYSTEM: dict[Shape, tuple[Path, ...]] = {
    Shape.CHAT: (),
    Shape.RESPONSES: (("instructions",),),
    Shape.ANTHROPIC: (("system",),),
    Shape.GEMINI: (
        ("systemInstruction",),
        ("system_instruction",),
        ("config", "system_instruction"),
        ("config", "systemInstruction"),
    ),
}
EXPECTED = (
    "`messages` (chat completions or Anthropic: a list), `input` (Responses: text or a list) "
    "or `contents` (Gemini: text or a list)"
)
# Tuples: what is looked up in them may be anything, also unhashable.
ANTHROPIC_KEYS = ("system", "stop_sequences", "anthropic_version")
ANTHROPIC_PARTS = ("tool_use", "tool_result", "thinking", "redacted_thinking")
CHAT_ROLES = ("system", "developer", "tool", "function")
ANTHROPIC_EVENTS = (
    "message_start",
    "content_block_start",
    "content_block_delta",
    "message_delta",
    "message_stop",
)
GEMINI_BODY = ("candidates", "usageMetadata", "usage_metadata", "promptFeedback", "prompt_feedback")
LOOKED_AT = 16  # messages at each end; a request never costs more to recognise than that


def shape_of(request: Mapping[str, Any]) -> Shape:
    """The shape a request is written in; a chat completion where nothing tells."""
    if "contents" in request:
        return Shape.GEMINI
    if "messages" in request:
        return Shape.ANTHROPIC if _is_anthropic(request) else Shape.CHAT
    if "input" in request or isinstance(request.get("prompt"), Mapping) or "previous_response_id" in request:
        return Shape.RESPONSES
    keys = ", ".join(sorted(map(str, request))[:8]) or "none"
    raise InputError(
        f"a request has no key that holds its messages; expected {EXPECTED}, got: {keys}", code="no-messages"
    )


def _is_anthropic(request: Mapping[str, Any]) -> bool:
    if any(key in request for key in ANTHROPIC_KEYS):
        return True
    tools = request.get("tools")
    first = tools[0] if isinstance(tools, (list, tuple)) and tools else None
    if isinstance(first, Mapping) and ("input_schema" in first or "function" in first):
        return "input_schema" in first
    messages = request["messages"]
    if isinstance(messages, (list, tuple)):
        for message in (*messages[:LOOKED_AT], *messages[LOOKED_AT:][-LOOKED_AT:]):
            if (verdict := tells_anthropic(message)) is not None:
                return verdict
    return str(request.get("model")).startswith("claude") and "max_tokens" in request


def tells_anthropic(message: Any) -> bool | None:
    """Whether a message can only be Anthropic's (True), only chat's (False), or either."""
    if type(message) is dict and type(message.get("content")) is str and message.get("role") in ("user", "assistant"):
        return False if message.get("tool_calls") else None  # the rule
    if not isinstance(message, Mapping):
        return None
    if message.get("tool_calls") or message.get("role") in CHAT_ROLES:
        return False
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping):
            kind = part.get("type")
            if kind in ANTHROPIC_PARTS or (kind in ("image", "document") and "source" in part):
                return True
            if kind in ("image_url", "input_audio"):
                return False
    return None


def shape_of_body(body: Mapping[str, Any]) -> Shape | None:
    """The shape of a response or of one part of a stream; None where it does not tell."""
    if "choices" in body:
        return Shape.CHAT
    if any(key in body for key in GEMINI_BODY):
        return Shape.GEMINI
    kind = body.get("type")
    if kind in ANTHROPIC_EVENTS or (kind == "message" and "content" in body):
        return Shape.ANTHROPIC
    if body.get("object") == "response" or isinstance(body.get("output"), list):
        return Shape.RESPONSES
    return Shape.RESPONSES if isinstance(kind, str) and kind.startswith("response.") else None


def split_request(request: Mapping[str, Any], shape: Shape | None = None) -> Split:
    """Takes a request's messages out, at no cost per message; `shape` where the caller knows it."""
    if not isinstance(request, Mapping):
        raise InputError(f"a request is a {type(request).__name__}; pass a dict with {EXPECTED}", code="not-a-request")
    shape = shape_of(request) if shape is None else shape
    taken: Taken = {}
    messages: list[tuple[Slot, Any]] = []
    for slot, places in ((Slot.TOOLS, TOOLS[shape]), (Slot.SYSTEM, SYSTEM[shape])):
        for path in places:
            if value := _at(request, path):
                taken[path] = (slot, VALUE)
                messages.append((slot, value))
                break
    _take_messages(request, MESSAGES[shape], shape, taken, messages)
    rest = _rest(request, taken)
    return Split(shape, messages, rest, name_of(request.get("model")))


def _at(request: Mapping[str, Any], path: Path) -> Any:
    value: Any = request
    for key in path:
        if isinstance(value, Mapping):
            value = value.get(key)
        else:  # Gemini's SDK also takes its config as an object
            value = None if value is None or isinstance(value, str) else getattr(value, key, None)
    return None if absent(value) else value


def _take_messages(
    request: Mapping[str, Any],
    key: str,
    shape: Shape,
    taken: Taken,
    messages: list[tuple[Slot, Any]],
) -> None:
    value, slot = request.get(key), Slot.MESSAGES
    if isinstance(value, (list, tuple)):
        taken[key,] = (slot, LIST)
        messages += zip(repeat(slot), value)
    elif _is_single(shape, value):
        taken[key,] = (slot, VALUE)
        messages.append((slot, value))
    elif not (shape is Shape.RESPONSES and (value is None or absent(value))):
        raise InputError(
            f"a request's `{key}` is of type {type(value).__name__}; expected {EXPECTED}", code="no-messages"
        )


def _is_single(shape: Shape, value: Any) -> bool:
    """Whether a value is a request's only message: a text, or for Gemini also an object."""
    if shape is Shape.GEMINI:
        return value is not None and not isinstance(value, (int, float))
    return shape is Shape.RESPONSES and isinstance(value, str)


def _rest(request: Mapping[str, Any], taken: Taken) -> bytes:
    tops = {path[0] for path in taken if len(path) == 1}
    kept = plain({key: value for key, value in request.items() if key not in tops and not absent(value)})
    data = json_bytes(_holed(request, kept, taken))
    if data.count(NUL) != len(taken):
        # A key of the user's begins like a hole's: all are escaped, and come back unescaped.
        names, whole = _escaped(dict.fromkeys(request)), _escaped(kept)
        data = json_bytes(_holed(names, whole, taken))
    return data


def _holed(keys: Iterable[str], kept: dict[str, Any], taken: Taken) -> dict[str, Any]:
    """`kept` with the holes where they belong, its keys in the request's order."""
    holed: dict[str, Any] = {}
    for key in keys:
        if (key,) in taken:
            slot, kind = taken[key,]
            holed[key] = {kind: int(slot)}
        elif key in kept:
            holed[key] = kept[key]
    for (top, *inner), (slot, kind) in taken.items():
        for key in inner:
            holed[top] = {**holed[top], key: {kind: int(slot)}}
    return holed


def _escaped(value: Any) -> Any:
    if isinstance(value, dict):
        return {("\0" + k if k.startswith("\0") else k): _escaped(v) for k, v in value.items()}
    return [_escaped(item) for item in value] if isinstance(value, list) else value


def give_request(shape: Shape, rest: bytes, messages: Iterable[tuple[Slot, Any]]) -> dict[str, Any]:
    """The request that `split_request` took apart, from its rest and its messages."""
    slots: dict[int, list[Any]] = {}
    for slot, message in messages:
        slots.setdefault(slot, []).append(message)
    value = loads(rest, object_hook=_filler(slots))
    if not isinstance(value, dict):
        raise ValueError(f"the rest of a {shape.word} request is no object")
    return value


def _filler(slots: dict[int, list[Any]]) -> Callable[[dict[str, Any]], Any]:
    def fill(value: dict[str, Any]) -> Any:
        if LIST in value:
            return slots.get(value[LIST], [])
        if VALUE in value:
            (single,) = slots[value[VALUE]]
            return single
        if any(key.startswith("\0") for key in value):
            return {key[1:] if key.startswith("\0") else key: item for key, item in value.items()}
        return value

    return fill
