"""Writers on one store: processes that record calls under numbers they keep where their death cannot reach.

Each writer says in shared memory which call it asks for and which it was told is durable. A
writer that follows a dead one begins with the call that was under way.
"""

from __future__ import annotations

import faulthandler
import gc
import mmap
import os
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from campaigns.held import ALL, Broken
from campaigns.script import LOG, STORE, Request, answer

import vmstore
from vmstore.errors import ConflictError
from vmstore.log.commit import Commit, relink
from vmstore.log.sqlite import SqliteLog

NUMBER = 8


class Slots:
    """Numbers that processes share: for each writer the last call asked for, and the last acknowledged.

    With a folder for it, each process also writes a history there: what it asked, what it was told, when.
    """

    def __init__(self, writers: int, histories: Path | None = None) -> None:
        self._shared = mmap.mmap(-1, NUMBER * (2 * writers + 1))
        self._last = 2 * writers
        self._histories = histories
        self._file = -1
        self._pid = 0

    def _get(self, index: int) -> int:
        return int.from_bytes(self._shared[index * NUMBER : (index + 1) * NUMBER], "little")

    def _set(self, index: int, value: int) -> None:
        self._shared[index * NUMBER : (index + 1) * NUMBER] = value.to_bytes(NUMBER, "little")

    def asked(self, writer: int) -> int:
        """The last call a writer asked for; 0 before the first."""
        return self._get(2 * writer)

    def acked(self, writer: int) -> int:
        """The last call a writer was told is durable."""
        return self._get(2 * writer + 1)

    def ask(self, writer: int, number: int) -> None:
        """Says that a call is asked for."""
        self._set(2 * writer, number)
        self._note(f"ask {writer} {number}")

    def ack(self, writer: int, number: int) -> None:
        """Says that a call is durable."""
        self._note(f"ack {writer} {number}")
        self._set(2 * writer + 1, number)

    def stop(self) -> None:
        """Asks everybody to end."""
        self._set(self._last, 1)

    @property
    def stopped(self) -> bool:
        """Whether everybody is asked to end."""
        return bool(self._get(self._last))

    def snapshot(self) -> bytes:
        """All numbers as they are now."""
        return self._shared[:]

    def _note(self, what: str) -> None:
        """Adds a line to this process's history, with the machine's one clock in it."""
        if self._histories is None:
            return
        if self._pid != os.getpid():
            self._pid = os.getpid()
            name = self._histories / f"{self._pid}-{time.monotonic_ns()}"
            self._file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(self._file, f"{what} {time.monotonic_ns()}\n".encode())


def start(work: Callable[[], None]) -> int:
    """Does some work in a forked process; its id. No database may be open here meanwhile."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    gc.freeze()  # a collection would copy all that is in memory here
    try:
        with suppress(AttributeError, OSError, RuntimeError, ValueError):  # stderr may be no file
            faulthandler.register(signal.SIGUSR1)  # asked where it hangs
        work()
        status = 0
    except BaseException:
        if sys.__stderr__ is not None:
            traceback.print_exc(file=sys.__stderr__)
            sys.__stderr__.flush()
    finally:  # whatever failed: the child never goes on where its parent does
        os._exit(status)


def kill(pid: int) -> bool:
    """Kills a process as a power cut would; whether it was alive. Raises Broken where it had failed by itself."""
    os.kill(pid, signal.SIGKILL)
    return ended(os.waitpid(pid, 0)[1])


def ended(status: int) -> bool:
    """Takes in how a process ended; raises Broken where it was not killed."""
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, -signal.SIGKILL):
        raise Broken("crashed", f"a process ended with {code}; its error is above")
    return code != 0


def request(writer: int, number: int) -> Request:
    """The request of a writer's call: something new after a little that was said before."""
    records = [{"role": "user", "content": f"{writer}.{n} " + "why? " * (n % 5 * 30)} for n in range(1, number + 1)]
    return {"model": "m", "messages": records[-3:], "seed": number}


def session_of(writer: int, together: int) -> str:
    """Where a writer writes: the first ones all in one session, the others alone."""
    return "shared" if writer < together else f"own-{writer}"


def record(store: vmstore.Store, slots: Slots, writer: int, number: int, session: str) -> None:
    """Records one call under its number, again where others were too fast; says when it is asked and durable."""
    slots.ask(writer, number)
    values = request(writer, number), answer(f"because {number}")
    for _ in range(50):
        try:
            store.record(session, *values, request_id=f"{writer}.{number}")
            break
        except ConflictError:
            continue
    else:
        raise Broken("starved", f"writer {writer} lost fifty races of sixty-four tries each")
    slots.ack(writer, number)


def write(folder: Path, slots: Slots, writer: int, session: str) -> None:
    """Records calls until all are asked to end, beginning with the first that was not acknowledged."""
    with vmstore.open(folder / STORE) as store:
        number = slots.acked(writer) + 1
        while not slots.stopped:
            record(store, slots, writer, number, session)
            number += 1


class LoggedCall(NamedTuple):
    """A call as the log holds it."""

    ordinal: int
    writer: int
    number: int


class Reading:
    """The log as it grows, read between kills: every chain followed, every call met noted."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / STORE / LOG
        self.ordinal = 0
        self.heads: dict[int, Commit] = {}
        self.calls: list[LoggedCall] = []

    def read(self) -> None:
        """Takes in what was added; raises Broken where it does not follow what was there."""
        log = SqliteLog(self.log)
        try:
            commits = log.tail(self.ordinal, ALL)
            for commit in commits:
                self._take(log, commit)
        finally:
            log.close()

    def _take(self, log: SqliteLog, commit: Commit) -> None:
        if commit.ordinal != self.ordinal + 1:
            raise Broken("torn", f"commit {commit.ordinal} follows {self.ordinal}")
        self.ordinal = commit.ordinal
        before = self.heads.get(commit.session)
        if before is not None:
            if commit.first != before.last + 1:
                raise Broken("torn", f"commit {commit.ordinal} begins at {commit.first} after {before.last}")
            if relink(before.hash, commit) != commit.hash:
                raise Broken("torn", f"commit {commit.ordinal} is not linked to the one before it")
        self.heads[commit.session] = commit
        if commit.request >= 0:
            cell = log.cells([commit.cell + commit.request])[commit.cell + commit.request]
            writer, _, number = cell.content.partition(b"\n")[0].decode().partition(".")
            self.calls.append(LoggedCall(commit.ordinal, int(writer), int(number)))

    def check(self, slots: Slots, writers: int) -> None:
        """Raises Broken unless the log holds each call acknowledged, once, and none that nobody asked for."""
        acked = [slots.acked(writer) for writer in range(writers)]
        self.read()
        for writer in range(writers):
            numbers = [call.number for call in self.calls if call.writer == writer]
            if len(set(numbers)) != len(numbers):
                raise Broken("doubled", f"writer {writer} recorded {_twice(numbers)} more than once")
            if numbers != list(range(1, len(numbers) + 1)):
                raise Broken("lost", f"the calls of writer {writer} are not dense: {numbers[-20:]}")
            if len(numbers) < acked[writer]:
                raise Broken("lost", f"writer {writer} was told {acked[writer]}, the log ends at {len(numbers)}")
            if len(numbers) > slots.asked(writer):
                raise Broken("foreign", f"writer {writer} never asked for {len(numbers)}")

    @property
    def turns(self) -> int:
        """How often another writer's call follows."""
        return sum(first.writer != other.writer for first, other in zip(self.calls, self.calls[1:], strict=False))


def _twice(numbers: list[int]) -> list[int]:
    return [number for number, count in Counter(numbers).items() if count > 1]


def check_end(folder: Path, slots: Slots, sessions: dict[int, str]) -> None:
    """Raises Broken unless a store is sound, each writer's last call can be retried, and every call is there once."""
    with vmstore.open(folder / STORE) as store:
        for writer, session in sessions.items():
            if number := slots.asked(writer):
                record(store, slots, writer, number, session)
        verdict = store.verify()
        if not verdict.ok:
            raise Broken("unsound", f"verify finds {[(p.kind, p.where, p.what) for p in verdict.problems[:3]]}")
        asked: Counter[str] = Counter()
        for writer, session in sessions.items():
            asked[session] += slots.acked(writer)
        for name, count in asked.items():
            _check_session(store, name, count, {w for w, s in sessions.items() if s == name}) if count else None


def _check_session(store: vmstore.Store, name: str, count: int, writers: set[int]) -> None:
    session = store.session(name)
    calls = session.calls()
    if len(calls) != count:
        raise Broken("lost" if len(calls) < count else "doubled", f"{name!r} has {len(calls)} calls of {count}")
    for call in calls[:: max(1, count // 10)]:
        response: Any = session.wire.request(call=call.call)
        writer, _, _ = response["messages"][-1]["content"].partition(".")
        if int(writer) not in writers or response != request(int(writer), response["seed"]):
            raise Broken("changed", f"call {call.call} of {name!r} is not the request that was sent")
        if call.status != "ok":
            raise Broken("torn", f"call {call.call} of {name!r} has no reply")
