"""Deeds as other memories log them: one wide self-describing record a mutation, and its fold struct by struct.

The fields are those that mutation logs of agent memories have in common; every record has all of
them, whatever its kind, so that it can be read alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from benches.parts.story import AT, AT_STEP, Changed, Deed, Linked, Made, Packed, Replied, Shortened, Turned, Utterance

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
    value = _record_of(deed)
    if content:
        value.content = _text(deed)
    value.seq = position
    value.id = blake2b(position.to_bytes(8, "big"), digest_size=13).hexdigest()
    value.turn = position // MUTATIONS_A_TURN
    value.at = (AT + AT_STEP * position) / 1e6
    if not value.cause:
        value.cause = f"turn {value.turn}: {value.op}"
    return value


def _record_of(deed: Deed) -> Record:
    def of(page: str, op: str, actor: str = "system") -> Record:
        return Record(0, "", SESSION, page, op, 0, 0.0, actor)

    match deed:
        case Utterance():
            value = of(f"m{deed.position}", "message", ROLES[deed.role])
        case Made():
            value = of(f"p{deed.position}", "create", ROLES[deed.role])
            value.tier_after, value.tokens = "L2", deed.size // 4
            value.kind = "application/json" if deed.structured else "text/plain"
            value.parents = [f"p{deed.source}"] if deed.source else []
            value.cause = f"part of m{deed.message}, {deed.size} bytes"
        case Changed() | Shortened():
            value = of(f"p{deed.page}", "update" if isinstance(deed, Changed) else "compress")
            value.version, value.tokens = deed.version, deed.size // 4
            value.level = 0 if isinstance(deed, Changed) else 2
        case Linked():
            value = of(f"p{deed.source}", "link")
            value.kind, value.parents = "references", [f"p{deed.target}"]
        case Packed():
            value = of(f"call_{deed.call}", "pack")
            value.tier_before, value.tier_after = "L2", "L0"
            value.entered = [(f"p{page}", at, level, rank) for page, at, level, rank in deed.entered]
            value.left = [f"p{page}" for page in deed.left]
        case Replied():
            value = of(f"call_{deed.call}", "reply", "assistant")
            value.tokens = deed.tokens
            value.cause = f"ok: {deed.tokens * 9 // 10} cached, 300 out, 2000000 us"
        case Turned():
            value = of(f"turn_{deed.number}", "turn", "user")
    return value


def _text(deed: Deed) -> str | None:
    match deed:
        case Utterance():
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
