"""Calls of several threads that share a flush.

One thread leads: it takes the namespace's lock, decides everybody's writes, one a session, in the
order they were asked for, and appends them together; the others wake up with theirs done, and one
that came too late leads next. So nothing is decided while something else is on its way to the log.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, TypeVar

from vmstore.engine.gate import Batch, Engine
from vmstore.errors import OvertakenError, StoreError
from vmstore.log.commit import Commit

T = TypeVar("T")
Writing = Generator[Batch, list[Commit], T]
"""Decides a batch and gives it to be appended; gets the commits as stored, or the error, and answers."""


class Wish(Generic[T]):
    """A write somebody waits for, then what came of it."""

    def __init__(self, name: str, write: Callable[[bool], Writing[T]]) -> None:
        self.name = name
        self.done = False
        self.error: Exception | None = None
        self.woken = threading.Event()  # done, or to lead
        self._write = write
        self._writing: Writing[T] | None = None
        self._answer: list[T] = []

    def begin(self, *, alone: bool = False) -> Batch | None:
        """Decides, where `alone` while every other writer waits; the batch to be appended, or None where done."""
        writing = self._writing = self._write(alone)
        self.done, self.error = False, None
        return self._go(lambda: next(writing))

    def end(self, outcome: list[Commit] | Exception) -> None:
        """Takes in what came of its batch; an error also where it never came to one."""
        writing = self._writing or self._write(False)
        if isinstance(outcome, Exception):
            self._go(lambda: writing.throw(outcome))
        else:
            self._go(lambda: writing.send(outcome))

    def _go(self, step: Callable[[], Batch]) -> Batch | None:
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

    def write(self, name: str, write: Callable[[bool], Writing[T]]) -> T:
        """Writes to the session of a name, durable, and with others where they wait; its answer.

        `write` is told whether every other writer waits for it, so that nobody can be first.
        """
        mine = Wish(name, write)
        if self._lock.mine:  # a leader would wait for us
            self._round({name: mine})
            return mine.answer()
        leads = False
        try:
            with self._mutex:
                self._wishes.append(mine)
                leads, self._led = not self._led, True
            if not leads:
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
        """Grants wishes of different sessions; where another process was first again, while all others wait.

        Deciding anew takes longer than going on, so without the wait whoever was first once would
        be first for ever.
        """
        wishes = list(chosen.values())
        try:
            self._grant(wishes)
            for wish in wishes:
                if isinstance(wish.error, OvertakenError):
                    with self._engine().log.alone():
                        self._grant([wish], alone=True)
        finally:
            for wish in wishes:
                if not wish.done:
                    wish.end(StoreError(INTERRUPTED))
                wish.woken.set()

    def _grant(self, wishes: list[Wish[Any]], *, alone: bool = False) -> None:
        begun = [(wish, batch) for wish in wishes if (batch := wish.begin(alone=alone)) is not None]
        begun.sort(key=lambda one: one[1].opening is None)  # a name is free as of the log's end
        if begun:
            engine, batches = self._engine(), [batch for _, batch in begun]
            try:
                outcomes = engine.append(batches)
            except Exception as error:
                outcomes = [error] * len(begun)
            for (wish, _), outcome in zip(begun, outcomes, strict=True):
                wish.end(outcome)
            engine.relieve(sum(commit.count for batch in batches for commit in batch.commits))


INTERRUPTED = (
    "another thread was interrupted while it wrote this call, and whether it is there is not known: "
    "look, or try again with the same request id"
)
