"""Responses put together again: their JSON with a hole for each message of the reply.

`{"\\u0000m": [n, key…]}` stands for message n of the reply as the log gives it, or for what it holds
under the keys; `{"\\u0000f": [n, skeleton]}` for message n in another form: the skeleton, filled
with the message's contents. `{"\\u0000c": n}` stands for what the body of call n has under the same
key, holes included. A provider's key that begins like a hole's gets one more NUL in front, as in a request's rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from vmstore.core.draft import Draft
from vmstore.core.text.skeleton import fill, loads
from vmstore.providers.chat_completions import take_turn
from vmstore.providers.gemini import CANDIDATES, take_content
from vmstore.providers.message import json_bytes
from vmstore.providers.request import Shape

MESSAGE, FORM, CALL = "\0m", "\0f", "\0c"
Path = tuple[str | int, ...]
Given = tuple[Any, Sequence[bytes]]
"""A message of a reply: its skeleton, and the contents that fill it."""


class MessagePlace(NamedTuple):
    """The place of a reply's message in its body, and the part of the message that holds it."""

    path: Path
    inner: tuple[str, ...] = ()


def holed(body: Any, shape: Shape, drafts: Sequence[Draft], bare: bool = False) -> bytes:
    """A response's JSON with a hole for each of its messages; `bare` where it is a message itself."""
    places = [MessagePlace(())] if bare else PLACES[shape](body)
    marks = {
        place.path: _mark(_at(body, place.path), n, draft, place, shape)
        for n, (draft, place) in enumerate(zip(drafts, places, strict=False))
    }
    return json_bytes(_holed(body, {path: mark for path, mark in marks.items() if mark is not None}, ()))


def _chat(body: dict[str, Any]) -> list[MessagePlace]:
    return [
        MessagePlace(("choices", n, "message")) for n, choice in enumerate(body["choices"]) if isinstance(choice, dict)
    ]


def _gemini(body: dict[str, Any]) -> list[MessagePlace]:
    (key,) = CANDIDATES
    return [MessagePlace((key, n, "content")) for n, candidate in enumerate(body[key]) if isinstance(candidate, dict)]


def _responses(body: dict[str, Any]) -> list[MessagePlace]:
    return [MessagePlace(("output", n)) for n in range(len(body["output"]))]


def _anthropic(body: dict[str, Any]) -> list[MessagePlace]:
    return [MessagePlace(("content",), ("content",))]


PLACES: dict[Shape, Callable[[dict[str, Any]], list[MessagePlace]]] = {
    Shape.CHAT: lambda body: _chat(body) if isinstance(body.get("choices"), list) else [],
    Shape.RESPONSES: lambda body: _responses(body) if isinstance(body.get("output"), list) else [],
    Shape.ANTHROPIC: _anthropic,
    Shape.GEMINI: lambda body: _gemini(body) if isinstance(body.get(CANDIDATES[0]), list) else [],
}


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def _mark(value: Any, n: int, draft: Draft, place: MessagePlace, shape: Shape) -> dict[str, Any] | None:
    """A marker for a message of a reply; None where only its own JSON will do."""
    if shape in (Shape.RESPONSES, Shape.ANTHROPIC):  # whose messages are taken as they stand
        return {MESSAGE: [n, *place.inner]}
    taken = take_content(value) if shape is Shape.GEMINI else take_turn(value)
    if [part.content for part in taken.parts] != [part.content for part in draft.parts]:
        return None
    return {MESSAGE: [n]} if taken.skeleton == draft.skeleton else {FORM: [n, loads(taken.skeleton)]}


def _holed(value: Any, marks: dict[Path, dict[str, Any]], path: Path) -> Any:
    """A value with marks where they belong, and the keys of others that could be read as one escaped."""
    if path in marks:
        return marks[path]
    if isinstance(value, dict):
        return {
            "\0" + key if key.startswith("\0") else key: _holed(item, marks, (*path, key))
            for key, item in value.items()
        }
    return [_holed(item, marks, (*path, n)) for n, item in enumerate(value)] if isinstance(value, list) else value


def messages_of(body: Any) -> int:
    """How many messages of its reply a body with holes names."""
    if isinstance(body, list):
        return max(map(messages_of, body), default=0)
    if not isinstance(body, dict):
        return 0
    for kind in (MESSAGE, FORM):
        if kind in body:
            number: int = body[kind][0]
            return number + 1
    return max(map(messages_of, body.values()), default=0)


def named_in_full(body: Any, before: Callable[[int], Any]) -> Any:
    """A body whose fields that name a call's hold what that call's have; `before` gives the body of a call."""
    if not isinstance(body, dict):
        return body
    return {
        key: before(item[CALL])[key] if isinstance(item, dict) and CALL in item else item for key, item in body.items()
    }


def give_body(value: Any, messages: Sequence[Given]) -> Any:
    """The response that `holed` made holes in, or a part of it."""
    if isinstance(value, list):
        return [give_body(item, messages) for item in value]
    if not isinstance(value, dict):
        return value
    if MESSAGE in value:
        n, *inner = value[MESSAGE]
        return _at(fill(*messages[n]), tuple(inner))
    if FORM in value:
        n, skeleton = value[FORM]
        return fill(skeleton, messages[n][1])
    return {key[1:] if key.startswith("\0") else key: give_body(item, messages) for key, item in value.items()}
