"""Deeds as a plain event store would keep them: self-describing records, and the fold of them struct by struct."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from benches.parts.story import AT, AT_STEP, Changed, Deed, Linked, Made, Packed, Replied, Said, Shortened, Turned

ROLES = ("system", "user", "assistant", "tool")
SESSION = "sess_01HZX7R2K3"
MUTATIONS_A_TURN = 120


class Record(msgspec.Struct, tag_field="kind"):
    """What every record says of itself: no other record tells it."""

    seq: int
    id: str
    session: str
    turn: int
    at: int
    actor: str


class MessageSaid(Record, tag="message"):
    """A message."""

    role: str
    human: bool
    envelope: str


class PageMade(Record, tag="create"):
    """A page."""

    page: str
    type: str
    modality: str
    role: str
    message: str
    mime: str
    size: int
    tokens: int
    importance: float
    sources: list[str]
    content: str | None = None


class PageChanged(Record, tag="update"):
    """A page's new version."""

    page: str
    version: int
    size: int
    tokens: int
    content: str | None = None


class PageShortened(Record, tag="compress"):
    """A page's shorter content."""

    page: str
    version: int
    level: int
    method: str
    lossy: bool
    size: int
    tokens: int
    content: str | None = None


class PagesLinked(Record, tag="link"):
    """A link between pages."""

    source: str
    target: str
    link: str


class CallMade(Record, tag="pack"):
    """What came into the context and what left it."""

    call: int
    entered: list[tuple[str, int, int, int]]
    left: list[str]


class CallReplied(Record, tag="reply"):
    """How a call ended."""

    call: int
    status: str
    tokens_in: int
    tokens_cached: int
    tokens_out: int
    latency: int
    aside: str


class TurnOpened(Record, tag="turn"):
    """A turn."""

    number: int


Known = MessageSaid | PageMade | PageChanged | PageShortened | PagesLinked | CallMade | CallReplied | TurnOpened


def record(deed: Deed, *, content: bool) -> Known:
    """A deed as a record; pages and messages have their names."""
    position = deed.position
    name = blake2b(position.to_bytes(8, "big"), digest_size=16).hexdigest()
    head = (position, name, SESSION, position // MUTATIONS_A_TURN, AT + AT_STEP * position, "system")
    match deed:
        case Said():
            return MessageSaid(*head, ROLES[deed.role], bool(deed.human), deed.envelope.decode())
        case Made():
            kinds = ("transcript", "structured" if deed.structured else "text", ROLES[deed.role])
            mime = "application/json" if deed.structured else "text/plain"
            sources = [f"p{deed.source}"] if deed.source else []
            sizes = (deed.size, deed.size // 4, 0.5)
            text = _text(deed.content, content)
            return PageMade(*head, f"p{deed.position}", *kinds, f"m{deed.message}", mime, *sizes, sources, text)
        case Changed():
            sizes = (deed.size, deed.size // 4)
            return PageChanged(*head, f"p{deed.page}", deed.version, *sizes, _text(deed.content, content))
        case Shortened():
            told = (deed.version, 2, "shortened", True, deed.size, deed.size // 4)
            return PageShortened(*head, f"p{deed.page}", *told, _text(deed.content, content))
        case Linked():
            return PagesLinked(*head, f"p{deed.source}", f"p{deed.target}", "references")
        case Packed():
            entered = [(f"p{page}", at, level, rank) for page, at, level, rank in deed.entered]
            return CallMade(*head, deed.call, entered, [f"p{page}" for page in deed.left])
        case Replied():
            cached = deed.tokens * 9 // 10
            return CallReplied(*head, deed.call, "ok", deed.tokens, cached, 300, 2_000_000, deed.aside.decode())
        case Turned():
            return TurnOpened(*head, deed.number)


def _text(content: bytes | None, wanted: bool) -> str | None:
    return content.decode("ascii", "replace") if wanted and content is not None else None


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Known).decode


# ---- the struct-by-struct fold


class Page(msgspec.Struct, gc=False):
    """A row of the page table."""

    version: int
    level: int
    tier: int
    tokens: int
    content: int
    full: int


def folded(blobs: Iterable[bytes]) -> dict[str, Page]:
    """The page table, each record decoded into its struct and folded into a dict of structs."""
    pages: dict[str, Page] = {}
    sizes: dict[int, int] = {}
    for m in map(decode, blobs):
        kind = type(m)
        if kind is PageMade:
            pages[m.page] = Page(1, 0, 2, m.tokens, m.seq, m.seq)
            sizes[m.seq] = m.tokens
        elif kind is CallMade:
            for name, content, level, _ in m.entered:
                page = pages[name]
                page.tier, page.level, page.content, page.tokens = 0, level, content, sizes[content]
            for name in m.left:
                page = pages[name]
                page.tier, page.level, page.content, page.tokens = 2, 0, page.full, sizes[page.full]
        elif kind is PageChanged:
            page = pages[m.page]
            page.version, page.full = m.version, m.seq
            sizes[m.seq] = m.tokens
            if page.tier == 2:
                page.content, page.tokens = m.seq, m.tokens
        elif kind is PageShortened:
            sizes[m.seq] = m.tokens
    return pages
