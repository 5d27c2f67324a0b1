"""Deeds as other memories log them: one wide self-describing record a mutation, and its fold struct by struct.

The fields are those that mutation logs of agent memories have in common; every record has all of
them, whatever its kind, so that it can be read alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from benches.parts.story import AT, AT_STEP, Changed, Deed, Linked, Made, Packed, Replied, Said, Shortened, Turned

ROLES = ("system", "user", "assistant", "tool")
SESSION = "sess_01HZX7R2K3"
MUTATIONS_A_TURN = 120


class Record(msgspec.Struct):
    """One mutation as it is logged; `at` in seconds, `entered` as (page, content, level, rank)."""

    seq: int
    id: str
    session: str
    page: str
    op: str
    turn: int
    at: float
    actor: str
    tier_before: str | None = None
    tier_after: str | None = None
    level: int = 0
    version: int = 1
    tokens: int = 0
    importance: float = 0.5
    cause: str = ""
    policy: str = "recorded@1"
    kind: str = "transcript"
    parents: list[str] = []
    entered: list[tuple[str, int, int, int]] = []
    left: list[str] = []
    content: str | None = None


def record(deed: Deed, *, content: bool) -> Record:
    """A deed as a record; pages, messages and calls have their names."""
    position = deed.position
    told = _told(deed)
    if content:
        told.content = _text(deed)
    told.seq = position
    told.id = blake2b(position.to_bytes(8, "big"), digest_size=13).hexdigest()
    told.turn = position // MUTATIONS_A_TURN
    told.at = (AT + AT_STEP * position) / 1e6
    if not told.cause:
        told.cause = f"turn {told.turn}: {told.op}"
    return told


def _told(deed: Deed) -> Record:
    def of(page: str, op: str, actor: str = "system") -> Record:
        return Record(0, "", SESSION, page, op, 0, 0.0, actor)

    match deed:
        case Said():
            told = of(f"m{deed.position}", "message", ROLES[deed.role])
        case Made():
            told = of(f"p{deed.position}", "create", ROLES[deed.role])
            told.tier_after, told.tokens = "L2", deed.size // 4
            told.kind = "application/json" if deed.structured else "text/plain"
            told.parents = [f"p{deed.source}"] if deed.source else []
            told.cause = f"part of m{deed.message}, {deed.size} bytes"
        case Changed() | Shortened():
            told = of(f"p{deed.page}", "update" if isinstance(deed, Changed) else "compress")
            told.version, told.tokens = deed.version, deed.size // 4
            told.level = 0 if isinstance(deed, Changed) else 2
        case Linked():
            told = of(f"p{deed.source}", "link")
            told.kind, told.parents = "references", [f"p{deed.target}"]
        case Packed():
            told = of(f"call_{deed.call}", "pack")
            told.tier_before, told.tier_after = "L2", "L0"
            told.entered = [(f"p{page}", at, level, rank) for page, at, level, rank in deed.entered]
            told.left = [f"p{page}" for page in deed.left]
        case Replied():
            told = of(f"call_{deed.call}", "reply", "assistant")
            told.tokens = deed.tokens
            told.cause = f"ok: {deed.tokens * 9 // 10} cached, 300 out, 2000000 us"
        case Turned():
            told = of(f"turn_{deed.number}", "turn", "user")
    return told


def _text(deed: Deed) -> str | None:
    match deed:
        case Said():
            return deed.envelope.decode()
        case Replied():
            return deed.aside.decode()
        case Made() | Changed() | Shortened() if deed.content is not None:
            return deed.content.decode()
    return None


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Record).decode


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
        op = m.op
        if op == "create":
            pages[m.page] = Page(1, 0, 2, m.tokens, m.seq, m.seq)
            sizes[m.seq] = m.tokens
        elif op == "pack":
            for name, content, level, _ in m.entered:
                page = pages[name]
                page.tier, page.level, page.content, page.tokens = 0, level, content, sizes[content]
            for name in m.left:
                page = pages[name]
                page.tier, page.level, page.content, page.tokens = 2, 0, page.full, sizes[page.full]
        elif op == "update":
            page = pages[m.page]
            page.version, page.full = m.version, m.seq
            sizes[m.seq] = m.tokens
            if page.tier == 2:
                page.content, page.tokens = m.seq, m.tokens
        elif op == "compress":
            sizes[m.seq] = m.tokens
    return pages
