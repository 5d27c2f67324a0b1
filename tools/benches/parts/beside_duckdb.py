"""VMQL against DuckDB over a ready export of the same store: a fixed catalogue of statements over the relations.

The export is a folder of Parquet files, taken into tables before the clock runs. Each statement has the same answer
on either side, which is seen before it is timed. CPU time, in turns; of both 0.2 ms are left out.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benches.parts import doors, stores
from benches.parts.rounds import LOWER, Bench, Goal, MissingError, Row, ratios, row
from benches.parts.story import Story
from benches.parts.text import Texts
from vmstore.store.store import Store

WORST = Goal("a statement of the catalogue against DuckDB over a ready export, 261,000 mutations: worst", 20, LOWER)
MEDIAN = Goal("the same: median of the catalogue", 1, LOWER)
GOALS = (WORST, MEDIAN)

LONG = "s0"  # the session that is asked alone
SIZES = (100_000, 2_000)  # mutations of it
OTHERS = (805, 10)  # sessions of 200 mutations
COMMIT = 20
ROUNDS, BUDGET_S = (5, 2), 8.0
FREE_S = 0.0002
WORD = "error"


class Pair(NamedTuple):
    """A question in both languages; `place` and `page` stand for a position and a page of the long session."""

    relation: str
    vmql: str
    sql: str


SHOWN = "r.to_position IS NULL"
_LEVEL = "list_position(['full', 'reduced', 'abstract', 'reference'], level) - 1"
_TEXT = "regexp_matches(v.content, '(^|[^\\w])error([^\\w]|$)', 'i')"
CATALOGUE = (
    Pair(
        "PAGES",
        "PAGES count(*) BY type IN SESSION s0",
        "SELECT type, count(*) FROM pages WHERE session = 's0' GROUP BY 1",
    ),
    Pair("PAGES", "PAGES count(*) BY type ACROSS SESSIONS", "SELECT type, count(*) FROM pages GROUP BY 1"),
    Pair(
        "PAGES",
        "PAGES count(*) IN SESSION s0 WHERE tier = L0",
        f"SELECT count(*) FROM residency r WHERE r.session = 's0' AND {SHOWN}",
    ),
    Pair(
        "PAGES",
        "PAGES count(*) IN SESSION s0 AS OF CALL {call} WHERE tier = L0",
        """SELECT count(*) FROM residency r WHERE r.session = 's0' AND from_call <= {call}
           AND coalesce(to_call, 1 << 40) > {call}""",
    ),
    Pair(
        "PAGES",
        "PAGES max(access_count) IN SESSION s0",
        """SELECT max(n) FROM (SELECT page, sum(coalesce(to_call, last + 1) - from_call) AS n FROM residency
           CROSS JOIN (SELECT max(call) AS last FROM calls WHERE session = 's0') WHERE session = 's0' GROUP BY page)""",
    ),
    Pair(
        "PAGES",
        "PAGES sum(access_count) ACROSS SESSIONS",
        """SELECT sum(coalesce(to_call, last + 1) - from_call) FROM residency
           JOIN (SELECT session, max(call) AS last FROM calls GROUP BY 1) USING (session)""",
    ),
    Pair(
        "PAGES",
        "PAGES sum(length(text)) IN SESSION s0",
        """SELECT sum(length(content)) FROM (SELECT content,
           row_number() OVER (PARTITION BY page ORDER BY position DESC) AS n FROM versions
           WHERE session = 's0' AND level = 'full') WHERE n = 1""",
    ),
    Pair(
        "PAGES",
        "PAGES count(*) IN SESSION s0 WHERE dirty",
        """SELECT count(DISTINCT k.source) FROM links k WHERE k.session = 's0' AND k.kind = 'derives' AND
           (SELECT max(position) FROM versions v WHERE v.page = k.target AND v.level = 'full') > greatest(k.position,
           (SELECT max(position) FROM versions v WHERE v.page = k.source AND v.level = 'full'))""",
    ),
    Pair(
        "MESSAGES",
        "MESSAGES count(*) BY role ACROSS SESSIONS",
        "SELECT role, count(*) FROM messages GROUP BY 1",
    ),
    Pair(
        "MESSAGES",
        "MESSAGES sum(tokens) BY role IN SESSION s0",
        """SELECT m.role, sum(coalesce(v.tokens, 0)) FROM messages m LEFT JOIN pages p ON p.message = m.id
           LEFT JOIN versions v ON v.page = p.id AND v.version = 1 AND v.level = 'full'
           WHERE m.session = 's0' GROUP BY 1""",
    ),
    Pair(
        "MESSAGES",
        "MESSAGES count(*) IN SESSION s0 WHERE text MATCHES 'error'",
        f"""SELECT count(DISTINCT p.message) FROM pages p
           JOIN versions v ON v.page = p.id AND v.version = 1 AND v.level = 'full'
           WHERE p.session = 's0' AND p.message IS NOT NULL AND {_TEXT}""",
    ),
    Pair(
        "MUTATIONS",
        "MUTATIONS count(*) BY kind IN SESSION s0",
        "SELECT kind, count(*) FROM mutations WHERE session = 's0' GROUP BY 1",
    ),
    Pair("MUTATIONS", "MUTATIONS count(*) BY kind ACROSS SESSIONS", "SELECT kind, count(*) FROM mutations GROUP BY 1"),
    Pair(
        "MUTATIONS",
        "MUTATIONS kind, position IN SESSION s0 WHERE position = {place}",
        "SELECT kind, position FROM mutations WHERE session = 's0' AND position = {place}",
    ),
    Pair(
        "MUTATIONS",
        "MUTATIONS kind, position IN SESSION s0 WHERE page = p{page}",
        "SELECT kind, position FROM mutations WHERE session = 's0' AND page = 's0/p{page}'",
    ),
    Pair(
        "MUTATIONS",
        "MUTATIONS position, kind IN SESSION s0 ORDER BY position DESC LIMIT 10",
        "SELECT position, kind FROM mutations WHERE session = 's0' ORDER BY position DESC LIMIT 10",
    ),
    Pair(
        "MUTATIONS",
        "MUTATIONS position, kind IN SESSION s0 WHERE position BETWEEN {place} AND {end}",
        "SELECT position, kind FROM mutations WHERE session = 's0' AND position BETWEEN {place} AND {end}",
    ),
    Pair(
        "MUTATIONS",
        "MUTATIONS count(*) IN SESSION s0 WHERE kind = update",
        "SELECT count(*) FROM mutations WHERE session = 's0' AND kind = 'update'",
    ),
    Pair(
        "SESSIONS",
        "SESSIONS count(*), sum(calls), sum(pages)",
        """SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM calls), (SELECT count(*) FROM pages)""",
    ),
    Pair(
        "TURNS",
        "TURNS turn, calls IN SESSION s0",
        """SELECT t.turn, count(c.id) FROM turns t LEFT JOIN calls c ON c.session = t.session AND c.turn = t.turn
           WHERE t.session = 's0' GROUP BY 1""",
    ),
    Pair(
        "TURNS",
        "TURNS sum(faults) ACROSS SESSIONS",
        """SELECT count(*) FROM (SELECT from_position,
           lag(to_position) OVER (PARTITION BY page ORDER BY from_position) AS gone
           FROM residency) WHERE gone < from_position""",
    ),
    Pair(
        "CALLS",
        "CALLS sum(tokens), count(*) BY turn IN SESSION s0",
        "SELECT turn, sum(tokens), count(*) FROM calls WHERE session = 's0' GROUP BY 1",
    ),
    Pair(
        "CALLS",
        "CALLS sum(tokens), avg(tokens_out) BY session ACROSS SESSIONS",
        "SELECT session, sum(tokens), avg(tokens_out) FROM calls GROUP BY 1",
    ),
    Pair(
        "CALLS",
        "CALLS call, tokens - tokens_before AS grew IN SESSION s0",
        "SELECT call, tokens - lag(tokens) OVER (ORDER BY call) FROM calls WHERE session = 's0'",
    ),
    Pair("LINKS", "LINKS count(*) BY kind ACROSS SESSIONS", "SELECT kind, count(*) FROM links GROUP BY 1"),
    Pair(
        "FAULTS",
        "FAULTS count(*) IN SESSION s0",
        """SELECT count(*) FROM (SELECT from_position,
           lag(to_position) OVER (PARTITION BY page ORDER BY from_position) AS gone
           FROM residency WHERE session = 's0') WHERE gone < from_position""",
    ),
    Pair(
        "VERSIONS",
        "VERSIONS count(*), sum(tokens) BY level ACROSS SESSIONS",
        f"SELECT {_LEVEL}, count(*), sum(tokens) FROM versions GROUP BY 1",
    ),
    Pair(
        "RESIDENCIES",
        "RESIDENCIES count(*), min(from_call) BY level IN SESSION s0",
        f"SELECT {_LEVEL}, count(*), min(from_call) FROM residency WHERE session = 's0' GROUP BY 1",
    ),
    Pair(
        "MOVES",
        "MOVES count(*) ACROSS SESSIONS WHERE tier_before = L2",
        """SELECT count(*) FROM (SELECT from_position,
           lag(to_position) OVER (PARTITION BY page ORDER BY from_position) AS gone
           FROM residency) WHERE gone IS DISTINCT FROM from_position""",
    ),
    Pair(
        "MOVES",
        "MOVES count(*) IN SESSION s0 WHERE tier_after = L2",
        """SELECT count(*) FROM residency r WHERE session = 's0' AND to_position IS NOT NULL AND NOT EXISTS
           (SELECT 1 FROM residency n WHERE n.page = r.page AND n.from_position = r.to_position)""",
    ),
    Pair(
        "CONTEXT",
        "CONTEXT count(*) IN SESSION s0 AT CALL {call}",
        """SELECT count(*) FROM residency r WHERE r.session = 's0' AND from_call <= {call}
           AND coalesce(to_call, 1 << 40) > {call}""",
    ),
)
"""Each relation that such a store has rows of; FACTS, TAGS, SEGMENTS, RECALLS, GUARDS, SKILLS and METRICS have none."""


def measure(bench: Bench) -> Iterator[Row]:
    """The worst of the catalogue, and its median."""
    figures = {pair.vmql: figure for pair, figure in taken(bench)}
    for vmql, figure in sorted(figures.items(), key=lambda item: -item[1])[:5]:
        bench.say(f"  {figure:.3g} times DuckDB: {vmql}")
    yield row(WORST, [max(figures.values())])
    yield row(MEDIAN, [statistics.median(figures.values())])


def taken(bench: Bench) -> Iterator[tuple[Pair, float]]:
    """Each statement with the median of its ratios."""
    try:
        import duckdb
    except ModuleNotFoundError:
        raise MissingError("duckdb is not installed; run: pip install 'vmstore[columns]'") from None
    path = stores.built(bench, f"beside-{bench.size(*SIZES)}", lambda place: build(bench, place))
    with doors.opened(path) as store, duckdb.connect() as db:
        exported(store, db, bench.folder / "export")
        words = places(store)
        for pair in CATALOGUE:
            vmql, sql = (text.format(**words) for text in (pair.vmql, pair.sql))
            ask, by_hand = asking(store, vmql), asking_by_hand(db, sql)
            mine, theirs = sorted(map(_alike, ask())), sorted(map(_alike, by_hand()))
            assert mine == theirs, f"{vmql}: {mine[:5]} are not {theirs[:5]}"
            acts: dict[str, Callable[[], Any]] = {"vmstore": ask, "DuckDB": by_hand}
            times = bench.race(acts, bench.size(*ROUNDS), budget_s=BUDGET_S)
            ours, other = ([max(1e-6, s - FREE_S) for s in times[name]] for name in acts)
            yield pair, statistics.median(ratios(ours, other))


def asking(store: Store, text: str) -> Callable[[], list[Any]]:
    """What asks a statement of VMQL."""
    return lambda: list(store.query(text))


def asking_by_hand(db: Any, sql: str) -> Callable[[], list[Any]]:
    """What asks a statement of DuckDB."""
    return lambda: list(db.execute(sql).fetchall())


def exported(store: Store, db: Any, folder: Path) -> None:
    """Takes a store's export into tables; one thread, as VMQL has."""
    store.export(folder, format="parquet", redact=False)
    db.execute("PRAGMA threads = 1")
    for file in sorted(folder.glob("*.parquet")):
        db.execute(f"CREATE TABLE {file.stem} AS SELECT * FROM read_parquet('{file}')")


def places(store: Store) -> dict[str, int]:
    """A position, a page and a call in the middle of the long session."""
    info = store.session(LONG).info()
    ((page,),) = store.query("PAGES min(position) IN SESSION s0 WHERE version = 2")
    return {"place": info.position // 2, "end": info.position // 2 + 50, "page": page or 0, "call": info.calls // 2}


def _alike(values: tuple[Any, ...]) -> str:
    """A row whose numbers are written alike on either side."""
    return repr([round(float(value), 4) if isinstance(value, int | float) else value for value in values])


def build(bench: Bench, place: Path) -> None:
    """One long session and many short ones."""
    texts = Texts(9)
    with doors.opened(place) as store:
        for number in range(1 + bench.size(*OTHERS)):
            count = bench.size(*SIZES) if not number else 200
            session, story = store.session(f"s{number}", create=True), Story(number, texts, window=(20, 60))
            for _ in range(count // COMMIT):
                doors.write(session, story.commit(COMMIT))
        store.admin.follow()
