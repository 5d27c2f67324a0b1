"""TOOLS: every call of a tool, what it was given, how it ended and what it gave."""

from __future__ import annotations

from vmstore.core.page import WordEnum
from vmstore.core.text.tool_outcome import OutcomeRule, ToolOutcome
from vmstore.vmql.column_types import INTEGER, JSON, LIST, MESSAGE, PAGE, REAL, TEXT, TIME, word
from vmstore.vmql.relations.relation import Field, Join, OrderKey, Path, Relation, Shape, by, fields
from vmstore.vmql.relations.shared_columns import SESSION, USER, WITHIN, WRITER


class ToolStatus(WordEnum):
    """How far a call came: open until it is answered, failed where a rule says that the answer is an error."""

    OPEN = 0
    OK = 1
    FAILED = 2


# The answers of each call: the first page, how many tokens all have, the first outcome that any of them says.
_ANSWERED = """answered(session, call, page, pages, tokens, outcome, rule, latency, at) AS MATERIALIZED (
 SELECT {of}, x.call, min(x.page), count(*), sum(x.tokens), max(x.outcome),
  max(x.outcome * 100 + x.rule) % 100, max(x.latency), min(x.at) FROM lane
 CROSS JOIN tools x ON x.session = lane.session AND x.page > lane.low AND x.page <= lane.high
 WHERE x.call AND x.call <> x.page GROUP BY 1, x.call)"""
ANSWERED: dict[Shape, str] = by(_ANSWERED.format(of="0"), across=_ANSWERED.format(of="lane.session"))

_SHOWN = """shown(session, page, f) AS MATERIALIZED (SELECT {of}, page, min(f) FROM (
 SELECT lane.session AS session, x.page AS page, x.f AS f FROM lane
 CROSS JOIN spans x ON x.session = lane.session AND x.f <= lane.high
 UNION ALL SELECT lane.session, x.page, x.f FROM lane
 CROSS JOIN residents x ON x.session = lane.session AND x.f <= lane.high) GROUP BY 1, 2)"""
SHOWN: dict[Shape, str] = by(_SHOWN.format(of="0"), across=_SHOWN.format(of="session"))
"""Since when each page was in the prompt for the first time."""

_TOOLS = """FROM lane CROSS JOIN tools t ON t.session = lane.session AND t.page > lane.low AND t.page <= lane.high
 CROSS JOIN pages p ON p.session = t.session AND p.page = t.page"""
_ASKED = f"""asked_tools(session, call, tools) AS MATERIALIZED (
 SELECT {{of}}, m.reply_to, json_group_array(t.tool ORDER BY t.page) {_TOOLS}
 CROSS JOIN messages m ON m.session = t.session AND m.message = p.message
 WHERE t.call = t.page AND m.reply_to IS NOT NULL GROUP BY 1, 2)"""
ASKED: dict[Shape, str] = by(_ASKED.format(of="0"), across=_ASKED.format(of="lane.session"))
"""The tools that the answer to each call asked for."""
_SAID = f"""message_tools(session, message, tool, outcome) AS MATERIALIZED (
 SELECT {{of}}, p.message, vm_first(t.tool ORDER BY t.page), max(t.outcome) {_TOOLS} GROUP BY 1, 2)"""
SAID: dict[Shape, str] = by(_SAID.format(of="0"), across=_SAID.format(of="lane.session"))
"""The first tool that each message calls or answers for, and the worst outcome in it."""
_OUTCOME = "coalesce(r.outcome, t.outcome, a.outcome)"
_RULE = f"iif(r.outcome IS NOT NULL, {int(OutcomeRule.HOST)}, iif(t.outcome IS NULL, a.rule, t.rule))"
_STATUS = f"CASE WHEN {_OUTCOME} = {int(ToolOutcome.ERROR)} THEN {int(ToolStatus.FAILED)}"
_STATUS += " WHEN a.call IS NULL AND t.outcome IS NULL AND r.outcome IS NULL"
_STATUS += f" THEN {int(ToolStatus.OPEN)} ELSE {int(ToolStatus.OK)} END"
# By the source's own figure, else by its times; two that are the same were given by none.
_TOOK = "coalesce(r.duration, t.latency, a.latency, iif(a.at > t.at, a.at - t.at, NULL)) / 1000.0"
_BEFORE = """LEFT JOIN tools b ON b.session = t.session AND b.page = (SELECT x.page FROM tools x
  WHERE x.session = t.session AND x.call = x.page AND x.page < t.page ORDER BY x.page DESC LIMIT 1)"""

TOOLS = Relation(
    "TOOLS",
    "every call of a tool: what it was given, how it ended and what it gave",
    fields(
        SESSION,
        Field("turn", INTEGER, "the turn it was made in", "p.turn", ("page",)),
        Field("call", INTEGER, "the call whose answer asked for it; null where none is known", "m.reply_to", ("said",)),
        Field("tool", TEXT, "the tool", "t.tool"),
        Field(
            "status",
            word(ToolStatus),
            "whether it was answered, and whether the answer is an error",
            _STATUS,
            ("answered", "ran"),
        ),
        Field("tokens", INTEGER, "estimated tokens of its result", "a.tokens", ("answered",)),
        Field(
            "duration_ms",
            REAL,
            "how long it took, in milliseconds, where the source says or has times",
            _TOOK,
            ("answered", "ran"),
        ),
        Field("path", TEXT, "the file its arguments name", "t.path"),
        Field(
            "arguments",
            JSON,
            "what it was given; a path leads in: arguments.command",
            "coalesce(t.arguments, vm_arguments(p.cell, p.commitment))",
            ("page",),
        ),
        Field("page", PAGE, "the page that calls it", "t.page"),
        Field("result", PAGE, "the first page that answers", "a.page", ("answered",)),
        Field("results", INTEGER, "how many pages answer", "coalesce(a.pages, 0)", ("answered",), True),
        Field("message", MESSAGE, "the message it is part of", "nullif(p.message, 0)", ("page",), True),
        Field(
            "seen_call",
            INTEGER,
            "the first call whose request held its result; null where none did",
            "cs.call",
            ("shown_call",),
            True,
        ),
        Field(
            "outcome",
            word(ToolOutcome),
            "how its source says it ended; null where it says nothing",
            _OUTCOME,
            ("answered", "ran"),
            True,
        ),
        Field(
            "outcome_by",
            word(OutcomeRule),
            "which rule says so; specs/sources.md tells each",
            _RULE,
            ("answered", "ran"),
            True,
        ),
        Field("error", TEXT, "why it failed, by who ran it", "r.error", ("ran",), True),
        Field("reasoning", PAGE, "the page that says why it was called", "r.reasoning", ("ran",), True),
        Field("tags", LIST, "the tags of the call", "coalesce(r.tags, '[]')", ("ran",), True),
        Field("pages_read", LIST, "the pages it read", "coalesce(r.read, '[]')", ("ran",), True),
        Field("pages_created", LIST, "the pages it made", "coalesce(r.created, '[]')", ("ran",), True),
        Field("pages_modified", LIST, "the pages it changed", "coalesce(r.modified, '[]')", ("ran",), True),
        Field("tool_call", TEXT, "the provider's id of it", "t.name", (), True),
        Field("after_tool", TEXT, "the tool that the session called before it", "b.tool", ("before",), True),
        Field(
            "after_outcome",
            word(ToolOutcome),
            "how that one ended, where its source says so",
            "coalesce(b.outcome, ab.outcome)",
            ("before_answered",),
            True,
        ),
        USER._replace(asked=True),
        Field("position", INTEGER, "the position that made its page", "t.page"),
        Field("at", TIME, "when it was asked for", "t.at"),
        Field("answered_at", TIME, "when it was answered", "a.at", ("answered",), True),
    ),
    {
        "scan": Path(
            "scan",
            by(
                "FROM lane CROSS JOIN tools t ON t.session = lane.session AND t.call = t.page AND "
                + WITHIN.format("t.page")
            ),
            sorted=True,
        )
    },
    {
        "writer": WRITER,
        "answered": Join(
            by(
                "LEFT JOIN answered a ON a.call = t.page",
                across="LEFT JOIN answered a ON a.call = t.page AND a.session = t.session",
            )
        ),
        "ran": Join(
            by(
                "LEFT JOIN ran r ON r.call = t.page",
                across="LEFT JOIN ran r ON r.call = t.page AND r.session = t.session",
            )
        ),
        "before": Join(by(_BEFORE)),
        "before_answered": Join(
            by(
                "LEFT JOIN answered ab ON ab.call = b.page",
                across="LEFT JOIN answered ab ON ab.call = b.page AND ab.session = t.session",
            ),
            needs=("before",),
        ),
        "page": Join(by("CROSS JOIN pages p ON p.session = t.session AND p.page = t.page")),
        "said": Join(
            by("LEFT JOIN messages m ON m.session = t.session AND m.message = p.message"),
            needs=("page",),
        ),
        "shown": Join(
            by(
                "LEFT JOIN shown h ON h.page = a.page",
                across="LEFT JOIN shown h ON h.page = a.page AND h.session = t.session",
            ),
            needs=("answered",),
        ),
        "shown_call": Join(
            by(
                "LEFT JOIN calls cs ON cs.session = t.session AND cs.position = h.f",
                chain="LEFT JOIN calls cs ON cs.session = vm_owner(:head, h.f) AND cs.position = h.f",
            ),
            needs=("shown",),
        ),
    },
    (OrderKey("t.page"),),
    moment="t.page",
    brief=("session", "call", "tool", "status", "tokens", "duration_ms", "result", "arguments"),
)
