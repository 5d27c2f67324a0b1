"""A session in which a kernel is at work, written by hand: every decision and every reason is known."""

from __future__ import annotations

import json

import vmstore
from tests.inner import inner_batch
from vmstore.core.decision import Cause, Denial, FaultReason, Holder, Signal, Use, Why
from vmstore.core.mutation import (
    Cite,
    Compress,
    Create,
    Evict,
    FaultDenied,
    FaultIn,
    Message,
    Mutation,
    Pack,
    Pin,
    Prefetch,
    Reference,
    Settings,
    Turn,
    Unpin,
)
from vmstore.core.page import Level, Modality, PageType, Role, Slot
from vmstore.store.session import Session
from vmstore.store.store import Store


class Hand:
    """Writes a session through its batches, as a kernel would; each method is one commit."""

    def __init__(self, store: Store, name: str) -> None:
        self.session: Session = store.session(name, create=True)
        self.shown: dict[int, tuple[int, int]] = {}  # page -> position and level of the content shown

    def write(self, *mutations: Mutation) -> int:
        """Writes mutations as one commit; the position of the first."""
        with inner_batch(self.session) as batch:
            first = batch.position
            for mutation in mutations:
                batch.add(mutation)  # type: ignore[arg-type]
            return first

    def settings(self, **fields: object) -> int:
        """Settings change."""
        with inner_batch(self.session) as batch:
            return batch.add(Settings(batch.cell(json.dumps(fields).encode())))

    def page(self, text: str, tokens: int, *, turn: bool = False) -> int:
        """A message of one page, which opens a turn where told; the page."""
        with inner_batch(self.session) as batch:
            if turn:
                batch.add(Turn(batch.head.turn + 1))
            message = batch.add(Message(Role.USER, Slot.MESSAGES, batch.cell(b'{"\\u0000t":0}')))
            values = (message, 0, batch.cell(text.encode()), len(text), tokens)
            page = batch.add(Create(PageType.TRANSCRIPT, Modality.TEXT, Role.USER, *values))
        self.shown[page] = (page, 0)
        return page

    def shorter(self, page: int, text: str, tokens: int) -> int:
        """An abstract of a page; its position."""
        with inner_batch(self.session) as batch:
            values = (batch.cell(text.encode()), len(text), tokens)
            return batch.add(Compress(page, 1, Level.ABSTRACT, 1, 1, *values))

    def call(self) -> int:
        """A request that has what is shown, by page; its position."""
        with inner_batch(self.session) as batch:
            head = batch.head
            entered = tuple(
                residence
                for page, shown in sorted(self.shown.items())
                if head.residence(page) != (residence := (page, *shown, page))
            )
            left = tuple(old[0] for old in head.order if old[0] not in self.shown)
            totals = head.copy().enter(entered, left)
            return batch.add(Pack(head.call + 1, 0, *totals, entered, left))


class Live(Hand):
    """Four turns in 100 tokens: a page gives way, is denied, comes back; another is shortened, held and let go."""

    def __init__(self, store: Store, name: str = "live") -> None:
        super().__init__(store, name)
        self.settings(l0_tokens_max=100, policy="lru")
        self.a = self.page("the gate opens at noon", 60, turn=True)
        self.first = self.call()
        self.b = self.page("the train is at six", 30, turn=True)
        self.second = self.call()
        self.c = self.page("and the boat at ten", 50, turn=True)
        self.contest = Why(1, 100, 140, 40, self.c, 2, 40, ((55, self.b),))
        self.evicted = self.write(Evict(self.a, Cause.PRESSURE, 60, 40, why=self.contest))
        del self.shown[self.a]
        self.third = self.call()
        self.asked = self.write(Reference(self.a, Use.FAULT, 3, 0, FaultReason.USER_REQUESTED_RECALL))
        self.denied = self.write(FaultDenied(self.a, self.asked, Denial.NO_ROOM, Why(1, 100, 80, 60, self.a, 0, 0, ())))
        self.pinned = self.write(Pin(self.b, Holder.PLAN))
        self.d = self.page("when does the gate open?", 5, turn=True)
        self.abstract = self.shorter(self.c, "boat: ten", 4)
        self.again = self.write(Reference(self.a, Use.FAULT, 3, 0, FaultReason.RESOLVE_REFERENCE))
        self.room = Why(7, 100, 85, 46, self.a, 3, 12, ((13, self.d), (90, self.b)))
        self.shortened = self.write(
            Evict(self.c, Cause.FAULT, 46, 12, Level.ABSTRACT, self.abstract, self.room),
        )
        self.shown[self.c] = (self.abstract, 2)
        self.came = self.write(FaultIn(self.a, self.a, 0, 60, self.again, self.room))
        self.shown[self.a] = (self.a, 0)
        self.unpinned = self.write(Unpin(self.b, Holder.PLAN))
        self.cited = self.write(Cite(self.a, self.d))
        self.fourth = self.call()

    def wished(self) -> int:
        """A page that left comes back before anybody asks; the call that has it."""
        self.together = self.write(
            Evict(self.b, Cause.PRESSURE, 30, 3, why=Why(7, 100, 99, 35, 0, 4, 5, ((9, self.a),))),
            Evict(self.d, Cause.PRESSURE, 5, 5, first=self.session.info().position + 1),
        )
        del self.shown[self.b], self.shown[self.d]
        self.fifth = self.call()
        wish = self.write(Reference(self.b, Use.SIGNAL, 5, 0, 0, Signal.TOPIC))
        self.write(Prefetch(self.b, self.b, 0, 30, wish, Why(7, 100, 64, 30, self.b, 3, 0, ())))
        self.shown[self.b] = (self.b, 0)
        return self.call()


def live() -> Live:
    """The session in a store of its own."""
    return Live(vmstore.memory_store())
