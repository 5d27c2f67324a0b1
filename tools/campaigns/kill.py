"""SIGKILL: writers of one store are killed at any time and inside any write or flush, others going on.

A writer killed inside a write or flush of the log holds its lock. Where the killing disk strikes is
drawn from the seed; what the others do meanwhile is the machine's.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

from campaigns.crew import Reading, Slots, check_end, ended, kill, session_of, start, write
from campaigns.disk import Fault, disk
from campaigns.held import Broken, pick
from campaigns.script import STORE

import vmstore

KILLS = 60  # of one store
LOOKS = 3  # after one kill in so many the log is read
STARVED_S = 2.0  # who has not come to the write it is to die in after so long is killed as it is
PATIENCE_S = 20.0  # a machine may stall; a lock that outlives its holder stalls for ever
NEEDED = {"holding", "flushing", "folding", "anywhere", "timed", "looks", "interleaved", "others went on"}


def batch(seed: int, folder: Path, kills: int = KILLS) -> Counter[str]:
    """Kills writers of one store, and checks what they leave; what was done."""
    chance = random.Random(seed)
    crew = Crew(folder, chance.randint(2, 4), chance.randint(0, 2))
    try:
        for writer in range(crew.writers):
            crew.begin(writer, None)
        for number in range(kills):
            crew.kill_one(chance.randrange(crew.writers), plan(chance), chance, last=number == kills - 1)
    finally:
        crew.end()
    crew.reading.check(crew.slots, crew.writers)
    check_end(folder, crew.slots, crew.sessions)
    crew.found["interleaved"] += crew.reading.turns
    crew.found["calls"] += len(crew.reading.calls)
    return crew.found


def wait(pid: int, seconds: float) -> bool:
    """Whether a process ends within some seconds; raises Broken where it failed."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            ended(status)
            return True
        time.sleep(0.0005)
    return False


class Plan:
    """How a writer is to die: at an operation of its disk, or when its time has come."""

    def __init__(self, name: str, fault: Fault | None) -> None:
        self.name = name
        self.fault = fault


def plan(chance: random.Random) -> Plan:
    """Draws how the next writer dies."""
    name = chance.choice(("timed", "holding", "flushing", "folding", "anywhere"))
    if name == "timed":
        return Plan(name, None)
    touches = {
        "holding": lambda kind, path: "/log" in path and kind != "sync",
        "flushing": lambda kind, path: "/log" in path and kind == "sync",
        "folding": lambda kind, path: "/views" in path,
        "anywhere": lambda kind, path: True,
    }[name]
    at = int(chance.expovariate(1 / 15)) + 1
    return Plan(name, Fault(at, touches=touches, after=chance.random() < 0.3))


class Crew:
    """Writers of one store, each replaced when it dies."""

    def __init__(self, folder: Path, writers: int, together: int, histories: Path | None = None) -> None:
        self.folder = folder
        self.writers = writers
        self.slots = Slots(writers, histories)
        self.sessions = {writer: session_of(writer, together) for writer in range(writers)}
        self.reading = Reading(folder)
        self.found: Counter[str] = Counter()
        self.pids: dict[int, int] = {}
        self.plans: dict[int, Plan | None] = {}
        vmstore.open(folder / STORE).close()

    def begin(self, writer: int, plan: Plan | None) -> None:
        """Starts a writer, on a disk that may kill it."""

        def work() -> None:
            if plan is None or plan.fault is None:
                write(self.folder, self.slots, writer, self.sessions[writer])
                return
            with disk(self.folder) as made:
                made.recording, made.fault = False, plan.fault
                write(self.folder, self.slots, writer, self.sessions[writer])

        self.pids[writer], self.plans[writer] = start(work), plan

    def kill_one(self, writer: int, plan: Plan, chance: random.Random, *, last: bool) -> None:
        """Lets a writer die as it was planned, and starts another in its place."""
        time.sleep(chance.uniform(0, 0.008))
        was = self.plans[writer]
        if was is None or was.fault is None:
            kill(self.pids.pop(writer))
            self.found["timed"] += 1
        else:
            self._await_death(writer, was.name)
        self.found["kills"] += 1
        if pick(chance, LOOKS):
            self.reading.check(self.slots, self.writers)
            self.found["looks"] += 1
        if was is not None and was.name in ("holding", "flushing"):
            self._others_go_on(writer)
        if not last:
            self.begin(writer, plan)

    def _await_death(self, writer: int, name: str) -> None:
        """Waits until a writer's disk has killed it.

        One that writes on outlives its plan: others fold and flush for it. One that does not, while others do, starves.
        """
        pid, before, done = self.pids.pop(writer), self.slots.snapshot(), self.slots.acked(writer)
        if wait(pid, STARVED_S):
            self.found[name] += 1
        elif self.slots.acked(writer) != done:
            self.found["outlived"] += kill(pid)
        elif self.slots.snapshot() != before:
            self.found["starved"] += kill(pid)
        else:
            self.await_end(pid)

    def await_end(self, pid: int) -> None:
        """Waits until a process has ended, by its disk or because its work is done."""
        if not wait(pid, PATIENCE_S):
            os.kill(pid, signal.SIGUSR1)
            time.sleep(0.1)
            kill(pid)
            raise Broken("stuck", f"a process did not end in {PATIENCE_S} s")

    def _others_go_on(self, dead: int) -> None:
        """Raises Broken unless some other writer, alive, is acknowledged something new."""
        before = [self.slots.acked(writer) for writer in range(self.writers)]
        until = time.monotonic() + PATIENCE_S
        others = [writer for writer in self.pids if self.plans[writer] is None or self.plans[writer].fault is None]
        while others and time.monotonic() < until:
            if any(self.slots.acked(writer) > before[writer] for writer in others):
                self.found["others went on"] += 1
                return
            time.sleep(0.0005)
        if others:
            raise Broken("stuck", f"nobody wrote for {PATIENCE_S} s after writer {dead} was killed")

    def end(self) -> None:
        """Kills the processes that are left."""
        for pid in self.pids.values():
            kill(pid)
        self.pids.clear()
