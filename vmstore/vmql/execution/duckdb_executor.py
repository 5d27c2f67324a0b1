"""Sums over many mutations, of one session or more, from the column segments: the plan's SQL, asked of DuckDB.

Decoding a million mutations takes seconds, summing their columns milliseconds. What the columns do
not hold (texts, the fields of one kind) and what the two databases say differently is left to the
log; which way was taken changes no answer.
"""

from __future__ import annotations

import re
from typing import Any

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
from vmstore.vmql.planner.plan import Plan
from vmstore.vmql.planner.scope import Scope

MANY = 50_000  # mutations: fewer are decoded sooner than DuckDB is loaded
ALIKE = frozenset(
    ("count", "sum", "min", "max", "avg", "WHERE", "HAVING", "AND", "OR", "NOT", "IN", "nullif", "SELECT")
)
HELD = ("position", "session", "turn", "call", "kind", "page", "at", "logged_at", "cause")
START = "FROM vm_mutations(:rows) g"

_MADE = (Create.NUMBER, Update.NUMBER, Compress.NUMBER)
_CAME = (FaultIn.NUMBER, Prefetch.NUMBER)
_SHOWN = (*_MADE, *_CAME, Evict.NUMBER)
_L0, _L2 = int(Tier.L0), int(Tier.L2)
_KINDS = ", ".join(f"({number}, '{name}')" for number, name in MUTATION_NAMES.items())
_COLUMNS = f"""m.position, s."name" AS session, m.turn, m.call, k.word AS kind,
 CASE m.kind WHEN {Segment.NUMBER} THEN m.summary ELSE nullif(m.page, 0) END AS page,
 coalesce(m.reference, nullif(m.first, 0), m.citing) AS cause, m."at", m.logged_at,
 CASE m.kind WHEN {FaultIn.NUMBER} THEN m.tier WHEN {Prefetch.NUMBER} THEN {_L2} WHEN {Evict.NUMBER} THEN {_L0} END
  AS tier_before,
 CASE WHEN m.kind = {Create.NUMBER} THEN {_L2} WHEN m.kind IN {_CAME} THEN {_L0}
  WHEN m.kind = {Evict.NUMBER} THEN CASE WHEN m.level IS NULL THEN {_L2} ELSE {_L0} END END AS tier_after,
 CASE m.kind WHEN {Update.NUMBER} THEN m.version - 1 WHEN {Compress.NUMBER} THEN m.version END AS version_before,
 CASE WHEN m.kind IN {_MADE} THEN m.version END AS version_after,
 CASE WHEN m.kind IN {_SHOWN} THEN m.level END AS level,
 CASE m.kind WHEN {Reply.NUMBER} THEN m.tokens_out ELSE m.tokens END AS tokens"""
_ROWS = f"""FROM (SELECT {_COLUMNS} FROM mutations m JOIN sessions s ON s.session = m.session
 JOIN (VALUES {_KINDS}) k(number, word) ON k.number = m.kind{{bounds}}) g"""
COLUMNS = frozenset((*HELD, "tier_before", "tier_after", "version_before", "version_after", "level", "tokens"))


def suits(found: Plan, scope: Scope) -> bool:
    """Whether a plan sums what the columns hold, in words that both databases mean alike, over much."""
    if found.relation.name != "MUTATIONS" or found.plain is not None:
        return False
    used = set(re.findall(r'g\."(\w+)"', found.body))
    called = set(re.findall(r"(\w+) ?\(", found.body.replace(START, "")))
    summed = "GROUP BY" in found.body or bool(called & {"count", "sum", "min", "max", "avg"})
    alike = called <= ALIKE and not re.search(r"LIKE|->|%| [*/-] | \+ (?!1\Z)|DISTINCT", found.body)
    return summed and alike and used <= COLUMNS and mutations_in(scope) >= MANY


def mutations_in(scope: Scope) -> int:
    """How many mutations the sessions of a scope hold at most."""
    if scope.whole:
        total: int = scope.world.views.execute("SELECT coalesce(sum(mutations), 0) FROM sessions").get
        return total
    sql = f"WITH {scope.lane_sql} SELECT coalesce(sum(until - since), 0) FROM lane"
    found: int = scope.world.views.execute(sql, scope.values).get
    return found


def answer(db: Any, found: Plan, scope: Scope, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The rows of a plan that suits, asked of a connection with the tables of the segments."""
    body = found.body.replace(START, _ROWS.format(bounds=_bounds(scope)))
    names = [name for name in values if re.search(rf":{name}\b", body)]
    body = re.sub(r"(?<!:):(\w+)", r"$\1", body)
    rows: list[tuple[Any, ...]] = db.execute(body, {name: values[name] for name in names}).fetchall()
    return rows


def _bounds(scope: Scope) -> str:
    """The sessions a scope sees and the stretch of each; `sessions` leaves out those that are hidden."""
    if scope.whole:
        return ""
    sql = f"WITH {scope.lane_sql} SELECT session, since, until FROM lane"
    lanes: list[Any] = scope.world.views.execute(sql, scope.values).fetchall()
    listed = ", ".join(f"({session}, {since}, {until})" for session, since, until in lanes)
    return (
        f" JOIN (VALUES {listed}) lane(session, since, until) ON lane.session = m.session"
        " AND m.position > lane.since AND m.position <= lane.until"
    )
