"""The common tables of VMQL's SQL: what is in the prompt, what a page's last version is, who stayed when.

`lane(session, low, high, since, until)` is what the statement sees: positions above `low` up to
`high`, of which rows above `since` up to `until` are wanted. A common table is written once for
each shape of it: one session's own stretch, a chain of stretches, or every session for itself.
"""

from __future__ import annotations

from vmstore.core.decision import Cite, Reference
from vmstore.core.page import LinkKind, Role
from vmstore.core.recalls import USES
from vmstore.vmql.relations import facts, tools, work
from vmstore.vmql.relations.python_ctes import HANDED
from vmstore.vmql.relations.relation import ACROSS, Shape, by
from vmstore.vmql.relations.shared_columns import each, holds, own

_AT = "x.page, x.content, x.level, x.rank, x.since"
_HERE = f"""here(session, page, content, level, rank, since) AS MATERIALIZED (
 SELECT 0, {_AT} FROM classes k CROSS JOIN spans x ON x.session = :knower AND x.k = k.k
   AND x.f > :known - (1 << k.k) AND x.f <= :known AND x.t > :known WHERE k.session = :knower
 UNION ALL SELECT 0, {_AT} FROM residents x WHERE x.session = :knower AND x.f <= :known)"""
_HERE_ACROSS = f"""here(session, page, content, level, rank, since) AS MATERIALIZED (
 SELECT lane.session, {_AT} FROM lane CROSS JOIN classes k ON k.session = lane.session
   CROSS JOIN spans x ON x.session = lane.session AND x.k = k.k
   AND x.f > lane.high - (1 << k.k) AND x.f <= lane.high AND x.t > lane.high
 UNION ALL SELECT lane.session, {_AT} FROM lane CROSS JOIN residents x ON x.session = lane.session
   AND x.f <= lane.high)"""

_LATEST = f"""latest(page, position, version, size, tokens, cell, commitment) AS MATERIALIZED (
 SELECT x.page, max(x.position), x.version, x.size, x.tokens, x.cell, x.commitment
 {own("changes x")} WHERE x.level = 0 GROUP BY x.page)"""

_STALE_ACROSS = f"""stale(session, page) AS MATERIALIZED (
 SELECT DISTINCT lane.session, k.source FROM lane
 CROSS JOIN changes c ON c.session = lane.session AND c.position <= lane.high AND c.level = 0
 CROSS JOIN links k ON k.session = c.session AND k.target = c.page AND k.position < c.position
   AND k.kind = {int(LinkKind.DERIVES)} AND {holds(across=True)}
 WHERE c.position > coalesce((SELECT max(y.position) FROM flushes y WHERE y.session = c.session
   AND y.page = k.source AND y.position <= lane.high), 0)
  AND c.position > coalesce((SELECT max(y.position) FROM changes y WHERE y.session = c.session
   AND y.page = k.source AND y.level = 0 AND y.position <= lane.high), 0))"""


def _last(name: str, table: str, column: str) -> dict[Shape, str]:
    """A column of a view as it was said last of each page."""
    text = """{name}(session, page, value) AS MATERIALIZED (SELECT session, page, value FROM (
 SELECT {of} AS session, x.page AS page, x.{column} AS value, max(x.position)
 {rows} WHERE x.{column} IS NOT NULL GROUP BY 1, 2))"""
    return each(text, name=name, column=column, rows=own(f"{table} x"))


def _linked(name: str, kind: LinkKind) -> dict[Shape, str]:
    """The pages that each page is linked to by links of a kind that hold."""
    text = """{name}(session, page, pages) AS MATERIALIZED (
 SELECT session, page, json_group_array('p' || target) FROM (
 SELECT DISTINCT {of} AS session, k.source AS page, k.target AS target
 {rows} WHERE k.kind = {kind} AND {holds} ORDER BY 1, 2, 3) GROUP BY 1, 2)"""
    return each(text, name=name, kind=str(int(kind)), rows=own("links k"))


_TAGGED = f"""tagged(session, page, tags) AS MATERIALIZED (
 SELECT session, page, json_group_array(tag) FROM (
 SELECT {{of}} AS session, x.page AS page, x.tag AS tag, x.held AS held, max(x.position)
 {own("tags x")} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3) WHERE held GROUP BY 1, 2)"""
_ANCHORED = f"""anchored(session, page, anchors) AS MATERIALIZED (
 SELECT session, page, json_group_object(name, json(value)) FROM (
 SELECT {{of}} AS session, x.page AS page, e.key AS name, x.anchors -> e.fullkey AS value, e.type AS type,
  max(x.position) {own("notes x")}
 CROSS JOIN json_each(x.anchors) e WHERE x.anchors IS NOT NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3)
 WHERE type <> 'null' GROUP BY 1, 2)"""
_HELD = f"""held(session, page) AS MATERIALIZED (SELECT DISTINCT session, page FROM (
 SELECT {{of}} AS session, x.page AS page, x.held AS held, max(x.position)
 {own("pins x")} GROUP BY 1, 2, x.holder) WHERE held)"""
_OTHERS = f"""others(session, call, status, tokens_in, tokens_cached, tokens_out, cost, latency, tokens_written, aside,
 aside_commitment, position) AS MATERIALIZED (
 SELECT {{of}}, x.call, x.status, x.tokens_in, x.tokens_cached, x.tokens_out, x.cost, x.latency, x.tokens_written,
  x.aside, x.aside_commitment, max(x.position) {own("replies x")} GROUP BY 1, x.call)"""
SAID = ("importance", "status", "valid_from", "valid_to")
"""What annotations say of a page: the table `said_<name>` holds the last of each."""


_STAY = "x.content, x.level, x.rank, x.since"
_STAYS = f"""
 SELECT lane.session AS session, x.page AS page, x.f AS f, iif(x.t <= lane.high, x.t, NULL) AS t, {_STAY},
   lane.since AS lo, lane.until AS hi
 FROM lane CROSS JOIN spans x ON x.session = lane.session AND x.f <= lane.high
 UNION ALL SELECT lane.session, x.page, x.f, NULL, {_STAY}, lane.since, lane.until
 FROM lane CROSS JOIN residents x ON x.session = lane.session AND x.f <= lane.high"""
_NAMES = "(session, page, f, t, content, level, rank, since, lo, hi)"
_STAYS_NAMED, _STAYS_OF_NAMED = f"stays{_NAMES}", f"stays_of{_NAMES}"
_STAYS_OF = _STAYS.replace("x.session = lane.session", "x.session = lane.session AND x.page = :page").replace(
    "JOIN spans x", "JOIN spans x INDEXED BY spans_page"
)


# What a session inherits it may hold again in rows of its own, which know its end there.
def _chained(stays: str) -> str:
    return f"""SELECT vm_owner(:head, x.f), x.page, x.f, max(x.t), {_STAY}, :since, :until
 FROM ({stays}) x GROUP BY x.page, x.f"""


_STAYS_BEFORE = """stays_before(session, page, f, left) AS MATERIALIZED (
 SELECT session, page, f, lag(t) OVER (PARTITION BY session, page ORDER BY f) FROM ({stays}))"""
_CHAINED_BEFORE = f"SELECT 0 AS session, x.page AS page, x.f AS f, max(x.t) AS t FROM ({_STAYS}) x GROUP BY x.page, x.f"
_ENDS = """ends(session, after, calls, turn) AS MATERIALIZED (SELECT lane.session, 1 + max(c.call), NULL, NULL
 FROM lane CROSS JOIN calls c ON c.session = lane.session AND c.position <= lane.high GROUP BY 1)"""
_USES = f"""x.kind = {Cite.NUMBER}
  OR (x.kind = {Reference.NUMBER} AND x.word IN ({", ".join(map(str, sorted(USES)))}))"""
_USED = f"""used(session, page, uses) AS MATERIALIZED (SELECT session, page, sum(n) FROM (
 SELECT {{of}} AS session, x.page AS page, count(*) AS n {own("decisions x")} WHERE {_USES} GROUP BY 1, 2
 UNION ALL SELECT {{of}}, k.target, count(*) {own("links k")}
  WHERE k.kind IN ({int(LinkKind.DERIVES)}, {int(LinkKind.REFERENCES)}) AND {{holds}} GROUP BY 1, 2) GROUP BY 1, 2)"""

_SPOKEN = f"""sum(p.tokens) FILTER (WHERE p.role = {int(Role.USER)}),
   sum(p.tokens) FILTER (WHERE p.role = {int(Role.ASSISTANT)})"""
_ITS_PAGES = own("pages p", "page")


def _grouped(name: str, columns: str, key: str, select: str, source: str) -> dict[Shape, str]:
    """A table of sums by a key of one session, or of each."""
    head = f"{name}(session, {columns}) AS MATERIALIZED"
    return each(f"{head} (SELECT {{of}}, {key}, {select} {source} GROUP BY 1, 2)")


_KEYS = ("session", "page", "turn", "position", "f")
"""Columns that rows are joined by: SQLite makes an index only for those that it knows to be whole numbers."""


def _handed(name: str, columns: str) -> dict[Shape, str]:
    """A table whose rows a parameter of its name holds as JSON."""
    named = columns.split()
    taken = [f"CAST(value ->> {at} AS INTEGER)" if of in _KEYS else f"value ->> {at}" for at, of in enumerate(named)]
    head = f"{name}({', '.join(named)}) AS MATERIALIZED"
    return by(f"{head} (SELECT {', '.join(taken)} FROM json_each(:{name}))")


TABLES: dict[str, dict[Shape, str]] = {
    "here": by(_HERE, across=_HERE_ACROSS),
    "latest": by(_LATEST),
    "stale": {**_handed("stale", "session page"), ACROSS: _STALE_ACROSS},
    **{f"said_{column}": _last(f"said_{column}", "notes", column) for column in SAID},
    "flushed": _last("flushed", "flushes", "at"),
    "tagged": each(_TAGGED),
    "held": each(_HELD),
    "others": each(_OTHERS),
    "anchored": each(_ANCHORED),
    "stands_for": _linked("stands_for", LinkKind.REPRESENTS),
    "ends": by(_ENDS),
    "stays": by(
        f"{_STAYS_NAMED} AS MATERIALIZED ({_STAYS})", chain=f"{_STAYS_NAMED} AS MATERIALIZED ({_chained(_STAYS)})"
    ),
    "stays_of": by(
        f"{_STAYS_OF_NAMED} AS MATERIALIZED ({_STAYS_OF})",
        chain=f"{_STAYS_OF_NAMED} AS MATERIALIZED ({_chained(_STAYS_OF)})",
    ),
    "made": _grouped(
        "made", "turn, tokens, user_tokens, reply_tokens", "p.turn", f"sum(p.tokens), {_SPOKEN}", _ITS_PAGES
    ),
    "called": _grouped("called", "turn, calls", "c.turn", "count(*)", own("calls c")),
    "spoken": _grouped(
        "spoken",
        "message, listed",
        "p.message",
        "json_group_array(json_array(p.session, p.page) ORDER BY p.part, p.page)",
        f"{_ITS_PAGES} WHERE p.message",
    ),
    "parts": _grouped("parts", "message, pages, tokens", "p.message", "count(*), sum(p.tokens)", _ITS_PAGES),
    "known": facts.KNOWN,
    "sources": _linked("sources", LinkKind.DERIVES),
    "answered": tools.ANSWERED,
    "shown": tools.SHOWN,
    "asked_tools": tools.ASKED,
    "message_tools": tools.SAID,
    "ran": work.RAN,
    "weighed": work.WEIGHED,
    "part_of": work.PART_OF,
    "revised": work.REVISED,
    "consented": work.CONSENTED,
    "refused": work.REFUSED,
    "states": work.STATES,
    "used": each(_USED),
    "stays_before": by(_STAYS_BEFORE.format(stays=_STAYS), chain=_STAYS_BEFORE.format(stays=_CHAINED_BEFORE)),
    **{name: _handed(name, columns) for name, (columns, _) in HANDED.items()},
    "hits": _handed("hits", "session page score place features words"),
}
"""Each common table by name and shape; what a parameter holds is made when a statement needs it."""
