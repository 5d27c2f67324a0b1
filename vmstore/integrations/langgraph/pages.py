"""The pages that a graph's state is written as: checkpoints, channel values, blocks of large ones, pending writes.

Their contents are bytes of LangGraph's serializer inside MessagePack, so they are pages of no text: no search reads
them. A page's hint says what it is; what a graph's messages say stands in pages of text beside them.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import compress
from operator import attrgetter, not_
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import msgspec

from vmstore.core.mutation import Create
from vmstore.core.page import LinkKind, Mime, Modality, PageType, Role
from vmstore.core.text.token_estimate import estimate
from vmstore.engine.batch import HandBatch

BLOCK_BYTES = 1 << 14
INLINE_BYTES_MAX = 512  # what is not larger stands in its checkpoint, and there in each again
UNIQUE_BYTES = 8  # before the content of each page of state
MIME = "application/vnd.vmstore.langgraph+msgpack"
SAFE = "-_.:|~"
_PLAIN = re.compile(r"[A-Za-z0-9_.:|~-]+")  # a name that stands as it is
Typed = tuple[str, bytes]
"""A value as the serializer gives it: how it was made, and its bytes."""

ROLES = {"human": Role.USER, "ai": Role.ASSISTANT, "system": Role.SYSTEM, "tool": Role.TOOL}


class CheckpointState(msgspec.Struct, frozen=True, array_like=True):
    """A checkpoint as it stands in its page.

    `inline` are the channels' small values; `pages` the pages of the others. `envelope` is the checkpoint without
    the values of its channels.
    """

    namespace: str
    id: str
    parent: str | None
    run: str | None
    metadata: Typed
    envelope: Typed
    inline: dict[str, Typed]
    pages: dict[str, int]


class ChannelValue(msgspec.Struct, frozen=True, array_like=True):
    """A channel's value: a head, whole blocks of bytes that other versions share, and what is left over."""

    type: str
    head: bytes
    blocks: list[int]
    tail: bytes


class TaskWrites(msgspec.Struct, frozen=True, array_like=True):
    """The writes of one task for a checkpoint: of each its index, channel and value."""

    task: str
    path: str
    replaces: bool
    writes: list[tuple[int, str, Typed]]


class Named(NamedTuple):
    """A hint taken apart: the kind of the page, and names of which the last is LangGraph's namespace."""

    kind: str
    names: list[str]


def hint_of(kind: str, *names: str) -> str:
    """The hint of a page; what stands in a name and would part it is written out."""
    return " ".join([kind, *(name if _PLAIN.fullmatch(name) else quote(name, safe=SAFE) or "-" for name in names)])


def named(hint: str) -> Named:
    """Takes a hint apart."""
    kind, *names = hint.split(" ")
    return Named(kind, ["" if name == "-" else unquote(name) for name in names])


def add_state(batch: HandBatch, content: bytes, hint: str, links: Iterable[tuple[LinkKind, int]] = ()) -> int:
    """Adds a page of state to a batch; its number.

    Its position stands before its bytes: pages that hold the same would share a cell, and be erased together.
    """
    content = batch.position.to_bytes(UNIQUE_BYTES, "big") + content
    labels = batch.cell(msgspec.json.encode({"hint": hint, "mime": MIME, "actor": "langgraph"}))
    return batch.add(
        Create(
            PageType.VALUE,
            Modality.VIDEO,
            Role.OTHER,
            0,
            0,
            batch.cell(content),
            len(content),
            estimate(content, Modality.VIDEO),
            Mime.OTHER,
            tuple((int(kind), page) for kind, page in links),
            labels,
        )
    )


def state_of(content: bytes) -> bytes:
    """The state in the content of a page."""
    return content[UNIQUE_BYTES:]


def add_message(batch: HandBatch, message: Any, checkpoint: int) -> int | None:
    """Adds what a message says as a page of text, caused by a checkpoint; None where it says nothing."""
    content = spoken(message)
    role = ROLES.get(message.type, Role.OTHER)
    return add_text(batch, message.id, role, content, checkpoint) if content else None


def add_text(batch: HandBatch, id_: str, role: Role, content: bytes, checkpoint: int | None) -> int:
    """Adds a page of text by the id of its message, caused by a checkpoint where one is given; its number."""
    labels = batch.cell(msgspec.json.encode({"hint": hint_of("message", id_), "actor": "langgraph"}))
    links = () if checkpoint is None else ((int(LinkKind.CAUSED_BY), checkpoint),)
    kind = (PageType.TRANSCRIPT, Modality.TEXT, role)
    tokens = estimate(content, Modality.TEXT)
    return batch.add(Create(*kind, 0, 0, batch.cell(content), len(content), tokens, links=links, labels=labels))


def messages_in(values: Mapping[str, Any], known: Container[str] = ()) -> dict[str, Any]:
    """The messages in the values of channels that are not known, by their ids: what LangChain calls one, by its parts.

    A list is one of messages where its last item is.
    """
    found: dict[str, Any] = {}
    for value in values.values():
        items = value if isinstance(value, list) else (value,)
        if items and _is_message(items[-1]):
            found |= {item.id: item for item in _unknown(items, known) if _is_message(item)}
    return found


def _unknown(items: Sequence[Any], known: Container[str]) -> list[Any]:
    """The items whose ids are not known, without a loop of Python's: a talk of thousands is looked at each step."""
    try:
        return list(compress(items, map(not_, map(known.__contains__, map(attrgetter("id"), items)))))
    except AttributeError:
        return [item for item in items if getattr(item, "id", None) not in known]


def _is_message(item: Any) -> bool:
    return isinstance(getattr(item, "id", None), str) and hasattr(item, "content") and hasattr(item, "type")


def spoken(message: Any) -> bytes:
    """The text of a message, its calls of tools in a line each; half a character of UTF-16 is written out."""
    content = message.content
    parts = [content] if isinstance(content, str) else content if isinstance(content, list) else []
    lines = [part if isinstance(part, str) else part.get("text", "") for part in parts]
    calls = getattr(message, "tool_calls", None) or ()
    lines += [f"{call['name']}({msgspec.json.encode(call['args'], enc_hook=str).decode()})" for call in calls]
    text = "\n".join(line for line in lines if isinstance(line, str) and line)
    return text.encode("utf-8", "backslashreplace")


def head_bytes(value: Typed) -> int:
    """How many bytes of a value say how many items it has: they change where an item is added."""
    kind, content = value
    if kind != "msgpack" or not content:
        return 0
    first = content[0]
    return 1 if 0x90 <= first <= 0x9F else {0xDC: 3, 0xDD: 5}.get(first, 0)


def shared_blocks(old: bytes, old_start: int, new: bytes, new_start: int) -> int:
    """How many whole blocks two values have alike from where their bodies start.

    Block by block: a copy of a large value costs more than to look at it.
    """
    whole = min(len(old) - old_start, len(new) - new_start) // BLOCK_BYTES
    for block in range(whole):
        start = block * BLOCK_BYTES
        if not new.startswith(old[old_start + start : old_start + start + BLOCK_BYTES], new_start + start):
            return block
    return whole
