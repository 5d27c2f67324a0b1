"""A sum over many sessions: VMQL against SQL written by hand, both over the store's column segments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benches.parts import doors, stores
from benches.parts.rounds import LOWER, Bench, Goal, Row, ratios, row
from benches.parts.story import Story
from benches.parts.text import Texts
from vmstore.vmql.execution import duckdb_executor

SUM = Goal("sum over 1,000 sessions, against DuckDB SQL by hand over the same columns", 1.2, LOWER)
GOALS = (SUM,)

SESSIONS = (1_000, 20)
COMMITS = (10, 2)
COMMIT = 100  # mutations
ROUNDS = (25, 3)
ASKED = "MUTATIONS count(*), sum(tokens) BY kind ACROSS SESSIONS WHERE kind IN (create, update, compress)"
BY_HAND = """SELECT CASE kind WHEN 10 THEN 'create' WHEN 11 THEN 'update' ELSE 'compress' END AS word,
 count(*), sum(tokens)
 FROM mutations WHERE kind IN (10, 11, 26) GROUP BY word ORDER BY word"""


def measure(bench: Bench) -> Iterator[Row]:
    """The row; both are asked on a store whose segments are cut, after one question to warm up."""
    few, duckdb_executor.MANY = duckdb_executor.MANY, 0  # a quick run has fewer mutations than are worth it
    path = stores.built(bench, f"sums-{bench.size(*SESSIONS)}", lambda place: build(bench, place))
    with doors.opened(path) as store:
        store.admin.column_segments()
        db: Any = store._columns.relations()

        def ask() -> list[tuple[Any, ...]]:
            return list(store.query(ASKED))

        def by_hand() -> list[tuple[Any, ...]]:
            return list(db.execute(BY_HAND).fetchall())

        assert ask() == by_hand(), "VMQL and the SQL by hand do not say the same"
        times = bench.race({"vmstore": lambda: len(ask()), "DuckDB": lambda: len(by_hand())}, bench.size(*ROUNDS))
        db.close()
    duckdb_executor.MANY = few
    yield row(SUM, ratios(times["vmstore"], times["DuckDB"]))


def build(bench: Bench, place: Path) -> None:
    """Many sessions, each of some commits."""
    texts = Texts(9)
    with doors.opened(place) as store:
        for number in range(bench.size(*SESSIONS)):
            session, story = store.session(f"s{number}", create=True), Story(number, texts, window=(10, 40))
            for _ in range(bench.size(*COMMITS)):
                doors.write(session, story.commit(COMMIT))
        store.admin.follow()
