"""What a column of VMQL costs in a session of twice the pages: the worst of all columns of all relations."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benches.parts import doors, stores
from benches.parts.rounds import LOWER, Bench, Goal, Row, row
from vmstore.store.store import Store
from vmstore.vmql.relations.catalog import RELATIONS

GROWN = Goal("any column of VMQL from 8,000 to 16,000 pages: CPU, worst", 2.2, LOWER)
GOALS = (GROWN,)

PAGES = (8_000, 200)
ROUNDS = (3, 2)
LEAST_S = 0.004  # what takes less is what every statement takes


def measure(bench: Bench) -> Iterator[Row]:
    """The row; the worst columns are messages."""
    figures = taken(bench)
    for column, figure in sorted(figures.items(), key=lambda item: -item[1])[:5]:
        bench.say(f"  {figure:.3g} times for twice the pages: {column}")
    yield row(GROWN, [max(figures.values())])


def taken(bench: Bench) -> dict[str, float]:
    """By column how many times as long the larger session takes."""
    count = bench.size(*PAGES)
    paths = [stores.built(bench, f"grown-{n}", lambda place, n=n: build(place, n)) for n in (count, 2 * count)]
    costs = []
    for path in paths:
        with doors.opened(path) as store:
            costs.append({asked: cost(bench, store, asked) for asked in statements()})
    return {asked: max(costs[1][asked], LEAST_S) / max(costs[0][asked], LEAST_S) for asked in statements()}


def statements() -> Iterator[str]:
    """A statement for each column."""
    for name, relation in RELATIONS.items():
        yield from (f"{name} count({column}) WHERE {column} IS NOT NULL" for column in relation.fields)


def cost(bench: Bench, store: Store, asked: str) -> float:
    """The least seconds of CPU of some rounds."""
    list(store.query(asked))
    gc.collect()
    gc.disable()  # as in a race
    try:
        return min(bench.time("vmstore", lambda: len(list(store.query(asked)))) for _ in range(bench.size(*ROUNDS)))
    finally:
        gc.enable()


def build(place: Path, count: int) -> None:
    """A session of one call with so many messages."""
    messages: list[dict[str, Any]] = [
        {"role": ("user", "assistant")[n % 2], "content": f"Is {n} prime?"} for n in range(count)
    ]
    with doors.opened(place) as store:
        store.record("s", {"model": "m", "messages": messages}, {"choices": [{"message": messages[1]}]})
        store.admin.follow()
