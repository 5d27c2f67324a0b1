"""Observations of sessions: tools called, what they gave and why; in steps, and found within a budget of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from vmstore.core.asof import AsOf, Head
from vmstore.errors import InputError
from vmstore.store.host import SessionHost
from vmstore.store.recall.segments import segments_at
from vmstore.views.observations import observed
from vmstore.views.reads.page_lines import page_lines
from vmstore.views.reads.resolve_asof import basis
from vmstore.views.session_end import ended_as
from vmstore.work.disclosure import DisclosureStep, SessionAnswer, SessionRecord, line, of_step, recommended, steps_of
from vmstore.work.observation import Observation, compressed

SESSIONS_MAX = 10  # that a search gives the steps of
TODO_TOOLS = ("TodoWrite", "todowrite", "todo_write", "update_plan", "write_todos")
TODO_LISTS = ("todos", "plan", "items")
TODO_TEXTS = ("content", "step", "title", "text")
OPTIMIZE = ("relevance", "coverage")


class ObservationInfo(msgspec.Struct, frozen=True):
    """An observation and its shorter form; `page` calls the tool, `result` answers, whose content is the exact bytes.

    `line` is what a list shows of it, `summary` its key facts within a share of its tokens, by `method`.
    """

    session: str
    page: str
    result: str
    turn: int
    tool: str
    outcome: str | None
    line: str
    summary: str
    key_facts: list[str]
    original_tokens: int
    compressed_tokens: int
    ratio: float
    method: str
    lossy: bool
    reconstructible: bool


class SessionHit(msgspec.Struct, frozen=True, rename="camel"):
    """A session that answers a query: how well, its steps with their costs, and what a token of each is worth."""

    session_id: str
    relevance_score: float
    steps: list[DisclosureStep]
    relevance_per_token: list[float]
    total_available_tokens: int
    recommended_step: int


class RecommendedLoad(msgspec.Struct, frozen=True, rename="camel"):
    """The steps of a session that are worth the tokens they take."""

    session_id: str
    steps: list[int]


class WorkSearch(msgspec.Struct, frozen=True, rename="camel"):
    """Sessions that answer a query, the best first, and what to load of them within the budget."""

    results: list[SessionHit]
    recommended_load: list[RecommendedLoad]
    total_tokens: int
    budget_remaining: int


def observations(session: SessionHost, when: AsOf | None = None) -> list[Observation]:
    """The observations of a session up to a moment, in the order of their answers; of what was erased none."""
    ns = session._ns
    with ns.asking():
        lane = session._lane()
        return observed(ns.log, lane, session.name, 0, basis(lane, when or Head()).position)


def info_of(of: Observation, target_ratio: float) -> ObservationInfo:
    """An observation as an answer."""
    form = compressed(of, target_ratio=target_ratio)
    outcome = None if of.failed is None else "error" if of.failed else "ok"
    return ObservationInfo(
        of.session,
        of.page,
        of.result,
        of.turn,
        of.tool,
        outcome,
        line(of),
        form.summary,
        list(form.key_facts),
        form.original_tokens,
        form.compressed_tokens,
        form.ratio,
        form.method,
        form.lossy,
        form.reconstructible,
    )


def check_share(target_ratio: float) -> None:
    """Refuses what is no share of tokens."""
    if isinstance(target_ratio, bool) or not isinstance(target_ratio, int | float) or not 0 < target_ratio <= 1:
        raise InputError(f"target_ratio {target_ratio!r:.40} is no share above 0, up to 1", code="not-a-share")


def title_of(session: SessionHost, when: AsOf | None = None) -> str:
    """How the first thing begins that a person said in a session, or in what it was forked from."""
    ns = session._ns
    with ns.asking():
        lane = session._lane()
        firsts: list[Any] = [
            page
            for stretch in reversed(lane.upto(basis(lane, when or Head()).position))
            for (page,) in lane.db.execute(_FIRST, (stretch.session, stretch.high))
        ]
        return next(iter(page_lines(lane, ns.log, firsts[:1]).values()), "")


def disclosed(
    session: SessionHost, when: AsOf | None = None, seen: Sequence[Observation] | None = None
) -> list[DisclosureStep]:
    """The steps of a session as of a moment; `seen` are its observations by then, where they are at hand."""
    seen = observations(session, when) if seen is None else seen
    ns = session._ns
    with ns.asking():
        lane = session._lane()
        position = basis(lane, when or Head()).position
        segments = [segment for segment in segments_at(lane, session.name, position) if segment.summary is not None]
        heads = page_lines(lane, ns.log, [int(segment.summary[1:]) for segment in segments if segment.summary])
        outcome = ended_as(lane, position)
    todos = [(text, done) for text, done, _ in todos_of(seen)]
    return steps_of(SessionRecord(title_of(session, when), outcome, seen, todos, list(heads.values())))


def todos_of(seen: Sequence[Observation]) -> list[tuple[str, bool, str]]:
    """The last list of todos that a tool was given: each with whether it is done, and the page of the call."""
    for one in reversed(seen):
        if one.tool not in TODO_TOOLS or not isinstance(one.arguments, dict):
            continue
        listed: list[Any] = next(
            (one.arguments[key] for key in TODO_LISTS if isinstance(one.arguments.get(key), list)), []
        )
        items = [item for item in listed if isinstance(item, dict)]
        texts = [next((str(item[key]) for key in TODO_TEXTS if item.get(key)), "") for item in items]
        done = [item.get("status") in ("completed", "done") for item in items]
        return [(text, ended, one.page) for text, ended in zip(texts, done, strict=True)]
    return []


def found(hits: Sequence[tuple[SessionHost, float]], budget: int, optimize_for: str) -> WorkSearch:
    """The steps to load of some sessions, each with how well it answers, within a budget of tokens."""
    if optimize_for not in OPTIMIZE:
        raise InputError(f"{optimize_for!r:.40} is nothing to optimise for; it is relevance or coverage")
    if type(budget) is not int or budget < 1:
        raise InputError(f"{budget!r:.40} is no token budget; give a count from 1 up")
    candidates = [SessionAnswer(session.name, score, disclosed(session)) for session, score in hits]
    load, spent = recommended(candidates, budget, coverage=optimize_for == "coverage")
    results = [
        SessionHit(
            one.session,
            round(one.relevance, 3),
            list(one.steps),
            [round(of_step(one.relevance, step.step) / max(step.token_cost, 1), 4) for step in one.steps],
            sum(step.token_cost for step in one.steps),
            max(load.get(one.session, [0])),
        )
        for one in candidates
    ]
    return WorkSearch(results, [RecommendedLoad(name, steps) for name, steps in load.items()], spent, budget - spent)


_FIRST = """SELECT p.page FROM messages m CROSS JOIN pages p ON p.session = m.session AND p.message = m.message
  AND p.page > m.message WHERE m.session = ? AND m.message <= ? AND m.human ORDER BY m.message, p.part LIMIT 1"""
