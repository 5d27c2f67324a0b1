"""TOOLS: every call of a tool, what it was given, how it ended and what it gave."""

from __future__ import annotations

from vmstore.core.page import WordEnum
from vmstore.core.text.tool_outcome import OutcomeRule, ToolOutcome
from vmstore.vmql.column_types import INTEGER, JSON, LIST, MESSAGE, PAGE, REAL, TEXT, TIME, word
from vmstore.vmql.relations.relation import Field, Path, Relation, asked, by, fields, joins
from vmstore.vmql.relations.shared_columns import SESSION, USER, WRITER, at_position, beside, each, own, past, rows


class ToolStatus(WordEnum):
    """How far a call came: open until it is answered, failed where a rule says that the answer is an error."""

    OPEN = 0
    OK = 1
    FAILED = 2


# The answers of each call: the first page, how many tokens all have, the first outcome that any of them says.
_ANSWERED = f"""answered(session, call, page, pages, tokens, outcome, rule, latency, at) AS MATERIALIZED (
 SELECT {{of}}, x.call, min(x.page), count(*), sum(x.tokens), max(x.outcome),
  max(x.outcome * 100 + x.rule) % 100, max(x.latency), min(x.at)
 {own("tools x", "page")} WHERE x.call AND x.call <> x.page GROUP BY 1, x.call)"""
ANSWERED = each(_ANSWERED)

_SHOWN = """shown(session, page, f) AS MATERIALIZED (SELECT {of}, page, min(f) FROM (
 SELECT lane.session AS session, x.page AS page, x.f AS f FROM lane
 CROSS JOIN spans x ON x.session = lane.session AND x.f <= lane.high
 UNION ALL SELECT lane.session, x.page, x.f FROM lane
 CROSS JOIN residents x ON x.session = lane.session AND x.f <= lane.high) GROUP BY 1, 2)"""
SHOWN = by(_SHOWN.format(of="0"), across=_SHOWN.format(of="session"))
"""Since when each page was in the prompt for the first time."""

_TOOLS = f"""{own("tools t", "page")}
 CROSS JOIN pages p ON p.session = t.session AND p.page = t.page"""
_ASKED = f"""asked_tools(session, call, tools) AS MATERIALIZED (
 SELECT {{of}}, m.reply_to, json_group_array(t.tool ORDER BY t.page) {_TOOLS}
 CROSS JOIN messages m ON m.session = t.session AND m.message = p.message
 WHERE t.call = t.page AND m.reply_to IS NOT NULL GROUP BY 1, 2)"""
ASKED = each(_ASKED)
"""The tools that the answer to each call asked for."""
_SAID = f"""message_tools(session, message, tool, outcome) AS MATERIALIZED (
 SELECT {{of}}, p.message, vm_first(t.tool ORDER BY t.page), max(t.outcome) {_TOOLS} GROUP BY 1, 2)"""
SAID = each(_SAID)
"""The first tool that each message calls or answers for, and the worst outcome in it."""
_OUTCOME = "coalesce(r.outcome, t.outcome, a.outcome)"
_RULE = f"iif(r.outcome IS NOT NULL, {int(OutcomeRule.HOST)}, iif(t.outcome IS NULL, a.rule, t.rule))"
_STATUS = f"CASE WHEN {_OUTCOME} = {int(ToolOutcome.ERROR)} THEN {int(ToolStatus.FAILED)}"
_STATUS += " WHEN a.call IS NULL AND t.outcome IS NULL AND r.outcome IS NULL"
_STATUS += f" THEN {int(ToolStatus.OPEN)} ELSE {int(ToolStatus.OK)} END"
# By the source's own figure, else by its times; two that are the same were given by none.
_TOOK = "coalesce(r.duration, t.latency, a.latency, iif(a.at > t.at, a.at - t.at, NULL)) / 1000.0"
# The call before, of the session itself or, before its first since a fork, of the one that it left.
_LAST = f"""({past("t", "t.page - 1")},
  calls(page) AS (SELECT (SELECT x.page FROM tools x WHERE x.session = past.session AND x.call = x.page
   AND x.page <= past.high ORDER BY x.page DESC LIMIT 1) FROM past)
 SELECT page FROM calls WHERE page IS NOT NULL LIMIT 1)"""
_BEFORE = f"LEFT JOIN tools b ON b.session = vm_owner(t.session, {_LAST}) AND b.page = {_LAST}"
# How it ended where it is of another session than the row, whose answers and runs are not at hand.
_LEFT_RUN = f"""iif(b.session = t.session, NULL, ({past("t", "lane.high")} SELECT x.outcome FROM past CROSS JOIN runs x
  ON x.session = past.session AND x.call = b.page AND x.position <= past.high ORDER BY x.position DESC LIMIT 1))"""
_LEFT_ANSWER = f"""iif(b.session = t.session, NULL, ({past("t", "lane.high")} SELECT max(x.outcome) FROM past
  CROSS JOIN tools x ON x.session = past.session AND x.page <= past.high AND x.call = b.page AND x.page <> b.page))"""

TOOLS = Relation(
    "TOOLS",
    "every call of a tool: what it was given, how it ended and what it gave",
    fields(
        SESSION,
        Field("turn", INTEGER, "the turn it was made in", "p.turn"),
        Field("call", INTEGER, "the call whose answer asked for it; null where none is known", "m.reply_to"),
        Field("tool", TEXT, "the tool", "t.tool"),
        Field("status", word(ToolStatus), "whether it was answered, and whether the answer is an error", _STATUS),
        Field("tokens", INTEGER, "estimated tokens of its result", "a.tokens"),
        Field("duration_ms", REAL, "how long it took, in milliseconds, where the source says or has times", _TOOK),
        Field("path", TEXT, "the file its arguments name", "t.path"),
        Field(
            "arguments",
            JSON,
            "what it was given; a path leads in: arguments.command",
            "coalesce(t.arguments, vm_arguments(p.cell, p.commitment))",
        ),
        Field("page", PAGE, "the page that calls it", "t.page"),
        Field("result", PAGE, "the first page that answers", "a.page"),
        asked("results", INTEGER, "how many pages answer", "coalesce(a.pages, 0)"),
        asked("message", MESSAGE, "the message it is part of", "nullif(p.message, 0)"),
        asked("seen_call", INTEGER, "the first call whose request held its result; null where none did", "cs.call"),
        asked("outcome", word(ToolOutcome), "how its source says it ended; null where it says nothing", _OUTCOME),
        asked("outcome_by", word(OutcomeRule), "which rule says so; specs/sources.md tells each", _RULE),
        asked("error", TEXT, "why it failed, by who ran it", "r.error"),
        asked("reasoning", PAGE, "the page that says why it was called", "r.reasoning"),
        asked("tags", LIST, "the tags of the call", "coalesce(r.tags, '[]')"),
        asked("pages_read", LIST, "the pages it read", "coalesce(r.read, '[]')"),
        asked("pages_created", LIST, "the pages it made", "coalesce(r.created, '[]')"),
        asked("pages_modified", LIST, "the pages it changed", "coalesce(r.modified, '[]')"),
        asked("tool_call", TEXT, "the provider's id of it", "t.name"),
        asked("after_tool", TEXT, "the tool that the session called before it", "b.tool"),
        asked(
            "after_outcome",
            word(ToolOutcome),
            "how that one ended, where its source says so",
            f"coalesce(rb.outcome, {_LEFT_RUN}, b.outcome, ab.outcome, {_LEFT_ANSWER})",
        ),
        USER._replace(asked=True),
        Field("position", INTEGER, "the position that made its page", "t.page"),
        Field("at", TIME, "when it was asked for", "t.at"),
        asked("answered_at", TIME, "when it was answered", "a.at"),
    ),
    {"scan": Path("scan", by(rows("tools", "t", "t.page") + " AND t.call = t.page"), sorted=True)},
    joins(
        WRITER,
        beside("answered a", "t", "call = page"),
        beside("ran r", "t", "call = page"),
        by(_BEFORE),
        beside("answered ab", "b", "call = page"),
        beside("ran rb", "b", "call = page"),
        by("CROSS JOIN pages p ON p.session = t.session AND p.page = t.page"),
        by("LEFT JOIN messages m ON m.session = t.session AND m.message = p.message"),
        beside("shown h", "a", "page"),
        at_position("calls cs", "t.session", "h.f"),
    ),
    ("t.page",),
    moment="t.page",
    brief=("session", "call", "tool", "status", "tokens", "duration_ms", "result", "arguments"),
)
