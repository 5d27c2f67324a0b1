"""Group commit: threads of one store share a transaction and its flush.

One thread leads: it takes the namespace's lock, decides everybody's writes, one a session, in the
order they were asked for, and appends them together. The others wake up with theirs done, and one
that came too late leads next. A thread that holds the lock already, because it decided under it (a
batch, a live act), also writes what others queued. So nothing is decided while something
else is on its way to the log.

Two batches or two live acts never share a flush: both are decided under the namespace's lock, by
code of the caller, which may not run in another thread, and no acknowledgement may wait for it.

Reads happen before the log's lock is taken; decisions happen under it. Optimistic retry would
starve slow writers, because reading again takes longer than the next write of the winner.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from vmstore.core.system.waits import MINE, seconds
from vmstore.errors import StoreError
from vmstore.log.commit import Commit

if TYPE_CHECKING:
    from vmstore.engine.batch import Batch
    from vmstore.engine.engine import Engine

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

INTERRUPTED = (
    "another thread was interrupted while it wrote this call, and whether it is there is not known: "
    "look, or try again with the same request id"
)


class Write(Protocol[T_co]):
    """A write in steps, which another thread may take; an error of any step is raised to its caller."""

    def prepare(self) -> bool:
        """Reads what the write needs, while others write; whether there is anything to be decided."""
        ...

    def decide(self) -> Batch | None:
        """The batch to be appended, while nobody else writes; None where there is nothing to write."""
        ...

    def done(self, commits: list[Commit]) -> T_co:
        """The answer, once the batch is durable; `commits` are none where nothing was written."""
        ...


class WriteDecision(Generic[T]):
    """A write that is made of functions: what decides it, what answers and, where there is anything, what reads."""

    def __init__(
        self,
        decide: Callable[[], Batch | None],
        done: Callable[[list[Commit]], T],
        read: Callable[[], object] | None = None,
    ) -> None:
        self.decide = decide
        self.done = done
        self._read = read

    def prepare(self) -> bool:
        """Reads what is to be read."""
        if self._read is not None:
            self._read()
        return True


class PendingWrite(Generic[T]):
    """A write that a thread waits for, then what came of it."""

    def __init__(self, name: str, write: Write[T]) -> None:
        self.name = name
        self.done = False
        self.leads = False  # whether its thread is to write for all
        self.error: Exception | None = None
        self.woken = threading.Event()  # done, or to lead
        self._write = write
        self._answer: list[T] = []

    def prepare(self) -> None:
        """Reads what the write needs."""
        try:
            if not self._write.prepare():
                self.end([])
        except Exception as error:
            self.end(error)

    def decide(self) -> Batch | None:
        """The batch to be appended; None where it is done."""
        if self.done:
            return None
        try:
            batch = self._write.decide()
        except Exception as error:
            self.end(error)
            return None
        if batch is None:
            self.end([])
        return batch

    def end(self, outcome: list[Commit] | Exception) -> None:
        """Takes in what came of its batch, or why it never came to one."""
        try:
            if isinstance(outcome, Exception):
                self.error = outcome
            else:
                self._answer = [self._write.done(outcome)]
        except Exception as error:
            self.error = error
        self.done = True

    def answer(self) -> T:
        """Returns the answer of the write, or raises its error."""
        if self.error is not None:
            raise self.error
        return self._answer[0]


class ThreadLock(AbstractContextManager[None], Protocol):
    """A lock a thread may take again, and that says how often it did."""

    @property
    def mine(self) -> bool:
        """Whether this thread holds it."""
        ...

    @property
    def outermost(self) -> bool:
        """Whether this thread holds it once, so that nothing around is half decided."""
        ...


class GroupCommit:
    """Writes for the threads of a namespace; `lock` is held while one decides and appends."""

    def __init__(self, lock: ThreadLock, engine: Callable[[], Engine]) -> None:
        self._lock = lock
        self._engine = engine
        self._mutex = threading.Lock()  # over what follows
        self._pending: deque[PendingWrite[Any]] = deque()
        self._led = False  # whether somebody leads, or was woken to

    def write(self, name: str, write: Write[T]) -> T:
        """Writes to the session of a name, durable, and with others where they wait; its answer."""
        mine = PendingWrite(name, write)
        if self._lock.mine:  # a leader would wait for us
            self._round({name: mine})
            return mine.answer()
        try:
            with self._mutex:
                self._pending.append(mine)
                mine.leads, self._led = not self._led, True
            if not mine.leads:
                MINE.since = seconds()
                mine.woken.wait()
            if not mine.done:
                with self._lock:
                    if not mine.done:  # else a thread that held the lock took it along
                        self._round(self._chosen(mine))
        finally:
            self._leave(mine)
        return mine.answer()

    def write_all(self, writes: Sequence[tuple[str, Write[T]]]) -> list[T | Exception]:
        """Writes to the sessions of names in order, one of each session a flush; the answer of each, or its error."""
        pending = [PendingWrite(name, write) for name, write in writes]
        left = list(pending)
        while left:
            chosen: dict[str, PendingWrite[Any]] = {}
            left = [write for write in left if chosen.setdefault(write.name, write) is not write]
            with self._lock:
                self._round(chosen)
        return [write.answer() if write.error is None else write.error for write in pending]

    def commit(self, name: str, batch: Batch) -> None:
        """Writes a closed batch that was decided with the lock held, durable, together with what others queued."""
        if self._pending and self._lock.outermost:  # else something around is half decided
            mine = PendingWrite(name, WriteDecision(lambda: batch, lambda commits: None))
            self._round(self._chosen(mine))
            mine.answer()
            return
        engine = self._engine()
        (stored,) = engine.append([batch])
        if isinstance(stored, Exception):
            raise stored
        engine.relieve(sum(commit.count for commit in stored))

    def _chosen(self, mine: PendingWrite[Any]) -> dict[str, PendingWrite[Any]]:
        """Takes a write and the first of every other session from the queue."""
        chosen = {mine.name: mine}
        with self._mutex:
            for _ in range(len(self._pending)):
                pending = self._pending.popleft()
                if chosen.setdefault(pending.name, pending) is not pending:
                    self._pending.append(pending)
        return chosen

    def _leave(self, mine: PendingWrite[Any]) -> None:
        """Lets somebody else lead, where this thread did or was to, also when it is interrupted."""
        with self._mutex:
            if mine in self._pending:
                self._pending.remove(mine)
            if mine.leads:
                self._led = bool(self._pending)
                if self._led:
                    self._pending[0].leads = True
                    self._pending[0].woken.set()

    def _round(self, chosen: dict[str, PendingWrite[Any]]) -> None:
        """Does writes of different sessions."""
        writes = list(chosen.values())
        try:
            for write in writes:
                write.prepare()
            if not all(write.done for write in writes):
                self._append(writes)
        finally:
            for write in writes:
                if not write.done:
                    write.end(StoreError(INTERRUPTED))
                write.woken.set()

    def _append(self, writes: list[PendingWrite[Any]]) -> None:
        """Decides writes while every other writer waits, and appends them with one flush."""
        engine = self._engine()
        try:
            with engine.log.deciding():
                decided = [(write, batch) for write in writes if (batch := write.decide()) is not None]
                decided.sort(key=lambda each: each[1].opening is None)  # a name is free as of the log's end
                batches = [batch for _, batch in decided]
                outcomes = _appended(engine, batches)
        except Exception as error:  # the lock cannot be had, and nothing was decided
            for write in writes:
                if not write.done:
                    write.end(error)
            return
        for (write, _), outcome in zip(decided, outcomes, strict=True):
            write.end(outcome)
        engine.relieve(sum(commit.count for batch in batches for commit in batch.commits))


def _appended(engine: Engine, batches: list[Batch]) -> Sequence[list[Commit] | Exception]:
    """Writes batches; what came of each."""
    try:
        return engine.append(batches) if batches else []
    except Exception as error:
        return [error] * len(batches)
