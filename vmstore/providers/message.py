"""Messages of all shapes: roles, the holes of their parts, the closing draft."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from vmstore.core.draft import Draft, Part
from vmstore.core.page import Mime, Modality, PageType, Role, Slot
from vmstore.core.text.skeleton import JSON, KEYED, TEXT, dumps, hole, loads, text_bytes

ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.DEVELOPER,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "model": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
CALL_KEYS = ("type", "id", "call_id", "name")
ASKED = ("function", "custom")  # under which a call's own object stands
NUL = b"\\u0000"  # how JSON writes the first character of every hole's key


def role_of(word: Any, default: Role = Role.OTHER) -> Role:
    """The role a provider's word stands for."""
    return ROLES.get(word, Role.OTHER) if isinstance(word, str) else default


def name_of(value: Any) -> str | None:
    """A string that can serve as a name (an id, a tool, a model), else None."""
    if not isinstance(value, str):
        return None
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate: the value itself keeps it, a name cannot
        return None
    return value


def json_bytes(value: Any) -> bytes:
    """JSON that reads back as the very same value, two surrogates side by side included."""
    data = dumps(value)
    if b"\\ud" in data and loads(data) != value:
        # Escaped side by side the two would read back as one character.
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return data


class Holes:
    """The parts taken out of one message so far; each leaves its hole where it stood."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[Part] = []

    def put(self, kind: str, part: Part) -> dict[str, int]:
        """Takes a part and returns the hole of this kind that stands for it."""
        self.parts.append(part)
        return hole(kind, len(self.parts) - 1)

    def text(self, text: str) -> dict[str, int]:
        """Takes a text."""
        return self.put(TEXT, Part(text_bytes(text)))

    def json(self, value: Any, modality: Modality = Modality.STRUCTURED) -> dict[str, int]:
        """Takes any JSON value."""
        return self.put(JSON, Part(json_bytes(value), modality, Mime.JSON))

    def call(self, value: dict[str, Any], call_id: Any, tool: Any) -> dict[str, Any]:
        """Takes the object that asks for a tool; the hole keeps the order of its keys where it is not the one."""
        ordered = _ordered(value)
        part = Part(
            json_bytes(ordered),
            Modality.STRUCTURED,
            Mime.JSON,
            call_id=name_of(call_id),
            tool=name_of(tool),
            is_call=True,
        )
        left = self.put(JSON, part)
        return left if _keys(value) == _keys(ordered) else {KEYED: [left[JSON], _keys(value)]}

    def answers(self, since: int, call_id: Any, tool: Any = None) -> None:
        """Marks the parts from number `since` on as the result of a tool call."""
        for n in range(since, len(self.parts)):
            self.parts[n] = msgspec.structs.replace(
                self.parts[n],
                type=PageType.ARTIFACT,
                call_id=name_of(call_id),
                tool=name_of(tool),
                is_result=True,
            )


def _ordered(call: dict[str, Any]) -> dict[str, Any]:
    """A call with its keys in one order.

    SDKs, streams and agents write them in different ones, and an answer sent back is one page.
    """
    keys = [key for key in CALL_KEYS if key in call]
    ordered = {key: call[key] for key in (*keys, *sorted(call.keys() - set(CALL_KEYS)))}
    for key in ASKED:
        if isinstance(inner := ordered.get(key), dict):
            ordered[key] = _ordered(inner)
    return ordered


def _keys(call: dict[str, Any]) -> list[Any]:
    """The keys of a call in the order they stand in, those that `_ordered` moves."""
    return [[key, *_keys(inner)] if key in ASKED and isinstance(inner, dict) else key for key, inner in call.items()]


def closed(holes: Holes, skeleton: Any, value: Any, role: Role, slot: Slot = Slot.MESSAGES) -> Draft:
    """The draft of `value`, whose parts have left `holes` in `skeleton`."""
    data = json_bytes(skeleton)
    # Each hole writes one NUL. Any other may be a forged hole, so such a message stays whole,
    # as does one nothing was taken from: every message has at least one part.
    if not holes.parts or data.count(NUL) != len(holes.parts):
        return whole(value, role, slot)
    hint = name_of(value.get("id")) if isinstance(value, dict) else None
    return _draft(holes, data, role, slot, hint)


def whole(value: Any, role: Role = Role.OTHER, slot: Slot = Slot.MESSAGES) -> Draft:
    """A value kept as one JSON part with the hole at the root."""
    holes = Holes()
    return _draft(holes, dumps(holes.json(value)), role, slot, None)


def spoken(text: str, role: Role, slot: Slot = Slot.MESSAGES) -> Draft:
    """A message that is nothing but its text."""
    holes = Holes()
    return _draft(holes, dumps(holes.text(text)), role, slot, None)


def closed_list(parts: list[Any], take: Callable[[Holes, Any], Any]) -> Draft:
    """A system message that is a bare list of parts, each taken by `take`."""
    holes = Holes()
    return closed(holes, [take(holes, part) for part in parts], parts, Role.SYSTEM, Slot.SYSTEM)


def schemas(tools: Any) -> Draft:
    """The tool schemas of a request, as the one pseudo message they make."""
    part = Part(json_bytes(tools), Modality.STRUCTURED, Mime.JSON, PageType.PROCEDURE)
    return Draft(Role.SYSTEM, dumps(hole(JSON, 0)), (part,), Slot.TOOLS)


def _draft(holes: Holes, skeleton: bytes, role: Role, slot: Slot, hint: str | None) -> Draft:
    human = role is Role.USER and slot is Slot.MESSAGES and not all(p.is_result for p in holes.parts)
    return Draft(role, skeleton, tuple(holes.parts), slot, human, hint=hint)
