"""Reopening a store of a million mutations: the first read and the first commit included."""

from __future__ import annotations

from collections.abc import Iterator

from benches.parts import child, stores
from benches.parts.rounds import LOWER, Act, Bench, Goal, Row, ratios, row

TIME = Goal("open, first read, first commit: CPU, against a store of 20 mutations", 2, LOWER)
MEMORY = Goal("resident memory after it, MB", 60, LOWER)
GOALS = (TIME, MEMORY)

MUTATIONS = (1_000_000, 20_000)


def measure(bench: Bench) -> Iterator[Row]:
    """Both rows of reopening, each time in a process of its own; imports are off the clock."""
    big = stores.copied(stores.told(bench, bench.size(*MUTATIONS), 1000), bench.folder / "big.vms")
    stores.tell(bench.folder / "empty.vms", 20, 20)
    told: dict[str, list[dict[str, float]]] = {"vmstore": [], "empty": []}
    contenders = {
        "vmstore": Act(lambda: told["vmstore"].append(child.run("reopen", big, stores.SESSION))),
        "empty": Act(lambda: told["empty"].append(child.run("reopen", bench.folder / "empty.vms", stores.SESSION))),
    }
    bench.race(contenders, bench.size(11, 2))
    seconds = {name: [one["seconds"] + bench.burden(name) for one in runs] for name, runs in told.items()}
    yield row(TIME, ratios(seconds["vmstore"], seconds["empty"]))
    yield row(MEMORY, [one["peak"] for one in told["vmstore"]])
