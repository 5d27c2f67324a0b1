"""Drafts that callers pass to capture: messages taken apart into content and envelope, not stored yet.

A message is a JSON value. Taking it apart replaces each content part by a *hole* and leaves a
*skeleton*; putting the contents back gives the value again, equal in every field.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from vmstore.core.page import LinkKind, Mime, Modality, PageType, Role, Slot, Status

COMPONENT = re.compile(r"[a-z][a-z0-9_]{0,39}")  # a part of a memory by its name, which is nothing anybody wrote


class Part(msgspec.Struct, frozen=True, gc=False):
    """One content part: a text, a thinking block, a tool call, a tool result, an image.

    `content` is the exact bytes: UTF-8 of a text, compact JSON of a structured part, the decoded
    bytes of base64. `call_id` names the tool call a call makes or a result answers; `tool` its
    tool. `mime_name` is set where `mime` is OTHER.
    """

    content: bytes
    modality: Modality = Modality.TEXT
    mime: Mime = Mime.TEXT
    type: PageType = PageType.TRANSCRIPT
    call_id: str | None = None
    tool: str | None = None
    mime_name: str | None = None
    is_call: bool = False  # this part asks for a tool
    is_result: bool = False  # this part answers a tool call


class Draft(msgspec.Struct, frozen=True):
    """One message as it stood: a skeleton with holes, and the parts that fill them.

    `skeleton` is JSON (see `capture.skeleton`); `aside` is JSON of what the source keeps beside
    the message and the model never sees; `human` tells a message a person wrote, which alone can
    open a turn; `hint` is the source's own name for it, by which later messages may name it;
    `links` are (kind, hint of an earlier message) pairs: where this one comes from. `tags`,
    `importance` (parts per million) and `actor`, who made it, are what the source says of its pages;
    `origin` is the address of the page in another session that it was taken from; `metadata` are further labels.
    """

    role: Role
    skeleton: bytes
    parts: tuple[Part, ...]
    slot: Slot = Slot.MESSAGES
    human: bool = False
    aside: bytes | None = None
    hint: str | None = None
    links: tuple[tuple[LinkKind, str], ...] = ()
    tags: tuple[str, ...] = ()
    importance: int | None = None
    actor: str | None = None
    origin: str | None = None
    metadata: dict[str, str] = {}


class TokenUsage(msgspec.Struct, frozen=True, gc=False):
    """Token counts that a provider reports of a call; tokens in include those read from its cache or written to it.

    `cost` is in nano-dollars, `latency` in microseconds; None where nothing was said.
    """

    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    cost: int | None = None
    latency: int | None = None
    tokens_written: int | None = None


class Request(msgspec.Struct, frozen=True):
    """One request to a model: `rest` is its JSON with a hole for each slot of messages."""

    shape: int
    rest: bytes
    drafts: tuple[Draft, ...]
    model: str | None = None


class ReplyDraft(msgspec.Struct, frozen=True):
    """A response before it is stored: messages, status, usage and cost.

    `final` is True where the answer asks for no tool: the next human message opens a turn.
    `body` is JSON of the response with a hole for each of its messages, where the source holds it;
    `assembled` where it was put together from the parts of a stream. `aside` is JSON of what else
    a source keeps of the answer. `component` names the part of a memory that made the call.
    """

    status: Status
    drafts: tuple[Draft, ...] = ()
    stop: str | None = None
    model: str | None = None
    usage: TokenUsage = TokenUsage()
    final: bool = False
    body: bytes | None = None
    assembled: bool = False
    aside: bytes | None = None
    error: str | None = None
    component: str | None = None


class EndedCall(NamedTuple):
    """One call to a model, as `Store.record` takes it: times in microseconds.

    `asked` is the request that a client made, where another one was sent; `beside` is kept with the answer.
    """

    session: str
    request: dict[str, Any]
    response: Any
    at: int | None
    latency: int | None
    asked: dict[str, Any] | None = None
    beside: dict[str, Any] | None = None
