"""Lineage: everything a page rests on, over a million links, as of any position."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from benches.parts import doors, stores
from benches.parts.rounds import LOWER, Act, Bench, Goal, Row, ratios, row
from vmstore.core.mutation import Create
from vmstore.store.session import Session
from vmstore.store.store import Store

WARM = Goal("closure of 50 as of any position, warm, against a BFS over dicts", 1, LOWER)
DISK = Goal("closure of 50 as of any position, from disk, against a BFS over dicts", 4, LOWER)
GOALS = (WARM, DISK)

PAGES = (400_000, 8_000)
CLOSURE = range(40, 51)
QUESTIONS = (300, 20)
ROUNDS = 7
PER_COMMIT = 1_000

Sources = dict[int, list[int]]


def measure(bench: Bench) -> Iterator[Row]:
    """Both rows: a store that was asked before, and one just opened."""
    sources = graph(bench.size(*PAGES), 4)
    name = f"lineage-{len(sources)}"
    path = stores.built(bench, name, lambda place: build(place, sources))
    pages = asked(sources, bench.size(*QUESTIONS))
    end = max(sources)
    chance = random.Random(6)
    questions = [(page, chance.randrange(page, end + 1)) for page in pages]  # as of when it was made, or later
    store = doors.opened(path)
    session, fresh_ones = store.session(stores.SESSION), list[tuple[Store, Session]]()

    def ours() -> None:
        for page, position in questions:
            doors.closure(store, session, page, position)

    def theirs() -> None:
        for page, _ in questions:
            breadth_first(sources, page)

    def fresh() -> None:
        for page, position in questions:
            doors.closure(*fresh_ones[-1], page, position)

    def open_fresh() -> None:
        other = doors.opened(path)
        fresh_ones.append((other, other.session(stores.SESSION)))

    for page, position in questions[:20]:
        assert doors.closure(store, session, page, position) == breadth_first(sources, page), "a closure differs"
    contenders = {
        "floor": Act(theirs),
        "vmstore": Act(ours),
        "vmstore-disk": Act(fresh, before=open_fresh, after=lambda: fresh_ones.pop()[0].close()),
    }
    times = bench.race(contenders, bench.size(ROUNDS, 2))
    store.close()
    yield row(WARM, ratios(times["vmstore"], times["floor"]))
    yield row(DISK, ratios(times["vmstore-disk"], times["floor"]))


def graph(count: int, seed: int) -> Sources:
    """What each page is made from, by position: half rest on nothing, the others on 3 to 8 earlier ones.

    One in eight of those is derived itself, and now and then a summary rests on the one before it.
    """
    chance = random.Random(seed)
    raw: list[int] = []
    derived: list[int] = []
    rolled = 0
    sources: Sources = {}
    for page in range(2, count + 2):
        if len(raw) < 50 or chance.random() < 0.55:
            raw.append(page)
            sources[page] = []
            continue
        chosen: set[int] = set()
        for _ in range(chance.randrange(3, 9)):
            pool = derived if derived and chance.random() < 0.12 else raw
            chosen.add(pool[-1 - min(int(chance.expovariate(1 / 60)), len(pool) - 1)])
        if len(derived) % 300 == 299:
            chosen |= {rolled} if rolled else set()
            rolled = page
        sources[page] = sorted(chosen)
        derived.append(page)
    return sources


def build(place: Path, sources: Sources) -> None:
    """Writes the pages with their links through the gate."""
    with doors.opened(place) as store:
        session = store.session(stores.SESSION, create=True)
        pages = list(sources.items())
        for start in range(0, len(pages), PER_COMMIT):
            with doors.batch(session, start) as under_way:
                for _, targets in pages[start : start + PER_COMMIT]:
                    under_way.add(Create(0, 0, 2, 0, 0, None, 100, 25, links=tuple((0, t) for t in targets)))
        store.admin.follow()


def asked(sources: Sources, count: int) -> list[int]:
    """Pages that rest on 40 to 50 others."""
    chance = random.Random(5)
    pages = [page for page, targets in sources.items() if targets]
    chance.shuffle(pages)
    numbers: list[int] = []
    for page in pages:
        if len(breadth_first(sources, page)) in CLOSURE:
            numbers.append(page)
            if len(numbers) == count:
                break
    return numbers


def breadth_first(sources: Sources, page: int) -> set[int]:
    """The floor: adjacency in a dict of lists."""
    seen, front = {page}, [page]
    while front:
        for source in sources[front.pop()]:
            if source not in seen:
                seen.add(source)
                front.append(source)
    seen.discard(page)
    return seen
