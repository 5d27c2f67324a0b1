"""SIGSTOP: writers of one store are stopped at any time and inside any write or flush, and others still get answers.

Beside a stopped writer another process opens the store, asks, records and closes: each of these ends
within the limit it was opened with and a margin of so many limits, with what it asked for or with an
error that names the stopped process. Once that goes on again nothing of anybody's is lost.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from campaigns.crew import Reading, Slots, check_end, kill, session_of, start, write
from campaigns.disk import Fault, disk
from campaigns.held import Broken
from campaigns.script import STORE

import vmstore
from vmstore.errors import LockedError

STOPS = 30  # of one store
WAIT_S = 0.5
MARGIN = 8  # limits that a call may take at most; a machine may stall, what waits for a stopped process stalls for ever
STARVED_S = 2.0  # who has not come to the operation it is to stop at after so long is stopped where it is
NEEDED = {"in the log", "in the views", "anywhere", "timed", "named", "record", "open", "ask", "close", "went on"}


def batch(seed: int, folder: Path, stops: int = STOPS) -> Counter[str]:
    """Stops writers of one store, and asks and records beside them; what was done."""
    chance = random.Random(seed)
    vmstore.open(folder / STORE).close()
    crew = Crew(folder, chance.randint(2, 3))
    try:
        for number in range(stops):
            crew.stop_one(number, chance)
    finally:
        crew.end()
    crew.reading.check(crew.slots, crew.writers)
    check_end(folder, crew.slots, crew.sessions)
    with vmstore.open(folder / STORE, "r") as store:
        there = store.session(PROBED).info().calls if crew.recorded else 0
    if there != crew.recorded:
        raise Broken("lost", f"{crew.recorded} calls were acknowledged beside stopped writers, {there} are there")
    return crew.found


PROBED = "probed"


class Crew:
    """Writers of one store; one after the other is stopped and goes on."""

    def __init__(self, folder: Path, writers: int) -> None:
        self.folder = folder
        self.writers = writers
        self.slots = Slots(writers)
        self.sessions = {writer: session_of(writer, 0) for writer in range(writers)}
        self.reading = Reading(folder)
        self.found: Counter[str] = Counter()
        self.recorded = 0
        self.pids: dict[int, int] = {}
        for writer in range(1, writers):
            self._begin(writer, None)

    def _begin(self, writer: int, fault: Fault | None) -> None:
        def work() -> None:
            with disk(self.folder) as made:
                made.recording, made.fault = False, fault
                write(self.folder, self.slots, writer, self.sessions[writer])

        self.pids[writer] = start(work)

    def stop_one(self, number: int, chance: random.Random) -> None:
        """Stops a writer, sees that others get answers, and lets it go on."""
        where, fault = plan(chance)
        self._begin(0, fault)
        pid = self.pids[0]
        if fault is None or not stopped_itself(pid):
            time.sleep(chance.uniform(0, 0.05))
            os.kill(pid, signal.SIGSTOP)
            where = "timed"
        self.found[where] += 1
        self._beside(pid, number)
        before = self.slots.acked(0)
        os.kill(pid, signal.SIGCONT)
        until = time.monotonic() + MARGIN * WAIT_S
        while self.slots.acked(0) == before:
            if time.monotonic() > until:
                os.kill(pid, signal.SIGUSR1)  # asked where it hangs
                time.sleep(0.1)
                raise Broken("stuck", "a writer that was stopped did not go on")
            time.sleep(0.001)
        self.found["went on"] += 1
        kill(self.pids.pop(0))

    def _beside(self, pid: int, number: int) -> None:
        """Asks and records in a process of its own; takes in what it found."""
        reader, writer = os.pipe()
        beside = start(lambda: probe(self.folder, pid, number, self.recorded, writer))
        os.close(writer)
        content = b""
        while chunk := os.read(reader, 4096):
            content += chunk
        os.close(reader)
        if os.waitstatus_to_exitcode(os.waitpid(beside, 0)[1]):
            raise Broken("stuck", "a call beside a stopped writer did not end as it should; its error is above")
        document = json.loads(content)
        self.recorded += document.get("recorded", 0)
        self.found.update(document)

    def end(self) -> None:
        """Kills the processes that are left."""
        for pid in self.pids.values():
            kill(pid)
        self.pids.clear()


def plan(chance: random.Random) -> tuple[str, Fault | None]:
    """Draws where the next writer is stopped."""
    name = chance.choice(("in the log", "in the log", "in the views", "anywhere", "timed"))
    if name == "timed":
        return name, None
    touches: Callable[[str, str], bool] = {
        "in the log": lambda kind, path: "/log" in path,
        "in the views": lambda kind, path: "/views" in path,
        "anywhere": lambda kind, path: True,
    }[name]
    at = int(chance.expovariate(1 / 8)) + 1
    return name, Fault(at, touches=touches, after=chance.random() < 0.3, sent=signal.SIGSTOP)


def stopped_itself(pid: int) -> bool:
    """Whether a process comes to where it stops."""
    until = time.monotonic() + STARVED_S
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if done:
            if not os.WIFSTOPPED(status):
                raise Broken("crashed", f"a writer ended with {os.waitstatus_to_exitcode(status)}")
            return True
        time.sleep(0.001)
    return False


def probe(folder: Path, pid: int, number: int, before: int, other_number: int) -> None:
    """Does what a process beside a stopped one does, each act in time; tells through a pipe what came of it."""
    counts: Counter[str] = Counter()
    logging.getLogger("vmstore").setLevel(logging.ERROR)  # that views are followed in memory is what is wanted here

    def act(name: str, work: Callable[[], Any]) -> Any:
        began = time.monotonic()
        counts[name] += 1
        try:
            return work()
        except LockedError as error:
            counts["named"] += 1
            if f"process {pid} " not in str(error) or "stopped" not in str(error):
                raise Broken("unnamed", f"{name}: {error}") from error
            return None
        finally:
            if (took := time.monotonic() - began) > MARGIN * WAIT_S:
                raise Broken("stuck", f"{name} took {took / WAIT_S:.1f} times its limit")

    store = act("open", lambda: vmstore.open(folder / STORE, wait_s=WAIT_S))
    if store is not None:
        request = {"model": "m", "messages": [{"role": "user", "content": f"{number}"}]}
        act("ask", store.sessions)
        if act("record", lambda: store.record(PROBED, request)) is not None:
            counts["recorded"] += 1
        names = act("ask", lambda: [info.session for info in store.sessions()])
        if before + counts["recorded"] and PROBED not in (names or [PROBED]):
            raise Broken("lost", "a session that was recorded is not there")
        act("ask", lambda: list(store.query("SESSIONS session, calls")))
        act("close", store.close)
    os.write(other_number, json.dumps(counts).encode())
