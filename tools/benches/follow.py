"""Following: how soon a second process reads what the first has committed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from subprocess import Popen

from benches.parts import child, doors, peers
from benches.parts.rounds import LOWER, Bench, Goal, Row, percentile, row, wall
from benches.parts.story import Packed, Story
from benches.parts.text import Texts

P50 = Goal("read-your-write of a second process after 20 mutations: p50, ms", 2, LOWER)
P99 = Goal("the same: p99, ms", 10, LOWER)
GOALS = (P50, P99)

COMMITS = (300, 20)
ROUNDS = 5


def measure(bench: Bench) -> Iterator[Row]:
    """Both rows, by the reader's wall clock: from being told of the commit to a context that holds it."""
    commits, rounds = bench.size(*COMMITS), bench.size(ROUNDS, 2)
    floor, floors = peers.Floor(bench.folder / "floor"), []
    rows: list[list[float]] = []
    path = bench.folder / "shared.vms"
    with doors.opened(path) as store:
        session = store.session("s", create=True)
        story = Story(4, Texts(4))
        for _ in range(10):
            doors.write(session, story.commit(20))
        reader = child.start("reader", path, "s")
        _answer(reader)
        for _ in range(rounds):
            rows.append([])
            for _ in range(commits):
                deeds = story.commit(20)
                doors.write(session, deeds)
                packed = max(deed.position for deed in deeds if isinstance(deed, Packed))
                rows[-1].append(1e3 * (_ask(reader, packed) + bench.burden("vmstore")))
                started = wall()
                floor.append(bytes(2_000))
                floors.append(wall() - started)
        reader.stdin.close()  # type: ignore[union-attr]
        reader.wait()
    floor.close()
    bench.flushes(floors)
    yield row(P50, [percentile(row, 0.50) for row in rows])
    yield row(P99, [percentile(row, 0.99) for row in rows])


def _ask(reader: Popen[str], position: int) -> float:
    """Seconds until the reader's context holds a position."""
    assert reader.stdin is not None, "the reader listens"
    reader.stdin.write(f"{position}\n")
    reader.stdin.flush()
    return _answer(reader)["seconds"]


def _answer(reader: Popen[str]) -> dict[str, float]:
    assert reader.stdout is not None, "the reader answers"
    counts: dict[str, float] = json.loads(reader.stdout.readline())
    return counts
