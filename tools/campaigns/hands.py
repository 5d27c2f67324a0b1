"""Mutations as somebody might write them by hand: well formed, then wrong at one place or at several."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, get_args, get_origin

import msgspec

from vmstore.core.decision import Why
from vmstore.core.mutation import (
    CELL_FIELDS,
    Annotate,
    AnyMutation,
    Approve,
    Cite,
    Close,
    Compress,
    Configure,
    Create,
    Delete,
    Erase,
    Evict,
    FaultDenied,
    FaultIn,
    Flush,
    Link,
    Mark,
    Message,
    NamespacePolicy,
    Open,
    Pack,
    Pin,
    Prefetch,
    Pressure,
    Recall,
    Redact,
    Reference,
    Reply,
    Revoke,
    Search,
    Segment,
    Settings,
    Share,
    Turn,
    Unlink,
    Unpin,
    Update,
)
from vmstore.engine.batch import Batch
from vmstore.engine.rules.cell_contents import LABELS, NOTE, OBJECT, OPAQUE, PLAIN, SKELETON, TEXTS, CellForm
from vmstore.engine.rules.cell_contents import VALUE as JSON_VALUE
from vmstore.engine.rules.field_types import WORDS

GOOD: dict[str, tuple[bytes, ...]] = {
    OPAQUE.words: (b"the gate opens at noon", b"", b'{"a":1}', b"\x89PNG\r\n\x1a\n", "café 🙂".encode(), b"x" * 70_000),
    PLAIN.words: (b"here", "where the café is".encode(), b""),
    OBJECT.words: (b"{}", b'{"model":"m-2","temperature":0.5}', b'{"stop":"end","error":"none"}', b'{"a":null}'),
    JSON_VALUE.words: (b"null", b"[1,2]", b'{"deep":[[[]]]}'),
    LABELS.words: (b"{}", b'{"hint":"gate","tags":["a","b"],"actor":"ann"}', b'{"asks":"c1"}', b'{"mime":"text/x"}'),
    TEXTS.words: (b"[]", b'["a","b"]', '["é"]'.encode()),
    SKELETON.words: (
        b'{"role":"user","content":{"\\u0000t":0}}',
        b'{"role":"user","content":[{"\\u0000t":0},{"\\u0000j":1}]}',
        b'{"\\u0000j":0}',
        b'{"\\u0000k":[0,["b",["a","c"]]]}',
        b'{"role":"user","content":"as it is"}',
    ),
    NOTE.words: (b"[]", b"[[1,0]]"),
}
HOSTILE: tuple[bytes, ...] = (
    b"", b"{", b"5", b"[7]", b"null", b'"text"', b"\xff", b"\xff\xfe{\x00}\x00", b"\xef\xbb\xbf{}",
    b"[" * 240 + b"]" * 240, b"[" * 3_000, b"[" * 3_000 + b"]" * 3_000, b'{"model":' + b"[" * 900 + b"]" * 900 + b"}",
    b'{"model":1e400}', b'{"seed":NaN}', b'{"a":Infinity}', b'{"seed":' + b"9" * 5_000 + b"}", b"9" * 4_000,
    b'{"model":5,"stop":[1],"error":{"a":1}}', b'{"user":7,"agent":[],"title":{}}', '{"stop":"\ud83d"}'.encode(
        "utf-8", "surrogatepass"
    ), b'{"error":"\\ud83d"}', "half \ud83d".encode("utf-8", "surrogatepass"),
    b'{"hint":5,"tags":7,"actor":[],"mime":{},"asks":1}', b'{"reason":"why"}', b'{"where":1,"reason":2}',
    b'{"\\u0000t":-1}', b'{"\\u0000t":99}', b'{"\\u0000j":"0"}', b'{"\\u0000t":0,"a":1}', b'{"\\u0000l":2}',
    b'[{"\\u0000t":0},{"\\u0000t":0}]', b'{"\\u0000k":[0,[[]]]}', b'{"\\u0000k":0}', b'{"\\u0000k":[[],5]}',
    b'{"\\u0000b":0}', b'{"role":"user","content":{"\\u0000t":1}}',
    b"[erased at position 5]", b"a\0b", b'{"a":"\\u0000"}', b'{"' + b"k" * 70_000 + b'":1}', b'{"a":1,"a":2}',
    b'["a",5]', b"[[1]]", b'[["p1",0]]', b"</VM:CONTEXT>", b'{"l0_tokens_max":-1}',
)  # fmt: skip
NUMBERS = (-1, 0, 1, 2, 3, 9, 10**6, 2**31, 2**53, 2**62, 2**63 - 1, -(2**63) + 1, 2**63, 10**30)
RIGHT = 0.8  # of the mutations stay as they were made


class KnownSession(NamedTuple):
    """What the hand knows of a session: its messages, its pages and their contents, where cells lie."""

    messages: list[int]
    pages: dict[int, list[tuple[int, int]]]  # by page: position and level of its contents
    versions: dict[int, int]
    cells: list[tuple[int, int]]  # of commits that were accepted
    references: list[int]


def nothing_held() -> KnownSession:
    """A session of which nothing is known yet."""
    return KnownSession([], {}, {}, [], [])


class Hand:
    """Makes mutations of every kind for a session, some of them wrong; `chance` decides."""

    def __init__(self, chance: random.Random, value: KnownSession, others: list[KnownSession]) -> None:
        self.chance = chance
        self.held = value
        self.others = others

    def write(self, batch: Batch) -> Iterator[tuple[int, AnyMutation]]:
        """Adds a few mutations to a batch; each with its position."""
        for _ in range(self.chance.choice((1, 1, 1, 2, 3))):
            for made in self.made(batch):
                made = made if self.chance.random() < RIGHT else self.wrong(batch, made)
                position = batch.add(made)
                yield position, made

    def made(self, batch: Batch) -> list[Any]:
        """One deed, well formed as far as the hand knows."""
        return MAKERS[self.chance.choice(KINDS)](self, batch)

    def page(self) -> int:
        """A page of the session, sometimes one that is none."""
        pages = list(self.held.pages)
        return self.chance.choice(pages) if pages and self.chance.random() < 0.97 else self.chance.randrange(9)

    def cell(self, batch: Batch, form: CellForm) -> Any:
        """A cell of a form: sealed now, or an earlier one that may hold something else."""
        if self.held.cells and self.chance.random() < 0.08:
            return self.chance.choice(self.held.cells)
        if self.chance.random() < 0.08:
            return batch.cell(self.chance.choice(HOSTILE))
        return batch.cell(self.chance.choice(GOOD[form.words]))

    def content(self, batch: Batch) -> tuple[Any, int, int]:
        """A content with its size and its tokens."""
        content = self.chance.choice((*GOOD[OPAQUE.words], *HOSTILE[:12], b"page %d" % self.chance.randrange(10**6)))
        return batch.cell(content), len(content), -(-len(content) // 4)

    # ---- wrong

    def wrong(self, batch: Batch, made: Any) -> Any:
        """The mutation with one field, or some, as they should not be."""
        fields = msgspec.structs.fields(type(made))
        other_fields: dict[str, Any] = {}
        for _ in range(self.chance.choice((1, 1, 1, 2))):
            if fields:
                field = self.chance.choice(fields)
                other_fields[field.name] = self.value(batch, made, field.name, field.type)
        wrong = msgspec.structs.replace(made, **other_fields)
        if isinstance(wrong, Pack) and self.chance.random() < 0.9:
            return stated(batch, wrong)
        return wrong

    def value(self, batch: Batch, made: Any, name: str, kind: Any) -> Any:
        """Something for a field: hostile, or of another place."""
        if name in CELL_FIELDS.get(type(made), ()):
            if self.chance.random() < 0.4 and self.held.cells:
                return self.chance.choice(self.held.cells)
            return self.chance.choice((batch.cell(self.chance.choice(HOSTILE)), None, 0, 99, (1, 0), (10**9, 3)))
        if (words := WORDS.get(type(made), {}).get(name)) and self.chance.random() < 0.7:
            return self.chance.choice(sorted(words))
        if get_origin(kind) is tuple or name in ("entered", "left", "links", "found", "cells", "envelopes"):
            return self.several(batch, getattr(made, name), name)
        if bytes in (kind, *get_args(kind)):
            return self.chance.choice((b"", b"u" * 16, b"\xff" * 32, None))
        if kind is Why or Why in get_args(kind):
            return self.why(batch)
        return self.number(batch)

    def number(self, batch: Batch) -> Any:
        """A number that may be a position, a page, a count, or beyond all of them."""
        near = (batch.position - 1, batch.head.call, batch.head.turn, batch.head.call + 1, self.page())
        return self.chance.choice((*NUMBERS, *near, *near, None))

    def several(self, batch: Batch, had: Any, name: str) -> Any:
        """A list with one dropped, one twice, one changed, or one more."""
        hads = list(had or ())
        deed = self.chance.randrange(5)
        if hads and deed == 0:
            hads.pop(self.chance.randrange(len(hads)))
        elif hads and deed == 1:
            hads.append(self.chance.choice(hads))
        elif hads and deed == 2 and isinstance(hads[0], tuple):
            at = self.chance.randrange(len(hads))
            each_hads = list(hads[at])
            each_hads[self.chance.randrange(len(each_hads))] = self.number(batch)
            hads[at] = tuple(each_hads)
        elif name == "envelopes":
            message = self.chance.choice(self.held.messages or [1])
            hads.append((message, self.cell(batch, SKELETON)))
        elif name == "left" and batch.head.order:
            hads.append(self.chance.choice(batch.head.order)[0])
        else:
            self.chance.shuffle(hads)
        return tuple(hads)

    def why(self, batch: Batch) -> Why:
        """A contest."""
        number = self.number
        losers = ((number(batch) or 0, self.page()),) if self.chance.random() < 0.5 else ()
        few = [self.chance.choice((0, 1, 7, 9, 100, 8_000, -1, 2**62)) for _ in range(7)]
        return Why(few[0], few[1], few[2], few[3], self.page(), few[5], few[6], losers)


# ---- well formed


def _say(hand: Hand, batch: Batch) -> list[Any]:
    """A message with its pages."""
    chance, first = hand.chance, batch.position
    skeleton = chance.choice(GOOD[SKELETON.words])
    made: list[Any] = [Message(chance.randrange(6), chance.choice((1, 2, 2, 2)), batch.cell(skeleton))]
    for part in range(skeleton.count(b"\\u0000")):
        made.append(_create(hand, batch, first, part, json=b'\\u0000j":%d' % part in skeleton))
    return made


def _create(hand: Hand, batch: Batch, message: int, part: int, *, json: bool = False) -> Create:
    chance = hand.chance
    content = chance.choice((b'{"a":1}', b"[]", b"5")) if json else chance.choice((b"one", b"", b"x" * 400))
    links = ((chance.randrange(10), hand.page()),) if hand.held.pages and chance.random() < 0.2 else ()
    labels = hand.cell(batch, LABELS) if chance.random() < 0.4 else None
    values = (batch.cell(content), len(content), -(-len(content) // 4), chance.choice((0, 1, 9)), links, labels)
    return Create(chance.randrange(6), 4 if json else 0, chance.randrange(6), message, part, *values)


def _apart(hand: Hand, batch: Batch) -> list[Any]:
    """A page of no message, of any modality, or one without a content."""
    chance = hand.chance
    if chance.random() < 0.1:
        return [Create(4, 0, 0, 0, 0, None, 0, chance.choice((0, 9, 2**53)))]
    labels = hand.cell(batch, LABELS) if chance.random() < 0.5 else None
    where = (chance.randrange(7), chance.randrange(5), chance.randrange(6), 0, 0)
    return [Create(*where, *hand.content(batch), chance.randrange(10), (), labels)]


def _update(hand: Hand, batch: Batch) -> list[Any]:
    page = hand.page()
    return [Update(page, hand.held.versions.get(page, 0) + 1, *hand.content(batch))]


def _compress(hand: Hand, batch: Batch) -> list[Any]:
    page, chance = hand.page(), hand.chance
    values = (hand.held.versions.get(page, 0), chance.randrange(1, 4), chance.randrange(14), 1)
    return [Compress(page, *values, *hand.content(batch))]


def stated(batch: Batch, pack: Pack) -> Pack:
    """A pack with the totals that the fold finds, where it can."""
    try:
        totals = batch.head.copy().enter(pack.entered, pack.left)
    except Exception:  # it shows what is not there
        return pack
    return msgspec.structs.replace(pack, leaves=totals.leaves, tokens=totals.tokens, root=totals.root)


def _pack(hand: Hand, batch: Batch) -> list[Any]:
    """A call that shows some pages more, some less, with what it says besides."""
    chance, head = hand.chance, batch.head
    rank = head.order[-1][3] if head.order else 0
    entered = []
    pages = list(hand.held.pages)[-6:]
    for page in pages:
        if chance.random() < 0.7 and page <= head.position:
            content, level = chance.choice(hand.held.pages[page])
            rank += 10
            entered.append((page, content, level, rank))
    moved = {row[0] for row in entered}
    left = tuple(row[0] for row in head.order if row[0] not in moved and chance.random() < 0.15)
    rest = hand.cell(batch, OBJECT) if chance.random() < 0.3 else None
    renderer = chance.choice((1, 1, 1, 2))
    made = Pack(
        head.call + 1, 1, 0, 0, bytes(32), tuple(entered), left, rest, (), chance.choice((None, 0, 3)), renderer
    )
    return [stated(batch, made)]


def _reply(hand: Hand, batch: Batch) -> list[Any]:
    chance = hand.chance
    few = [chance.choice((None, 0, 5, 10**9)) for _ in range(5)]
    aside = hand.cell(batch, OBJECT) if chance.random() < 0.7 else None
    return [Reply(batch.head.call, chance.randrange(5), chance.randrange(2), *few, aside=aside)]


def _annotate(hand: Hand, batch: Batch) -> list[Any]:
    chance = hand.chance
    tags, untags = hand.cell(batch, TEXTS), hand.cell(batch, TEXTS)
    return [Annotate(hand.page(), chance.choice((None, 5)), chance.choice((None, 1)), None, 9, tags, untags,
                     hand.cell(batch, OBJECT))]  # fmt: skip


def _fault(hand: Hand, batch: Batch) -> list[Any]:
    """A page is asked for, and comes or does not."""
    chance, page = hand.chance, hand.page()
    made: list[Any] = [Reference(page, chance.randrange(6), batch.head.call, 0, 0, 0, hand.cell(batch, PLAIN))]
    at, (content, level) = batch.position, chance.choice(hand.held.pages.get(page) or [(page, 0)])
    answer = chance.randrange(4)
    if answer == 0:
        made.append(FaultIn(page, content, level, 5, at, hand.why(batch)))
    elif answer == 1:
        made.append(FaultDenied(page, at, chance.randrange(9), hand.why(batch)))
    elif answer == 2:
        made.append(Prefetch(page, content, level, 5, at, hand.why(batch)))
    return made


def _evict(hand: Hand, batch: Batch) -> list[Any]:
    chance = hand.chance
    why = hand.why(batch) if chance.random() < 0.6 else None
    return [Evict(hand.page(), chance.randrange(10), 5, 1, None, None, why, chance.choice((0, 3, batch.position)))]


MAKERS: dict[str, Callable[[Hand, Batch], list[Any]]] = {
    "say": _say,
    "apart": _apart,
    "update": _update,
    "compress": _compress,
    "pack": _pack,
    "reply": _reply,
    "annotate": _annotate,
    "fault": _fault,
    "evict": _evict,
    "turn": lambda hand, batch: [Turn(batch.head.turn + 1)],
    "configure": lambda hand, batch: [Configure(2, hand.chance.choice((900_000, 1_300_000, 0)))],
    "mark": lambda hand, batch: [Mark(0, 0, None, hand.cell(batch, PLAIN), hand.cell(batch, NOTE))],
    "link": lambda hand, batch: [Link(hand.page(), hand.page(), hand.chance.randrange(10), None, 5)],
    "unlink": lambda hand, batch: [Unlink(hand.page(), hand.page(), hand.chance.randrange(10))],
    "delete": lambda hand, batch: [Delete(hand.page())],
    "flush": lambda hand, batch: [Flush(hand.page())],
    "close": lambda hand, batch: [Close(hand.chance.randrange(5), hand.cell(batch, PLAIN))],
    "segment": lambda hand, batch: [Segment(hand.chance.randrange(9), hand.page(), hand.cell(batch, PLAIN))],
    "cite": lambda hand, batch: [Cite(hand.page(), hand.page(), hand.cell(batch, PLAIN))],
    "search": lambda hand, batch: [Search(hand.cell(batch, PLAIN), (hand.page(), hand.page()), 2)],
    "recall": lambda hand, batch: [Recall(hand.page(), hand.chance.randrange(2))],
    "pin": lambda hand, batch: [Pin(hand.page(), hand.chance.randrange(6))],
    "unpin": lambda hand, batch: [Unpin(hand.page(), hand.chance.randrange(6), hand.why(batch))],
    "pressure": lambda hand, batch: [Pressure(hand.chance.randrange(4), 5, hand.chance.choice((0, 9)))],
    "settings": lambda hand, batch: [Settings(hand.cell(batch, OBJECT))],
    "open": lambda hand, batch: [Open(b"u" * 16, hand.cell(batch, PLAIN))],
    "erase": lambda hand, batch: [Erase(0, tuple(hand.held.cells[:2]), 0)],
    "redact": lambda hand, batch: [Redact(hand.page(), count=1)],
    "approve": lambda hand, batch: [Approve(1, 0, None, hand.cell(batch, PLAIN))],
    "share": lambda hand, batch: [Share(3, None, 1)],
    "revoke": lambda hand, batch: [Revoke(1, 1)],
    "namespace_policy": lambda hand, batch: [NamespacePolicy(0, hand.cell(batch, PLAIN))],
}
COMMANDS = ("settings", "open", "erase", "redact", "approve", "share", "revoke", "namespace_policy")
_OWN = tuple(name for name in MAKERS if name not in COMMANDS)
KINDS = (*MAKERS, *_OWN * 2, *("say", "pack", "reply", "update", "compress", "annotate", "apart") * 6)
