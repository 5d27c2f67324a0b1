"""Fleets: what-ifs of a thousand sessions by two processes and by Ray; questions over sixteen namespaces."""

from __future__ import annotations

import gc
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import vmstore
from benches.parts import agents, stores
from benches.parts.clocked import ClockedWork
from benches.parts.rounds import Act, Bench, Goal, Row, cpu, ratios, row, wall
from vmstore.replay.sweep import SweepWorker, Task, sweep, work_unit
from vmstore.store.fleet.fleet import open_fleet
from vmstore.store.replay_sweep import NamespaceReader, live_sessions, what_ifs
from vmstore.workers.choice import chosen
from vmstore.workers.executor import answers, grouped

TWO = Goal("replay of 1,000 sessions by one process: its CPU, against that of the busier of two", 1.8)
RAY = Goal("replay of 1,000 sessions by a Ray cluster of two that stands, against two processes", 0.8)
COLUMNS = Goal("sums of mutations over 16 namespaces by their columns, against asking each in turn", 3)
VIEWS = Goal("sums of pages over 16 namespaces, against asking each in turn", 0.8)
GOALS = (TWO, RAY, COLUMNS, VIEWS)

SESSIONS = (1_000, 12)
NAMESPACES = 16
ONE = "default"
CHANGES = what_ifs(["lru", "default", "s3fifo"], [3_000, 6_000])
SUMS = "MUTATIONS count(*), sum(tokens) BY kind ACROSS SESSIONS"
PAGES = "PAGES count(*), sum(tokens), avg(tokens) BY type ACROSS SESSIONS"


def measure(bench: Bench) -> Iterator[Row]:
    """What-ifs of the same tasks in turns, then the same questions in turns."""
    count = bench.size(*SESSIONS)
    yield from _replayed(bench, stores.built(bench, f"agents-{count}", lambda path: written(path, count, 1)))
    many = stores.built(bench, f"agents-{count}-by-{NAMESPACES}", lambda path: written(path, count, NAMESPACES))
    yield from _asked(bench, many)


def written(path: Path, count: int, namespaces: int) -> None:
    """A store of so many agents, the same number in each namespace."""
    for nth in range(namespaces):
        name = ONE if namespaces == 1 else f"team-{nth:02}"
        numbers = range(nth * count // namespaces, (nth + 1) * count // namespaces)
        with vmstore.open(path, namespace=name) as store:
            for _ in agents.write(store, numbers):
                pass
            store.admin.follow()


def _replayed(bench: Bench, path: Path) -> Iterator[Row]:
    with vmstore.open(path) as store:
        ends = [(name, store.session(name).info().position) for name in live_sessions(store)]
    tasks = [Task(name, end, change) for name, end in ends for change in (None, *CHANGES[: bench.size(6, 1)])]
    source = NamespaceReader(path, ONE)

    units = [work_unit(group) for group in grouped(tasks, lambda task: task.position)]
    busiest: dict[str, list[float]] = {"one": [], "two": []}

    def worked(name: str, workers: Any) -> None:
        gc.enable()  # as it is in other processes
        began = cpu()
        with chosen(workers) as crew:
            clocks = answers(crew, ClockedWork(SweepWorker(source, None).runs), units)
        taken: dict[int, float] = {}
        for clock in clocks:
            taken[clock.process] = max(clock.cpu_s, taken.get(clock.process, 0.0))
        assert sum(len(clock.answer) for clock in clocks) == len(tasks)
        busiest[name].append(max(taken.values()) - (began if workers == 1 else 0.0))

    def swept(workers: Any) -> None:
        gc.enable()
        assert len(sweep(source, tasks, workers=workers)) == len(tasks)

    with chosen("ray" if importlib.util.find_spec("ray") else 1) as cluster:
        contenders = {"one": Act(lambda: worked("one", 1)), "two": Act(lambda: worked("two", 2))}
        if cluster is not None:
            contenders |= {"pool": Act(lambda: swept(2)), "ray": Act(lambda: swept(cluster))}
        times = bench.race(contenders, bench.size(3, 2), clock=wall)
    yield row(TWO, ratios(busiest["one"], busiest["two"]))
    bench.say(f"  of wall: {sum(times['one']) / sum(times['two']):.2f}, at the load there was")
    if cluster is not None:
        yield row(RAY, ratios(times["pool"], times["ray"]))
    else:
        bench.say("  Ray is not installed, so its row is missing: pip install 'vmstore[ray]'")


def _asked(bench: Bench, path: Path) -> Iterator[Row]:
    with open_fleet(path) as fleet:
        for store in fleet.stores:
            store.admin.column_segments()

        def together(question: str) -> Sequence[Any]:
            return list(fleet.query(question))

        def in_turn(question: str) -> Sequence[Any]:
            return [list(store.query(question)) for store in fleet.stores]

        contenders = {
            f"{name} {way.__name__}": Act(lambda way=way, question=question: way(question))  # type: ignore[misc]
            for name, question in (("sums", SUMS), ("pages", PAGES))
            for way in (together, in_turn)
        }
        times = bench.race(contenders, bench.size(7, 2), clock=cpu)
    yield row(COLUMNS, ratios(times["sums in_turn"], times["sums together"]))
    yield row(VIEWS, ratios(times["pages in_turn"], times["pages together"]))
