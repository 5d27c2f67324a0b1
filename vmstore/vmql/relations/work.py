"""GUARDS and SKILLS, TASKS, ATOMS and ARTIFACTS: what agents were warned of, what they learned, work on and hold."""

from __future__ import annotations

from vmstore.core.decision import Denial, FaultDenied
from vmstore.core.facts import FactType
from vmstore.core.page import LinkKind, Modality, PageType, Standing, WordEnum
from vmstore.core.work.atom import ATOM, AtomKind
from vmstore.core.work.trace import GuardType
from vmstore.vmql.column_types import INTEGER, JSON, LIST, PAGE, REAL, TEXT, TIME, said, word
from vmstore.vmql.relations.relation import Field, Path, Relation, by, fields, joins
from vmstore.vmql.relations.shared_columns import (
    CONTENT,
    LATEST,
    MIME,
    SESSION,
    TYPED,
    USER,
    WRITER,
    beside,
    each,
    latest_of,
    own,
    page_of,
    rows,
    scan,
)

_RAN = f"""ran(session, call, outcome, duration, error, reasoning, read, created, modified, tags, at) AS MATERIALIZED (
 SELECT session, call, outcome, duration, error, reasoning, read, created, modified, tags, at FROM (
 SELECT {{of}} AS session, x.call AS call, x.outcome AS outcome, x.duration AS duration, x.error AS error,
  x.reasoning AS reasoning, x.read AS read, x.created AS created, x.modified AS modified, x.tags AS tags, x.at AS at,
  max(x.position) {own("runs x")} GROUP BY 1, 2))"""
RAN = each(_RAN)
"""Of each call the last that is logged of how its tool ran."""

_WEIGHED = f"""weighed(session, page, position) AS MATERIALIZED (
 SELECT {{of}}, x.page, max(x.position) {own("skills x")} GROUP BY 1, 2)"""
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
    filled="guards speak up in live sessions; `vmstore learn STORE` shows what they would have said of the others",
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
    filled="`vmstore learn STORE --write` makes skills of what succeeded often enough",
)

# ---- what is worked on


class Consent(WordEnum):
    """Somebody's word on a file of a session: whether a prompt may hold it."""

    DENIED = 0
    APPROVED = 1


_CONSENTED = f"""consented(session, page, granted, who, since) AS MATERIALIZED (
 SELECT session, page, granted, who, since FROM (
 SELECT {{of}} AS session, x.page AS page, x.granted AS granted, x.who AS who, max(x.position) AS since
 {own("approvals x")} WHERE x.page AND x.of IS NULL GROUP BY 1, 2))"""
CONSENTED = each(_CONSENTED)
"""What was said last of each file: whether a prompt may hold it, and by whom."""

_REFUSED = f"""refused(session, page, times) AS MATERIALIZED (SELECT {{of}}, x.page, count(*)
 {own("decisions x")} WHERE x.kind = {FaultDenied.NUMBER} AND x.word = {int(Denial.APPROVAL)} GROUP BY 1, 2)"""
REFUSED = each(_REFUSED)
"""How often each file was asked for and nobody had approved it."""

_PART_OF = f"""part_of(session, page, task) AS MATERIALIZED (SELECT {{of}}, k.source, max(k.target)
 {own("links k")} WHERE k.kind = {int(LinkKind.PART_OF)} AND {{holds}} GROUP BY 1, 2)"""
PART_OF = each(_PART_OF)
"""The task that each page is a part of."""

_REVISED = f"""revised(session, page, at) AS MATERIALIZED (SELECT session, page, (SELECT k.at FROM commits k
  WHERE k.session = writer AND k.last >= position ORDER BY k.last LIMIT 1) FROM (
 SELECT {{of}} AS session, x.page AS page, x.session AS writer, max(x.position) AS position
 {own("changes x")} WHERE x.level = 0 GROUP BY 1, 2))"""
REVISED = each(_REVISED)
"""When the content of each page was changed last."""

_STATES = f"""states(session, page, type) AS MATERIALIZED (SELECT session, page, type FROM (
 SELECT {{of}} AS session, x.page AS page, x.type AS type, max(x.position) {own("facts x")} GROUP BY 1, 2))"""
STATES = each(_STATES)
"""The type of the fact that each page states."""

_JOINS = joins(
    WRITER,
    beside("tagged g", "p", "page"),
    by("LEFT JOIN latest c ON c.page = p.page", across=LATEST),
    beside("said_status s", "p", "page"),
    beside("part_of o", "p", "page"),
    beside("revised u", "p", "page"),
    beside("consented n", "p", "page"),
    beside("refused d", "p", "page"),
    beside("states f", "p", "page"),
)
_STATUS = Field("status", word(Standing), "how it stands", "coalesce(s.value, 0)")
_TASK = Field("task", PAGE, "the task it is a part of", "o.task")
_TAGS = Field("tags", LIST, "its tags", "coalesce(g.tags, '[]')")
_TOKENS = Field("tokens", INTEGER, "estimated tokens of its full content", "coalesce(c.tokens, p.tokens)")


def _has_tag(condition: str) -> str:
    return f"EXISTS (SELECT 1 FROM json_each(g.tags) WHERE {condition})"


def _path(where: str, tagged: str = "", *, types: int = 1) -> dict[str, Path]:
    """The pages for which `where` holds, and of their tags `tagged`."""
    kept = f" CROSS JOIN (SELECT 1) ON {tagged}" if tagged else ""
    pages = f"{TYPED} AND {where} LEFT JOIN tagged g ON g.page = p.page"
    ways = by(pages + kept, across=f"{pages} AND g.session = p.session{kept}")
    return {"scan": Path("scan", ways, joined=("g",), sorted=types == 1)}  # the index is by type


_PLANNED = _has_tag("value = 'plan'")

# ---- tasks


def _plan(expression: str) -> str:
    """A value of a plan's content; null where that was erased."""
    return f"CASE WHEN json_valid({_TEXT}) THEN {expression.format(text=_TEXT)} END"


_STEPS = _plan("(SELECT count(*) FROM json_each({text}, '$.steps'))")
_DONE = _plan("(SELECT count(*) FROM json_each({text}, '$.steps') WHERE value ->> '$.done')")
_PROGRESS = _plan("coalesce({text} ->> '$.progress', 0.0)")
_DECISIONS = _plan("coalesce({text} -> '$.decisions', '[]')")

TASKS = Relation(
    "TASKS",
    "what agents work on: plans, each as it stood at a moment",
    fields(
        Field("page", PAGE, "the page of it", "p.page"),
        SESSION,
        USER,
        Field("title", TEXT, "what it is called", _plan("{text} ->> '$.plan'")),
        _STATUS,
        Field("progress", REAL, "how far it came, from 0 to 1", _PROGRESS),
        Field("steps", INTEGER, "how many steps it has", _STEPS),
        Field("done", INTEGER, "how many of them are done", _DONE),
        Field("decisions", LIST, "what was decided of it, by page", _DECISIONS),
        _TAGS,
        Field("continues", TEXT, "the task of an earlier session that it goes on with", "p.labels ->> '$.origin'"),
        Field("created_at", TIME, "when it was begun", "p.at"),
        Field("updated_at", TIME, "when it was changed last", "coalesce(u.at, p.at)"),
        Field("turn", INTEGER, "the turn in which it was begun", "p.turn"),
        Field("position", INTEGER, "the position that began it", "p.page"),
    ),
    _path(f"p.type = {int(PageType.CLAIM)} AND p.modality = {int(Modality.STRUCTURED)}", _PLANNED),
    _JOINS,
    ("p.page",),
    moment="p.page",
    brief=("session", "page", "title", "status", "done", "steps", "updated_at"),
    filled="a task is a plan; `live.work.plans.create(…)` makes one",
)

# ---- atoms

_STATED = f"(SELECT substr(value, {len(ATOM) + 1}) FROM json_each(g.tags) WHERE value LIKE '{ATOM}%' LIMIT 1)"
_LEARNED = _has_tag("value IN ('warning', 'skill')")
_KIND = f"""CASE WHEN {_STATED} IS NOT NULL THEN {_STATED}
 WHEN f.type IS NOT NULL
  THEN iif(f.type = {int(FactType.DECISION)}, '{AtomKind.DECISION.word}', '{AtomKind.FACT.word}')
 WHEN {_LEARNED} THEN '{AtomKind.INSIGHT.word}' ELSE '{AtomKind.DECISION.word}' END"""

ATOMS = Relation(
    "ATOMS",
    "pages that say one thing: facts, decisions, constraints, questions, insights",
    fields(
        Field("page", PAGE, "the page of it", "p.page"),
        SESSION,
        USER,
        Field("kind", said(AtomKind), "what it says of the work", _KIND),
        Field("text", TEXT, "what it says", _TEXT),
        _TASK,
        _STATUS,
        _TAGS,
        _TOKENS,
        Field("turn", INTEGER, "the turn in which it was stated", "p.turn"),
        Field("position", INTEGER, "the position that states it", "p.page"),
        Field("at", TIME, "when it was stated", "p.at"),
    ),
    _path(
        f"p.type IN ({int(PageType.CLAIM)}, {int(PageType.PROCEDURE)})",
        f"iif(p.type = {int(PageType.CLAIM)}, NOT {_PLANNED}, {_LEARNED})",
        types=2,
    ),
    _JOINS,
    ("p.page",),
    moment="p.page",
    brief=("session", "page", "kind", "status", "task", "text"),
    filled="`vmstore facts STORE SESSION --find` finds facts, and `session.work.atoms.add(kind, text)` states any atom",
)

# ---- artifacts

_WORD = "iif(n.granted AND c.position > n.since, NULL, n.{0})"  # an approval is of what the file held then
_OF_FILES = "active, or abandoned where a later file of its path is there"

ARTIFACTS = Relation(
    "ARTIFACTS",
    "files of sessions: what was taken in, attached, or made by a tool beside the conversation",
    fields(
        Field("page", PAGE, "the page of it", "p.page"),
        SESSION,
        USER,
        Field("path", TEXT, "where it lay in its project; null where it came from no file", "p.labels ->> '$.path'"),
        Field("mime", TEXT, "its content type", MIME),
        Field("sha256", TEXT, "the digest of the file; null where some of it was masked", "p.labels ->> '$.sha256'"),
        Field("bytes", INTEGER, "bytes of what the page holds", "coalesce(c.size, p.size)"),
        _TOKENS,
        _TASK,
        _STATUS._replace(meaning=_OF_FILES),
        Field("approval", word(Consent), "whether somebody said that a prompt may hold it", _WORD.format("granted")),
        Field("approved_by", TEXT, "who said so", _WORD.format("who")),
        Field("refused", INTEGER, "how often it was asked for and not approved", "coalesce(d.times, 0)"),
        _TAGS,
        Field("turn", INTEGER, "the turn in which it was taken in", "p.turn"),
        Field("position", INTEGER, "the position that took it in", "p.page"),
        Field("at", TIME, "when it was taken in", "p.at"),
    ),
    _path(f"p.type = {int(PageType.ARTIFACT)} AND coalesce(p.message, 0) = 0"),
    _JOINS,
    ("p.page",),
    moment="p.page",
    brief=("session", "page", "path", "bytes", "sha256", "status", "approval"),
    filled="`vmstore artifacts STORE SESSION --add FILE` takes a file in",
)
