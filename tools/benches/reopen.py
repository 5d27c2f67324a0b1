"""Reopening a store of a million mutations: the first read and the first commit included."""

from __future__ import annotations

from collections.abc import Iterator

from benches.parts import child, stores
from benches.parts.rounds import LOWER, Bench, Goal, Row, ratios, row

TIME = Goal("open, first read, first commit: CPU, against a store of 20 mutations", 2, LOWER)
MEMORY = Goal("resident memory after it, MB", 60, LOWER)
GOALS = (TIME, MEMORY)

MUTATIONS = (1_000_000, 4_000)


def measure(bench: Bench) -> Iterator[Row]:
    """Both rows of reopening, each time in a process of its own; imports are off the clock."""
    big = stores.copied(stores.filled_store(bench, bench.size(*MUTATIONS), 1000), bench.folder / "big.vms")
    stores.tell(bench.folder / "empty.vms", 20, 20)
    peaks: list[float] = []

    def reopen() -> float:
        done = child.run("reopen", big, stores.SESSION)
        peaks.append(done["peak"])
        return done["seconds"]

    def reopen_empty() -> float:
        return child.seconds("reopen", bench.folder / "empty.vms", stores.SESSION)

    times = bench.race({"vmstore": reopen, "empty": reopen_empty}, bench.size(11, 2))
    yield row(TIME, ratios(times["vmstore"], times["empty"]))
    yield row(MEMORY, peaks)
