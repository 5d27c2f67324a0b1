"""The workload: a coding agent's session as deeds, nothing of any store in them.

The shares are those of an imported real session, its importer's marks left out: a quarter
messages, a third pages, and an eighth each of calls and of their replies. A pack ends its commit, so
in a long commit links stand where further packs would; everything else keeps its share however
long the commits are. The same seed tells the same story.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import islice, repeat
from typing import NamedTuple

from benches.parts.text import Texts

# Five calls: M message, C page, P pack, R reply, L link.
CALLS = "MCPRMCCL MCPRMCLL MCPRMCCL MCPRMCCL MCPRMCLL".replace(" ", "")
CALLS_A_TURN = 15
SHORTEN_EVERY, CHANGE_EVERY = 50, 100  # pages made
ENTERED_MAX = 16
RANK = 1_024
AT = 1_760_000_000_000_000  # microseconds since 1970
AT_STEP = 370_000

CHANGED = b'"changed"'  # what a page without content changes to: a text, and a JSON value
PLAINER = bytes.maketrans(b'"\n\\', b"' /")  # what a JSON text would have to escape

SKELETONS = (
    b'{"role":"user","content":{"\\u0000t":0}}',
    b'{"role":"assistant","content":[{"type":"text","text":{"\\u0000t":0}},{"\\u0000j":1}]}',
    b'{"role":"toolResult","toolName":"bash","content":[{"type":"text","text":{"\\u0000t":0}}],"isError":false}',
)


class Utterance(NamedTuple):
    """A message arrives; `role` is 1 user, 2 assistant, 3 tool."""

    position: int
    role: int
    envelope: bytes
    human: int


class Made(NamedTuple):
    """A page comes to be; `source` is the page that caused it, 0 where none did."""

    position: int
    role: int
    message: int
    content: bytes | None
    size: int
    structured: bool
    source: int


class Changed(NamedTuple):
    """A page's content changes."""

    position: int
    page: int
    version: int
    content: bytes
    size: int


class Shortened(NamedTuple):
    """A page gains a shorter content at level 2."""

    position: int
    page: int
    version: int
    content: bytes
    size: int


class Linked(NamedTuple):
    """A page relates to an earlier one."""

    position: int
    source: int
    target: int


class Packed(NamedTuple):
    """A call: which pages came in as (page, content, level, rank), which went."""

    position: int
    call: int
    entered: tuple[tuple[int, int, int, int], ...]
    left: tuple[int, ...]


class Replied(NamedTuple):
    """How the last call ended."""

    position: int
    call: int
    tokens: int
    aside: bytes


class Turned(NamedTuple):
    """A human message opens a turn."""

    position: int
    number: int


Deed = Utterance | Made | Changed | Shortened | Linked | Packed | Replied | Turned


class Story:
    """One session's deeds, commit by commit, from position `start` on.

    The context grows to `window[1]` pages and is then cut to the newest `window[0]`. Without
    content pages are opaque, and what changes gets the same few bytes each time.
    """

    def __init__(self, seed: int, texts: Texts | None, *, start: int = 2, window: tuple[int, int] = (60, 400)) -> None:
        self.position = start
        self._chance = random.Random(seed)
        self._texts: Iterator[bytes | None] = repeat(None) if texts is None else iter(texts)
        self._window = window
        self._shown: dict[int, tuple[int, int, int]] = {}  # page -> content, level, rank
        self._waiting: dict[int, tuple[int, int]] = {}  # page -> content, level
        self._versions: dict[int, int] = {}  # of pages with more than one
        self._pages: list[int] = []
        self._structured: set[int] = set()
        self._message = self._call = self._turn = self._made = self._rank = self._step = 0
        self._turn_call = -CALLS_A_TURN
        self._due = False  # a call whose pack has to wait for the end of a commit

    def commit(self, count: int) -> list[Deed]:
        """The deeds of the next commit."""
        deeds: list[Deed] = []
        for nth in range(count):
            deeds.append(self._next(nth == 0, nth == count - 1))
            self.position += 1
        return deeds

    def _next(self, first: bool, last: bool) -> Deed:
        if first and self._call >= self._turn_call + CALLS_A_TURN:
            return self._turned()
        if last and self._due and self._waiting:
            return self._packed()
        step = CALLS[self._step % len(CALLS)]
        self._step += 1
        if step == "P":
            self._due = True
            if last and self._waiting:
                return self._packed()
        if step == "M":
            return self._speak()
        if step == "R" and self._call:
            return self._replied()
        if step in "PLR" and len(self._pages) > 1:
            return self._linked()
        return self._page()

    def _turned(self) -> Turned:
        self._turn_call = self._call
        self._turn += 1
        return Turned(self.position, self._turn)

    def _speak(self) -> Utterance:
        self._message = self.position
        role = 1 + self._step % 3
        return Utterance(self.position, role, SKELETONS[role - 1], int(role == 1))

    def _page(self) -> Made | Changed | Shortened:
        self._made += 1
        content = next(self._texts)
        size = 1_000 if content is None else len(content)
        if self._made % CHANGE_EVERY == 0 or self._made % SHORTEN_EVERY == 0:
            return self._again(content, size)
        source = self._pages[-1] if self._pages and self._made % 3 == 0 else 0
        self._pages.append(self.position)
        self._waiting[self.position] = (self.position, 0)
        structured = self._made % 3 == 1
        if structured:
            self._structured.add(self.position)
            content = None if content is None else quoted(content)
        return Made(self.position, 1 + self._made % 3, self._message, content, size, structured, source)

    def _again(self, content: bytes | None, size: int) -> Changed | Shortened:
        page = self._recent(200)
        version = self._versions.get(page, 1)
        if content is None:
            content = CHANGED
        if self._made % CHANGE_EVERY == 0:
            self._versions[page] = version + 1
            self._waiting[page] = (self.position, 0)
            content = quoted(content) if page in self._structured else content
            return Changed(self.position, page, version + 1, content, len(content))
        self._waiting[page] = (self.position, 2)
        short = content[:200]
        return Shortened(self.position, page, version, short, len(short))

    def _recent(self, reach: int) -> int:
        return self._pages[-1 - int(min(len(self._pages), reach) * self._chance.random())]

    def _linked(self) -> Linked:
        source = self._pages[-1]
        target = self._recent(400)
        return Linked(self.position, source, target if target != source else self._pages[-2])

    def _packed(self) -> Packed:
        self._call += 1
        self._due = False
        left: list[int] = []
        least, most = self._window
        entering = list(self._waiting.items())[-ENTERED_MAX:]
        if len(self._shown) + len(entering) > most:
            kept = {page for page, _ in entering}
            left = [page for page in list(self._shown)[: len(self._shown) - least] if page not in kept]
            for page in left:
                del self._shown[page]
        entered = []
        for page, (content, level) in entering:
            if page in self._shown:
                rank = self._shown[page][2]
            else:
                self._rank += RANK
                rank = self._rank
            self._shown[page] = (content, level, rank)
            entered.append((page, content, level, rank))
        self._waiting.clear()
        return Packed(self.position, self._call, tuple(entered), tuple(left))

    def _replied(self) -> Replied:
        aside = b'{"stop":"stop","model":"m-1","response":{"id":"resp_%024d","object":"response"}}' % self.position
        return Replied(self.position, self._call, 200 + self.position * 7919 % 9_000, aside)


def quoted(content: bytes) -> bytes:
    """A JSON text of the same size, which is what a structured page holds."""
    return b'"%b"' % content[1:-1].translate(PLAINER)


def commits(story: Story, count: int, sizes: int | Iterable[int]) -> Iterator[list[Deed]]:
    """Commits of a story with `count` deeds in all, each of `sizes` or of one size after another."""
    cycle = repeat(sizes) if isinstance(sizes, int) else _around(list(sizes))
    while count > 0:
        size = min(count, next(cycle))
        yield story.commit(size)
        count -= size


def _around(sizes: list[int]) -> Iterator[int]:
    while True:
        yield from sizes


def deeds_of(seed: int, count: int, sizes: int | Iterable[int], *, content: bool = True) -> list[list[Deed]]:
    """All commits of a story at once."""
    return list(islice(commits(Story(seed, Texts(seed) if content else None), count, sizes), count))
