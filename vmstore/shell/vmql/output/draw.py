"""Drawings of answers that are more than a table: a context with its token bars, a diff, a timeline, a tree."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from vmstore.core.asof import Position
from vmstore.namespace.results import Change, Event, PageLink
from vmstore.shell.terminal import format_page, format_session
from vmstore.shell.terminal.format import bar, count, number
from vmstore.shell.terminal.layout import Block, Line, StyledText, TableColumn, TextTable, one_line_each
from vmstore.shell.terminal.render import Screen
from vmstore.shell.terminal.transcript import transcript
from vmstore.shell.vmql.output.formats import QueryOutput, text_of
from vmstore.store.store import Store

Rows = list[dict[str, Any]]

WHY_COLUMNS = 54  # what stands before a reason
REASON_MIN = 24
WHY_SIGNS = {
    "in": ("✓", "good"),
    "stays": ("✓", "good"),
    "out": ("✗", "bad"),
}


class Look(NamedTuple):
    """What a drawing may look at beside the rows: the store, what was asked, what the answer is based on."""

    store: Store
    statement: Any
    basis: dict[str, Any]
    width: int | None  # of the terminal


class Drawing(NamedTuple):
    """A way to draw answers of one kind: the columns it takes, whether it shows rows in full, how it is made."""

    needs: frozenset[str]
    make: Callable[[Rows, Look], list[Block]]


def drawn(kind: str, answer: QueryOutput, screen: Screen, look: Look) -> bool:
    """Draws an answer where its kind has a drawing and its columns are all there; whether it did."""
    drawing = DRAWINGS.get(kind)
    if drawing is None or not drawing.needs <= set(answer.names):
        return False
    rows = [dict(zip(answer.names, row, strict=True)) for row in itertools.chain.from_iterable(answer.chunks)]
    screen.show(*drawing.make(rows, look))
    return True


# ---- contexts


def _context(rows: Rows, look: Look) -> list[Block]:
    session = look.store.session(look.basis["session"])
    context = session.context(position=look.basis["position"])
    head = format_session.context_head(context)
    if len(rows) < len(context.page_ids):
        head[-1:] = [StyledText(f"{count(len(rows), 'page')} of them shown", "dim"), ""]
    return [*head, format_session.context_table(context, [row["order"] - 1 for row in rows])]


def _diff(rows: Rows, look: Look) -> list[Block]:
    before, after = look.basis["before"], look.basis["after"]
    same = before["session"] == after["session"]
    named = [f"call {end['call']} (turn {end['turn']})" for end in (before, after)]
    other = "" if same else f"{after['session']} "
    head: list[Block] = [
        (StyledText(before["session"], "head"), StyledText(f" {named[0]} → {other}{named[1]}", "bold"))
    ]
    shown = [_change(row) for row in rows]
    changes = shown
    if same:  # what a condition or a limit leaves out counts too
        session = look.store.session(before["session"])
        difference = session.diff(Position(before["position"]), Position(after["position"]))
        changes = difference.changes
        head.append(f"{number(difference.tokens_before)} → {number(difference.tokens_after)} tokens")
    head += format_session.moved(changes)
    if not changes:
        return [*head, StyledText("nothing differs", "dim")]
    if len(shown) < len(changes):
        head.append(StyledText(f"{number(len(shown))} of {count(len(changes), 'change')} shown", "dim"))
    return [*head, "", format_session.diff_table(shown)]


def _change(row: dict[str, Any]) -> Change:
    same = {name: row[name] for name in Change.__struct_fields__ if name in row}
    return Change(**same, tokens_before=row["before"] or 0, tokens_after=row["after"] or 0)


# ---- pages


def _history(rows: Rows, look: Look) -> list[Block]:
    fields = Event.__struct_fields__
    return [format_page.history([Event(**{name: row[name] for name in fields}) for row in rows])]


def _lineage(rows: Rows, look: Look) -> list[Block]:
    fields = PageLink.__struct_fields__
    relations = [PageLink(**{name: row[name] for name in fields}) for row in rows]
    up = look.statement.up
    root = next((relation.source if up else relation.target for relation in relations if relation.depth == 1), "")
    session = look.basis.get("session")
    pages = [] if session is None else look.store.session(session).pages()
    hints = {page.page: page.hint for page in pages if page.hint}
    head: list[Block] = [(StyledText(root, "head"), StyledText(f" {hints.get(root, '')}", "bold"))] if root else []
    return [*head, one_line_each(format_page.tree(root, relations, hints, up=up))]


def _why(rows: Rows, look: Look) -> list[Block]:
    columns = [TableColumn(title, right=True, style="dim") for title in ("turn", "call", "position")]
    columns += [TableColumn(""), TableColumn("event"), TableColumn("page", style="name"), TableColumn("reason")]
    table: list[Sequence[Line]] = []
    for row in rows:
        sign, style, words = format_page.EVENTS.get(row["event"], ("·", "", row["event"]))
        sign, style = WHY_SIGNS.get(row["event"], (sign, style))
        moment = (text_of(row["turn"]), text_of(row["call"]), text_of(row["position"]))
        first, *rest = _wrapped(text_of(row["reason"]), look.width) or [""]
        table.append((*moment, StyledText(sign, style), StyledText(words, style), text_of(row["page"]), first))
        table += [("", "", "", "", "", "", line) for line in rest]
    return [TextTable(columns, table)]


def _wrapped(reason: str, width: int | None) -> list[str]:
    """A reason in lines that the terminal has room for beside its columns: it is what was asked for."""
    return [reason] if width is None else textwrap.wrap(reason, max(width - WHY_COLUMNS, REASON_MIN))


def _verdict(rows: Rows, look: Look) -> list[Block]:
    if rows:
        columns = (TableColumn("kind", style="bad"), TableColumn("where", style="bad"), TableColumn("what"))
        return [TextTable(columns, [(row["kind"], row["where"], row["what"]) for row in rows])]
    counts = ", ".join(count(look.basis[noun], noun[:-1]) for noun in ("commits", "mutations"))
    return [(StyledText("ok", "good"), f": {counts}; every hash, every rule and every view holds")]


# ---- plans and texts


def _plan(rows: Rows, look: Look) -> list[Block]:
    slowest = max((row["ms"] or 0 for row in rows), default=0)
    columns = [TableColumn("step"), TableColumn("expected", right=True, style="dim"), TableColumn("rows", right=True)]
    columns += [TableColumn("ms", right=True), TableColumn("", style="warn"), TableColumn("detail", style="dim")]
    table: list[Sequence[Line]] = []
    for index, row in enumerate(rows):
        ms = "" if row["ms"] is None else f"{row['ms']:.2f}"
        share = bar(round(1000 * (row["ms"] or 0)), round(1000 * slowest))
        step = (StyledText(_branch(rows, index), "dim"), StyledText(row["step"], "bold"))
        table.append((step, number(row["estimated"]), number(row["rows"]), ms, share, text_of(row["detail"])))
    if not slowest:
        columns = [column for column in columns if column.title in ("step", "expected", "detail")]
        table = [(row[0], row[1], row[5]) for row in table]
    return [TextTable(columns, table)]


def _branch(rows: Rows, index: int) -> str:
    """The lines of the tree before a step, which stands below the last one less deep."""
    depth = rows[index]["depth"]
    top = min(row["depth"] for row in rows)
    drawn = ""
    for level in range(top + 1, depth + 1):
        rest = itertools.takewhile(lambda row: row["depth"] >= level, rows[index + 1 :])  # noqa: B023  used at once
        goes_on = any(row["depth"] == level for row in rest)
        drawn += ("├─ " if goes_on else "└─ ") if level == depth else ("│  " if goes_on else "   ")
    return drawn


def _text(rows: Rows, look: Look) -> list[Block]:
    return [line.rstrip("\r") for row in rows for line in str(row["text"]).split("\n")]


def _messages(rows: Rows, look: Look) -> list[Block]:
    return list(transcript([row["message"] for row in rows]))


DRAWINGS = {
    "context": Drawing(frozenset({"order", "page", "role", "type", "level", "tokens", "since_call"}), _context),
    "diff": Drawing(
        frozenset(
            {"page", "change", "before", "after", "message", "role", "type", "level_before", "level_after", "text"}
        ),
        _diff,
    ),
    "history": Drawing(frozenset(Event.__struct_fields__), _history),
    "lineage": Drawing(frozenset(PageLink.__struct_fields__), _lineage),
    "why": Drawing(frozenset({"position", "turn", "call", "event", "page", "reason"}), _why),
    "verdict": Drawing(frozenset({"kind", "where", "what"}), _verdict),
    "explain": Drawing(frozenset({"depth", "step", "detail", "estimated", "rows", "ms"}), _plan),
    "text": Drawing(frozenset({"text"}), _text),
    "messages": Drawing(frozenset({"order", "role", "message"}), _messages),
}
