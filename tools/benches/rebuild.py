"""Rebuilding: the page table, and all views, from the log on disk."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benches.parts import child, doors, peers, records, stores
from benches.parts.rounds import HIGHER, LOWER, Act, Bench, Goal, Row, ratios, row
from benches.parts.story import Deed, Story, commits, deeds_of
from benches.parts.text import Texts

TABLE = Goal("page table from column segments, against a msgspec fold struct by struct", 7, HIGHER)
TABLE_RAW = Goal("page table from commits of 1 to 5, against a msgspec fold struct by struct", 1.8, HIGHER)
TABLE_PEER = Goal("page table from column segments, against eventsourcing's repository", 200, HIGHER)
CUT = Goal("column segments from the log, against a msgspec fold struct by struct")
VIEWS = Goal("all views from nothing, against a msgspec fold struct by struct", 0.5, HIGHER)
PEAK = Goal("all views from nothing: peak memory, MB", 200, LOWER)
GOALS = (TABLE, TABLE_RAW, TABLE_PEER, CUT, VIEWS, PEAK)

MUTATIONS = (1_000_000, 4_000)  # full, quick
MUTATIONS_RAW = (200_000, 1_000)
MUTATIONS_PEER = (20_000, 500)
SMALL = (1, 3, 5, 2, 4)
ROUNDS = 5
BUDGET_S = 100.0


def measure(bench: Bench) -> Iterator[Row]:
    """All rows of rebuilding; rates are mutations a second of CPU."""
    count, raw, few = bench.size(*MUTATIONS), bench.size(*MUTATIONS_RAW), bench.size(*MUTATIONS_PEER)
    big, small = stores.filled_store(bench, count, 1000), stores.filled_store(bench, raw, SMALL)
    other_commits = commits(Story(1, Texts(1)), count, 1000)  # what the big store was told
    blobs = [records.encode(records.record(deed, content=False)) for deeds in other_commits for deed in deeds]
    repository, events = _repository(deeds_of(1, few, 1000, content=False))
    doors.cut(big)
    contenders: dict[str, Callable[[], Any]] = {
        "msgspec": lambda: records.folded(blobs),
        "vmstore": lambda: doors.page_table(big),
        "vmstore-raw": lambda: doors.page_table_folded(small),
        "vmstore-cut": lambda: doors.cut(big, again=True),
        "eventsourcing": repository,
    }
    _agree(doors.page_rows(doors.page_table(big)), records.folded(blobs))
    _agree(doors.folded_rows(doors.page_table_folded(big)), records.folded(blobs))
    times = bench.race(contenders, bench.size(ROUNDS, 2), budget_s=BUDGET_S)
    fold = [count / seconds for seconds in times["msgspec"]]
    table = [count / seconds for seconds in times["vmstore"]]
    yield row(TABLE, ratios(table, fold))
    yield row(TABLE_RAW, ratios([raw / seconds for seconds in times["vmstore-raw"]], fold))
    yield row(TABLE_PEER, ratios(table, [events / seconds for seconds in times["eventsourcing"]]))
    yield row(CUT, ratios(times["msgspec"], times["vmstore-cut"]))
    yield from _views(bench, big, lambda: records.folded(blobs))


def _views(bench: Bench, path: Path, fold: Callable[[], Any]) -> Iterator[Row]:
    peaks: list[float] = []

    def from_nothing() -> float:
        done = child.run("fold", path)
        peaks.append(done["peak"])
        return done["seconds"]

    contenders = {"msgspec": Act(fold), "vmstore": Act(from_nothing, before=lambda: doors.forget_views(path))}
    times = bench.race(contenders, bench.size(3, 2), budget_s=BUDGET_S)
    yield row(VIEWS, ratios(times["msgspec"], times["vmstore"]))
    yield row(PEAK, peaks)


def _agree(table: Iterable[tuple[int, ...]], pages: dict[str, records.Page]) -> None:
    """Both fold the same pages to the same rows, or there is nothing to compare."""
    ours = {f"p{page}": tuple(rest) for _, page, *rest in table}
    theirs = {name: (p.version, p.level, p.tier, p.tokens, p.content) for name, p in pages.items()}
    assert ours == theirs, "vmstore and the fold hold other page tables"


def _repository(deeds: Sequence[Sequence[Deed]]) -> tuple[Callable[[], Any], int]:
    """Gets every page from eventsourcing's repository, and how many events that folds."""
    application = peers.library("eventsourcing.application")
    page = peers.page_aggregate()
    place = f"file:{uuid.uuid4()}?mode=memory&cache=shared"
    app = application.Application(env={"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": place})
    pages: dict[str, Any] = {}
    events = 0
    for commit in deeds:
        for deed in commit:
            events += peers.relive(page, pages, records.record(deed, content=False))
    app.save(*pages.values())
    ids = [page.id for page in pages.values()]
    return lambda: [app.repository.get(name) for name in ids], events
