"""Many processes on one store: writers, some of them killed, readers and tails, and the histories they leave.

Checked are what everybody saw: each session's positions are dense, a call acknowledged before
another was asked for comes before it, a reader sees every call acknowledged before it asked and
none half, a tail that is closed and resumed has every mutation once, and nobody waits long: the
first calls of a process, which open the store and read its session, are held against others such,
and every later one against those.
"""

from __future__ import annotations

import random
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from campaigns.crew import LoggedCall, Slots, check_end, start
from campaigns.held import Broken
from campaigns.kill import Crew, plan
from campaigns.script import STORE

import vmstore
from vmstore.errors import UnknownError

SECONDS = 20.0
EVERY_S = 0.4  # a writer is killed so often
WORST = 50  # medians that the longest wait of a kind may last
PAUSE_S = 0.002  # between two looks of a reader
NEEDED = {"calls", "kills", "interleaved", "reads", "tailed", "resumed", "ordered", "others went on"}


def batch(seed: int, folder: Path, seconds: float = SECONDS, worst: float = WORST) -> Counter[str]:
    """Lets writers, readers and tails work on one store for a while, then checks what they saw."""
    chance = random.Random(seed)
    histories = folder / "histories"
    histories.mkdir()
    writers = 2 + seed % 7
    crew = Crew(folder, writers, chance.randint(0, writers), histories)
    watchers = Slots(4)
    looking = [start(lambda w=w: look(crew, watchers, w)) for w in (0, 1)]
    tailing = [start(lambda w=w: follow(folder, crew.slots, watchers, w)) for w in (2, 3)]
    try:
        for writer in range(writers):
            crew.begin(writer, None)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(min(EVERY_S, seconds / 4))
            victim = chance.randrange(writers)
            crew.kill_one(victim, plan(chance), chance, last=False)
        for writer, pid in list(crew.pids.items()):
            if (doomed := crew.plans[writer]) is not None and doomed.fault is not None:
                del crew.pids[writer]
                crew.await_end(pid)
        crew.slots.stop()
        for writer in list(crew.pids):
            crew.await_end(crew.pids.pop(writer))
        for pid in (*looking, *tailing):
            crew.await_end(pid)
    finally:
        crew.slots.stop()
        crew.end()
    return crew.found + judged(crew, watchers, histories, worst)


def judged(crew: Crew, watchers: Slots, histories: Path, worst: float) -> Counter[str]:
    """Checks what was written and what everybody saw; what there was."""
    crew.reading.check(crew.slots, crew.writers)
    counts = Counter(
        calls=len(crew.reading.calls),
        interleaved=crew.reading.turns,
        reads=watchers.acked(0) + watchers.acked(1),
        resumed=watchers.asked(2) + watchers.asked(3),
    )
    times = read_histories(histories)
    counts["ordered"] = check_order(crew.reading.calls, times)
    with vmstore.open(crew.folder / STORE, "r") as store:
        mutations = store.info().mutations
    for tail in (2, 3):
        if watchers.acked(tail) != mutations:
            raise Broken("gap", f"a tail had {watchers.acked(tail)} of {mutations} mutations")
        counts["tailed"] += mutations
    waits = read_waits(histories)
    counts["worst wait in medians"] = check_waits("a call", waits.later, worst)
    counts["worst first wait in medians"] = check_waits("the first call of a process", waits.first, worst)
    check_end(crew.folder, crew.slots, crew.sessions)
    return counts


# ---- who looks on


def look(crew: Crew, watchers: Slots, watcher: int) -> None:
    """Reads the first writer's session again and again; each call acknowledged before is there, none is half."""
    name = crew.sessions[0]
    ours = [writer for writer, session in crew.sessions.items() if session == name]
    with vmstore.open(crew.folder / STORE, "rw" if watcher else "r") as store:
        while not crew.slots.stopped:
            acked = sum(crew.slots.acked(writer) for writer in ours)
            calls = calls_of(store, name)
            asked = sum(crew.slots.asked(writer) for writer in ours)
            if not acked <= len(calls) <= asked:
                raise Broken("lost", f"a reader saw {len(calls)} calls; {acked} were acknowledged, {asked} asked for")
            if any(call.status != "ok" for call in calls):
                raise Broken("torn", "a reader saw a call without its reply")
            watchers.ack(watcher, watchers.acked(watcher) + 1)
            time.sleep(PAUSE_S)


def calls_of(store: vmstore.Store, name: str) -> list[Any]:
    """The calls of a session, none before it is there."""
    try:
        return store.session(name).calls()
    except UnknownError:
        return []


def follow(folder: Path, slots: Slots, watchers: Slots, watcher: int) -> None:
    """Tails the store to its end, now and then from a new handle; each session's positions come in a row."""
    chance = random.Random(watcher)
    cursor, last, count = None, Counter[str](), 0
    done = False
    while not done:
        done = slots.stopped and quiet(slots)
        with vmstore.open(folder / STORE, "r") as store:
            for _ in range(chance.randint(1, 20)):
                for entry in store.tail(cursor):
                    if entry.position != last[entry.session] + 1:
                        raise Broken("gap", f"a tail has {entry.position} of {entry.session!r} after {last}")
                    last[entry.session], cursor, count = entry.position, entry.cursor, count + 1
                watchers.ack(watcher, count)
                time.sleep(PAUSE_S)
        watchers.ask(watcher, watchers.asked(watcher) + 1)


def quiet(slots: Slots) -> bool:
    """Whether every writer has ended; they say nothing after that."""
    before = slots.snapshot()
    time.sleep(0.3)
    return slots.snapshot() == before


# ---- what they saw


Times = dict[tuple[int, int], list[int]]  # writer and number: when first asked, when acknowledged


def read_histories(folder: Path) -> Times:
    """When each call was first asked for and when acknowledged, in nanoseconds of one clock; none is a call unknown."""
    asked: dict[tuple[int, int], int] = {}
    acked: dict[tuple[int, int], int] = {}
    for lines in _lines(folder):
        for kind, key, at in lines:
            kept = asked if kind == "ask" else acked
            kept[key] = min(at, kept.get(key, at))
    return {key: [at, acked[key]] if key in acked else [at] for key, at in asked.items()}


class Waits(NamedTuple):
    """How long calls waited, in nanoseconds: the first ones of each process, and every later one."""

    first: list[int]
    later: list[int]


def read_waits(folder: Path) -> Waits:
    """How long each call waited; one that died with its process waits again in the next.

    A call tried again that is there already is answered without reading anything, so a process's
    first calls go on to the first that nobody asked for before.
    """
    waits, times = Waits([], []), read_histories(folder)
    for lines in _lines(folder):
        asked = {key: at for kind, key, at in lines if kind == "ask"}
        reads = set[int]()  # writers whose session was read by now
        for key, at in ((key, at) for kind, key, at in lines if kind == "ack"):
            (waits.later if key[0] in reads else waits.first).append(at - asked[key])
            if asked[key] == times[key][0]:
                reads.add(key[0])
    return waits


def _lines(folder: Path) -> Iterator[list[tuple[str, tuple[int, int], int]]]:
    """What each process wrote down: asked or acknowledged, which call, when."""
    for file in sorted(folder.iterdir()):
        lines = [line.split() for line in file.read_text().splitlines()]
        yield [(kind, (int(writer), int(number)), int(at)) for kind, writer, number, at in lines]


def check_order(calls: list[LoggedCall], times: Times) -> int:
    """Raises Broken where a call stands after one asked for when it was acknowledged; how many there are."""
    latest, by = 0, calls[0]
    for call in calls:
        other_time = times[call.writer, call.number]
        if len(other_time) == 2 and other_time[1] < latest:
            raise Broken("order", f"{call} was acknowledged before {by} was asked for, and stands after it")
        if other_time[0] > latest:
            latest, by = other_time[0], call
    return len(calls)


def check_waits(who: str, waits: Sequence[int], worst: float) -> int:
    """The longest wait in medians of its kind, 0 where there is none; raises Broken where it is too long."""
    if not waits:
        return 0
    ratio = max(waits) / statistics.median(waits)
    if ratio > worst:
        raise Broken("starved", f"{who} waited {ratio:.0f} medians ({max(waits) / 1e6:.0f} ms)")
    return round(ratio)
