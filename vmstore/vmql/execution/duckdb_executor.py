"""Sums over many mutations, of one session or more, from the column segments: the plan's SQL, asked of DuckDB.

Decoding a million mutations takes seconds, summing their columns milliseconds. What the columns do
not hold (texts, the fields of one kind) and what the two databases say differently is left to the
log; which way was taken changes no answer.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from vmstore.core.mutation import (
    MUTATION_NAMES,
    Compress,
    Create,
    Evict,
    FaultIn,
    Prefetch,
    Reply,
    Segment,
    Update,
)
from vmstore.core.page import Tier
from vmstore.vmql.execution.result import Cancellation
from vmstore.vmql.planner.plan import Plan
from vmstore.vmql.planner.scope import Scope

LOOK_S = 0.05
MANY = 50_000  # mutations: fewer are decoded sooner than DuckDB is loaded
ALIKE = frozenset(
    ("count", "sum", "min", "max", "avg", "WHERE", "HAVING", "AND", "OR", "NOT", "IN", "nullif", "SELECT")
)
START = "FROM vm_mutations(:rows) g"

_MADE = (Create.NUMBER, Update.NUMBER, Compress.NUMBER)
_CAME = (FaultIn.NUMBER, Prefetch.NUMBER)
_SHOWN = (*_MADE, *_CAME, Evict.NUMBER)
_L0, _L2 = int(Tier.L0), int(Tier.L2)
_LAST_KIND = max(MUTATION_NAMES)
_KINDS = ", ".join(f"'{MUTATION_NAMES.get(number, f'kind {number}')}'" for number in range(1, _LAST_KIND + 1))
COLUMNS = {
    **{name: f'm."{name}"' for name in ("position", "turn", "call", "at", "logged_at")},
    "session": 's."name"',
    "kind": f"CASE WHEN m.kind <= {_LAST_KIND} THEN ([{_KINDS}])[m.kind] ELSE 'kind ' || m.kind END",
    "page": f"CASE m.kind WHEN {Segment.NUMBER} THEN m.summary ELSE nullif(m.page, 0) END",
    "cause": "coalesce(m.reference, nullif(m.first, 0), m.citing)",
    "tier_before": f"""CASE m.kind WHEN {FaultIn.NUMBER} THEN m.tier WHEN {Prefetch.NUMBER} THEN {_L2}
  WHEN {Evict.NUMBER} THEN {_L0} END""",
    "tier_after": f"""CASE WHEN m.kind = {Create.NUMBER} THEN {_L2} WHEN m.kind IN {_CAME} THEN {_L0}
  WHEN m.kind = {Evict.NUMBER} THEN CASE WHEN m.level IS NULL THEN {_L2} ELSE {_L0} END END""",
    "version_before": f"CASE m.kind WHEN {Update.NUMBER} THEN m.version - 1 WHEN {Compress.NUMBER} THEN m.version END",
    "version_after": f"CASE WHEN m.kind IN {_MADE} THEN m.version END",
    "level": f"CASE WHEN m.kind IN {_SHOWN} THEN m.level END",
    "tokens": f"CASE m.kind WHEN {Reply.NUMBER} THEN m.tokens_out ELSE m.tokens END",
}
"""What the columns say of each field of MUTATIONS that they hold."""
FEW = 16  # lanes that are written out: beyond them a join is quicker


class LogTables(NamedTuple):
    """The tables of one log in a connection, by what their names end in; what is constant in its rows; its scope."""

    suffix: str
    constants: Mapping[str, str]
    scope: Scope


def suits(found: Plan, scope: Scope) -> bool:
    """Whether a plan sums what the columns hold, over much."""
    return sums(found) and mutations_in(scope) >= MANY


def sums(found: Plan, constants: Collection[str] = ()) -> bool:
    """Whether a plan sums what the columns hold, or constants, in words that both databases mean alike."""
    if found.relation.name != "MUTATIONS" or found.plain is not None:
        return False
    used = set(re.findall(r'g\."(\w+)"', found.body))
    called = set(re.findall(r"(\w+) ?\(", found.body.replace(START, "")))
    summed = "GROUP BY" in found.body or bool(called & {"count", "sum", "min", "max", "avg"})
    alike = called <= ALIKE and not re.search(r"LIKE|->|%| [*/-] | \+ (?!1\Z)|DISTINCT|(sum|avg)\(\(", found.body)
    return summed and alike and used <= {*COLUMNS, *constants}


def mutations_in(scope: Scope) -> int:
    """How many mutations the sessions of a scope hold at most."""
    if scope.whole:
        total: int = scope.world.views.execute("SELECT coalesce(sum(mutations), 0) FROM sessions").get
        return total
    sql = f"WITH {scope.lane_sql} SELECT coalesce(sum(until - since), 0) FROM lane"
    found: int = scope.world.views.execute(sql, scope.values).get
    return found


def answer(
    db: Any, found: Plan, sources: Sequence[LogTables], values: dict[str, Any], watch: Cancellation
) -> list[tuple[Any, ...]]:
    """The rows of a plan that suits, asked of a connection with the tables of the segments of each source."""
    rows = " UNION ALL ".join(_rows(found, source) for source in sources)
    body = found.body.replace(START, f"FROM ({rows}) g")
    names = [name for name in values if re.search(rf":{name}\b", body)]
    body = re.sub(r"(?<!:):(\w+)", r"$\1", body)
    with stopped_by(watch, db):
        taken: list[tuple[Any, ...]] = db.execute(body, {name: values[name] for name in names}).fetchall()
    return watch.kept(taken)


@contextmanager
def stopped_by(watch: Cancellation, db: Any) -> Iterator[None]:
    """Interrupts a connection of DuckDB, which asks nobody while it runs, where a statement is to stop."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(LOOK_S):
            if watch.stopped:
                db.interrupt()
                return

    looker = threading.Thread(target=look, name="vmstore-limits", daemon=True)
    looker.start()
    try:
        yield
    except Exception as error:
        raise (watch.error() if watch.stopped else error) from error
    finally:
        over.set()
        looker.join()


def _rows(found: Plan, source: LogTables) -> str:
    """The columns that a plan wants of the mutations of one log."""
    held = {**{name: _text(value) for name, value in source.constants.items()}, **COLUMNS}
    columns = ", ".join(f'{sql} AS "{name}"' for name, sql in held.items() if f'"{name}"' in found.body)
    join = f" JOIN sessions{source.suffix} s ON s.session = m.session" if COLUMNS["session"] in columns else ""
    return f"SELECT {columns or 'NULL'} FROM mutations{source.suffix} m{join}{_bounds(source.scope)}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _bounds(scope: Scope) -> str:
    """Which mutations a scope sees: of all sessions but those that are hidden, or of each some."""
    views = scope.world.views
    if scope.whole:
        hidden: list[Any] = views.execute("SELECT session FROM sessions WHERE hidden <> 0").fetchall()
        return f" WHERE m.session NOT IN ({', '.join(str(key) for (key,) in hidden)})" if hidden else ""
    sql = f"WITH {scope.lane_sql} SELECT session, since, until FROM lane"
    lanes: list[Any] = views.execute(sql, scope.values).fetchall()
    if len(lanes) <= FEW:
        within = "(m.session = {} AND m.position > {} AND m.position <= {})"
        return f" WHERE {' OR '.join(within.format(*lane) for lane in lanes) or 'false'}"
    listed = ", ".join(f"({session}, {since}, {until})" for session, since, until in lanes)
    return (
        f" JOIN (VALUES {listed}) lane(session, since, until) ON lane.session = m.session"
        " AND m.position > lane.since AND m.position <= lane.until"
    )
