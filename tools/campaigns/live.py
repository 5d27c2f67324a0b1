"""SIGKILL of a session that manages its memory: between any two commits and inside any write or flush of one.

A process plays acts on one live session and its forks, and dies. The next one opens the store, finds
all that was acknowledged, and goes on. After each death the laws of live sessions are held against what is left.
"""

from __future__ import annotations

import mmap
import random
import struct
import time
from collections import Counter
from pathlib import Path

from campaigns.crew import kill, start
from campaigns.disk import Fault, disk
from campaigns.held import Broken, patient
from campaigns.kill import plan, wait
from campaigns.script import STORE

from vmstore.store.live.live_session import Live
from vmstore.testing import live_laws as laws
from vmstore.testing.simulate_live import ACTS, LiveRun

KILLS = 12  # of one store: each look at what is left costs the length of its sessions
LATER = 5  # an act writes more than a recorded call, and opening a session that lives reads and folds first
STEPS_MAX = 400  # of one process; it is dead before
DISTURBING = frozenset(("restart", "rebuild", "fail"))
PLAYED = tuple(act for act in ACTS if act not in DISTURBING)
LAWS = (laws.within_budget, laws.pins_hold, laws.live_is_replayed, laws.reasons_are_given)
NEEDED = {"timed", "holding", "flushing", "folding", "went on", "acts", "checked decisions"}


def batch(seed: int, folder: Path, kills: int = KILLS) -> Counter[str]:
    """Kills a process that acts again and again, and checks what each leaves; what was done."""
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    value = Acknowledged()
    for number in range(kills):
        way = plan(chance)
        if way.fault is not None:
            way.fault.at *= LATER
        counts[way.name if _die(folder, value, seed * 1_000 + number, way.fault, chance) else "outlived"] += 1
        counts["went on"] += number > 0
        with patient():
            counts += look(folder, value, seed * 1_000 + number + kills)
    counts["acts"] += value.acts
    return counts


class Acknowledged:
    """What a process acknowledged, kept where its death does not reach."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 16)

    @property
    def acts(self) -> int:
        """How many acts were acknowledged."""
        return int(struct.unpack_from("<Q", self._shared, 0)[0])

    @property
    def ordinal(self) -> int:
        """The last commit of the log that was."""
        return int(struct.unpack_from("<Q", self._shared, 8)[0])

    def ack(self, ordinal: int) -> None:
        """An act is acknowledged."""
        struct.pack_into("<QQ", self._shared, 0, self.acts + 1, ordinal)


def _die(folder: Path, value: Acknowledged, seed: int, fault: Fault | None, chance: random.Random) -> bool:
    """Lets a process act until it dies; whether it died as it was planned."""

    def work() -> None:
        if fault is None:
            act(folder, value, seed)
            return
        with disk(folder) as made:
            made.recording, made.fault = False, fault
            act(folder, value, seed)

    before = value.acts
    pid = start(work)
    if fault is not None:
        return wait(pid, 20.0) or not kill(pid)
    until = time.monotonic() + 20.0
    while value.acts - before < chance.randint(1, 40) and time.monotonic() < until:
        time.sleep(0.001)
    time.sleep(chance.uniform(0, 0.01))
    return kill(pid)


def act(folder: Path, slots: Acknowledged, seed: int) -> None:
    """Acts on the session of a store, opened or gone on with, until somebody ends it."""
    chance = random.Random(seed)
    life = LiveRun(folder / STORE, calm=True, seed=seed)  # ids of its own: two processes never give one twice
    for _ in range(STEPS_MAX):
        life.play((chance.choice(PLAYED), chance.randint(0, 500), chance.randint(0, 7)))
        slots.ack(life.store.admin.log.ordinal)
    life.close()


def look(folder: Path, value: Acknowledged, seed: int) -> Counter[str]:
    """Opens what is left: nothing that was acknowledged is lost, and every law of live sessions holds."""
    counts: Counter[str] = Counter()
    life = LiveRun(folder / STORE, calm=True, seed=seed)
    try:
        if life.store.admin.log.ordinal < value.ordinal:
            raise Broken(
                "lost", f"commit {value.ordinal} was acknowledged, and the log ends at {life.store.admin.log.ordinal}"
            )
        verdict = life.store.verify()
        if not verdict.ok:
            raise Broken("verify", str(verdict.problems[:3]))
        sessions = (life.store.session(info.session) for info in life.store.sessions())
        life.live = [session for session in sessions if isinstance(session, Live)]
        for law in LAWS:
            try:
                law(life)
            except AssertionError as error:
                raise Broken(law.__name__, str(error)) from error
        for session in life.live:
            for page in session.pages():
                session.content(page.page)
                counts["contents"] += 1
            checked = session.debug.check()
            if not checked.ok:
                raise Broken("check", str(checked.difference))
            counts["checked decisions"] += checked.decisions
    finally:
        life.close()
    return counts
