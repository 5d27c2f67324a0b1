"""What else is known of pages, calls and sessions, read from the facts one by one."""

from __future__ import annotations

import json
from typing import Any

from tests.vmql.planned import labels_of, mime_of
from tests.vmql.worked import USES, answers, texts_of, tool_pages, tools
from vmstore.core import mutation as m
from vmstore.core.page import Fidelity, LinkKind, PageType, Role, Standing
from vmstore.core.redaction import Redact, Redaction
from vmstore.core.times import iso

Row = dict[str, Any]
BARE: Row = {"tool": None, "tool_call": None, "outcome": None}


def pages(naive: Any, session: str, position: int) -> dict[int, Row]:
    """Of each page what was asked of a tool, how often it was seen and used, and how far it was derived."""
    model = naive.model
    texts, links = texts_of(naive, session, position), model.links(session, position)
    answered, calls = of_tools(naive, session, position), model.calls(session, position).values()
    seen = {call.position: {shown.page for shown in model.context(session, call.position)} for call in calls}
    facts = model.seen(session, position)
    values: dict[int, Row] = {}
    for page in model.pages(session, position):
        number = page.page
        saw = [call for call in calls if number in seen[call.position]]
        flushed = [fact.at for fact in facts if isinstance(fact.mutation, m.Flush) and fact.mutation.page == number]
        stands_for = {e.target for e in links if e.source == number and e.kind == LinkKind.REPRESENTS}
        values[number] = {
            **answered.get(number, BARE),
            "hint": _hint(naive, session, number, page.born),
            "mime": mime_of(page.born, labels_of(naive, session, number, page.born)),
            "last_flushed": iso(flushed[-1]) if flushed else None,
            "represents": [f"p{target}" for target in sorted(stands_for)],
            "last_access_turn": saw[-1].turn if saw else None,
            "access_count": len(saw),
            "uses": sum(_uses(fact.mutation, number) for fact in facts) + _made_of(links, number),
            "derivation": _depth(links, number, frozenset()),
            "text": texts[number],
        }
    return values


def of_tools(naive: Any, session: str, position: int) -> dict[int, Row]:
    """The tool of each page that calls or answers, the id of the call, and how its own words say it ended."""
    values: dict[int, Row] = {}
    for page, (tool, name, outcome) in tool_pages(naive, session, position).items():
        values[page] = {"tool": tool, "tool_call": name, "outcome": outcome}
    return values


def used_in(naive: Any, session: str, page: int, first: int, last: int) -> int:
    """How often a page was cited, quoted or reused between two positions, the last left out."""
    facts = [fact for fact in naive.model.seen(session, last - 1) if fact.position >= first]
    linked = [edge for edge in naive.model.links(session, last - 1) if edge.position >= first]
    cited = sum(edge.target == page and edge.kind == LinkKind.REFERENCES for edge in linked)
    return cited + sum(_uses(fact.mutation, page) for fact in facts)


def _uses(mutation: Any, page: int) -> bool:
    cites = isinstance(mutation, m.Cite) or (isinstance(mutation, m.Reference) and mutation.use in USES)
    return cites and bool(mutation.page == page)


def _made_of(links: Any, page: int) -> int:
    return sum(e.target == page and e.kind in (LinkKind.DERIVES, LinkKind.REFERENCES) for e in links)


def _depth(links: Any, page: int, above: frozenset[int]) -> int:
    """The steps to the farthest page it was made from; a circle is walked once."""
    steps = [e.target for e in links if e.source == page and e.kind == LinkKind.DERIVES and e.target not in above]
    return max((1 + _depth(links, to, above | {page}) for to in steps), default=0)


def _hint(naive: Any, session: str, page: int, born: Any) -> str | None:
    if born.labels is None:
        return None
    hint: str | None = json.loads(naive.model.cell(session, page, born.labels)).get("hint")
    return hint


def calls(naive: Any, session: str, position: int) -> dict[int, Row]:
    """Of each call what its last reply says it took, and what the call before was."""
    made = naive.model.calls(session, position)
    models, asked = _models(naive, session, position), _asked_tools(naive, session, position)
    values: dict[int, Row] = {}
    before: Any = None
    for number, call in made.items():
        reply = call.reply
        values[number] = {
            "model": models[number],
            "tokens_cached": None if reply is None else reply.tokens_cached,
            "tokens_written": None if reply is None else reply.tokens_written,
            "cost": None if reply is None or reply.cost is None else reply.cost / 1e9,
            "latency_ms": None if reply is None or reply.latency is None else reply.latency / 1000,
            "tools": asked.get(number, []),
            "tokens_before": None if before is None else before.pack.tokens,
            "cached_before": None if before is None or before.reply is None else before.reply.tokens_cached,
            "model_before": None if before is None else models[number - 1],
            "at_before": None if before is None else iso(before.at),
        }
        before = call
    return values


def _models(naive: Any, session: str, position: int) -> dict[int, str | None]:
    """The model that each request names, or the last one before it that named any."""
    values, model = dict[int, str | None](), None
    for fact in naive.model.seen(session, position):
        if isinstance(fact.mutation, m.Pack):
            if fact.mutation.rest is not None:
                model = json.loads(naive.model.cell(session, fact.position, fact.mutation.rest)).get("model")
            values[fact.mutation.call] = model
    return values


def _asked_tools(naive: Any, session: str, position: int) -> dict[int, list[str]]:
    values: dict[int, list[str]] = {}
    for row in tools(naive, session, position):
        if row["call"] is not None:
            values.setdefault(row["call"], []).append(row["tool"])
    return values


def costs(naive: Any, session: str, position: int) -> dict[int, float]:
    """What the calls of each turn cost, where a source says so."""
    values: dict[int, float] = {}
    for call in naive.model.calls(session, position).values():
        if call.reply is not None and call.reply.cost is not None:
            values[call.turn] = values.get(call.turn, 0.0) + call.reply.cost / 1e9
    return values


def session(naive: Any, name: str, position: int) -> Row:
    """What a session says of itself, and what its own calls came to."""
    model = naive.model
    own = [fact for fact in model.own(name) if fact.position <= position]
    status, ended_at, because = Standing.ACTIVE, None, None
    for fact in own:
        if isinstance(fact.mutation, m.Close):
            ref = fact.mutation.reason
            because = None if ref is None else model.cell(name, fact.position, ref).decode()
            status, ended_at = Standing(fact.mutation.status), fact.at
        elif isinstance(fact.mutation, m.Message) and status != Standing.ACTIVE:
            status, ended_at, because = Standing.ACTIVE, None, None
    made = model.calls(name, position)
    mine = [call for call in made.values() if naive.writer(name, call.position) == name]
    costed = [call.reply.cost for call in mine if call.reply is not None and call.reply.cost is not None]
    recorded = sum(call.pack.fidelity == Fidelity.RECORDED for call in mine)
    derived = any(call.pack.fidelity == Fidelity.DERIVED for call in made.values())
    called = [row for row in tools(naive, name, position) if row["session"] == name]
    answered = {
        page
        for page, listed in answers(naive, name, position).items()
        if any(naive.writer(name, at) == name for at in listed)
    }
    policies = [f.mutation.policy for f in model.seen(name, position) if _policy(f.mutation) is not None]
    return {
        "status": status.word,
        "fidelity": "recorded" if not derived else "partly" if recorded else "derived",
        "recorded": recorded,
        "cost": sum(costed) / 1e9 if costed else None,
        "observations": len(answered),
        "trivial": model.last(name, position)[1] <= 1 and not called,
        "redaction": Redaction(policies[-1] if policies else 0).word,
        "redactions": sum(fact.mutation.count for fact in own if isinstance(fact.mutation, Redact)),
        "opened_at": iso(own[0].at),
        "last_at": iso(max(fact.at for fact in model.seen(name, position))),
        "closed_at": None if ended_at is None else iso(ended_at),
        "closed_because": because,
        "budget": (model.settings(name, position) or {}).get("l0_tokens_max"),
    }


def _policy(mutation: Any) -> int | None:
    return mutation.policy if isinstance(mutation, Redact) else None


def sides(naive: Any, session: str, position: int) -> dict[int, Row]:
    """What a link says of the page at either of its ends."""
    answered = of_tools(naive, session, position)
    births = {page.page: page.born for page in naive.model.pages(session, position)}
    return {
        page: {"type": PageType(born.type).word, "role": Role(born.role).word, **answered.get(page, BARE)}
        for page, born in births.items()
    }
