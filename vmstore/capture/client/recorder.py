"""Records a client's calls behind its back: a bounded queue and one worker thread.

Nothing here may reach the caller. What goes wrong is kept in `problems` and logged as a warning.
A call waits where the store cannot take it now, and stands as a gap where it never can or where
too much waits. Calls of different conversations that wait together are written with one flush.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Protocol

import msgspec

from vmstore.capture.client.body import ResponseBody, UnreadableAnswerError, answer_of, request_of
from vmstore.capture.client.conversations import ClientConversations, PastCall, asked_of
from vmstore.core.clock import Stopwatch
from vmstore.core.draft import EndedCall
from vmstore.core.system import after_fork
from vmstore.errors import InputError, OvertakenError, StoreError, UnknownError, VmstoreError

WAITING_BYTES_MAX = 64 << 20  # of requests and answers that wait for a store that is slow or fails
CALL_BYTES = 2_000  # about what a call takes beside them
GROUP_MAX = 64  # calls that share a flush
PROBLEMS_MAX = 100
REASON_MAX = 500  # characters
RETRY_S, RETRY_MAX_S = 0.25, 30.0  # between attempts, doubled each time
IDLE_S = 300.0  # then the thread ends, so that a forgotten client costs nothing
EXIT_S = 5.0  # how long a process may stay to write what waits

QUEUE_FULL = f"calls of more than {WAITING_BYTES_MAX >> 20} MiB were waiting for the store"
DELETED = "the store was deleted or replaced while it was in use, and what was recorded in it went with it"

# What another attempt may mend: a disk that is full or gone, a lock that somebody holds.
TRANSIENT = (OSError, StoreError, OvertakenError)

logger = logging.getLogger("vmstore")

Dropped = Counter[str | None]  # calls that found the queue full, by session
Naming = Callable[[dict[str, Any]], str | None]


class RecordingStore(Protocol):
    """The methods of a store that the recorder calls."""

    def record(
        self,
        session: Any,
        request: dict[str, Any],
        response: Any,
        *,
        at_us: int | None,
        latency_us: int | None,
        redaction: str | None = None,
    ) -> object:
        """Takes in one exchange."""
        ...

    @property
    def admin(self) -> Any:
        """The object whose `record_gap` takes calls that could not be recorded."""
        ...


RecordTogether = Callable[[Any, Sequence[EndedCall], str | None], Sequence[object]]
"""Records calls of different sessions in a store with one flush, under a redaction; gives what became of each."""


class ClientExchange(msgspec.Struct, frozen=True):
    """One call that ended: its body as sent, its answer, when it began, how long it took (µs).

    `asked` is the client's body where another one was sent; `beside` is kept with the answer.
    """

    session: str | None  # None where its conversation is to be found
    body: bytes
    answer: ResponseBody
    at: int
    latency: int
    asked: bytes | None = None
    beside: dict[str, Any] | None = None

    @property
    def size(self) -> int:
        """About the bytes it takes while it waits."""
        return len(self.body) + self.answer.size + len(self.asked or b"") + CALL_BYTES


class MissedCall(msgspec.Struct, frozen=True):
    """One call that could not be taken down, why, and of which session where that is known."""

    reason: str
    session: str | None
    size: int = CALL_BYTES


class Waiter(msgspec.Struct, frozen=True):
    """Somebody waiting for all before it; the last one also ends the worker."""

    done: threading.Event
    last: bool = False
    size: int = 0


class Errand(msgspec.Struct, frozen=True):
    """Something to do once all calls before it are in the store; what it raises is kept as a problem."""

    run: Callable[[], object]
    size: int = CALL_BYTES


Job = ClientExchange | MissedCall | Errand | Waiter


class RecordedAttempt:
    """A call while it is written, maybe at several attempts."""

    __slots__ = ("asked", "doubted", "job", "name", "request", "response")

    def __init__(self, job: ClientExchange | MissedCall) -> None:
        self.job = job
        self.name = job.session
        self.request: dict[str, Any] | None = None
        self.asked: dict[str, Any] | None = None
        self.response: Any = None
        self.doubted = False  # an attempt failed that may have come through


class Recorder:
    """The `vmstore` of a wrapped client: its session, its problems, `conversation`, `flush` and `close`."""

    def __init__(
        self,
        store: str | RecordingStore,
        base: str,
        session: str | Naming | None,
        open_store: Callable[[str], RecordingStore] | None,
        clock: Stopwatch,
        redaction: str | None = None,
        waiting_bytes_max: int | None = None,
        record_together: RecordTogether | None = None,
        past: Callable[[Any, frozenset[str]], Iterable[PastCall]] | None = None,
        settled: Callable[[Sequence[ClientExchange | MissedCall], str | None], None] | None = None,
    ) -> None:
        """`past` gives the last calls of a store's sessions, but for those of the given names.

        `settled` is called when jobs are in the store, or never will be, with why they became gaps.
        """
        if isinstance(store, str) and open_store is None:
            raise InputError(
                f"no way to open the store {store!r}; use vmstore.wrap, or pass an open store", code="no-opener"
            )
        self.session = session if isinstance(session, str) else base
        self.recording_options: dict[str, Any] = {} if redaction is None else {"redaction": redaction}
        self.clock = clock
        self.problems: deque[str] = deque(maxlen=PROBLEMS_MAX)
        self._waiting_bytes_max = waiting_bytes_max
        self._record_together = record_together
        self._settled = settled
        self._naming = session if callable(session) else None
        self._fixed = session if isinstance(session, str) else None
        self._named: ContextVar[str | None] = ContextVar("vmstore_conversation", default=None)
        look = None if past is None else lambda known: past(self._opened(), known)
        self._conversations = ClientConversations(self._name, look)
        self._passed_over: set[str] = set()
        self._taken_up: set[str] = set()  # sessions whose conversation an errand found
        self._process = os.getpid()
        self._given = store
        self._open_store = open_store
        self._store: RecordingStore | None = None
        self._place: tuple[int, int] | None = None  # which file the log of the open store is
        self._lost = False  # what was recorded is gone; the next flush says so
        self._reset()
        _alive.add(self)
        after_fork.inherits(self)
        _end_on_sigterm()

    # ---- what the caller's thread does

    @contextmanager
    def conversation(self, name: str) -> Iterator[None]:
        """Records the calls made within, in this thread or task and what it starts, in the session of a name."""
        if not isinstance(name, str) or not name:
            raise InputError(f"{name!r:.40} is no name of a session; pass a text", code="not-a-name")
        token = self._named.set(name)
        try:
            yield
        finally:
            self._named.reset(token)

    def session_of(self, body: bytes | None) -> str | None:
        """The session a call that begins now is recorded in; None where its conversation tells."""
        if (name := self._named.get()) is not None:
            return name
        if self._naming is None or body is None:
            return self._fixed
        try:
            naming = self._naming(request_of(body))
            if naming is not None and not isinstance(naming, str):
                raise InputError(f"the session function gave a {type(naming).__name__}; return a name or None")
            return naming or None
        except Exception as error:  # the agent's code: whatever it raises, the call is made and recorded
            self.trouble(error)
            return None

    def submit(self, job: ClientExchange | MissedCall | Errand) -> None:
        """Queues a call to be recorded; never raises, never waits."""
        try:
            self._put(job)
        except Exception as error:  # the call it records must not fail, whatever happens here
            self.trouble(error)

    def opened(self) -> Any:
        """The store that calls go into, for an errand; StoreError and the like where it cannot be had now."""
        return self._opened()

    def taken_up(self, request: dict[str, Any]) -> str:
        """The session of the conversation that a request goes on with, or begins; for an errand."""
        conversation, asked = self._conversations.of(request)
        self._conversations.note(conversation, asked, None)
        self._taken_up.add(conversation.name)
        return conversation.name

    def pass_over(self, method: str, path: str) -> None:
        """Says once of each endpoint that asks no model that its requests are not recorded."""
        if path not in self._passed_over and len(self._passed_over) < PROBLEMS_MAX:
            self._passed_over.add(path)
            logger.info("%s %s asks no model for an answer and is not recorded", method, path)

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
        return self._waited(self._call_for(Waiter(threading.Event())), timeout)

    def close(self, timeout: float = 30.0) -> bool:
        """Flushes and stops recording; calls go on unrecorded. A store opened here is closed."""
        return self._waited(self.ending(), timeout)

    def ending(self) -> Waiter | None:
        """Stops recording; what it gives is done once all calls so far are in the store."""
        with self._lock:
            self._closed = True
        return self._call_for(Waiter(threading.Event(), last=True))

    def forked(self) -> None:
        """Starts over in a forked process, where the worker and its queue are the parent's."""
        self._store = self._place = None
        self._reset()

    def _reset(self) -> None:
        # An RLock and a SimpleQueue: a stream may be collected, and so end, inside `submit`.
        self._lock = threading.RLock()
        self._queue: SimpleQueue[tuple[Dropped, Job]] = SimpleQueue()
        self._awake = threading.Event()  # somebody waits: the next attempt is due now
        self._running = False
        self._waiting = 0  # bytes
        self._dropped: Dropped = Counter()  # since the last job was queued
        self._closed = False

    def _put(self, job: Job) -> None:
        with self._lock:
            if not isinstance(job, Waiter | Errand):
                if self._closed:
                    self.trouble("the recorder is closed; wrap the client again to record")
                    return
                if self._waiting + job.size > (self._waiting_bytes_max or WAITING_BYTES_MAX):
                    self._dropped[job.session] += 1
                    self.trouble(QUEUE_FULL)
                    self._settle([job], QUEUE_FULL)
                    return
            dropped, self._dropped = self._dropped, Counter()
            self._waiting += job.size
            self._queue.put((dropped, job))
            if not self._running:
                self._running = True  # first: what is collected while the thread is made may come here too
                try:
                    threading.Thread(target=self._run, name="vmstore-recorder", daemon=True).start()
                except BaseException:
                    self._running = False
                    raise

    def _call_for(self, waiter: Waiter) -> Waiter | None:
        """Queues somebody who waits; None where nothing is to be waited for."""
        with self._lock:
            if not (self._running or self._waiting or self._dropped):
                return None
        try:
            self._put(waiter)
        except RuntimeError as error:  # no new threads while the interpreter ends: it will not be done
            self.trouble(error)
        self._awake.set()
        return waiter

    def _waited(self, waiter: Waiter | None, timeout: float) -> bool:
        if waiter is not None and not waiter.done.wait(timeout):
            return False
        lost, self._lost = self._lost, False
        return not lost

    # ---- what the worker does

    def _run(self) -> None:
        carried: tuple[Dropped, Job] | None = None
        while True:
            try:
                dropped, job = carried or self._queue.get(timeout=IDLE_S)
            except Empty:
                if self._rested():
                    return
                continue
            carried = None
            for session, calls in dropped.items():
                for _ in range(calls):
                    self._take(RecordedAttempt(MissedCall(QUEUE_FULL, session)))
            if isinstance(job, Waiter):
                self._present()
                rested = job.last and self._rested()
                job.done.set()
                if rested:
                    return
            elif isinstance(job, Errand):
                try:
                    job.run()
                except BaseException as error:  # whatever it is: this thread must live on
                    self.trouble(error)
                with self._lock:
                    self._waiting -= job.size
            else:
                group, carried = self._gathered(job)
                self._take_together(group)
                with self._lock:
                    self._waiting -= sum(attempt.job.size for attempt in group)

    def _gathered(self, job: ClientExchange | MissedCall) -> tuple[list[RecordedAttempt], tuple[Dropped, Job] | None]:
        """A call and those that wait behind it, each of another session; and what was taken off the queue beyond."""
        group: list[RecordedAttempt] = [self._read(job)]
        names = {group[0].name}
        while group[-1].request is not None and len(group) < GROUP_MAX:
            try:
                dropped, following = self._queue.get_nowait()
            except Empty:
                break
            if dropped or not isinstance(following, ClientExchange):
                return group, (dropped, following)
            attempt = self._read(following)
            if attempt.request is None or attempt.name in names:
                return group, (dropped, following)
            names.add(attempt.name)
            group.append(attempt)
        return group, None

    def _read(self, job: ClientExchange | MissedCall) -> RecordedAttempt:
        """A call with what it asked and where it belongs; without, where that cannot be read, which the store says."""
        attempt = RecordedAttempt(job)
        if isinstance(job, ClientExchange):
            with suppress(Exception):  # it is read again where it is written, and what it raises says why
                self._understand(attempt, job)
        return attempt

    def _understand(self, attempt: RecordedAttempt, job: ClientExchange) -> None:
        request, response = request_of(job.body), answer_of(job.answer)
        if attempt.name is None:
            conversation, asked = self._conversations.of(request)
            self._conversations.note(conversation, asked, response)
            attempt.name = conversation.name
        attempt.asked = None if job.asked is None else request_of(job.asked)
        if job.session is not None and job.session in self._taken_up:
            conversation = self._conversations.named(job.session)
            self._conversations.note(conversation, asked_of(attempt.asked or request), response)
        attempt.request, attempt.response = request, response

    def _take_together(self, group: list[RecordedAttempt]) -> None:
        """Writes calls of different sessions with one flush; those that fail, and a single one, on their own."""
        for attempt in self._failing(group) if len(group) > 1 else group:
            self._take(attempt)

    def _failing(self, group: list[RecordedAttempt]) -> list[RecordedAttempt]:
        """Those of a group that are still to be written."""
        outcomes: Sequence[object]
        if self._record_together is None:
            return group
        try:
            calls = [_call(attempt) for attempt in group]
            outcomes = self._record_together(self._opened(), calls, self.recording_options.get("redaction"))
        except Exception as error:
            outcomes = [error] * len(group)
        failing = []
        for attempt, outcome in zip(group, outcomes, strict=True):
            if isinstance(outcome, Exception):
                attempt.doubted = isinstance(outcome, TRANSIENT)
                failing.append(attempt)
        self._settle([attempt.job for attempt in group if attempt not in failing])
        return failing

    def _settle(self, jobs: Sequence[ClientExchange | MissedCall], gap: str | None = None) -> None:
        if self._settled is not None:
            self._settled(jobs, gap)

    def _rested(self) -> bool:
        self._shut()
        with self._lock:
            if not self._queue.empty():
                return False
            self._running = False
            return True

    def _take(self, entry: RecordedAttempt) -> None:
        """Writes one call, however long the store cannot take it; one it never takes becomes a gap."""
        pause = RETRY_S
        job = entry.job
        while True:
            try:
                self._write(entry)
                self._settle([job], entry.job.reason if isinstance(entry.job, MissedCall) else None)
                return
            except TRANSIENT as error:
                entry.doubted = True
                self.trouble(error)
                self._shut()  # what cannot be written may be well again once it is opened again
                self._awake.wait(pause)
                self._awake.clear()
                pause = min(2 * pause, RETRY_MAX_S)
            except BaseException as error:  # whatever a store raises: this thread must live on
                reason = self.trouble(error)
                if isinstance(entry.job, MissedCall):
                    if entry.job.session is not None:  # a session that takes nothing: the gap stands among the others
                        entry = RecordedAttempt(MissedCall(f"{entry.job.session!r:.80}: {entry.job.reason}", None))
                        continue
                    self._lost = True  # not even that it was made can be written
                    self._settle([job], reason)
                    return
                entry = RecordedAttempt(MissedCall(reason, entry.name))

    def _write(self, entry: RecordedAttempt) -> None:
        """Writes a call; of an attempt before it is not known whether it came through where it is `doubted`."""
        job, store = entry.job, self._opened()
        if isinstance(job, MissedCall):
            store.admin.record_gap(
                job.session or self._conversations.single or f"{self.session}-gaps",
                job.reason,
                **self.recording_options,
            )
            return
        if entry.request is None:
            self._understand(entry, job)
        assert entry.request is not None and entry.name is not None, "a call that was read is of a session"
        if not (entry.doubted and _holds(store, entry.name, job.at)):
            self._record(store, entry.name, job, entry.request, entry.response)

    def _record(
        self, store: RecordingStore, name: str, job: ClientExchange, request: dict[str, Any], response: Any
    ) -> None:
        fields: dict[str, Any] = {"at_us": job.at, "latency_us": job.latency, **self.recording_options}
        made = {"asked": None if job.asked is None else request_of(job.asked), "beside": job.beside}
        fields |= {key: value for key, value in made.items() if value is not None}
        try:
            store.record(name, request, response, **fields)
        except InputError as error:
            if response is None or isinstance(response, BaseException):
                raise
            # The request is known whatever came back for it; where it is what cannot be recorded, this raises too.
            unread = UnreadableAnswerError(f"the answer cannot be recorded: {error}", job.answer.status)
            store.record(name, request, unread, **fields)

    def _name(self, count: int) -> str:
        """The session of the conversation of a number; a forked process begins its own."""
        base = self.session if os.getpid() == self._process else f"{self.session}-p{os.getpid()}"
        return base if count <= 1 else f"{base}-{count}"

    def _opened(self) -> RecordingStore:
        if not self._present() and not isinstance(self._given, str):
            raise VmstoreError(DELETED)  # the handle writes to what is gone, and will not come back
        if self._store is None:
            if isinstance(self._given, str):
                assert self._open_store is not None, "checked when the client was wrapped"
                self._store = self._open_store(self._given)
            else:
                self._store = self._given
            self._place = self._place or _place(self._store)
        return self._store

    def _present(self) -> bool:
        """Whether the store is where it was; one that was deleted beneath takes what it holds with it."""
        if self._place is None or _place(self._store) == self._place:
            return True
        self._lost = True
        self.trouble(DELETED)
        if isinstance(self._given, str):
            self._shut()
        return False

    def _shut(self) -> None:
        if not isinstance(self._given, str):
            return
        close = getattr(self._store, "close", None)
        self._store = self._place = None
        if close is not None:
            try:
                close()
            except BaseException as error:
                self.trouble(error)


_alive: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _place(store: Any) -> tuple[int, int] | None:
    """Device and inode of a store's log; None where it is in memory or gone."""
    folder = getattr(store, "folder", None)
    if not isinstance(folder, Path):
        return None
    try:
        about = os.stat(folder / "log.sqlite")
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _holds(store: Any, name: str, at: int) -> bool:
    """Whether a session holds the call that began at a time: a write that failed may have come through."""
    try:
        calls = store.session(name).calls()
    except (UnknownError, AttributeError):
        return False
    return any(call.at == at for call in calls[-8:])


def _call(attempt: RecordedAttempt) -> EndedCall:
    job = attempt.job
    assert isinstance(job, ClientExchange) and attempt.request is not None and attempt.name is not None, "it was read"
    fields = attempt.request, attempt.response, job.at, job.latency, attempt.asked, job.beside
    return EndedCall(attempt.name, *fields)


def _said(problem: object) -> str:
    try:
        text = f"{type(problem).__name__}: {problem}" if isinstance(problem, BaseException) else str(problem)
    except Exception:  # an exception that cannot say what it is
        text = type(problem).__name__
    return text[:REASON_MAX]


@atexit.register
def _finish() -> None:
    _end([(recorder, recorder.ending()) for recorder in list(_alive)])


def _end(waiting: list[tuple[Recorder, Waiter | None]]) -> None:
    """Waits for several recorders at once: a store that hangs holds up the exit for its time, and no other's end."""
    timeout = EXIT_S
    for recorder, waiter in waiting:
        if waiter is not None and not waiter.done.wait(timeout):
            timeout = 0.0
            recorder.trouble("the process ended before all calls were in the store")


def _end_on_sigterm() -> None:
    """Has SIGTERM write what waits before it ends the process, where nobody else has a say in that."""
    with suppress(ValueError):  # only the main thread may
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _terminated)


def _terminated(number: int, frame: object) -> None:
    # On a thread of its own: this one may hold a lock that the worker needs.
    signal.signal(number, signal.SIG_DFL)
    threading.Thread(target=_flush_and_die, args=(number,), name="vmstore-sigterm", daemon=True).start()


def _flush_and_die(number: int) -> None:
    try:
        _finish()
    finally:
        os.kill(os.getpid(), number)
