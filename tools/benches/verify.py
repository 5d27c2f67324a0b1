"""Verifying: every hash of log and cells, and every rule and view."""

from __future__ import annotations

from collections.abc import Iterator

from benches.parts import child, doors, stores
from benches.parts.rounds import HIGHER, Act, Bench, Goal, Row, ratios, row

LOG = Goal("log and cells without content: mutations a second", 200_000, HIGHER)
VIEWS = Goal("with views: its rate, against the rebuild of all views", 1.0, HIGHER)
GOALS = (LOG, VIEWS)

MUTATIONS = (300_000, 4_000)
BUDGET_S = 150.0


def measure(bench: Bench) -> Iterator[Row]:
    """Both rows of verifying; the store has pages and messages, but no contents to hash."""
    count = bench.size(*MUTATIONS)
    path = stores.filled_store(bench, count, 1000, content=False)
    copy = stores.copied(path, bench.folder / "rebuilt.vms")
    with doors.opened(path) as store:

        def check(views: bool) -> None:
            assert doors.verify(store, views=views), "the store that was just built is sound"

        contenders = {
            "vmstore": Act(lambda: check(False)),
            "views": Act(lambda: check(True)),
            "rebuild": Act(lambda: child.seconds("fold", copy), before=lambda: doors.forget_views(copy)),
        }
        times = bench.race(contenders, bench.size(3, 2), budget_s=BUDGET_S)
    yield row(LOG, [count / seconds for seconds in times["vmstore"]])
    yield row(VIEWS, ratios(times["rebuild"], times["views"]))
