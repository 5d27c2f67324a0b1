"""`\\tour`: ten statements, each chosen to say something about the store that is open."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from vmstore.errors import InputError
from vmstore.shell.terminal.layout import StyledText
from vmstore.shell.vmql.repl import Repl

STEPS = 10
SHOWN = 6
WORD = re.compile(r"[^\W\d_]{5,}")


class TourStatement(NamedTuple):
    """One statement of the tour, and what it is asked for."""

    why: str
    statement: str


class TourSubjects(NamedTuple):
    """What is worth asking about in a session."""

    within: str  # IN SESSION …, where there are several
    before: int  # the call before the one whose context lost most
    after: int
    gone: str  # a page that left the context between them, or else the largest
    child: str  # a page that takes another's place, or else one made from others, or the same
    word: str  # the longest of that page's beginning


def walk(desk: Repl) -> None:
    """Shows step after step; on a terminal each waits for a key."""
    subjects = sights(desk)
    for number, step in enumerate(steps(subjects), 1):
        desk.outputs.note(StyledText(f"{number}. {step.why}", "head"))
        desk.outputs.note(StyledText(f"{step.statement};", "good"))
        desk.ask(step.statement)
        if number < STEPS and not desk.outputs.go_on("── any key continues, q quits ──"):
            return


def steps(subjects: TourSubjects) -> Iterator[TourStatement]:
    """The statements, from the widest question to the narrowest."""
    within, before, after = subjects.within, subjects.before, subjects.after
    yield TourStatement("What is here?", "SESSIONS session, turns, calls, pages, tokens, title")
    yield TourStatement(
        "Which requests to the model were the largest?",
        f"CALLS call, turn, pages, tokens, status{within} ORDER BY tokens DESC LIMIT {SHOWN}",
    )
    yield TourStatement(
        f"What took most of the context at call {before}?",
        f"CONTEXT AT CALL {before}{within} ORDER BY tokens DESC LIMIT {SHOWN}",
    )
    yield TourStatement(
        f"What changed between calls {before} and {after}?",
        f"DIFF CONTEXT CALL {before} TO CALL {after}{within} ORDER BY change, before DESC LIMIT {SHOWN}",
    )
    yield TourStatement(
        "What kinds of pages are there, and where?", f"PAGES count(*), sum(tokens){within} BY type, tier"
    )
    yield TourStatement(f"What happened to {subjects.gone}?", f"HISTORY OF {subjects.gone}{within}")
    yield TourStatement(
        f"Why did the model not see {subjects.gone} at call {after}?",
        f"WHY NOT {subjects.gone} IN CONTEXT AT CALL {after}{within}",
    )
    yield TourStatement(
        f"Where does {subjects.child} come from?", f"SOURCES OF {subjects.child} DEPTH 2{within} LIMIT {2 * SHOWN}"
    )
    yield TourStatement(
        f"In which calls could the model read '{subjects.word}'?",
        f"CALLS count(*), min(call), max(call){within} WHERE CONTEXT MATCHES {quoted(subjects.word)}",
    )
    yield TourStatement(
        "How is such a question answered?",
        f"EXPLAIN ANALYZE PAGES page, tokens{within} AS OF CALL {before} WHERE tier = L0 ORDER BY tokens LIMIT 3",
    )


def sights(desk: Repl) -> TourSubjects:
    """What the tour asks about, found by asking; raises InputError where there is no call yet."""
    sessions = _rows(desk, "SESSIONS session, calls ORDER BY calls DESC")
    name = desk.settings.session or (sessions[0]["session"] if sessions else "")
    calls: list[tuple[int, int]] = []
    within = "" if len(sessions) == 1 else f" IN SESSION {quoted(name)}"
    if name:
        calls = [(row["call"], row["tokens"]) for row in _rows(desk, f"CALLS call, tokens{within} ORDER BY call")]
    if not calls:
        raise InputError(f"{name or desk.place} holds no call yet; `vmstore import {desk.place} FILE` brings some")
    drops = [(was[1] - now[1], was[0], now[0]) for was, now in pairwise(calls)]
    _, before, after = max(drops, default=(0, calls[0][0], calls[0][0]))
    left = f"DIFF CONTEXT CALL {before} TO CALL {after}{within} WHERE change = left ORDER BY before DESC LIMIT 1"
    stays = f"CONTEXT page, text AT CALL {after}{within} ORDER BY tokens DESC LIMIT 1"
    page = (_rows(desk, left) or _rows(desk, stays))[0]
    linked = [
        *_rows(desk, f"LINKS source{within} WHERE kind = supersedes ORDER BY position DESC LIMIT 1"),
        *_rows(desk, f"LINKS source{within} WHERE kind = derives ORDER BY position LIMIT 1"),
        {"source": page["page"]},
    ]
    word = max(WORD.findall(page["text"] or ""), key=len, default="the")
    return TourSubjects(within, before, after, page["page"], linked[0]["source"], word)


def _rows(desk: Repl, statement: str) -> list[dict[str, Any]]:
    return desk.store.query(statement).to_dicts()


def quoted(text: str) -> str:
    """A text as a VMQL literal."""
    return "'" + text.replace("'", "''") + "'"
