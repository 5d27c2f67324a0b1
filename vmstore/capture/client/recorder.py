"""Records a client's calls behind its back: a bounded queue and one worker thread.

Nothing here may reach the caller. What goes wrong is kept in `problems`, logged as a warning,
and stands in the store as a gap as soon as the store answers.
"""

from __future__ import annotations

import atexit
import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Protocol

import msgspec

from vmstore.capture.client.sdk import answer_of
from vmstore.capture.shapes.plain import plain
from vmstore.core import process
from vmstore.core.clock import Stopwatch
from vmstore.errors import InputError

WAITING_MAX = 256  # exchanges waiting for a store that is slow or hangs
PROBLEMS_MAX = 100
REASON_MAX = 500  # characters
RETRIES_MAX = 8  # looks after a store that does not answer, 1, 2, 4 ... seconds apart
IDLE_S = 300.0  # then the thread ends, so that a forgotten client costs nothing
EXIT_S = 5.0  # how long a process may stay to write what waits

QUEUE_FULL = f"more than {WAITING_MAX} calls were waiting for the store"

logger = logging.getLogger("vmstore")


class Recording(Protocol):
    """What the recorder needs of a store."""

    def record(
        self,
        session: Any,
        request: dict[str, Any],
        response: Any,
        *,
        at: int | None,
        latency: int | None,
        redaction: str | None = None,
    ) -> object:
        """Takes in one exchange."""
        ...

    def record_gap(self, session: Any, reason: str, *, redaction: str | None = None) -> object:
        """Takes in that a call was made which could not be recorded."""
        ...


class Exchange(msgspec.Struct, frozen=True):
    """One call that ended: its request and answer, when it began, how long it took (µs)."""

    request: dict[str, Any]
    response: Any
    at: int
    latency: int


class Missed(msgspec.Struct, frozen=True):
    """One call that could not be taken down, and why."""

    reason: str


class Waiter(msgspec.Struct, frozen=True):
    """Somebody waiting for all before it; the last one also ends the worker."""

    done: threading.Event
    last: bool = False


class Recorder:
    """The `vmstore` of a wrapped client: its session, its problems, `flush` and `close`."""

    def __init__(
        self,
        store: str | Recording,
        session: Any,
        open_store: Callable[[str], Recording] | None,
        clock: Stopwatch,
        redaction: str | None = None,
    ) -> None:
        if isinstance(store, str) and open_store is None:
            raise InputError(f"no way to open the store {store!r}; use vmstore.wrap, or pass an open store")
        self.session = session
        self.told: dict[str, Any] = {} if redaction is None else {"redaction": redaction}
        self.clock = clock
        self.problems: deque[str] = deque(maxlen=PROBLEMS_MAX)
        self._given = store
        self._open_store = open_store
        self._store: Recording | None = None
        self._gap_calls = 0  # only the worker touches the gap
        self._gap_reason = ""
        self._reset()
        _alive.add(self)
        process.inherits(self)

    def submit(self, job: Exchange | Missed) -> None:
        """Queues a call to be recorded; never raises, never waits."""
        try:
            self._put(job)
        except Exception as error:  # the call it records goes on, whatever happens here
            self.trouble(error)

    def trouble(self, problem: object) -> str:
        """Keeps a problem and logs it, once where it repeats; gives back its text."""
        text = _said(problem)
        if not self.problems or self.problems[-1] != text:
            self.problems.append(text)
            with suppress(Exception):  # a filter of the agent's may raise
                logger.warning("session %s: not recorded: %s", self.session, text)
        return text

    def flush(self, timeout: float = 30.0) -> bool:
        """Waits until all calls so far are in the store; False where they are not (see `problems`)."""
        return self._wait(Waiter(threading.Event()), timeout)

    def close(self, timeout: float = 30.0) -> bool:
        """Flushes and stops recording; calls go on unrecorded. A store opened here is closed."""
        with self._lock:
            self._closed = True
        return self._wait(Waiter(threading.Event(), last=True), timeout)

    def forked(self) -> None:
        """Begins anew in a forked process, where the worker and what waited for it are the parent's."""
        self._store = None
        self._gap_calls = 0
        self._reset()

    def _reset(self) -> None:
        # An RLock and a SimpleQueue: a stream may be collected, and so end, inside `submit`.
        self._lock = threading.RLock()
        self._queue: SimpleQueue[tuple[int, Exchange | Missed | Waiter]] = SimpleQueue()
        self._running = False
        self._full = 0  # calls dropped since the last one queued
        self._closed = False

    def _put(self, job: Exchange | Missed | Waiter) -> None:
        with self._lock:
            if not isinstance(job, Waiter):
                if self._closed:
                    self.trouble("the recorder is closed; wrap the client again to record")
                    return
                if self._queue.qsize() >= WAITING_MAX:
                    self._full += 1
                    if self._full == 1:
                        self.trouble(QUEUE_FULL)
                    return
            full, self._full = self._full, 0
            self._queue.put((full, job))
            if not self._running:
                self._running = True  # first: what is collected while the thread is made may come here too
                try:
                    threading.Thread(target=self._run, name="vmstore-recorder", daemon=True).start()
                except BaseException:
                    self._running = False
                    raise

    def _wait(self, waiter: Waiter, timeout: float) -> bool:
        with self._lock:
            quiet = not self._running and self._queue.empty() and not self._full
        if not quiet or self._gap_calls:
            try:
                self._put(waiter)
            except RuntimeError as error:  # no new threads while the interpreter ends
                self.trouble(error)
                return False
            if not waiter.done.wait(timeout):
                return False
        return not self._gap_calls

    def _run(self) -> None:
        retries = 0
        while True:
            try:
                full, job = self._queue.get(timeout=min(2.0**retries, IDLE_S) if self._gap_calls else IDLE_S)
            except Empty:
                if self._gap_calls and retries < RETRIES_MAX:
                    retries += 1
                    self._settle()
                elif self._rested():
                    return
                continue
            retries = 0
            self._missed(full, QUEUE_FULL)
            if isinstance(job, Waiter):
                self._settle()
                rested = job.last and self._rested()
                job.done.set()
                if rested:
                    return
            else:
                self._take(job)

    def _rested(self) -> bool:
        self._shut()
        with self._lock:
            if not self._queue.empty():
                return False
            self._running = False
            return True

    def _take(self, job: Exchange | Missed) -> None:
        if isinstance(job, Missed):
            self._missed(1, job.reason)
        else:
            self._settle()  # first, so that the gap stands before the call that follows it
            try:
                self._record(job)
            except BaseException as error:  # whatever a store raises: this thread must live on
                self._missed(1, self.trouble(error))
        self._settle()

    def _record(self, job: Exchange) -> None:
        request, response = plain(job.request, "request"), answer_of(job.response)
        self._opened().record(self.session, request, response, at=job.at, latency=job.latency, **self.told)

    def _missed(self, calls: int, reason: str) -> None:
        if not self._gap_calls:
            self._gap_reason = reason
        self._gap_calls += calls

    def _settle(self) -> None:
        """Writes a gap for each call that was missed; what a store does not take stays to be written."""
        try:
            while self._gap_calls:
                self._opened().record_gap(self.session, self._gap_reason, **self.told)
                self._gap_calls -= 1
        except BaseException as error:
            self.trouble(error)

    def _opened(self) -> Recording:
        if self._store is None:
            if isinstance(self._given, str):
                assert self._open_store is not None, "checked when the client was wrapped"
                self._store = self._open_store(self._given)
            else:
                self._store = self._given
        return self._store

    def _shut(self) -> None:
        close = getattr(self._store, "close", None) if isinstance(self._given, str) else None
        self._store = None
        if close is not None:
            try:
                close()
            except BaseException as error:
                self.trouble(error)


_alive: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _said(problem: object) -> str:
    try:
        text = f"{type(problem).__name__}: {problem}" if isinstance(problem, BaseException) else str(problem)
    except Exception:  # an exception that cannot say what it is
        text = type(problem).__name__
    return text[:REASON_MAX]


@atexit.register
def _finish() -> None:
    timeout = EXIT_S
    for recorder in list(_alive):
        if not recorder.close(timeout):
            timeout = 0.0  # one store that hangs may hold up the exit, not several
            recorder.trouble("the process ended before all calls were in the store")
