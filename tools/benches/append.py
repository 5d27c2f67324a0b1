"""Appending: durable commits against what the disk allows, and the CPU of a commit against others."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from typing import Any

from benches.parts import doors, peers, records
from benches.parts.rounds import HIGHER, Bench, Goal, MissingError, Row, ratios, row, wall
from benches.parts.story import Story, commits, deeds_of
from benches.parts.text import Texts

ONE = Goal("durable commits of 1, against raw append+fdatasync", "0.7 where flushes are fast, 0.9 where slow", HIGHER)
ONE_PEER = Goal("durable commits of 1, against eventsourcing's SQLite recorder", 1.4, HIGHER)
HUNDRED = Goal("durable commits of 100, against an in-place raw log", 0.25, HIGHER)
THOUSAND = Goal("durable commits of 1000, against an in-place raw log", 0.25, HIGHER)
LOG = Goal("CPU of the log append, 1000 a commit, against sqlite3 rows of 7 columns", 1.5, HIGHER)
CALL = Goal("CPU of the public call, 1000 a commit, against sqlite3 rows of 7 columns", 1.1, HIGHER)
CALL_ON = Goal("the same, 300,000 mutations on end with the folds of views that its writer makes")
CALL_PEER = Goal("CPU of the public call, 1000 a commit, against chuk's log in memory", 4.5, HIGHER)
GOALS = (ONE, ONE_PEER, HUNDRED, THOUSAND, LOG, CALL, CALL_ON, CALL_PEER)

BLOCKS = {1: 12, 100: 5, 1000: 3}  # commits in a row, so that the floor before and after stands close


def measure(bench: Bench) -> Iterator[Row]:
    """All rows of appending."""
    yield from _ones(bench)
    yield _many(bench, HUNDRED, 100)
    yield _many(bench, THOUSAND, 1000)
    yield from _cpu(bench)


class Turns:
    """Hands out commits of a story one after the other, for a contender to write each once."""

    def __init__(self, all_: Sequence[Any]) -> None:
        self._next = cycle(all_)

    def __call__(self) -> Any:
        return next(self._next)


def _ones(bench: Bench) -> Iterator[Row]:
    rounds, block = bench.size(25, 2), BLOCKS[1]
    deeds = deeds_of(1, (rounds + 1) * block, 1)
    states = [records.encode(records.record(deed, content=True)) for (deed,) in deeds]
    floor, recorder = peers.Floor(bench.folder / "floor"), peers.Recorder(bench.folder / "eventsourcing.db")
    raw, ours, theirs = Turns(states), Turns(deeds), Turns(states)
    with doors.opened(bench.folder / "ones.vms") as store:
        session = store.session("s", create=True)

        def commit() -> None:
            doors.write(session, ours())

        contenders: dict[str, Callable[[], None]] = {
            "vmstore": commit,
            "eventsourcing": lambda: recorder.append("deed", [theirs()]),
        }
        against, flushes = _beside(bench, lambda: floor.append(raw()), contenders, rounds, block)
    floor.close()
    slow = bench.flushes(flushes)
    yield row(ONE, against["vmstore"], 0.9 if slow else 0.7)
    yield row(ONE_PEER, ratios(against["vmstore"], against["eventsourcing"]))


def _beside(
    bench: Bench, floor: Callable[[], None], contenders: dict[str, Callable[[], None]], rounds: int, block: int
) -> tuple[dict[str, list[float]], list[float]]:
    """How many of the floor's appends fit into one of each contender's, the floor taken before and after each block."""

    def median(name: str, act: Callable[[], None]) -> float:
        return statistics.median(bench.time(name, act, wall) for _ in range(block))

    against: dict[str, list[float]] = {name: [] for name in contenders}
    floors: list[float] = []
    for nth in range(rounds + 1):
        for name, act in contenders.items():
            before = median("floor", floor)
            taken = median(name, act)
            after = median("floor", floor)
            if nth:  # the first round warms up
                against[name].append((before + after) / 2 / taken)
                floors += [before, after]
    return against, floors


def _many(bench: Bench, goal: Goal, size: int) -> Row:
    rounds, block = bench.size(15, 2), BLOCKS[size]
    deeds = deeds_of(2, (rounds + 1) * block * size, size)
    calls = [[records.record(deed, content=True) for deed in commit] for commit in deeds]
    log = peers.InPlace(bench.folder / "in-place", bench.size(peers.PREALLOCATED_BYTES, 8 << 20))
    raw, ours = Turns(calls), Turns(deeds)
    with doors.opened(bench.folder / f"by-{size}.vms") as store:
        session = store.session("s", create=True)

        def commit() -> None:
            doors.write(session, ours())

        against, _ = _beside(bench, lambda: log.append(raw()), {"vmstore": commit}, rounds, block)
    log.close()
    return row(goal, against["vmstore"])


def _cpu(bench: Bench) -> Iterator[Row]:
    """CPU alone, where a flush costs nothing."""
    size, rounds = bench.size(1000, 200), bench.size(7, 2)
    each = bench.size(15, 2)
    deeds = deeds_of(3, (rounds + 1) * each * size, size)
    calls = [[records.record(deed, content=True) for deed in commit] for commit in deeds]
    sheets = [doors.prepared(commit) for commit in deeds]
    rows = peers.Rows(bench.memory / "rows.db")
    with (
        doors.opened(bench.memory / "log.vms") as bare,
        doors.opened(bench.memory / "call.vms") as store,
    ):
        session, appender = store.session("s", create=True), doors.Appender(bare)
        contenders = {
            "sqlite3": _times(each, Turns(calls), rows.append),
            "log": _times(each, Turns(sheets), lambda sheet: appender.append(*sheet)),
            "vmstore": _times(each, Turns(deeds), lambda commit: doors.write(session, commit)),
        }
        try:
            contenders["chuk"] = _times(each, Turns(calls), peers.chuk_log())
        except MissingError as missing:
            bench.say(f"left out: {CALL_PEER.name}: {missing}")
        times = bench.race(contenders, rounds + 1)
    rows.close()
    times = {name: taken[1:] for name, taken in times.items()}
    yield row(LOG, ratios(times["sqlite3"], times["log"]))
    yield row(CALL, ratios(times["sqlite3"], times["vmstore"]))
    yield _on_end(bench)
    if "chuk" in times:
        yield row(CALL_PEER, ratios(times["chuk"], times["vmstore"]))


def _on_end(bench: Bench) -> Row:
    """A writer whom nobody asks: once many mutations wait it folds them itself, in some of its calls."""
    size, count = bench.size(1000, 200), bench.size(300, 4)
    taken = {"vmstore": 0.0, "sqlite3": 0.0}
    rows = peers.Rows(bench.memory / "rows-on.db")
    with doors.opened(bench.memory / "on.vms") as store:
        session = store.session("s", create=True)
        acts: dict[str, Callable[[Any, Any], None]] = {
            "vmstore": lambda deeds, _: doors.write(session, deeds),
            "sqlite3": lambda _, value: rows.append(value),
        }
        for deeds in commits(Story(4, Texts(4)), size * count, size):
            calls = [records.record(deed, content=True) for deed in deeds]
            for name, act in acts.items():
                taken[name] += bench.time(name, partial(act, deeds, calls))
    rows.close()
    return row(CALL_ON, [taken["sqlite3"] / taken["vmstore"]])


def _times(count: int, turns: Turns, act: Callable[[Any], None]) -> Callable[[], None]:
    def run() -> None:
        for _ in range(count):
            act(turns())

    return run
