"""Calls of several threads that share a flush.

One thread leads: it takes the namespace's lock, decides everybody's writes, one a session, in the
order they were asked for, and appends them together; the others wake up with theirs done, and one
that came too late leads next. So nothing is decided while something else is on its way to the log.

Nor is it in another process: what takes long, reading, is done before, and while a write is decided
every other writer waits. One that decided first and was overtaken would have to read again, which
takes longer than going on: whoever was first once would be first for ever.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, TypeVar

from vmstore.core.system.waits import MINE, seconds
from vmstore.engine.batch import Batch
from vmstore.engine.engine import Engine
from vmstore.errors import StoreError
from vmstore.log.commit import Commit

T = TypeVar("T")
Writing = Generator[Batch | None, list[Commit] | None, T]
"""Reads what it has to, and gives None; then nobody else writes. Decides a batch and gives it to be appended; gets
the commits as stored, or the error, and answers."""


class Wish(Generic[T]):
    """A write somebody waits for, then what came of it."""

    def __init__(self, name: str, writing: Writing[T]) -> None:
        self.name = name
        self.done = False
        self.error: Exception | None = None
        self.woken = threading.Event()  # done, or to lead
        self._writing = writing
        self._answer: list[T] = []

    def read(self) -> None:
        """Reads what the write needs, while others write."""
        self._go(lambda: next(self._writing))

    def decide(self) -> Batch | None:
        """The batch to be appended, or None where done."""
        return None if self.done else self._go(lambda: next(self._writing))

    def end(self, outcome: list[Commit] | Exception) -> None:
        """Takes in what came of its batch; an error also where it never came to one."""
        if isinstance(outcome, Exception):
            self._go(lambda: self._writing.throw(outcome))
        else:
            self._go(lambda: self._writing.send(outcome))

    def _go(self, step: Callable[[], Batch | None]) -> Batch | None:
        try:
            return step()
        except StopIteration as ended:
            self._answer, self.done = [ended.value], True
        except Exception as error:
            self.error, self.done = error, True
        return None

    def answer(self) -> T:
        """What it answers; raises what it raised."""
        if self.error is not None:
            raise self.error
        return self._answer[0]


class HeldLock(AbstractContextManager[None], Protocol):
    """A lock a thread may take again, and that says whether it did."""

    @property
    def mine(self) -> bool:
        """Whether this thread holds it."""
        ...


class Together:
    """Grants the wishes of threads; `lock` is held while one decides and appends."""

    def __init__(self, lock: HeldLock, engine: Callable[[], Engine]) -> None:
        self._lock = lock
        self._engine = engine
        self._mutex = threading.Lock()  # over what follows
        self._wishes: deque[Wish[Any]] = deque()
        self._led = False  # whether somebody leads, or was woken to

    def write(self, name: str, writing: Writing[T]) -> T:
        """Writes to the session of a name, durable, and with others where they wait; its answer."""
        mine = Wish(name, writing)
        if self._lock.mine:  # a leader would wait for us
            self._round({name: mine})
            return mine.answer()
        leads = False
        try:
            with self._mutex:
                self._wishes.append(mine)
                leads, self._led = not self._led, True
            if not leads:
                MINE.since = seconds()
                mine.woken.wait()
            if not mine.done:
                leads = True
                with self._lock:
                    self._round(self._chosen(mine))
        finally:
            self._leave(mine, leads)
        return mine.answer()

    def _chosen(self, mine: Wish[Any]) -> dict[str, Wish[Any]]:
        """Takes a wish and the first of every other session from the queue."""
        chosen = {mine.name: mine}
        with self._mutex:
            for _ in range(len(self._wishes)):
                wish = self._wishes.popleft()
                if chosen.setdefault(wish.name, wish) is not wish:
                    self._wishes.append(wish)
        return chosen

    def _leave(self, mine: Wish[Any], led: bool) -> None:
        """Lets somebody else lead, where this thread did, or was woken to and interrupted."""
        with self._mutex:
            if mine in self._wishes:
                self._wishes.remove(mine)
            if led or (mine.woken.is_set() and not mine.done):
                self._led = bool(self._wishes)
                if self._led:
                    self._wishes[0].woken.set()

    def _round(self, chosen: dict[str, Wish[Any]]) -> None:
        """Grants wishes of different sessions."""
        wishes = list(chosen.values())
        try:
            for wish in wishes:
                wish.read()
            if not all(wish.done for wish in wishes):
                self._grant(wishes)
        finally:
            for wish in wishes:
                if not wish.done:
                    wish.end(StoreError(INTERRUPTED))
                wish.woken.set()

    def _grant(self, wishes: list[Wish[Any]]) -> None:
        engine = self._engine()
        try:
            with engine.log.alone():
                begun = [(wish, batch) for wish in wishes if (batch := wish.decide()) is not None]
                begun.sort(key=lambda one: one[1].opening is None)  # a name is free as of the log's end
                batches = [batch for _, batch in begun]
                outcomes = _appended(engine, batches)
        except Exception as error:  # the lock cannot be had, and nothing was decided
            for wish in wishes:
                if not wish.done:
                    wish.end(error)
            return
        for (wish, _), outcome in zip(begun, outcomes, strict=True):
            wish.end(outcome)
        engine.relieve(sum(commit.count for batch in batches for commit in batch.commits))


def _appended(engine: Engine, batches: list[Batch]) -> Sequence[list[Commit] | Exception]:
    """Writes batches; what came of each."""
    try:
        return engine.append(batches) if batches else []
    except Exception as error:
        return [error] * len(batches)


INTERRUPTED = (
    "another thread was interrupted while it wrote this call, and whether it is there is not known: "
    "look, or try again with the same request id"
)
