"""A session in five steps, each said with what it costs before it is read: 20, 50, 200, 800, 2,000 tokens.

Steps are opened one after another: 0 a sentence, 1 what was counted, 2 what was to be done, 3 what came of it, 4 the
observations as they stand. How relevant a step is falls by .15 from one to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from vmstore.core.text.token_estimate import CHARACTERS_PER_TOKEN
from vmstore.work.aggregate import aggregated
from vmstore.work.observation import (
    KeyFact,
    Observation,
    action_of,
    compressed,
    facts_of,
    heaviest,
    kind_of,
    tests_in,
    tokens,
)

LIMITS = (20, 50, 200, 800, 2_000)
ACCOUNT = 3  # the step that has the shorter form of each observation
LABELS = ("Summary", "Key metrics", "Todos", "Full account", "Raw observations")
RELEVANT, DECAY = 0.7, 0.15
ANSWERS = 0.5  # of the best: what is less relevant is no answer
LEARNED = ("learning:", "lesson:")
LINE_TOKENS_MAX = 19  # of an observation in a list: 500 of them take less than 10,000


class DisclosureStep(msgspec.Struct, frozen=True, rename="camel"):
    """A step of a session: what it says, and the tokens that it takes."""

    step: int
    label: str
    content: str
    token_cost: int


class SessionRecord(NamedTuple):
    """A session as its steps are made of it: what was asked, observations, todos with whether done, summaries."""

    title: str
    outcome: str | None
    observations: Sequence[Observation]
    todos: Sequence[tuple[str, bool]] = ()
    summaries: Sequence[str] = ()


class SessionAnswer(NamedTuple):
    """A session that answers a query: how well, and its steps."""

    session: str
    relevance: float
    steps: Sequence[DisclosureStep]


def line(of: Observation) -> str:
    """An observation on a line of a list: its page, what was done to what, and that it failed."""
    mark = "✗ " if of.failed else ""
    return _within(f"{of.page} {mark}{action_of(of)}", LINE_TOKENS_MAX)


def steps_of(of: SessionRecord) -> list[DisclosureStep]:
    """The steps of a session that say anything, in order."""
    kinds = [kind_of(one) for one in of.observations]
    facts = [facts_of(one, kind) for one, kind in zip(of.observations, kinds, strict=True)]
    texts_of = (fact.text for own in facts for fact in heaviest(own))
    learned = list(dict.fromkeys(text for text in texts_of if text.startswith(LEARNED)))
    edited = {action_of(one) for kind, one in zip(kinds, of.observations, strict=True) if kind == "edit"}
    account = _account(of, kinds, facts, learned)
    made = (_summary(of), _metrics(of, kinds, len(edited), learned), _todos(of), account, _raw(of))
    texts = [_lines_within(lines, limit) for lines, limit in zip(made, LIMITS, strict=True)]
    return [
        DisclosureStep(step, LABELS[step], text, tokens(text))
        for step, text in enumerate(texts)
        if text and text not in texts[:step]
    ]


def recommended(
    candidates: Sequence[SessionAnswer], budget: int, *, coverage: bool = False
) -> tuple[dict[str, list[int]], int]:
    """The steps to load of each session within a budget, and the tokens they take together.

    For relevance the most relevant a token come first, of sessions at least half as relevant as the best; for
    coverage the first step of every session comes before them. A step is loaded after the one
    before it, and beyond the first where it is relevant enough.
    """
    chosen: dict[str, list[int]] = {}
    spent = 0
    waiting = {found.session: list(found.steps) for found in candidates}
    relevance = {found.session: found.relevance for found in candidates}
    while True:
        nexts = [(session, steps[0]) for session, steps in waiting.items() if steps]
        nexts = [one for one in nexts if coverage or relevance[one[0]] >= ANSWERS]
        worth = [one for one in nexts if one[1].step == 0 or of_step(relevance[one[0]], one[1].step) >= RELEVANT]
        fitting = [one for one in worth if spent + one[1].token_cost <= budget]
        if not fitting:
            return chosen, spent
        session, step = max(
            fitting,
            key=lambda one: (coverage and one[1].step == 0, _per_token(relevance[one[0]], one[1])),
        )
        waiting[session].pop(0)
        chosen.setdefault(session, []).append(step.step)
        spent += step.token_cost


def _per_token(relevance: float, step: DisclosureStep) -> float:
    return of_step(relevance, step.step) / max(step.token_cost, 1)


def of_step(relevance: float, step: int) -> float:
    """How relevant a step of a session is."""
    return max(0.0, relevance * (1 - DECAY * step))


def loading_summary(steps: Sequence[DisclosureStep], loaded: int, budget: int) -> str:
    """A sentence on what was loaded, and what more would cost."""
    spent = sum(step.token_cost for step in steps if step.step <= loaded)
    text = f"Loaded step {loaded} ({spent} tokens used)"
    following = next((step for step in steps if step.step > loaded), None)
    if following is None:
        return text
    if spent + following.token_cost <= budget:
        return (
            f"{text}\n\nLoad more detail?\n- Step {following.step}: {following.label} (+{following.token_cost} tokens)"
        )
    return f"{text}\n\nToken budget exhausted ({budget - spent} remaining)"


# ---- the steps


def _summary(of: SessionRecord) -> Iterator[str]:
    outcome = f"{of.outcome}: " if of.outcome else ""
    yield f"{outcome}{of.title}" if of.title else f"{outcome}{len(of.observations)} observations"


def _metrics(of: SessionRecord, kinds: Sequence[str], edited: int, learned: Sequence[str]) -> Iterator[str]:
    if edited:
        yield f"- {edited} {'file' if edited == 1 else 'files'} edited"
    if tested := next((found for one in reversed(of.observations) if (found := tests_in(one))), ""):
        yield f"- last tests: {tested}"
    if kinds:
        failed = f", {kinds.count('error')} failed" if "error" in kinds else ""
        yield f"- {len(kinds)} calls of tools{failed}"
    yield from (f"- {each}" for each in learned[:1])


def _todos(of: SessionRecord) -> Iterator[str]:
    yield from (f"- [{'x' if done else ' '}] {text}" for text, done in of.todos)
    yield from () if of.todos else (f"- {summary}" for summary in of.summaries)


def _account(
    of: SessionRecord, kinds: Sequence[str], facts: Sequence[Sequence[KeyFact]], learned: Sequence[str]
) -> Iterator[str]:
    yield from of.summaries
    yield from (f"- {each}" for each in learned)
    if LINE_TOKENS_MAX * len(of.observations) > LIMITS[ACCOUNT]:
        yield from _turns(of.observations, facts)
        return
    share = max(LINE_TOKENS_MAX, LIMITS[ACCOUNT] // max(len(of.observations), 1))
    for one, kind, own in zip(of.observations, kinds, facts, strict=True):
        yield f"- {one.page}: {compressed(one, tokens_max=share, facts=own, kind=kind).summary}"


def _turns(seen: Sequence[Observation], facts: Sequence[Sequence[KeyFact]]) -> Iterator[str]:
    """One form of the observations of each turn, where there is no room for one of each."""
    turns = [list(turn) for _, turn in groupby(zip(seen, facts, strict=True), key=lambda pair: pair[0].turn)]
    share = max(LINE_TOKENS_MAX, LIMITS[ACCOUNT] // len(turns) - 4)
    for turn in turns:
        form = aggregated([one for one, _ in turn], tokens_max=share, facts=[own for _, own in turn])
        pages = turn[0][0].page if len(turn) == 1 else f"{turn[0][0].page} to {turn[-1][0].page}"
        yield f"- {pages}: {form.summary}"


def _raw(of: SessionRecord) -> Iterator[str]:
    yield from (f"[{one.page}] {one.text}" for one in of.observations)


# ---- room


def _lines_within(lines: Iterable[str], limit: int) -> str:
    """The lines that fit, the first cut where even it does not."""
    kept: list[str] = []
    room = limit * CHARACTERS_PER_TOKEN
    for text in lines:
        if len(text) + 1 > room:
            if not kept:
                kept.append(_within(text, limit))
            break
        kept.append(text)
        room -= len(text) + 1
    return "\n".join(kept)


def _within(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    chars = limit * CHARACTERS_PER_TOKEN
    return flat if len(flat) <= chars else flat[: chars - 1].rstrip() + "…"
