"""Live sessions made without a store: a kernel is told random things, and what it wrote is kept as commits."""

from __future__ import annotations

import random
from typing import Any

from vmstore.core import mutation as m
from vmstore.core.decision import Cause, FaultReason, Holder, Signal, Use
from vmstore.core.page import Modality, PageType, Role
from vmstore.replay.sink import ReplayForm
from vmstore.replay.stimuli import RecordedCommit, Stimuli, stimuli
from vmstore.vm.kernel.eviction import Compression
from vmstore.vm.kernel.kernel import Kernel
from vmstore.vm.kernel.managed_page import ManagedPage
from vmstore.vm.kernel.settings import encoded
from vmstore.vm.kernel.state import State

SIZES = (10, 60, 200, 900, 2_500)


def short(tokens: int, level: int) -> int:
    """The tokens of a form that the tests' compressor makes."""
    return max(5, tokens // (4, 8, 60)[level - 1])


def shorten(actual_page: ManagedPage, page: int, content: int, level: int) -> ReplayForm:
    """A form of nothing but a length."""
    full = actual_page.forms[0]
    assert full is not None
    tokens = short(full.tokens, level)
    return ReplayForm(level, 1, 1, b"x" * tokens, tokens)


class Life:
    """A session that lives in a list of commits."""

    def __init__(self, budget: int = 8_000, policy: str = "lru", *, bare: bool = False, **settings: Any) -> None:
        self.commits: list[RecordedCommit] = []
        self.position = 0
        self._under_way: list[tuple[int, m.AnyMutation]] = []
        self._cells: dict[int, bytes] = {}
        self.state = State(lambda position, ref: self._cells[position])
        self.kernel = Kernel(self.state, self._write, self._perform)
        fields = {"l0_tokens_max": budget, "policy": policy, **settings}
        self.tell(m.Open(b"u" * 16, 0))
        self.end()
        self.set(fields)
        self.system = 0
        if bare:
            self.act()
            return
        system = self.tell(m.Message(Role.SYSTEM, 1, 0))
        self.system = self.tell(m.Create(0, 0, Role.SYSTEM, system, 0, 0, 2_000, 500))
        self.tell(m.Pin(self.system, Holder.SYSTEM))
        self.act()

    def _write(self, mutation: m.AnyMutation) -> int:
        self.position += 1
        self._under_way.append((self.position, mutation))
        return self.position

    def _perform(self, request: Compression) -> m.Compress:
        page = self.state.pages[request.page]
        made = shorten(page, 0, 0, request.level)
        return m.Compress(page.page, page.version, made.level, 1, 1, 0, made.tokens, made.tokens)

    def tell(self, mutation: m.AnyMutation) -> int:
        """Writes a stimulus."""
        return self.kernel.tell(mutation)

    def set(self, fields: dict[str, Any]) -> None:
        """Tells settings."""
        self._cells[self.position + 1] = encoded(fields)
        self.tell(m.Settings(0))

    def end(self) -> None:
        """Ends a commit."""
        if self._under_way:
            cells = self._cells
            self.commits.append(
                RecordedCommit(len(self.commits), self._under_way, lambda position, ref: cells[position])
            )
            self._under_way = []
        self.kernel = Kernel(self.state, self._write, self._perform)

    def act(self, *, pack: bool = False) -> None:
        """Lets the kernel react, packs where told, and ends the commit."""
        self.kernel.react()
        if pack:
            entered, left = self.state.residences()
            self.tell(
                m.Pack(
                    self.state.call + 1, 1, len(self.state.here), self.state.used, b"r" * 32,
                    tuple(entered), tuple(left),
                )
            )  # fmt: skip
        self.end()

    def say(self, role: Role, tokens: int, *, human: int = 0, type: PageType = PageType.TRANSCRIPT) -> int:
        """A message of one page; the page."""
        message = self.tell(m.Message(role, 2, 0, human))
        return self.tell(m.Create(type, Modality.TEXT, role, message, 0, 0, tokens * 4, tokens))

    @property
    def stimuli(self) -> Stimuli:
        """What the session was told."""
        return stimuli("s", self.commits)


def lived(seed: int, acts: int = 300, *, budget: int = 8_000, **settings: Any) -> Life:
    """A session of random acts."""
    chance = random.Random(seed)
    life = Life(budget, **settings)
    for _ in range(acts):
        _act(life, chance)
        life.act(pack=chance.random() < 0.4)
    return life


def _act(life: Life, chance: random.Random) -> None:
    state, kind = life.state, chance.random()
    pages = sorted(state.pages)
    if kind < 0.15:
        life.tell(m.Turn(state.turn + 1))
        life.say(Role.USER, chance.randint(5, 200), human=1)
        for page in chance.sample(pages, min(3, len(pages))):
            life.tell(m.Reference(page, Use.SIGNAL, signal=Signal.TOPIC))
    elif kind < 0.5:
        size = chance.choice(SIZES)
        life.say(
            chance.choice((Role.ASSISTANT, Role.TOOL)),
            size,
            type=chance.choice((PageType.TRANSCRIPT,) * 4 + (PageType.CLAIM,)),
        )
    elif kind < 0.8:
        use = chance.choice((Use.FAULT, Use.FAULT, Use.QUOTE, Use.ASKED))
        page = chance.choice([0, *pages]) if use == Use.FAULT and chance.random() < 0.1 else chance.choice(pages)
        reason = chance.choice(list(FaultReason))
        life.tell(m.Reference(page, use, life.state.call, chance.randint(0, 3), reason if use == Use.FAULT else 0))
    elif kind < 0.85:
        life.tell(m.Cite(chance.choice(pages), chance.choice(pages)))
    elif kind < 0.88:
        life.tell(m.Recall(chance.choice(pages), chance.randint(0, 1)))
    elif kind < 0.94:
        _asked(life, chance, chance.choice(pages))
    else:
        _pinned(life, chance.choice(pages))


def _asked(life: Life, chance: random.Random, page: int) -> None:
    """Somebody evicts a page, or has it shown shorter."""
    actual_page = life.state.here.get(page)
    if actual_page is None or actual_page.pinned:
        return
    if chance.random() < 0.5 or actual_page.level:
        life.tell(m.Evict(page, Cause.ASKED, actual_page.tokens))
        return
    if actual_page.forms[2] is None:
        life.tell(life._perform(Compression(page, 2)))
    form = actual_page.forms[2]
    assert form is not None
    life.tell(m.Evict(page, Cause.ASKED, actual_page.tokens - form.tokens, 0, 2, form.position))


def _pinned(life: Life, page: int) -> None:
    """A page is pinned, or let go."""
    state, actual_page = life.state, life.state.pages[page]
    if actual_page.pinned and page != life.system:
        life.tell(m.Unpin(page, Holder.HAND))
    elif not actual_page.pinned and page in state.here and state.pinned + actual_page.tokens < state.room // 3:
        life.tell(m.Pin(page, Holder.HAND))
