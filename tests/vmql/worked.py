"""TOOLS, GUARDS, SKILLS and RECALLS as the facts say them, read one by one."""

from __future__ import annotations

import json
from typing import Any

from tests.vmql.said import notes
from vmstore.core import mutation as m
from vmstore.core.decision import Recaller, Use
from vmstore.core.page import Level, LinkKind, Modality, PageType, Role, Standing
from vmstore.core.text.tool_outcome import OutcomeRule, ToolOutcome
from vmstore.core.times import iso
from vmstore.core.work.trace import GuardType

Row = dict[str, Any]
ANSWERERS = (Role.TOOL, Role.USER, Role.OTHER)
USES = (Use.FAULT, Use.TOOL, Use.QUOTE, Use.REUSE)


def tools(naive: Any, session: str, position: int) -> list[Row]:
    """Each call of a tool with its answers: those that name it, and of those without a name the first to come."""
    model = naive.model
    seen = {fact.position: (fact, turn) for fact, turn, _ in model.moments(session, position)}
    runs = {fact.mutation.call: fact for fact, _ in seen.values() if isinstance(fact.mutation, m.ToolRun)}
    answered = answers(naive, session, position)
    messages, shown = model.messages(session, position), _first_shown(model, session, position)
    rows: list[Row] = []
    for page, (tool, arguments, name) in _calls(naive, session, position).items():
        fact, turn = seen[page]
        run = runs[page].mutation if page in runs else None
        listed = answered.get(page, [])
        judged = [judge for at in listed if (judge := _judged(_content(naive, session, seen[at][0]))) is not None]
        outcome, rule = max(judged, default=(None, None), key=lambda judge: (judge[0], judge[1]))
        if run is not None:
            outcome, rule = ToolOutcome(run.outcome), OutcomeRule.HOST
        answered_at = min((seen[at][0].at for at in listed), default=None)
        took = None if answered_at is None or answered_at <= fact.at else answered_at - fact.at
        ended = "failed" if outcome == ToolOutcome.ERROR else "ok" if listed or outcome is not None else "open"
        rows.append(
            {
                "session": naive.writer(session, page),
                "turn": turn,
                "call": messages[fact.mutation.message].message.reply_to,
                "tool": tool,
                "status": ended,
                "tokens": sum(seen[at][0].mutation.tokens for at in listed) if listed else None,
                "duration_ms": run.duration / 1000 if run is not None else None if took is None else took / 1000,
                "path": None if arguments is None else arguments.get("path"),
                "page": f"p{page}",
                "result": f"p{listed[0]}" if listed else None,
                "results": len(listed),
                "message": f"m{fact.mutation.message}",
                "seen_call": shown.get(listed[0]) if listed else None,
                "outcome": None if outcome is None else outcome.word,
                "outcome_by": None if rule is None else rule.word,
                "error": told_in(naive, session, runs[page], run.error) if run is not None else None,
                "reasoning": f"p{run.reasoning}" if run is not None and run.reasoning else None,
                "tags": json.loads(told_in(naive, session, runs[page], run.tags) or "[]") if run is not None else [],
                "pages_read": [] if run is None else [f"p{each}" for each in run.read],
                "pages_created": [] if run is None else [f"p{each}" for each in run.created],
                "pages_modified": [] if run is None else [f"p{each}" for each in run.modified],
                "tool_call": name,
                "after_tool": rows[-1]["tool"] if rows else None,
                "after_outcome": rows[-1]["outcome"] if rows else None,
                "position": page,
                "at": iso(fact.at),
                "answered_at": None if answered_at is None else iso(answered_at),
            }
        )
    return rows


def _calls(naive: Any, session: str, position: int) -> dict[int, tuple[str | None, dict[str, Any] | None, str | None]]:
    """The pages that ask for a tool: which, with what, and the id that answers name."""
    rows: dict[int, tuple[str | None, dict[str, Any] | None, str | None]] = {}
    for fact in naive.model.seen(session, position):
        mutation = fact.mutation
        if isinstance(mutation, m.Create) and (mutation.role, mutation.modality) == (
            Role.ASSISTANT,
            Modality.STRUCTURED,
        ):
            asks, value = _label(naive, session, fact, "asks"), _object(_content(naive, session, fact))
            if mutation.message and (asks is not None or value):
                rows[fact.position] = (value.get("name"), value.get("arguments"), asks)
    return rows


def answers(naive: Any, session: str, position: int) -> dict[int, list[int]]:
    """The pages that answer each call, in order."""
    calls, rows = _calls(naive, session, position), dict[int, list[int]]()
    waiting: list[int] = []
    asked = 0
    for fact in naive.model.seen(session, position):
        mutation = fact.mutation
        if not isinstance(mutation, m.Create) or not mutation.message:
            continue
        if fact.position in calls:
            if mutation.message != asked:
                asked, waiting = mutation.message, []
            waiting += [fact.position] * (calls[fact.position][2] is None)
        elif mutation.type == PageType.ARTIFACT and mutation.role in ANSWERERS:
            linked = next((to for kind, to in mutation.links if kind == LinkKind.CAUSED_BY), None)
            named = _label(naive, session, fact, "answers")
            if linked is None and named is None and mutation.role != Role.USER and waiting:
                linked = waiting[0]
            if linked is not None:
                waiting = [page for page in waiting if page != linked]
                rows.setdefault(linked, []).append(fact.position)
    return rows


def tool_pages(naive: Any, session: str, position: int) -> dict[int, tuple[str | None, str | None, str | None]]:
    """The pages that call a tool or answer a call: the tool, the id, and how the page itself says that it ended."""
    calls = _calls(naive, session, position)
    rows = {page: (tool, name, None) for page, (tool, _, name) in calls.items()}
    of = {at: page for page, listed in answers(naive, session, position).items() for at in listed}
    for fact in naive.model.seen(session, position):
        mutation = fact.mutation
        if (
            isinstance(mutation, m.Create)
            and mutation.message
            and mutation.type == PageType.ARTIFACT
            and mutation.role in ANSWERERS
        ):
            name = _label(naive, session, fact, "answers")
            if mutation.role != Role.USER or fact.position in of or name is not None:
                judged = _judged(_content(naive, session, fact))
                tool = calls[of[fact.position]][0] if of.get(fact.position) in calls else None
                rows[fact.position] = (tool, name, None if judged is None else judged[0].word)
    return rows


def _judged(content: bytes | None) -> tuple[ToolOutcome, OutcomeRule] | None:
    """How an answer ended by its own words."""
    if (content or b"").startswith(b"Error:"):
        return ToolOutcome.ERROR, OutcomeRule.ERROR_TEXT
    return (ToolOutcome.ERROR, OutcomeRule.ERROR_FIELD) if _object(content).get("error") else None


def _first_shown(model: Any, session: str, position: int) -> dict[int, int]:
    """The first call that saw each page."""
    rows: dict[int, int] = {}
    for number, call in model.calls(session, position).items():
        for shown in model.context(session, call.position):
            rows.setdefault(shown.page, number)
    return rows


def guards(naive: Any, session: str, position: int) -> list[Row]:
    """Each time a guard spoke up."""
    texts = texts_of(naive, session, position)
    return [
        {
            "session": fact.session,
            "turn": turn,
            "type": GuardType(mutation.type).word,
            "tool": told_in(naive, session, fact, mutation.tool),
            "count": mutation.count,
            "page": f"p{mutation.calls[-1]}" if mutation.calls else None,
            "calls": [f"p{page}" for page in mutation.calls],
            "warning": f"p{mutation.warning}" if mutation.warning else None,
            "text": texts.get(mutation.warning),
            "position": fact.position,
            "at": iso(fact.at),
        }
        for fact, turn, _ in naive.model.moments(session, position)
        if isinstance(mutation := fact.mutation, m.GuardTrip)
    ]


def skills(naive: Any, session: str, position: int) -> list[Row]:
    """Each page that describes a skill, as it was weighed last."""
    weighed = {
        f.mutation.page: (f, t) for f, t, _ in naive.model.moments(session, position) if type(f.mutation) is m.Promote
    }
    noted = notes(naive.model, session, position)
    return [
        {
            "page": f"p{page}",
            "session": fact.session,
            "skill": told_in(naive, session, fact, fact.mutation.skill),
            "success_rate": fact.mutation.count / fact.mutation.tries,
            "successes": fact.mutation.count,
            "tries": fact.mutation.tries,
            "status": Standing(noted[page].get("status") or 0).word,
            "calls": [f"p{call}" for call in fact.mutation.calls],
            "turn": turn,
            "position": fact.position,
            "at": iso(fact.at),
        }
        for page, (fact, turn) in sorted(weighed.items(), key=lambda item: item[1][0].position)
    ]


def recalls(naive: Any, session: str, position: int) -> list[Row]:
    """Each page that a recall gave, and whether this turn or the next used it."""
    model, rows = naive.model, list[Row]()
    moments = list(model.moments(session, position))
    calls = model.calls(session, position)
    here = {number: {s.page: s.since for s in model.context(session, call.position)} for number, call in calls.items()}
    for fact, turn, call in moments:
        mutation = fact.mutation
        if not isinstance(mutation, m.Search):
            continue
        used: dict[int, int] = {}
        for later, when, _ in moments:
            use = later.mutation
            uses = isinstance(use, m.Cite) or (isinstance(use, m.Reference) and use.use in USES)
            if uses and later.position > fact.position and when < turn + 2:
                used.setdefault(use.page, later.position)
        came = {
            page
            for number, shown in here.items()
            for page, since in shown.items()
            if since == calls[number].position > fact.position and calls[number].turn == turn
        }
        versions = model.versions(session, fact.position)
        for rank, page in list(enumerate(mutation.found, 1)) or [(None, None)]:
            full = None if page is None else [c.told.tokens for c in versions[page] if c.level == Level.FULL][-1]
            rows.append(
                {
                    "position": fact.position,
                    "session": fact.session,
                    "turn": turn,
                    "call": call,
                    "recaller": Recaller(mutation.recaller).word,
                    "query": told_in(naive, session, fact, mutation.query),
                    "page": None if page is None else f"p{page}",
                    "rank": rank,
                    "tokens": full,
                    "used": page in used,
                    "used_at": used.get(page),
                    "given": mutation.tokens,
                    "total": mutation.total,
                    "entered": page in came,
                }
            )
    return rows


# ---- what the facts hold


def _content(naive: Any, session: str, fact: Any) -> bytes | None:
    ref = fact.mutation.content
    return None if ref is None else naive.model.cell(session, fact.position, ref)


def texts_of(naive: Any, session: str, position: int) -> dict[int, str | None]:
    """The text of each page, by its last version."""
    rows: dict[int, str | None] = {}
    for page, contents in naive.model.versions(session, position).items():
        last = [content for content in contents if content.level == Level.FULL][-1]
        cell = last.told.content
        rows[page] = None if cell is None else naive.model.cell(session, last.position, cell).decode()
    return rows


def _label(naive: Any, session: str, fact: Any, name: str) -> str | None:
    ref = fact.mutation.labels
    return None if ref is None else json.loads(naive.model.cell(session, fact.position, ref)).get(name)


def _object(content: bytes | None) -> dict[str, Any]:
    """The JSON object that a content is, empty where it is none."""
    return json.loads(content) if content is not None and content.startswith(b"{") else {}


def told_in(naive: Any, session: str, fact: Any, ref: Any) -> str | None:
    return None if ref is None else naive.model.cell(session, fact.position, ref).decode()
