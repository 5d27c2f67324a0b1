"""CALLS, TURNS, SESSIONS and MESSAGES: what was asked of the model, when, by whom."""

from __future__ import annotations

from vmstore.core.decision import Load
from vmstore.core.page import Fidelity, Origin, Role, Slot, Standing, Status
from vmstore.core.redaction import Redaction
from vmstore.core.text.tool_outcome import ToolOutcome
from vmstore.views.projectors.sessions import SessionFidelity
from vmstore.views.reads.turn_tiers import MemoryTier
from vmstore.vmql.column_types import BOOLEAN, INTEGER, JSON, LIST, MESSAGE, REAL, TEXT, TIME, word
from vmstore.vmql.relations.relation import ACROSS, CHAIN, Field, Path, Relation, asked, by, fields, joins
from vmstore.vmql.relations.shared_columns import SESSION, USER, WRITER, beside, past, scan


def _seen(column: str, otherwise: str = "NULL") -> str:
    """What the last reply that is seen says of a call: that in its row, or one of the others."""
    own = "c.replied <= lane.high AND c.replied > coalesce(o.position, 0)"
    return f"CASE WHEN {own} THEN c.{column} WHEN o.call IS NOT NULL THEN o.{column} ELSE {otherwise} END"


def _aside(key: str) -> str:
    """What the source keeps beside a reply."""
    return f"vm_aside(c.session, c.position, {_seen('aside')}, {_seen('aside_commitment')}, '{key}')"


def _answered(column: str, of: str, call: str) -> str:
    """What the last reply that is seen says, to a call of a row's own session or of one that it forked from."""
    return f"""{past(of, "lane.high")}
 SELECT x.said FROM (
  SELECT o.position AS at, o.{column} AS said FROM others o WHERE o.call = {call} AND o.session IN (0, {of}.session)
  UNION ALL SELECT e.replied, e.{column} FROM past CROSS JOIN calls e
   ON e.session = past.session AND e.call = {call} AND e.replied <= past.high
  UNION ALL SELECT r.position, r.{column} FROM past CROSS JOIN replies r
   ON r.session = past.session AND r.call = {call} AND r.position <= past.high
   AND past.session <> {of}.session) x
 ORDER BY x.at DESC LIMIT 1"""


# Whose call the one before is: its own, or, of the first since a fork, of the session that it left.
_BEFORE = f"""{past("c", "c.position")}
 SELECT y.session FROM past CROSS JOIN calls y ON y.session = past.session AND y.call = c.call - 1
  AND y.position <= past.high LIMIT 1"""
_REPLIED = "CASE WHEN c.replied <= lane.high AND c.replied > coalesce(o.position, 0) THEN c.replied ELSE o.position END"
_SEALED = f"{_seen('aside')}, {_seen('aside_commitment')}"
_RESPONSE = f"vm_response(c.session, c.call, c.position, {_REPLIED}, {_SEALED})"
_MODEL = f"coalesce(c.model, {_aside('model')})"
_COUNTS = ", ".join(_seen(name) for name in ("tokens_in", "tokens_cached", "tokens_written", "tokens_out"))
_CHOSEN = """SELECT x.budget FROM choices x WHERE x.session = c.session AND x.position <= c.position
 ORDER BY x.position DESC LIMIT 1"""
_BUDGET = f"({_CHOSEN}) * 1000000 / iif(c.factor_ppm > 0, c.factor_ppm, NULL)"

CALLS = Relation(
    "CALLS",
    "every request to the model, how it ended and what it cost",
    fields(
        SESSION,
        USER._replace(asked=True),
        Field("call", INTEGER, "its number", "c.call"),
        Field("turn", INTEGER, "the turn it was made in", "c.turn"),
        Field("position", INTEGER, "the position of its pack", "c.position"),
        Field("at", TIME, "when it was made", "c.at"),
        Field("model", TEXT, "the model asked, or the one that answered", _MODEL),
        Field("status", word(Status), "how it ended", _seen("status", "0")),
        Field("fidelity", word(Fidelity), "whether the source held the request, or it was rebuilt", "c.fidelity"),
        Field("tokens", INTEGER, "estimated tokens of what it was sent", "coalesce(c.sent_tokens, c.tokens)"),
        Field("tokens_reported", INTEGER, "tokens of it by the provider's count", _seen("tokens_in")),
        Field("tokens_cached", INTEGER, "those of them read from a cache", _seen("tokens_cached")),
        Field("tokens_written", INTEGER, "those of them written to a cache", _seen("tokens_written")),
        Field("tokens_out", INTEGER, "tokens answered, by the provider's count", _seen("tokens_out")),
        Field("cost", REAL, "what it cost, in dollars", f"({_seen('cost')}) / 1000000000.0"),
        Field(
            "cost_estimated",
            REAL,
            "what it cost by the store's prices, in dollars, where the source did not say; null where it did",
            f"iif(({_seen('cost')}) IS NULL, vm_estimate({_MODEL}, {_COUNTS}), NULL)",
        ),
        Field("latency_ms", REAL, "how long the answer took, in milliseconds", f"({_seen('latency')}) / 1000.0"),
        Field("budget", INTEGER, "estimated tokens it could have held; null without a kernel", _BUDGET),
        Field("pages", INTEGER, "pages in its context", "c.leaves"),
        asked(
            "invalidated",
            INTEGER,
            "estimated tokens of the request before, from the first place on that it changed: what no cache serves",
            "coalesce(z.tokens, 0)",
        ),
        asked("tools", LIST, "the tools its answer asked for", "coalesce(q.tools, '[]')"),
        asked(
            "tokens_before",
            INTEGER,
            "estimated tokens of what the call before it was sent",
            "coalesce(b.sent_tokens, b.tokens)",
        ),
        asked(
            "cached_before",
            INTEGER,
            "tokens that the call before it read from a cache",
            f"({_answered('tokens_cached', 'c', 'c.call - 1')})",
        ),
        asked("model_before", TEXT, "the model that the call before it asked", "b.model"),
        asked("at_before", TIME, "when the call before it was made; at - at_before is in seconds", "b.at"),
        asked("compacted", INTEGER, "pages that a summary replaced with it", "coalesce(k.pages, 0)"),
        Field("stop", TEXT, "why the answer ended, in the provider's word", _aside("stop")),
        Field("error", TEXT, "what failed", _aside("error")),
        asked(
            "component",
            TEXT,
            "the part of a memory that made it, as tool_loop or compactor; null for the agent's own",
            _aside("component"),
        ),
        asked(
            "metadata",
            JSON,
            "the request's other fields; a path leads in: metadata.temperature",
            "vm_text(c.rest, c.rest_commitment)",
        ),
        asked(
            "response",
            JSON,
            "the response's body, null where none is held whole; a path leads in: response.usage.total_tokens",
            _RESPONSE,
        ),
    ),
    scan("calls", "c", "c.position"),
    joins(
        WRITER,
        beside("voided z", "c", "position"),
        beside("compacted k", "c", "position"),
        beside("others o", "c", "call"),
        beside("asked_tools q", "c", "call"),
        by(
            "LEFT JOIN calls b ON b.session = c.session AND b.call = c.call - 1",
            **dict.fromkeys((CHAIN, ACROSS), f"LEFT JOIN calls b ON b.session = ({_BEFORE}) AND b.call = c.call - 1"),
        ),
    ),
    ("c.position",),
    moment="c.position",
    brief=("session", "call", "turn", "pages", "tokens", "tokens_cached", "tokens_out", "cost", "status", "model"),
)

TURNS = Relation(
    "TURNS",
    "every turn: from a human message after a final answer to the next",
    fields(
        SESSION,
        Field("turn", INTEGER, "its number", "t.turn"),
        Field("position", INTEGER, "the position that opened it", "t.position"),
        Field("at", TIME, "when it opened", "t.at"),
        Field("calls", INTEGER, "calls made in it", "coalesce(n.calls, 0)"),
        Field("tokens", INTEGER, "estimated tokens of the pages made in it", "coalesce(m.tokens, 0)"),
        Field("user_tokens", INTEGER, "those of them by the user", "coalesce(m.user_tokens, 0)"),
        Field("reply_tokens", INTEGER, "those of them by the assistant", "coalesce(m.reply_tokens, 0)"),
        asked("faults", INTEGER, "times a page was asked for, or without a kernel came back", "coalesce(v.faults, 0)"),
        asked("evictions", INTEGER, "times a page left the context", "coalesce(v.evictions, 0)"),
        asked("searches", INTEGER, "times the agent searched", "coalesce(v.searches, 0)"),
        asked("cost", REAL, "what its calls cost, in dollars, as their source says", "z.cost"),
        asked(
            "cost_estimated",
            REAL,
            "what those of its calls cost by the store's prices of which the source does not say",
            "z.cost_estimated",
        ),
        asked(
            "load", word(Load), "the fullest class its prompt came to; null where it stayed in the one it had", "v.load"
        ),
        asked(
            "total_tokens",
            INTEGER,
            "estimated tokens of its messages, each with what writing it takes, as hot and warm count them",
            "coalesce(y.tokens, 0)",
        ),
        asked(
            "memory_tier",
            word(MemoryTier),
            "how near it is, as session.memory has it; null where nothing was said in it",
            "y.tier",
        ),
        asked(
            "is_identity_critical",
            BOOLEAN,
            "whether it is kept to the word: the first, and one a fact about who somebody is was taken from",
            "coalesce(y.critical, 0)",
        ),
    ),
    scan("turns", "t", "t.position"),
    joins(
        WRITER,
        beside("made m", "t", "turn"),
        beside("called n", "t", "turn"),
        beside("moved v", "t", "turn"),
        beside("tiers y", "t", "turn"),
        beside("turn_spent z", "t", "turn"),
    ),
    ("t.position",),
    moment="t.position",
)


def _last(what: str, table: str) -> str:
    """What a view holds last of a session up to the moment."""
    return f"""(SELECT {what} FROM {table} x WHERE x.session = s.session AND x.position <= lane.high
 ORDER BY x.position DESC LIMIT 1)"""


# The last that was set, by the session itself or by those it forked from, whose positions come before its own.
_POLICY = f"""coalesce(x.policy, 0) FROM (SELECT 1) LEFT JOIN ({past("s", "lane.high")}
 SELECT y.policy AS policy FROM past CROSS JOIN policies y ON y.session = past.session AND y.position <= past.high
 ORDER BY y.position DESC LIMIT 1) x"""


def _counted(now: str, table: str, alias: str, moment: str, what: str = "count(*)") -> str:
    """A count of a session's row, counted again where it is asked of the past."""
    within = f"FROM {table} {alias} WHERE {alias}.session = s.session AND {moment} <= lane.high"
    return f"iif(lane.high >= s.position, s.{now}, (SELECT {what} {within}))"


# All that are rebuilt, those of its past before a fork among them, without those made after the moment.
_DERIVED = f"""s.derived - (SELECT count(*) FROM calls x INDEXED BY calls_position WHERE x.session = s.session
 AND x.position > lane.high AND x.fidelity = {int(Fidelity.DERIVED)}) > 0"""

_RECORDED = f"""(SELECT count(*) FROM calls x INDEXED BY calls_position WHERE x.session = s.session
 AND x.position <= lane.high AND x.fidelity = {int(Fidelity.RECORDED)})"""
# The first thing that a person said in it, as it arrived.
_FIRST_LINE = """(SELECT vm_text(p.cell, p.commitment) FROM messages m CROSS JOIN pages p ON p.session = m.session
 AND p.message = m.message AND p.page > m.message AND p.page <= lane.high
 WHERE m.session = s.session AND m.human ORDER BY m.message, p.part LIMIT 1)"""
_LAST_AT = """(SELECT c.at_max FROM commits c WHERE c.session = s.session AND c.last <= lane.high
 ORDER BY c.last DESC LIMIT 1)"""

_TOOL_NAMES = (
    "(SELECT json_group_array(tool ORDER BY n DESC, tool) FROM (SELECT t.tool AS tool, count(*) AS n FROM tools t"
    " WHERE t.session = s.session AND t.page <= lane.high AND t.call = t.page AND t.tool IS NOT NULL GROUP BY 1))"
)
_TRIVIAL = (
    "((SELECT coalesce(max(t.turn), s.turn_before) FROM turns t WHERE t.session = s.session"
    " AND t.position <= lane.high) <= 1 AND NOT EXISTS (SELECT 1 FROM tools t WHERE t.session = s.session"
    " AND t.page <= lane.high AND t.call = t.page))"
)

SESSIONS = Relation(
    "SESSIONS",
    "every session: who it is, where it came from, how much it holds",
    fields(
        Field("session", TEXT, "its name", "s.name"),
        Field("user", TEXT, "whose it is", "s.user"),
        Field("agent", TEXT, "which agent's", "s.agent"),
        Field("origin", word(Origin), "how it began", "s.origin"),
        Field("parent", TEXT, "the session it was forked from, spawned by or continues", "o.name"),
        Field("fork_position", INTEGER, "where it left its parent", "iif(s.parent, s.fork_position, NULL)"),
        Field("title", TEXT, "what it is about", "s.title"),
        asked("first_line", TEXT, "what a person said first in it", _FIRST_LINE),
        Field(
            "status",
            word(Standing),
            "whether it is under way, or how it ended",
            f"coalesce({_last('x.status', 'closings')}, 0)",
        ),
        Field(
            "fidelity",
            word(SessionFidelity),
            "whether its requests were recorded, rebuilt, or partly the one and partly the other",
            f"iif({_DERIVED}, iif({_RECORDED}, {int(SessionFidelity.PARTLY)}, {int(Fidelity.DERIVED)}), 0)",
        ),
        asked("recorded", INTEGER, "its own calls whose request was recorded", _RECORDED),
        Field(
            "turns",
            INTEGER,
            "the number of its last turn",
            _counted("turns", "turns", "t", "t.position", "coalesce(max(t.turn), s.turn_before)"),
        ),
        Field(
            "calls",
            INTEGER,
            "the number of its last call",
            _counted("calls", "calls", "c", "c.position", "coalesce(max(c.call), s.call_before)"),
        ),
        Field("pages", INTEGER, "pages it made itself", _counted("pages", "pages", "p", "p.page")),
        Field("messages", INTEGER, "messages it took in itself", _counted("messages", "messages", "m", "m.message")),
        Field("mutations", INTEGER, "mutations it wrote itself", "min(lane.high, s.position) - lane.low"),
        Field(
            "tokens",
            INTEGER,
            "estimated tokens of the pages it made",
            _counted("tokens", "pages", "p", "p.page", "coalesce(sum(p.tokens), 0)"),
        ),
        asked("cost", REAL, "what its own calls cost, in dollars, as their source says", "z.cost"),
        asked(
            "cost_estimated",
            REAL,
            "what those of its own calls cost by the store's prices of which the source does not say",
            "z.cost_estimated",
        ),
        asked(
            "tools",
            INTEGER,
            "pages that tools answered with",
            "(SELECT count(*) FROM pages p WHERE p.session = s.session AND p.page <= lane.high"
            f" AND p.role = {int(Role.TOOL)})",
        ),
        asked("tool_names", LIST, "the tools it called itself, those called most often first", _TOOL_NAMES),
        asked(
            "observations",
            INTEGER,
            "its own calls of tools that were answered",
            "(SELECT count(DISTINCT t.call) FROM tools t WHERE t.session = s.session AND t.page <= lane.high"
            " AND t.call AND t.call <> t.page)",
        ),
        asked("tokens_saved", INTEGER, "estimated tokens that their shorter forms take less", "v.whole - v.short"),
        asked(
            "compression_ratio",
            REAL,
            "the tokens of these forms by those of the whole, from 0 to 1; null without any",
            "round(1.0 * v.short / v.whole, 3)",
        ),
        asked("trivial", BOOLEAN, "whether little happened in it: one turn at most, and no tool called", _TRIVIAL),
        asked(
            "redaction",
            word(Redaction),
            "what it does with secrets",
            f"iif(lane.high >= s.position, s.redaction, (SELECT {_POLICY}))",
        ),
        asked(
            "redactions",
            INTEGER,
            "secrets and personal data that were masked before it was written",
            _counted("redactions", "redactions", "r", "r.position", "coalesce(sum(r.count), 0)"),
        ),
        Field("position", INTEGER, "its last position", "min(lane.high, s.position)"),
        Field("opened_at", TIME, "when it was opened: of an import without times, when it was imported", "s.opened_at"),
        Field(
            "began_at", TIME, "when it began; null where its source held no times", "iif(s.timed, s.opened_at, NULL)"
        ),
        Field(
            "last_at",
            TIME,
            "when something happened in it last; null where its source held no times",
            f"iif(s.timed, {_LAST_AT}, NULL)",
        ),
        Field("closed_at", TIME, "when it ended", _last("iif(x.status, x.at, NULL)", "closings")),
        asked(
            "outcome",
            TEXT,
            "how it ended by the verdict of its source: passed, failed, or an exit status",
            _last("x.outcome", "outcomes"),
        ),
        asked("reward", REAL, "the number its source rates it with", _last("x.reward", "outcomes")),
        asked("closed_because", TEXT, "why it ended, as somebody said", _last("x.reason", "closings")),
        asked("budget", INTEGER, "the tokens its prompt may hold; null without a kernel", _last("x.budget", "choices")),
        asked(
            "policy",
            TEXT,
            "the policy by which pages give way; null without a kernel",
            _last("x.told ->> '$.policy'", "choices"),
        ),
        Field("source", TEXT, "the file it was imported from", "s.source"),
        asked("total_tokens", INTEGER, "the sum over its turns, the inherited ones too", "coalesce(y.tokens, 0)"),
        asked(
            "memory_tier",
            word(MemoryTier),
            "how near the nearest of its turns is; null where nothing was said in it",
            "y.tier",
        ),
    ),
    {
        "scan": Path(
            "scan",
            by(
                "FROM lane CROSS JOIN sessions s ON s.session = lane.session"
                " AND lane.low + 1 > lane.since AND lane.low + 1 <= lane.until"
            ),
            sorted=True,
        )
    },
    joins(
        by("LEFT JOIN sessions o ON o.session = s.parent"),
        by("LEFT JOIN session_tiers y ON y.session = s.session"),
        by("LEFT JOIN saved v ON v.session = s.session"),
        by("LEFT JOIN spent z ON z.session = s.session"),
    ),
    ("s.name",),
    moment="lane.low + 1",
    brief=("session", "turns", "calls", "tokens", "opened_at", "title"),
    across=(),
    wide=True,
)

MESSAGES = Relation(
    "MESSAGES",
    "every chat message that arrived",
    fields(
        Field("message", MESSAGE, "its name", "m.message"),
        SESSION,
        Field("turn", INTEGER, "the turn it arrived in", "m.turn"),
        Field("call", INTEGER, "the last call before it", "m.call"),
        Field("position", INTEGER, "the position it arrived at", "m.message"),
        Field("at", TIME, "when it arrived", "m.at"),
        Field("role", word(Role), "who speaks", "m.role"),
        Field("slot", word(Slot), "the part of a request it stands in", "m.slot"),
        Field(
            "status",
            word(Status),
            "how the call it answers ended; null where it answers none",
            f"iif(m.reply_to IS NULL, NULL, coalesce(({_answered('status', 'm', 'm.reply_to')}), 0))",
        ),
        asked("tool", TEXT, "the first tool it calls or answers for", "q.tool"),
        asked("outcome", word(ToolOutcome), "how the answers in it ended, error where one did", "q.outcome"),
        Field("tokens", INTEGER, "estimated tokens of its pages", "coalesce(n.tokens, 0)"),
        Field("pages", INTEGER, "how many pages it has", "coalesce(n.pages, 0)"),
        asked("line", TEXT, "its pages as people read them, on one line", "vm_said_line(k.listed)"),
        asked(
            "text",
            TEXT,
            "the text of its pages as they arrived, joined by line ends; PAGES.text is the last version",
            "vm_said(k.listed)",
        ),
    ),
    scan("messages", "m", "m.message"),
    joins(
        WRITER,
        beside("parts n", "m", "message"),
        beside("spoken k", "m", "message"),
        beside("message_tools q", "m", "message"),
    ),
    ("m.message",),
    moment="m.message",
    brief=("session", "message", "turn", "role", "tokens", "line"),
)
