"""Storage: bytes a mutation takes in log and cells, and in all views."""

from __future__ import annotations

from collections.abc import Iterator

from benches.parts import doors, peers, records, stores
from benches.parts.rounds import LOWER, Bench, Goal, Row, row
from benches.parts.story import deeds_of

LOG = {
    1000: Goal("log and cells at 1000 mutations a commit, against SQLite rows with JSON", 0.18, LOWER),
    20: Goal("log and cells at 20 mutations a commit, against SQLite rows with JSON", 0.22, LOWER),
    1: Goal("log and cells at 1 mutation a commit, against SQLite rows with JSON", 0.35, LOWER),
}
VIEWS = Goal("all views at 20 mutations a commit, bytes a mutation", 110, LOWER)
GOALS = (*LOG.values(), VIEWS)

MUTATIONS = (100_000, 4_000)


def measure(bench: Bench) -> Iterator[Row]:
    """Sizes of closed files; they do not spread."""
    count = bench.size(*MUTATIONS)
    other_rows = []
    for size, goal in LOG.items():
        path = stores.copied(stores.filled_store(bench, count, size), bench.folder / f"by-{size}.vms")
        with doors.opened(path) as store:
            doors.compact(store)
        rows = peers.Rows(bench.memory / f"json-{size}.db", peers.json_text)
        for commit in deeds_of(1, count, size):
            rows.append([records.record(deed, content=True) for deed in commit])
        other_rows.append(row(goal, [doors.log_bytes(path) / rows.close()]))
        if size == 20:
            views = row(VIEWS, [doors.views_bytes(path) / count])
    yield from other_rows
    yield views
