"""GUARDS and SKILLS: what an agent was warned of, and what it learned to do, with what was counted for it."""

from __future__ import annotations

from vmstore.core.page import Standing
from vmstore.core.work.trace import GuardType
from vmstore.vmql.column_types import INTEGER, JSON, LIST, PAGE, REAL, TEXT, TIME, word
from vmstore.vmql.relations.relation import Field, Path, Relation, by, fields, joins
from vmstore.vmql.relations.shared_columns import (
    CONTENT,
    SESSION,
    USER,
    WRITER,
    beside,
    each,
    latest_of,
    page_of,
    rows,
    scan,
)

_RAN = """ran(session, call, outcome, duration, error, reasoning, read, created, modified, tags, at) AS MATERIALIZED (
 SELECT session, call, outcome, duration, error, reasoning, read, created, modified, tags, at FROM (
 SELECT {of} AS session, x.call AS call, x.outcome AS outcome, x.duration AS duration, x.error AS error,
  x.reasoning AS reasoning, x.read AS read, x.created AS created, x.modified AS modified, x.tags AS tags, x.at AS at,
  max(x.position) FROM lane CROSS JOIN runs x ON x.session = lane.session AND x.position > lane.low
   AND x.position <= lane.high GROUP BY 1, 2))"""
RAN = each(_RAN)
"""Of each call the last that is logged of how its tool ran."""

_WEIGHED = """weighed(session, page, position) AS MATERIALIZED (
 SELECT {of}, x.page, max(x.position) FROM lane CROSS JOIN skills x ON x.session = lane.session
  AND x.position > lane.low AND x.position <= lane.high GROUP BY 1, 2)"""
WEIGHED = each(_WEIGHED)
"""Where each skill was weighed last."""

_TEXT = f"vm_text({CONTENT})"


def _said(name: str, kind: str) -> str:
    """A field of the description of a skill; null where that is no JSON, or has another type there."""
    fits = f"json_valid({_TEXT}) AND json_type({_TEXT}, '$.{name}') = '{kind}'"
    return f"CASE WHEN {fits} THEN {_TEXT} -> '$.{name}' END"


GUARDS = Relation(
    "GUARDS",
    "every time a guard spoke up: what it counted, in which calls, and the warning that came of it",
    fields(
        SESSION,
        USER,
        Field("turn", INTEGER, "the turn of it", "t.turn"),
        Field("type", word(GuardType), "which guard", "t.type"),
        Field("tool", TEXT, "the tool", "t.tool"),
        Field("count", INTEGER, "how many calls it counted, those of other sessions too", "t.count"),
        Field("page", PAGE, "the call that made it speak", "t.call"),
        Field("calls", LIST, "the last calls it counted", "t.calls"),
        Field("warning", PAGE, "the page that warns; null where none does", "t.warning"),
        Field("text", TEXT, "what the warning says; null where it was erased", _TEXT),
        Field("position", INTEGER, "the position that says so", "t.position"),
        Field("at", TIME, "when it was", "t.at"),
    ),
    scan("guards", "t", "t.position"),
    joins(WRITER, page_of("t.warning"), latest_of("t.warning")),
    ("t.position",),
    moment="t.position",
    brief=("session", "type", "tool", "count", "page", "text"),
)

SKILLS = Relation(
    "SKILLS",
    "what was learned: sequences of tools that succeed, each with what was counted last",
    fields(
        Field("page", PAGE, "the page that describes it", "t.page"),
        SESSION,
        USER,
        Field("skill", TEXT, "its name", "t.skill"),
        Field("tools", LIST, "its tools in order", f"coalesce({_said('tool_sequence', 'array')}, '[]')"),
        Field("success_rate", REAL, "how often it succeeded of the times it was tried", "1.0 * t.count / t.tries"),
        Field("successes", INTEGER, "how often it succeeded", "t.count"),
        Field("tries", INTEGER, "how often it was tried", "t.tries"),
        Field("arguments", JSON, "the arguments that its tools were given most often", _said("typical_args", "object")),
        Field(
            "prerequisites",
            LIST,
            "the pages its tools read before most of the time, by name",
            f"coalesce({_said('page_prereqs', 'array')}, '[]')",
        ),
        Field("status", word(Standing), "how it stands", "coalesce(s.value, 0)"),
        Field("calls", LIST, "calls that show it, the last", "t.calls"),
        Field("turn", INTEGER, "the turn of it", "t.turn"),
        Field("position", INTEGER, "the position that says so", "t.position"),
        Field("at", TIME, "when it was weighed last", "t.at"),
    ),
    {
        "scan": Path(
            "scan",
            by(
                rows("skills", "t", "t.position")
                + " CROSS JOIN weighed l ON l.page = t.page AND l.position = t.position",
                across=rows("skills", "t", "t.position")
                + " CROSS JOIN weighed l ON l.session = t.session AND l.page = t.page AND l.position = t.position",
            ),
            sorted=True,
        )
    },
    joins(
        WRITER,
        page_of("t.page"),
        latest_of("t.page"),
        beside("said_status s", "t", "page"),
    ),
    ("t.position",),
    moment="t.position",
    brief=("session", "page", "skill", "tools", "success_rate", "successes"),
)
