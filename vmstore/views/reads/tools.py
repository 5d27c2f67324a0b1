"""Tools of pages: those of a lane that call a tool or answer for one, and calls with their answers, in order."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator
from typing import Any, NamedTuple

from vmstore.core.address import page_position
from vmstore.core.erasure import ErasedContent, gone
from vmstore.core.text.json_text import loads
from vmstore.core.text.tool_call import call_in
from vmstore.core.text.tool_outcome import ToolOutcome
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.projectors.pages import object_of
from vmstore.views.stored_cells import read_cells

ANSWER_BYTES_MAX = 64 << 10  # of an answer, read for its reason and to compare it


class PageTool(NamedTuple):
    """The tool of a page, the provider's id of the call, and the number of its outcome where it is an answer."""

    tool: str | None
    name: str | None
    outcome: int | None


NO_TOOL = PageTool(None, None, None)


def tools_at(lane: Branch, position: int) -> dict[int, PageTool]:
    """The pages up to a position that call a tool or answer for one."""
    return {
        page: PageTool(*row)
        for stretch in lane.upto(position)
        for page, *row in lane.db.execute(_TOOLS, (stretch.session, stretch.low, stretch.high))
    }


_TOOLS = "SELECT page, tool, name, outcome FROM tools WHERE session = ? AND page > ? AND page <= ?"
assert _TOOLS.partition(" FROM ")[0].count(",") == len(PageTool._fields), (
    "a row becomes a tuple by place, after its page"
)


class AnsweredCall(NamedTuple):
    """A call and its answer: the call's page and turn, its tool and arguments, the answer's page, text and tokens.

    `failed` is None where no rule says how it ended; `read` are the names of the pages that the tool read; `at_us` is
    when it was called.
    """

    call: int
    turn: int
    tool: str
    arguments: Any
    result: int
    failed: bool | None
    answer: str
    tokens: int
    read: tuple[str, ...]
    at_us: int


class _Answer(NamedTuple):
    call: int
    page: int
    tool: str | None
    outcome: int | None
    tokens: int
    turn: int
    cell: int | None
    commitment: bytes | None


class _Call(NamedTuple):
    tool: str | None
    arguments: str | None
    outcome: int | None
    turn: int
    at_us: int
    cell: int | None
    commitment: bytes | None


def failed_calls(lane: Branch, log: Log, position: int, limit: int) -> list[AnsweredCall]:
    """The last calls up to a position that failed, so many at most; of what was erased nothing."""
    calls: set[int] = set()
    for stretch in lane.upto(position):
        bounds = {"session": stretch.session, "low": stretch.low, "high": stretch.high, "limit": limit}
        calls |= {call for (call,) in lane.db.execute(_FAILED, bounds)}
    chosen = frozenset(sorted(calls)[-limit:])
    return [call for call in answered_calls(lane, log, 0, position, chosen) if call.failed] if chosen else []


def answered_calls(
    lane: Branch, log: Log, after: int, position: int, only: Container[int] | None = None
) -> list[AnsweredCall]:
    """The calls whose first answer came after a position, up to another; of what was erased nothing.

    `only` are the calls that are looked at, where not all are.
    """
    answers: dict[int, _Answer] = {}
    failed: set[int] = set()
    for row in _rows(lane, after, position):
        if only is not None and row.call not in only:
            continue
        first = answers.setdefault(row.call, row)
        answers[row.call] = first._replace(tokens=first.tokens + (row.tokens if first is not row else 0))
        if row.outcome == ToolOutcome.ERROR:
            failed.add(row.call)
    calls = {call: found for call in answers if (found := _call(lane, call)) is not None}
    cells = {answer.cell: answer.commitment for answer in answers.values() if answer.cell is not None}
    cells |= {call.cell: call.commitment for call in calls.values() if call.cell is not None}
    contents = read_cells(log, lane.db, cells, gone) if cells else {}
    runs = _runs(lane, answers, position)
    listed: list[AnsweredCall] = []
    for number, answer in answers.items():
        call = calls.get(number)
        text = contents.get(answer.cell or 0, b"")
        asked = b"" if call is None else contents.get(call.cell or 0, b"")
        if call is None or isinstance(text, ErasedContent) or isinstance(asked, ErasedContent):
            continue
        outcome, read = runs.get(number, (None, ()))
        said = next((one for one in (outcome, call.outcome, answer.outcome) if one is not None), None)
        ended = True if number in failed and outcome is None else None if said is None else said == ToolOutcome.ERROR
        arguments = call.arguments if call.arguments is not None else _asked(asked)
        given = text[:ANSWER_BYTES_MAX].decode("utf-8", "replace")
        tool = call.tool or answer.tool or ""
        listed.append(
            AnsweredCall(
                number, call.turn, tool, _value(arguments), answer.page, ended, given, answer.tokens, read, call.at_us
            )
        )
    return listed


def _rows(lane: Branch, after: int, position: int) -> Iterator[_Answer]:
    for stretch in reversed(lane.upto(position)):
        low = max(stretch.low, after)
        for row in lane.db.execute(_ANSWERS, (stretch.session, low, stretch.high)):
            yield _Answer(*row)


def _call(lane: Branch, page: int) -> _Call | None:
    row: Any = lane.db.execute(_CALL, (lane.owner(page), page)).fetchone()
    return None if row is None else _Call(*row)


def _runs(lane: Branch, calls: Iterable[int], position: int) -> dict[int, tuple[int, tuple[str, ...]]]:
    """How tools ran by who ran them, and the names of the pages they read; the last of each call."""
    runs: dict[int, tuple[int, tuple[str, ...]]] = {}
    asked = str(list(calls))
    for stretch in reversed(lane.upto(position)):
        for call, outcome, read in lane.db.execute(_RUNS, (stretch.session, asked, stretch.low, stretch.high)):
            runs[call] = outcome, tuple(name_of(lane, page) for page in json.loads(read))
    return runs


def name_of(lane: Branch, page: str) -> str:
    """The name that somebody gave a page, else its number."""
    number = page_position(page) or 0
    labels: Any = lane.db.execute(_LABELS, (lane.owner(number), number)).get
    hint = object_of(labels).get("hint") if labels else None
    return hint if isinstance(hint, str) and hint else page


def _asked(content: bytes) -> str | None:
    try:
        found = call_in(loads(content), known=True)
    except ValueError:
        return None
    return None if found is None else found.arguments


def _value(arguments: str | None) -> Any:
    try:
        return None if arguments is None else loads(arguments)
    except ValueError:
        return arguments


_ANSWERS = """SELECT t.call, t.page, t.tool, t.outcome, t.tokens, p.turn, p.cell, p.commitment FROM tools t
 CROSS JOIN pages p ON p.session = t.session AND p.page = t.page
 WHERE t.session = ? AND t.page > ? AND t.page <= ? AND t.call AND t.call <> t.page ORDER BY t.page"""
_CALL = """SELECT t.tool, t.arguments, t.outcome, p.turn, p.at, p.cell, p.commitment FROM tools t
 CROSS JOIN pages p ON p.session = t.session AND p.page = t.page WHERE t.session = ? AND t.page = ?"""
_FAILED = f"""SELECT call FROM tools WHERE session = :session AND page > :low AND page <= :high AND call
  AND outcome = {int(ToolOutcome.ERROR)} UNION SELECT call FROM runs WHERE session = :session AND position > :low
  AND position <= :high AND outcome = {int(ToolOutcome.ERROR)} ORDER BY call DESC LIMIT :limit"""
_RUNS = """SELECT call, outcome, read FROM runs WHERE session = ? AND call IN (SELECT value FROM json_each(?))
 AND position > ? AND position <= ? ORDER BY position"""
_LABELS = "SELECT labels FROM pages WHERE session = ? AND page = ?"
assert _ANSWERS.partition(" FROM ")[0].count(",") == len(_Answer._fields) - 1, "a row becomes a tuple by place"
assert _CALL.partition(" FROM ")[0].count(",") == len(_Call._fields) - 1, "a row becomes a tuple by place"
