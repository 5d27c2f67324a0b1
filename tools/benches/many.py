"""Many: a hundred thousand small sessions beside one long one of as many mutations."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

from benches.parts import child, doors, stores
from benches.parts.rounds import LOWER, Act, Bench, Goal, Row, cpu, ratios, row
from benches.parts.story import AT, Story
from benches.parts.text import Texts

APPEND = Goal("append: CPU a mutation of sessions of 10, against one long session in commits of 10", 2, LOWER)
OPEN = Goal("open and first read: CPU, against one long session", 2, LOWER)
CONTEXT = Goal("context at a session's end, against one long session", 2, LOWER)
REBUILD = Goal("rebuild of all views: CPU a mutation, against one long session", 2, LOWER)
GOALS = (APPEND, OPEN, CONTEXT, REBUILD)

SESSIONS = (100_000, 150)
MUTATIONS_EACH = 10
CHUNKS = 10
WINDOW = (2, 4)  # pages in context, in the small sessions and in the long one alike
QUESTIONS = (300, 50)
BUDGET_S = 120.0


def measure(bench: Bench) -> Iterator[Row]:
    """All rows; both stores are written in turns, a tenth at a time."""
    count = bench.size(*SESSIONS)
    many, long = bench.memory / "many.vms", bench.memory / "long.vms"
    yield row(APPEND, _written(bench, count, many, long))
    yield row(OPEN, _opened(bench, many, long))
    yield row(CONTEXT, _asked(bench, count, many, long))
    yield row(REBUILD, _rebuilt(bench, many, long))


def _written(bench: Bench, count: int, many: Path, long: Path) -> list[float]:
    texts = Texts(9)
    figures = []
    with doors.opened(many) as small, doors.opened(long) as large:
        session, story = large.session(stores.SESSION, create=True), Story(9, texts, window=WINDOW)
        names = iter(range(count))

        def write_small() -> None:
            for _, n in zip(range(count // CHUNKS), names, strict=False):
                tell_small(small, n, texts)
            small.admin.follow()

        def write_long() -> None:
            for _ in range(count // CHUNKS):
                doors.write(session, story.commit(MUTATIONS_EACH))
            large.admin.follow()

        for _ in range(CHUNKS):
            taken = [bench.time(name, act, cpu) for name, act in (("vmstore", write_small), ("long", write_long))]
            figures.append(taken[0] / taken[1])
    return figures


def tell_small(store: doors.Store, number: int, texts: Texts) -> None:
    """Writes one session of ten mutations: its opening, one commit up to a call, one with the answer."""
    story = Story(number, texts, window=WINDOW)
    with doors.opening(store, f"s{number}", AT) as under_way:
        doors.play(under_way, story.commit(4))
    doors.write(store.session(f"s{number}"), story.commit(5))


def _opened(bench: Bench, many: Path, long: Path) -> list[float]:
    contenders: dict[str, Callable[[], float]] = {
        "vmstore": lambda: child.seconds("enter", many, "s7"),
        "long": lambda: child.seconds("enter", long, stores.SESSION),
    }
    times = bench.race(contenders, bench.size(7, 2))
    return ratios(times["vmstore"], times["long"])


def _asked(bench: Bench, count: int, many: Path, long: Path) -> list[float]:
    chance = random.Random(8)
    questions = bench.size(*QUESTIONS)
    with doors.opened(many) as small, doors.opened(long) as large:
        session = large.session(stores.SESSION)
        sessions = [small.session(f"s{chance.randrange(count // CHUNKS * CHUNKS)}") for _ in range(questions)]

        def ask_small() -> None:
            for session in sessions:
                session.context()

        def ask_long() -> None:
            for _ in range(questions):
                session.context()

        contenders: dict[str, Callable[[], None]] = {"vmstore": ask_small, "long": ask_long}
        times = bench.race(contenders, bench.size(7, 2))
    return ratios(times["vmstore"], times["long"])


def _rebuilt(bench: Bench, many: Path, long: Path) -> list[float]:
    def fold(path: Path) -> Act:
        return Act(lambda: child.seconds("fold", path), before=lambda: doors.forget_views(path))

    times = bench.race({"vmstore": fold(many), "long": fold(long)}, bench.size(3, 2), budget_s=BUDGET_S)
    return ratios(times["vmstore"], times["long"])
