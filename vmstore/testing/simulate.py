"""Plays the life of an agent on a real store, and keeps what the laws are judged by.

Clock and ids are made here, so the same life gives the same bytes. Besides the store nothing of
vmstore is asked: what was sent is remembered by the player itself.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import StoreError, VmstoreError
from vmstore.log.port import Log
from vmstore.namespace.results import RecordedCall
from vmstore.store.session import Session
from vmstore.store.store import Store, open_store
from vmstore.testing.agent import Agent, ConversationEdit
from vmstore.testing.strategies import (
    AnnotateStep,
    AskStep,
    ForkStep,
    GapStep,
    Life,
    RebuildStep,
    RefusedStep,
    ReopenStep,
    RetryStep,
    Step,
)
from vmstore.views.projection import PROJECTORS

START = 1_795_301_701_000_000  # 2026-11-21T22:55:01Z
ROOTS = ("main", "other")
DEEP: Any = None
for _ in range(300):
    DEEP = [DEEP]
# What nobody can record: the session's name, what is put in place of the request's fields or of
# the whole request, the response, and what is recorded beside it. None stands for what is right.
BAD: tuple[tuple[str | None, Any, Any, dict[str, Any]], ...] = (
    (None, "a text", None, {}),
    (None, ["a list"], None, {}),
    (None, {"messages": 5, "contents": 5, "input": 5}, None, {}),
    (None, {"temperature": float("nan")}, None, {}),
    (None, {"temperature": {1: 2}}, None, {}),
    (None, {"metadata": object()}, None, {}),
    (None, {"metadata": DEEP}, None, {}),
    (None, {}, 5, {}),
    (None, {}, "a text", {}),
    (None, {}, [5], {}),
    (None, {}, {"choices": [{"message": {"content": object()}}]}, {}),
    (None, {}, {"choices": [{"message": {"content": float("inf")}}]}, {}),
    (None, {}, None, {"at_us": "yesterday"}),
    (None, {}, None, {"at_us": 2**70}),
    (None, {}, None, {"latency_us": 2**70}),
    (None, {}, None, {"cost": float("nan")}),
    (None, {}, None, {"request_id": 5}),
    (None, {}, None, {"request_id": "r\n1"}),
    ("", {}, None, {}),
    ("a\nb", {}, None, {}),
    ("x" * 501, {}, None, {}),
)


SAID: tuple[dict[str, Any], ...] = (
    {"importance": 0.9, "tags": ["kept", "é"]},
    {"importance": 0.25, "untags": ["kept"]},
    {"status": "completed", "valid_to_us": START},
    {"tags": ["kept"], "anchors": {"name": "Ada"}},
    {"status": "active", "valid_from_us": START - 1, "anchors": {"name": None, "town": "Nara"}},
    {"untags": ["é", "never there"]},
)
"""What a life says of pages."""


@dataclass
class Thread:
    """One session as the player knows it: its agent, and each request by call (None for a gap)."""

    name: str
    agent: Agent
    sent: dict[int, Any] = field(default_factory=dict)
    agents: list[tuple[int, Agent]] = field(default_factory=list)
    parent: Thread | None = None
    fork_call: int = 0
    said: int = 0  # marks it left in its conversation so far
    inherited: int = 0  # of those, its parent's


class StepOutcome(NamedTuple):
    """Outcome of a step: its answer or error, the expected one, the log before and after."""

    step: Step
    answer: Any
    error: BaseException | None
    wanted: Any
    before: bytes
    after: bytes


class Player:
    """A store and the agents that use it."""

    def __init__(self, folder: Path, shape: str = "chat") -> None:
        self.path = folder / "agent.vms"
        self.clock = ManualClock(START, 7)
        self.ids = SeededIds(1)
        self.store = self.open()
        self.threads = [Thread(name, Agent(shape)) for name in ROOTS]
        self.outcomes: list[StepOutcome] = []
        self.last: Thread | None = None  # whose session the last step wrote
        self._ids: list[tuple[Thread, Any, Any, dict[str, Any], RecordedCall]] = []

    def open(self) -> Store:
        """A handle on the store."""
        return open_store(self.path, clock=self.clock, ids=self.ids)

    def close(self) -> None:
        """Closes the store."""
        self.store.close()

    @property
    def opened(self) -> list[Thread]:
        """The sessions that exist."""
        return [thread for thread in self.threads if thread.agents or thread.parent]

    def session(self, thread: Thread) -> Session:
        """A thread's session."""
        return self.store.session(thread.name)

    def play(self, step: Step) -> None:
        """Goes through one step."""
        self.last = None
        match step:
            case AskStep():
                self._ask(step)
            case GapStep():
                thread = self._thread(step.session)
                self._note(thread, None, self.store.admin.record_gap(thread.name, step.reason))
            case AnnotateStep():
                self._annotate(step)
            case RetryStep():
                self._again(step)
            case RefusedStep():
                self._refused(step)
            case ForkStep():
                self._fork(step)
            case ReopenStep():
                self.reopen(forget=step.forget)
            case RebuildStep():
                views = [None, *(projector.name for projector in PROJECTORS)]
                self.store.admin.rebuild(views[step.n % len(views)])

    def reopen(self, *, forget: bool = False) -> None:
        """Closes the store and opens it again; its views are deleted in between where `forget`."""
        self.store.close()
        if forget:
            for file in self.path.rglob("views-*"):
                file.unlink()
        self.store = self.open()

    def _thread(self, n: int) -> Thread:
        return self.threads[n % len(self.threads)]

    def _ask(self, step: AskStep) -> None:
        thread = self._thread(step.session)
        thread.said += 1
        for edit in (*step.edits, *[ConversationEdit("say", text=mark(thread.name, thread.said))] * step.marked):
            thread.agent.edit(edit)
        self.clock.advance(step.pause)
        request, response = thread.agent.request(), thread.agent.hears(step.answer)
        request_id = f"{step.request_id}{thread.said}" if step.request_id else None
        fields: dict[str, Any] = {"request_id": request_id, "latency_us": thread.said}
        if step.broken:
            with full_disk(self.store.admin.log):
                self._expect(step, lambda: self.store.record(thread.name, request, response, **fields))
            return
        with self.open() if step.elsewhere else _kept(self.store) as store:
            recorded = store.record(thread.name, request, response, **fields)
        self._note(thread, request, recorded)
        if step.request_id:
            self._ids.append((thread, request, response, fields, recorded))

    def _note(self, thread: Thread, request: Any, recorded: RecordedCall) -> None:
        assert recorded.call not in thread.sent, "a call is recorded once"
        thread.sent[recorded.call] = copy.deepcopy(request)
        thread.agents.append((recorded.position, thread.agent.copy()))
        self.last = thread

    def _annotate(self, step: AnnotateStep) -> None:
        thread = self._thread(step.session)
        pages = self.session(thread).pages() if thread in self.opened else []
        if pages:
            page = pages[step.n % len(pages)].page
            self.session(thread).annotate(page, **SAID[step.k % len(SAID)])
            self.last = thread

    def _again(self, step: RetryStep) -> None:
        if self._ids:
            thread, request, response, fields, first = self._ids[step.n % len(self._ids)]
            if step.other:
                request = {**request, "temperature": 0.123}
            self._expect(step, lambda: self.store.record(thread.name, request, response, **fields), first)

    def _refused(self, step: RefusedStep) -> None:
        thread = self._thread(step.session)
        name, fields, response, problem = BAD[step.n % len(BAD)]
        agent = thread.agent.copy()
        agent.edit(ConversationEdit("say", text="nobody may see this"))
        request = {**agent.request(), **fields} if isinstance(fields, dict) else fields
        name = thread.name if name is None else name
        self._expect(step, lambda: self.store.record(name, request, response, **problem))

    def _fork(self, step: ForkStep) -> None:
        parent = self._thread(step.session)
        name = parent.name if step.name_taken else f"{parent.name}.{len(self.threads)}"
        if parent not in self.opened:
            return
        moment: dict[str, Any] = {} if step.by == "head" else {step.by: step.number}
        if step.by == "commit":
            ends = self._ends(parent)
            moment = {"position": ends[step.number % len(ends)]}
        if self._expect(step, lambda: self.session(parent).fork(name, **moment)):
            info = self.store.session(name).info()
            position = info.fork_position or 0
            agents = [(at, agent) for at, agent in parent.agents if at <= position]
            agent = agents[-1][1] if agents else Agent(parent.agent.shape)
            sent = {call: request for call, request in parent.sent.items() if call <= info.calls}
            child = Thread(name, agent.copy(), sent, agents, parent, info.calls, inherited=parent.said)
            self.threads.append(child)
            self.last = child

    def _ends(self, thread: Thread) -> list[int]:
        """Ends of a session's commits, the latest first."""
        self.store.sessions()  # the views follow when they are asked
        keys: dict[str, int] = dict(self.store.admin.views.execute("SELECT name, session FROM sessions"))
        commits = self.store.admin.log.tail(0, 1 << 30)
        return [commit.last for commit in reversed(commits) if commit.session == keys[thread.name]]

    def _expect(self, step: Step, does: Any, wanted: Any = None) -> bool:
        """Does what may be refused, and keeps how it came out."""
        before, answer, error = digest(self.store.admin.log), None, None
        try:
            answer = does()
        except Exception as raised:
            error = raised
        self.outcomes.append(StepOutcome(step, answer, error, wanted, before, digest(self.store.admin.log)))
        return error is None


def play(life: Life, folder: Path) -> Player:
    """Plays a whole life; the caller closes the player."""
    player = Player(folder, life.shape)
    for step in life.steps:
        player.play(step)
    return player


def mark(name: str, number: int) -> str:
    """Words that only one session says, and only once."""
    return f"<{name}#{number}>"


def digest(log: Log) -> bytes:
    """A hash over every byte of a log."""
    found = hashlib.sha256()
    for commit in log.tail(0, 1 << 30):
        cells = log.cells(range(commit.cell, commit.cell + commit.cell_count))
        found.update(repr((commit, sorted(cells.items()))).encode())
    return found.digest()


@contextmanager
def full_disk(log: Log) -> Iterator[None]:
    """A log that cannot be written to while this lasts."""

    def full(*_: Any, **__: Any) -> Any:
        raise StoreError("the disk is full")

    log.append = log.together = full  # type: ignore[method-assign]
    try:
        yield
    finally:
        del log.append, log.together


@contextmanager
def _kept(store: Store) -> Iterator[Store]:
    yield store


def is_ours(error: BaseException | None) -> bool:
    """Whether an error is one of vmstore's own, which name the thing, the reason and the remedy."""
    return isinstance(error, VmstoreError)
