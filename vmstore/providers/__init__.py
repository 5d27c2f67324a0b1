"""The shapes of requests and responses: taken apart into drafts, put together again.

For every request `r` and `s = split_request(r)`: `give_request(s.shape, s.rest, s.messages)`
equals `r` in every field, and so does each message given back from its draft.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from vmstore.core.draft import Draft, ReplyDraft, Request
from vmstore.core.page import Role, Slot, Status
from vmstore.core.text.skeleton import fill, loads
from vmstore.errors import InputError
from vmstore.providers.anthropic import anthropic_reply, anthropic_stream
from vmstore.providers.body import give_body, holed
from vmstore.providers.chat_completions import chat_reply, chat_stream, take_turn
from vmstore.providers.delta import words_of
from vmstore.providers.gemini import gemini_reply, gemini_stream, take_content, take_part
from vmstore.providers.jsonable import plain
from vmstore.providers.message import closed_list, schemas, spoken, whole
from vmstore.providers.parts import take_part as take_block
from vmstore.providers.reply import failure
from vmstore.providers.request import Shape, Split, give_request, shape_of, shape_of_body, split_request
from vmstore.providers.responses import responses_reply, responses_stream, take_item

__all__ = [
    "Shape",
    "Split",
    "assembled",
    "give_body",
    "give_message",
    "give_request",
    "plain",
    "shape_of",
    "shape_of_body",
    "split_request",
    "take_message",
    "take_reply",
    "take_request",
    "words_of",
]

READERS = {
    Shape.CHAT: chat_reply,
    Shape.RESPONSES: responses_reply,
    Shape.ANTHROPIC: anthropic_reply,
    Shape.GEMINI: gemini_reply,
}

ASSEMBLERS = {
    Shape.CHAT: chat_stream,
    Shape.RESPONSES: responses_stream,
    Shape.ANTHROPIC: anthropic_stream,
    Shape.GEMINI: gemini_stream,
}


def take_request(request: Mapping[str, Any], shape: Shape | None = None) -> Request:
    """A whole request taken apart: its rest and the draft of each of its messages."""
    split = split_request(request, shape)
    drafts = tuple(
        take_message(split.shape, slot, plain(message, f"{slot.word} message {n}"))
        for n, (slot, message) in enumerate(split.messages)
    )
    return Request(split.shape, split.rest, drafts, split.model)


def take_message(shape: Shape, slot: Slot, message: Any) -> Draft:
    """One plain message of a request taken apart; never fails on plain JSON."""
    if slot is Slot.TOOLS:
        return schemas(message)
    if slot is Slot.SYSTEM:
        return _system(shape, message)
    if shape is Shape.RESPONSES:
        return take_item(message)
    return take_content(message) if shape is Shape.GEMINI else take_turn(message)


def give_message(skeleton: bytes, contents: Sequence[bytes] | dict[int, bytes]) -> Any:
    """The message a skeleton and its contents stand for."""
    return fill(loads(skeleton), contents)


def take_reply(shape: Shape, response: Any) -> ReplyDraft:
    """Parses the outcome of a request: a response, the parts of a stream, an exception, or nothing.

    A stream is a list; one that broke may end with the exception that broke it. `shape` counts
    only where the response itself does not tell.
    """
    if response is None:
        return ReplyDraft(Status.ABORTED)
    if isinstance(response, BaseException):
        return failure(response)
    if isinstance(response, (list, tuple)):
        return _streamed(shape, response)
    body = plain(response, "the response")
    if not isinstance(body, dict):
        raise InputError(
            f"a response is a {type(response).__name__}; pass the provider's response, a list of "
            "its stream's parts, an exception or None",
            code="not-a-response",
        )
    if "content" in body and "role" in body and "type" not in body:
        # The bare message, which is all some agents keep.
        reply = chat_reply({"choices": [{"message": body}]}, True)
        return msgspec.structs.replace(reply, body=holed(body, Shape.CHAT, reply.drafts, bare=True))
    shape_found = shape_of_body(body)
    return _read(shape if shape_found is None else shape_found, body, ended=True)


def _read(shape: Shape, body: dict[str, Any], *, ended: bool) -> ReplyDraft:
    """The reply in a body, and the body with holes for its messages."""
    reply = READERS[shape](body, ended)
    return msgspec.structs.replace(reply, body=holed(body, shape, reply.drafts))


def _streamed(shape: Shape, parts: Sequence[Any]) -> ReplyDraft:
    broken = parts[-1] if parts and isinstance(parts[-1], BaseException) else None
    shape, body, ended = assembled(shape, parts[:-1] if broken is not None else parts)
    reply = msgspec.structs.replace(_read(shape, body, ended=ended), assembled=True)
    if broken is None:
        return reply
    why = failure(broken)
    return msgspec.structs.replace(reply, status=why.status, error=why.error, final=False, aside=why.aside)


def assembled(shape: Shape, parts: Sequence[Any]) -> tuple[Shape, dict[str, Any], bool]:
    """The response that the parts of a stream add up to, its shape, and whether its end arrived."""
    chunks = [plain(part, f"stream part {n}") for n, part in enumerate(parts)]
    for n, chunk in enumerate(chunks):
        if not isinstance(chunk, dict):
            kind = type(parts[n]).__name__
            raise InputError(
                f"stream part {n} is a {kind}; pass the parts as the provider sent them", code="not-a-stream-part"
            )
    shape = next((found for chunk in chunks if (found := shape_of_body(chunk)) is not None), shape)
    body, ended = ASSEMBLERS[shape](chunks)
    return shape, body, ended


def _system(shape: Shape, value: Any) -> Draft:
    """The instructions that stand beside the messages, as one message."""
    if isinstance(value, str):
        return spoken(value, Role.SYSTEM, Slot.SYSTEM)
    gemini = shape is Shape.GEMINI
    if isinstance(value, list):
        return closed_list(value, take_part if gemini else take_block)
    return take_content(value, Slot.SYSTEM) if gemini else whole(value, Role.SYSTEM, Slot.SYSTEM)
