"""What-ifs: eight settings over re-driven sessions by two processes and by one, and a table of nine."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterator
from pathlib import Path

import vmstore
from benches.parts import stores
from benches.parts.rounds import LOWER, Act, Bench, Goal, Row, ratios, row, wall
from vmstore.replay.sweep import Task, sweep
from vmstore.store.replay_sweep import NamespaceReader, what_ifs

SWEEP = Goal("a sweep of 8 settings by two processes, against one", 1.6)
TABLE = Goal("three policies and three budgets on a session of 220 turns, as a table: seconds", 60, LOWER)
GOALS = (SWEEP, TABLE)

POLICIES, BUDGETS = ("default", "lru", "s3fifo", "lfu"), (16_000, 64_000)
NINE = what_ifs(POLICIES[:3], (8_000, 16_000, 32_000))
SESSIONS = (8, 1)
NAMESPACE = "default"


def measure(bench: Bench) -> Iterator[Row]:
    """Sweeps of the same tasks in turns, then the table of one session by one process."""
    count = bench.size(*SESSIONS)
    path = stores.built(bench, f"redriven-{count}", lambda place: redriven(place, count))
    source = NamespaceReader(path, NAMESPACE)
    with vmstore.open(path) as store:
        positions = {info.session: info.position for info in store.sessions() if info.session.startswith("live")}
    eight, nine = what_ifs(POLICIES, BUDGETS)[: bench.size(8, 2)], NINE[: bench.size(9, 2)]
    tasks = [Task(name, end, item) for name, end in positions.items() for item in eight]
    first = next(iter(positions.items()))

    def swept(processes: int) -> None:
        runs = sweep(source, tasks, workers=processes)
        assert len(runs) == len(tasks) and any(run.measures.faults for run in runs)

    contenders = {
        "one": Act(lambda: swept(1)),
        "two": Act(lambda: swept(2)),
        "table": Act(lambda: sweep(source, [Task(*first, item) for item in nine], workers=1)),
    }
    times = bench.race(contenders, bench.size(5, 2), clock=wall)
    yield row(SWEEP, ratios(times["one"], times["two"]))
    yield row(TABLE, times["table"])


def redriven(path: Path, count: int) -> None:
    """A store with the session that ships, said again so many times to memories of different budgets."""
    demo = importlib.resources.files("vmstore.shell") / "demo.jsonl"
    with vmstore.open(path) as store, importlib.resources.as_file(demo) as file:
        (session,) = store.import_file(file).sessions
        for nth in range(count):
            store.admin.redrive(session.session, f"live-{nth}", l0_tokens_max=8_000 + 2_000 * nth)
