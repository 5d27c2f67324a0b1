"""What a column of VMQL costs in a session of twice the pages: the worst of all columns of all relations."""

from __future__ import annotations

import gc
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benches.parts import doors, stores
from benches.parts.rounds import LOWER, Bench, Goal, Row, row
from vmstore.store.store import Store
from vmstore.vmql.relations.catalog import RELATIONS

GROWN = Goal("any column of VMQL from 8,000 to 16,000 pages: CPU, worst", 2.2, LOWER)
GOALS = (GROWN,)

PAGES = (8_000, 200)
ROUNDS, AGAIN = (3, 2), 4  # noise only adds
LEAST_S = 0.004  # what takes less is what every statement takes


def measure(bench: Bench) -> Iterator[Row]:
    """The row; the worst columns are told on the side."""
    figures = taken(bench)
    for column, figure in sorted(figures.items(), key=lambda item: -item[1])[:5]:
        bench.say(f"  {figure:.3g} times for twice the pages: {column}")
    yield row(GROWN, [max(figures.values())])


def taken(bench: Bench) -> dict[str, float]:
    """By column how many times as long the larger session takes; what seems too long is measured again."""
    count = bench.size(*PAGES)
    paths = [stores.built(bench, f"grown-{n}", lambda place, n=n: build(place, n)) for n in (count, 2 * count)]
    figures = {}
    with doors.opened(paths[0]) as small, doors.opened(paths[1]) as large:
        for asked in statements():
            least = [math.inf, math.inf]
            for _ in range(AGAIN):
                least = list(map(min, least, costs(bench, (small, large), asked)))
                figures[asked] = max(least[1], LEAST_S) / max(least[0], LEAST_S)
                if figures[asked] <= GROWN.goal:
                    break
    return figures


def statements() -> Iterator[str]:
    """A statement for each column."""
    for name, relation in RELATIONS.items():
        yield from (f"{name} count({column}) WHERE {column} IS NOT NULL" for column in relation.fields)


def costs(bench: Bench, asked_of: Sequence[Store], asked: str) -> list[float]:
    """The least seconds of CPU of some rounds, of each store; they take turns."""
    acts = [lambda store=store: len(list(store.query(asked))) for store in asked_of]
    for act in acts:
        act()
    gc.collect()
    gc.disable()  # as in a race
    try:
        rounds = [[bench.time("vmstore", act) for act in acts] for _ in range(bench.size(*ROUNDS))]
    finally:
        gc.enable()
    return list(map(min, zip(*rounds, strict=True)))


def build(place: Path, count: int) -> None:
    """A session of one call with so many messages."""
    messages: list[dict[str, Any]] = [
        {"role": ("user", "assistant")[n % 2], "content": f"Is {n} prime?"} for n in range(count)
    ]
    with doors.opened(place) as store:
        store.record("s", {"model": "m", "messages": messages}, {"choices": [{"message": messages[1]}]})
        store.admin.follow()
