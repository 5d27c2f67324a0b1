"""Context: what the model saw at any position, in order with all columns, against a ready answer."""

from __future__ import annotations

import heapq
import random
import time
from collections.abc import Iterator, Sequence
from itertools import count as counter
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from benches.parts import doors, stores
from benches.parts.rounds import LOWER, Bench, Goal, Row, percentile, row
from benches.parts.story import RANK, Packed
from vmstore.core.mutation import Create
from vmstore.store.session import Session

SIZES = {"100,000": (100_000, 1_000), "1,000,000": (1_000_000, 2_000), "5,000,000": (5_000_000, 4_000)}
P50 = {size: Goal(f"p50 at {size} residencies, against a ready answer", 2.5, LOWER) for size in SIZES}
FEW = Goal("p50 under 100 pages at 100,000 residencies, against a ready answer", 3, LOWER)
GROWTH = Goal("p50 at 5,000,000 residencies, against 100,000", 2, LOWER)
P99 = {size: Goal(f"p99 at {size} residencies, against its p50", 3, LOWER) for size in SIZES}
DEPTHS = {depth: Goal(f"p50 on a fork of depth {depth}, against depth 0", 1.5, LOWER) for depth in (1, 10, 100)}
GOALS = (*(goal[size] for size in SIZES for goal in (P50, P99)), GROWTH, FEW, *DEPTHS.values())

LIVE, LIVE_FEW = 170, 80  # pages in context
PAGES = 2_000
FIRST = PAGES + 12  # the pages come first, then packs; by the tenth the context is filled
PINNED = 20
ENTERING = 40  # residencies that begin at one pack
CUT_CALLS = 20
FORK_PACKS = (12, 1)
QUESTIONS = (600, 20)
ROUNDS = 5
clock = time.thread_time_ns  # of the asking thread: other work on the machine does not count


class Taken(NamedTuple):
    """Microseconds of every question of a round, ours and the ready answer's."""

    ours: list[float]
    ready: list[float]


def measure(bench: Bench) -> Iterator[Row]:
    """All rows; every question is put to the store and to the table of ready answers in turn."""
    medians: dict[str, list[float]] = {}
    for size, wanted in SIZES.items():
        path = built(bench, bench.size(*wanted), LIVE)
        with doors.opened(path) as store:
            rounds = asked(bench, store.session(stores.SESSION), bench.folder / f"ready-{wanted[0]}.db")
        medians[size] = [percentile(each_round.ours, 0.5) for each_round in rounds]
        yield row(
            P50[size], [percentile(each_round.ours, 0.5) / percentile(each_round.ready, 0.5) for each_round in rounds]
        )
        yield row(
            P99[size], [percentile(each_round.ours, 0.99) / percentile(each_round.ours, 0.5) for each_round in rounds]
        )
    yield row(GROWTH, [a / b for a, b in zip(medians["5,000,000"], medians["100,000"], strict=True)])
    with doors.opened(built(bench, bench.size(*SIZES["100,000"]), LIVE_FEW)) as store:
        rounds = asked(bench, store.session(stores.SESSION), bench.folder / "ready-few.db")
    yield row(FEW, [percentile(each_round.ours, 0.5) / percentile(each_round.ready, 0.5) for each_round in rounds])
    yield from _forks(bench)


# ---- asking


def asked(bench: Bench, session: Session, ready: Path) -> list[Taken]:
    """Asks for contexts at positions all over the session, and for the same answers laid down beforehand."""
    end = session.info().position
    chance = random.Random(7)
    positions = [chance.randrange(FIRST, end + 1) for _ in range(bench.size(*QUESTIONS))]
    db = laid_down(ready, [doors.context_rows(session, position) for position in positions])
    rounds = [_round(bench, session, positions, db) for _ in range(1 + bench.size(ROUNDS, 2))]
    db.close()
    return rounds[1:]  # the first one warms up


def _round(bench: Bench, session: Session, positions: Sequence[int], db: apsw.Connection) -> Taken:
    taken = Taken([], [])
    burden = 1e6 * bench.burden("vmstore")
    for number, position in enumerate(positions):
        started = clock()
        doors.context_rows(session, position)
        between = clock()
        db.execute("SELECT * FROM answers WHERE number = ?", (number,)).fetchall()
        ended = clock()
        taken.ours.append((between - started) / 1e3 + burden)
        taken.ready.append((ended - between) / 1e3)
    return taken


def laid_down(path: Path, answers: Sequence[Sequence[Any]]) -> apsw.Connection:
    """A table of ready answers on disk: the same columns, the rows of one answer side by side."""
    columns = len(answers[0][0])
    names = ", ".join(f"c{n}" for n in range(columns))
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode = WAL").fetchall()
    db.execute(f"CREATE TABLE answers(number INTEGER, {names}, PRIMARY KEY(number, c0)) WITHOUT ROWID")
    with db:
        sql = f"INSERT INTO answers VALUES({', '.join('?' * (columns + 1))})"
        for number, answer in enumerate(answers):
            db.executemany(sql, [(number, *shown) for shown in answer])
    return db


# ---- building


def built(bench: Bench, count: int, live: int) -> Path:
    """A store with one session that has so many residencies and about so many pages in context."""
    return stores.built(bench, f"context-{count}-{live}", lambda place: build(place, count, live))


def build(place: Path, count: int, live: int) -> None:
    """Packs through the gate: most stays are short, one in twenty is long, some never end."""
    with doors.opened(place) as store:
        session = store.session(stores.SESSION, create=True)
        churn = Churn(_pages(session), live)
        while churn.begun < count:
            with doors.batch(session, churn.call + 1) as under_way:
                doors.play(under_way, [churn.next(under_way.position)])
        store.admin.follow()


def _pages(session: Session) -> range:
    """Makes the pages that come and go; their positions."""
    first = 0
    for start in range(0, PAGES, 1000):
        with doors.batch(session, start) as under_way:
            content = under_way.cell(b"what every page says")
            for _ in range(1000):
                position = under_way.add(Create(0, 0, 2, 0, 0, content, 20, 5))
                first = first or position
    return range(first, first + PAGES)


class Churn:
    """Which pages each call's pack brings in and which it lets go.

    Most stay for a call or two, as tool output does; one in twenty stays until the context is
    cut, every `CUT_CALLS` calls, or longer; some are there for ever.
    """

    def __init__(self, pages: Sequence[int], live: int) -> None:
        self.call = self.begun = 0
        self._pages = pages
        self._long = (live - PINNED - 1.5 * ENTERING) / ENTERING / 0.05  # packs a long stay lasts in the mean
        self._chance = random.Random(3)
        self._ends: list[tuple[int, int]] = []  # (call, page), as a heap
        self._live: set[int] = set()
        self._ranks = counter(RANK, RANK)
        self._next = 0

    def going_on(self, session: Session) -> Churn:
        """The churn of a session that is there already: what it shows goes as new pages come."""
        context = session.context()
        self.call = context.basis.call
        self._live = set(context.page_ids)
        self._ranks = counter(RANK * (1 + ENTERING * self.call), RANK)
        self._ends = [(self.call + self._stays(), page) for page in context.page_ids[PINNED:]]
        self._next = max(context.page_ids)
        self.begun = PINNED
        heapq.heapify(self._ends)
        return self

    def next(self, position: int) -> Packed:
        """The next pack."""
        self.call += 1
        left = []
        while self._ends and self._ends[0][0] <= self.call:
            left.append(heapq.heappop(self._ends)[1])
        self._live -= set(left)
        entered = []
        while len(entered) < ENTERING:
            page = self._pages[self._next % len(self._pages)]
            self._next += 1
            if page in self._live or page in left:
                continue
            entered.append((page, page, 0, next(self._ranks)))
            self._live.add(page)
            self.begun += 1
            if self.begun > PINNED:
                heapq.heappush(self._ends, (self.call + self._stays(), page))
        return Packed(position, self.call, tuple(entered), tuple(left))

    def _stays(self) -> int:
        """For how many packs a page stays that comes in now."""
        chance = self._chance
        if self._long <= 0 or chance.random() >= 0.05:
            return 1 + (chance.random() < 0.4)
        stay = self._long * chance.expovariate(1) * (1 if chance.random() < 0.9 else 1 + chance.paretovariate(1.6))
        return -(-(self.call + max(2, round(stay))) // CUT_CALLS) * CUT_CALLS - self.call


# ---- forks


def _forks(bench: Bench) -> Iterator[Row]:
    """Forks of forks, each with some packs of its own, asked all over what they see."""
    path = stores.built(bench, f"forks-{bench.size(*SIZES['100,000'])}", lambda place: _fork(place, bench))
    with doors.opened(path) as store:
        sessions = {0: store.session(stores.SESSION), **{depth: store.session(f"f{depth}") for depth in DEPTHS}}
        positions = {depth: _all_over(session, depth, bench.size(*FORK_PACKS)) for depth, session in sessions.items()}
        medians: dict[int, list[float]] = {depth: [] for depth in sessions}
        for _ in range(1 + bench.size(ROUNDS, 2)):
            for depth, session in sessions.items():
                taken = []
                for position in positions[depth][: bench.size(*QUESTIONS)]:
                    started = clock()
                    doors.context_rows(session, position)
                    taken.append((clock() - started) / 1e3 + 1e6 * bench.burden("vmstore") * bool(depth))
                medians[depth].append(percentile(taken, 0.5))
    for depth, goal in DEPTHS.items():
        yield row(goal, [a / b for a, b in zip(medians[depth][1:], medians[0][1:], strict=True)])


def _fork(place: Path, bench: Bench) -> None:
    build(place, bench.size(*SIZES["100,000"]), LIVE)
    with doors.opened(place) as store:
        session = store.session(stores.SESSION)
        churn = Churn(range(2, PAGES + 2), LIVE).going_on(session)
        for depth in range(1, max(DEPTHS) + 1):
            session = session.fork(f"f{depth}")
            for _ in range(bench.size(*FORK_PACKS)):
                with doors.batch(session, depth) as under_way:
                    doors.play(under_way, [churn.next(under_way.position)])
        store.admin.follow()


def _all_over(session: Session, depth: int, packs: int) -> list[int]:
    """Positions to ask a session of: its own and those of every fork above it, as many of each."""
    end = session.info().position
    chance = random.Random(depth)
    own = packs * (depth + 1)
    return [chance.randrange(end - own if depth else FIRST, end + 1) for _ in range(QUESTIONS[0])]
