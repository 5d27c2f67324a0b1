"""Hours of mixed load on one store, at the pace of applications: what grows, what slows down, what is lost.

Processes record, live and ask; beside them the store is sealed, verified, compacted, backed up, restored, and
sessions are decided again. Every interval files, memory and times are measured, with a probe of the machine
beside them. At the end everything acknowledged is looked for, and the bounds of `gauges` are held.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from campaigns import load
from campaigns.crew import Reading, Slots, ended, kill, start
from campaigns.gauges import Events, Sample, broken, figures, line, private, sizes, table, wals, worked
from campaigns.held import Broken
from campaigns.script import STORE

import vmstore
from vmstore.namespace.signing_keys import read_key
from vmstore.seals.seals import folder_of, seals_in

SECONDS = 10.0
WRITERS = 3
INTERVALS = 120
INTERVAL_S_MAX = 60.0
SHORT_INTERVALS, SHORT_CALLS = 16, 2  # of a short run, and the calls of each writer that one waits for
LOOK_S = 0.25  # between two looks at the WALs
SAMPLED = 24  # sessions whose requests are compared at the end
# How often an application does what: short runs are denser, so that every kind of thing happens in them.
CALLS_S, TURNS_S, ASKS_S, PROBES_S = 2.5, 0.8, 2.0, 2.0
DENSE_S, DENSE = 120.0, 4.0
SEAL_S, COMPACT_S, REPLAY_S, BACKUP_S = 240.0, 600.0, 420.0, 1200.0
NEEDED = {
    "calls", "sessions", "forks", "turns", "faults", "pins", "questions", "asked again", "watched", "seals",
    "sealed verifies", "compactions", "backups", "restores", "replays", "samples",
}  # fmt: skip

Tell = Callable[[str], None]


def batch(seed: int, folder: Path, seconds: float = SECONDS, plant: str = "", tell: Tell | None = None) -> Counter[str]:
    """Lets everything work on one store for a while and measures; then looks at what was lost and what grew.

    `tell` hears each interval, the tables and what is broken; where there is none the figures are among the counts.
    """
    hear = tell or (lambda line: None)
    run = Soak(seed, folder, seconds, plant)
    try:
        for sample in run.samples():
            hear(line(sample))
        run.stop()
    finally:
        run.end()
    for row in table(run.taken):
        hear(row)
    hear(f"CPU: {run.cpu / (run.taken[-1].seconds or 1):.2f} of a core")
    counts = run.found + check(folder, run.slots, seed)
    hear(", ".join(f"{count:,} {what}" for what, count in sorted(counts.items())))
    if tell is None:
        counts += figures(run.taken)
    wrong = broken(run.taken)
    for _, what in wrong:
        hear(f"broken: {what}")
    if wrong:
        raise Bounds(wrong, counts)
    return counts


class Bounds(Broken):
    """Bounds that do not hold; `all` has a word for each, and what about it, `found` what there was beside."""

    def __init__(self, wrong: list[tuple[str, str]], counts: Counter[str]) -> None:
        super().__init__(wrong[0][0], "; ".join(what for _, what in wrong))
        self.all = wrong
        self.found = counts


class Soak:
    """One run: its processes, its chores, and what was measured."""

    def __init__(self, seed: int, folder: Path, seconds: float, plant: str) -> None:
        self.folder, self.seconds, self.seed = folder, seconds, seed
        self.slots = Slots(WRITERS)
        self.taken: list[Sample] = []
        self.found: Counter[str] = Counter()
        self.cpu = 0.0
        for name in ("times", "told"):
            (folder / name).mkdir()
        vmstore.open(folder / STORE).close()
        vmstore.new_key(folder / "seal.key")
        dense = DENSE if seconds <= DENSE_S else 1.0
        works: dict[str, Callable[[], None]] = {
            f"writer {n}": lambda n=n: load.record(folder, self.slots, n, CALLS_S * dense, plant)  # type: ignore[misc]
            for n in range(WRITERS)
        }
        works["live"] = lambda: load.live(folder, self.slots, TURNS_S * dense)
        works["asker"] = lambda: load.ask(folder, self.slots, ASKS_S * dense)
        works["probe"] = lambda: load.probe(folder, self.slots, PROBES_S * dense)
        if plant == "wal":
            works["plant"] = lambda: load.held_open(folder, self.slots)
        self.pids = {name: start(work) for name, work in works.items()}
        self._chores = Chores(folder, seed, seconds, self.slots)

    def samples(self) -> Iterator[Sample]:
        """What each interval was like, until the time is up.

        An interval of a short run also lasts until every writer has done its share: beside busy neighbours the run
        takes longer, and there is as much to judge as on a machine of its own.
        """
        began, events = time.monotonic(), Events(self.folder / "times")
        short = self.seconds <= DENSE_S
        interval = min(INTERVAL_S_MAX, self.seconds / (SHORT_INTERVALS if short else INTERVALS))
        most: dict[str, int] = {}
        until = began + interval
        while (now := time.monotonic()) < began + self.seconds or (short and len(self.taken) < SHORT_INTERVALS):
            time.sleep(min(LOOK_S, interval / 4))
            self._alive()
            self._chores.go_on(now - began)
            for name, size in wals(self.folder).items():
                most[name] = max(size, most.get(name, 0))
            wanted = SHORT_CALLS * (len(self.taken) + 1) if short else 0
            if now >= until and min(map(self.slots.acked, range(WRITERS))) >= wanted:
                until = max(until + interval, now)
                memory = {name: private(pid) for name, pid in self.pids.items() if name != "probe"}
                memory["soak itself"] = private(os.getpid())
                self.taken.append(Sample(now - began, {**sizes(self.folder), **most}, memory, *events.take()))
                most = {}
                self.cpu = sum(map(worked, (*self.pids.values(), os.getpid())))
                yield self.taken[-1]

    def _alive(self) -> None:
        for name, pid in list(self.pids.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                del self.pids[name]
                ended(status)
                raise Broken("crashed", f"{name} ended before it was asked to")

    def stop(self) -> None:
        """Asks everybody to end, and waits; adds what they did."""
        self.slots.stop()
        for name in list(self.pids):
            ended(os.waitpid(self.pids.pop(name), 0)[1])
        self._chores.finish()
        self.found += self._chores.found
        self.found["samples"] = len(self.taken)
        for name in ("live", "asker"):
            self.found += load.counts_in(self.folder / "told" / name)

    def end(self) -> None:
        """Kills the processes that are left."""
        self.slots.stop()
        for pid in self.pids.values():
            kill(pid)
        self.pids.clear()


# ---- what is done to a store from time to time


class Chores:
    """Chores, each in a process of its own as a command would be, one at a time."""

    def __init__(self, folder: Path, seed: int, seconds: float, slots: Slots) -> None:
        self._folder, self._chance, self._slots = folder, random.Random(seed), slots
        often = 1.0 if seconds > DENSE_S else seconds / (1.5 * BACKUP_S)
        self._every: dict[str, float] = {
            "seal": SEAL_S * often, "compact": COMPACT_S * often, "replay": REPLAY_S * often, "backup": BACKUP_S * often
        }  # fmt: skip
        self._due = dict(self._every)
        self._pid, self._doing = 0, ""
        self.found: Counter[str] = Counter()

    def go_on(self, seconds: float) -> None:
        """Begins what is due, where nothing is under way."""
        if self._pid and not self._done(os.WNOHANG):
            return
        due = [name for name in self._due if self._due[name] <= seconds]
        if due and all(map(self._slots.acked, range(WRITERS))):
            name = min(due, key=lambda name: self._due[name])
            self._due[name] = seconds + self._every[name]
            self._begin(name)

    def _begin(self, name: str) -> None:
        seed = self._chance.randint(0, 1 << 30)
        self._doing, self._pid = name, start(lambda: CHORES[name](self._folder, self._slots, seed))

    def finish(self) -> None:
        """Waits for what is under way, and does what never came to its turn."""
        if self._pid:
            self._done(0)
        for name in CHORES:
            if not self.found[DONE[name][0]]:
                self._begin(name)
                self._done(0)

    def _done(self, how: int) -> bool:
        done, status = os.waitpid(self._pid, how)
        if not done:
            return False
        self._pid = 0
        ended(status)
        self.found.update(DONE[self._doing])
        return True


def _seal(folder: Path, slots: Slots, seed: int) -> None:
    """Seals, and holds the log against this seal and the first."""
    with vmstore.open(folder / STORE) as store:
        vmstore.seal(store, read_key(folder / "seal.key"))
        _sound(store, [_seals(folder)[0], _seals(folder)[-1]])


def _seals(folder: Path) -> list[Any]:
    return list(seals_in(folder_of(folder / STORE / "default"), "default"))


def _sound(store: vmstore.Store, seals: list[Any], *, views: bool = False) -> None:
    verdict = store.verify(views=views, seals=seals)
    if not verdict.ok:
        raise Broken("unsound", f"verify finds {[(p.kind, p.where, p.what) for p in verdict.problems[:3]]}")


def _compact(folder: Path, slots: Slots, seed: int) -> None:
    with vmstore.open(folder / STORE) as store:
        store.admin.compact()
        store.admin.collect_garbage()


def _replay(folder: Path, slots: Slots, seed: int) -> None:
    """Decides a live session again: as it was, and with another policy."""
    with vmstore.open(folder / STORE) as store:
        names = [info.session for info in store.sessions() if info.session.startswith("live-")]
        if not names:
            return
        session = store.session(random.Random(seed).choice(names))
        checked = session.debug.check()
        if not checked.ok:
            raise Broken("check", f"{session.name}: {checked.difference}")
        session.debug.replay(policy="lru")


def _backup(folder: Path, slots: Slots, seed: int) -> None:
    """Backs up, restores that, and looks for all that was acknowledged before."""
    seals = _seals(folder)
    acked = [slots.acked(writer) for writer in range(WRITERS)]
    copy, again = folder / "copy.bak", folder / "again.vms"
    vmstore.backup(folder / STORE, copy)
    vmstore.restore(copy, again)
    shutil.rmtree(copy)
    with vmstore.open(again) as store:
        _sound(store, seals[-1:])
        for writer, number in enumerate(acked):
            name, first = load.place(writer, number or 1)
            if number and number - first + 1 > len(store.session(name).calls()):
                raise Broken("lost", f"a backup does not have call {number} of writer {writer}")
    shutil.rmtree(again)


CHORES: dict[str, Callable[[Path, Slots, int], None]] = {
    "seal": _seal, "compact": _compact, "replay": _replay, "backup": _backup
}  # fmt: skip
DONE = {
    "seal": ("seals", "sealed verifies"), "compact": ("compactions",), "replay": ("replays",),
    "backup": ("backups", "restores"),
}  # fmt: skip


# ---- the end


def check(folder: Path, slots: Slots, seed: int) -> Counter[str]:
    """Raises Broken unless every call acknowledged is there once, as it was sent, and the store is sound."""
    reading = Reading(folder)
    reading.check(slots, WRITERS)
    counts = Counter(calls=len(reading.calls), commits=reading.ordinal)
    chance = random.Random(seed)
    with vmstore.open(folder / STORE) as store:
        names = [info.session for info in store.sessions() if info.session.startswith(("w", "shared"))]
        counts["sessions"] = len(store.sessions())
        counts["forks"] = sum(info.parent is not None for info in store.sessions())
        for name in chance.sample(names, min(SAMPLED, len(names))):
            session: Any = store.session(name)
            for call in session.calls()[:: load.CALLS // 4]:
                sent = session.wire.request(call=call.call)
                writer = int(sent["messages"][-1]["content"].partition(".")[0])
                if sent != load.request(writer, sent["seed"]):
                    raise Broken("changed", f"call {call.call} of {name!r} is not the request that was sent")
                counts["compared requests"] += 1
        _sound(store, _seals(folder), views=True)
    return counts
