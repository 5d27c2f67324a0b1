"""Formats what is told of sessions as a whole: which there are, what they cost, their compactions, search hits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from vmstore.shell.terminal.format import ESTIMATED, bar, count, dollars, moment, money, number
from vmstore.shell.terminal.layout import Block, Line, StyledText, TableColumn, TextTable, table

if TYPE_CHECKING:
    from vmstore.namespace.costs import CostShare
    from vmstore.namespace.results import CallInfo, Compaction, Hit, SessionOverview
    from vmstore.store.reads.evidence import SourceEvidence
    from vmstore.store.reads.session_diff import AlignedPages, SessionDiff


def sessions(found: Sequence[SessionOverview]) -> TextTable:
    """Sessions with their counts, and what they are about."""
    cells: dict[TableColumn, Callable[[SessionOverview], Line]] = {
        TableColumn("session", style="name"): lambda one: one.session,
        TableColumn("last (UTC)", style="dim"): lambda one: moment(one.last_at)[:16] if one.last_at else "unknown",
        TableColumn("turns", right=True): lambda one: number(one.turns),
        TableColumn("calls", right=True): lambda one: number(one.calls),
        TableColumn("tokens", right=True): lambda one: number(one.tokens),
    }
    if any(one.cost is not None or one.cost_estimated is not None for one in found):
        cells[TableColumn("cost", right=True)] = lambda one: money(one.cost, one.cost_estimated)
    if any(one.calls for one in found):
        cells[TableColumn("recorded")] = _recorded
    if any(one.parent for one in found):
        cells[TableColumn("from")] = lambda one: _origin(one)
    if any(one.outcome or one.reward is not None for one in found):
        cells[TableColumn("outcome")] = verdict
    cells[TableColumn("about")] = lambda one: " ".join((one.title or one.first_line or "").split())
    return table(found, cells)


def _recorded(one: SessionOverview) -> Line:
    """How many of its calls were recorded as they were sent."""
    if not one.calls:
        return ""
    words = {"recorded": "all", "derived": "none"}
    return StyledText(words.get(one.fidelity, f"{one.recorded} of {one.calls}"), "dim")


def _origin(one: SessionOverview) -> Line:
    if one.parent is None:
        return ""
    place = f" at {one.fork_position}" if one.fork_position else ""
    return f"{one.origin} of {one.parent}{place}"


def verdict(one: SessionOverview) -> Line:
    """How a session ended by its source's word, and the number it is rated with."""
    rated = "" if one.reward is None else f"{one.reward:g}"
    return " ".join(part for part in (one.outcome, rated) if part)


def sessions_total(found: Sequence[SessionOverview], dated: str | None) -> list[Block]:
    """How many sessions, calls and tokens there are, and what they cost."""
    calls, tokens = sum(one.calls for one in found), sum(one.tokens for one in found)
    return _total(
        f"{count(len(found), 'session')}, {count(calls, 'call')}, {count(tokens, 'token')}",
        [one.cost for one in found],
        [one.cost_estimated for one in found],
        dated,
    )


def calls_total(found: Sequence[CallInfo]) -> list[Block]:
    """How many calls there are, the tokens they took and gave by the provider's count, and what they cost."""
    taken, given = sum(one.tokens_reported or 0 for one in found), sum(one.tokens_out or 0 for one in found)
    tokens = f", {taken:,} tokens in, {given:,} out" if taken or given else ""
    costs, estimates = [one.cost for one in found], [one.cost_estimated for one in found]
    return _total(f"{count(len(found), 'call')}{tokens}", costs, estimates, None)


def _total(
    what: str, recorded: Iterable[float | None], estimated: Iterable[float | None], dated: str | None
) -> list[Block]:
    costs = [cost for cost in recorded if cost is not None]
    guesses = [cost for cost in estimated if cost is not None]
    said = money(sum(costs) if costs else None, sum(guesses) if guesses else None)
    total = StyledText(what + (f", {said}" if said else ""), "bold")
    if not guesses:
        return [total]
    return [total, StyledText(f"{ESTIMATED} estimated by prices{f' known in {dated}' if dated else ''}", "dim")]


def costs(found: Sequence[CostShare], by: str) -> TextTable:
    """What each turn, call, day or model cost, as a bar, and the sum so far."""
    both = [(one.cost or 0) + (one.cost_estimated or 0) for one in found]
    largest, sums = max(both, default=0), list(accumulate(both))
    mark = ESTIMATED if any(one.cost_estimated is not None for one in found) else ""
    scale = 1e6  # bars are of whole numbers
    rows = [
        (
            one.of,
            number(one.calls),
            number(one.tokens_in),
            number(one.tokens_cached),
            number(one.tokens_written),
            number(one.tokens_out),
            money(one.cost, one.cost_estimated),
            bar(int(cost * scale), int(largest * scale), 24),
            "" if by == "model" or not sums[-1] else mark + dollars(sofar),
        )
        for one, cost, sofar in zip(found, both, sums, strict=True)
    ]
    columns = [TableColumn(by, right=by in ("turn", "call"), style="name")]
    columns += [TableColumn(name, right=True) for name in ("calls", "tokens in", "cached", "written", "out", "cost")]
    columns += [TableColumn("", style="warn"), TableColumn("" if by == "model" else "so far", right=True, style="dim")]
    return TextTable(columns, rows)


def costs_total(found: Sequence[CostShare], dated: str | None) -> list[Block]:
    """What all of it cost, and of how many calls nothing is known."""
    calls, unpriced = sum(one.calls for one in found), sum(one.unpriced for one in found)
    what = count(calls, "call") + (f", {unpriced:,} of no known cost" if unpriced else "")
    return _total(what, [one.cost for one in found], [one.cost_estimated for one in found], dated)


def compactions(found: Sequence[Compaction]) -> TextTable:
    """Compactions in order: what left, and what stands in its place."""
    cells: dict[TableColumn, Callable[[Compaction], Line]] = {
        TableColumn("call", right=True): lambda made: number(made.call),
        TableColumn("turn", right=True): lambda made: number(made.turn),
        TableColumn("pages left", right=True): lambda made: number(made.pages),
        TableColumn("tokens", right=True): lambda made: number(made.tokens),
        TableColumn("back", right=True): lambda made: number(len(made.returned)),
        TableColumn("replaced by", style="name"): lambda made: made.summary,
        TableColumn("its tokens", right=True): lambda made: number(made.summary_tokens),
        TableColumn("begins", style="dim"): lambda made: made.text,
    }
    return table(found, cells)


def hits(found: Sequence[Hit]) -> TextTable:
    """Pages that answer a search, each with the line that does and the found words marked."""
    cells: dict[TableColumn, Callable[[Hit], Line]] = {
        TableColumn("session", style="name"): lambda hit: hit.session,
        TableColumn("page", style="name"): lambda hit: hit.page,
        TableColumn("text"): _marked,
    }
    return table(found, cells)


def _marked(hit: Hit) -> Line:
    pieces: list[Line] = []
    at = 0
    for begin, end in hit.marks:
        pieces += [hit.text[at:begin], StyledText(hit.text[begin:end], "bold")]
        at = end
    return (*pieces, hit.text[at:])


SIGNS = {"same": (" ", "dim"), "differs": ("~", "warn"), "left": ("-", "bad"), "entered": ("+", "good")}


def compared(found: SessionDiff, *, whole: bool) -> list[Block]:
    """Two sessions: how each went, how far they are the same, and what is different from there on."""
    rows = [line for line in found.lines if whole or line.change != "same"]
    begun = found.same_messages
    if not rows:
        said = "the same in every message"
    elif begun:
        said = f"the same up to message {begun:,}, then:"
    else:
        said = "different from the first message on:"
    blocks: list[Block] = [_sides(found), "", StyledText(said, "bold")]
    return [*blocks, _lines(rows)] if rows else blocks


def _sides(found: SessionDiff) -> TextTable:
    """Counts, cost and outcome of both, side by side."""
    cells: dict[TableColumn, Callable[[tuple[str, SessionOverview]], Line]] = {
        TableColumn(""): lambda one: StyledText(*SIGNS[one[0]]),
        TableColumn("session", style="name"): lambda one: one[1].session,
        TableColumn("turns", right=True): lambda one: number(one[1].turns),
        TableColumn("calls", right=True): lambda one: number(one[1].calls),
        TableColumn("tokens", right=True): lambda one: number(one[1].tokens),
        TableColumn("cost", right=True): lambda one: money(one[1].cost, one[1].cost_estimated),
        TableColumn("status"): lambda one: one[1].status,
    }
    both = (("left", found.before), ("entered", found.after))
    if any(one.outcome or one.reward is not None for _, one in both):
        cells[TableColumn("outcome")] = lambda one: verdict(one[1])
    return table(both, cells)


def _lines(found: Sequence[AlignedPages]) -> TextTable:
    """Each page in its own line, the second session's under the first's where they say different things."""
    rows: list[Sequence[Line]] = []
    for line in found:
        if line.before is not None:
            sign, style = SIGNS["same" if line.change == "same" else "left"]
            text: Line = StyledText(line.text_before, "dim" if line.change == "same" else "")
            rows.append(
                (StyledText(sign, style), StyledText(line.before, style), line.role, number(line.tokens_before), text)
            )
        if line.after is not None and line.change != "same":
            sign, style = SIGNS["entered"]
            rows.append(
                (
                    StyledText(sign, style),
                    StyledText(line.after, style),
                    line.role,
                    number(line.tokens_after),
                    line.text_after,
                )
            )
    columns = (
        TableColumn(""),
        TableColumn("page"),
        TableColumn("role"),
        TableColumn("tokens", right=True),
        TableColumn("text"),
    )
    return TextTable(columns, rows)


def evidence(found: Sequence[SourceEvidence]) -> list[Block]:
    """What an answer may have come from, which nobody logged."""
    cells: dict[TableColumn, Callable[[SourceEvidence], Line]] = {
        TableColumn("", right=True, style="dim"): lambda one: number(one.rank),
        TableColumn("page", style="name"): lambda one: one.page,
        TableColumn("role"): lambda one: one.role,
        TableColumn("", style="good"): lambda one: f"new to call {one.call}" if one.new else "",
        TableColumn("begins"): lambda one: one.text,
    }
    head = StyledText("no link was logged; it may have come from (evidence, the most likely first):", "warn")
    shared = [(StyledText(f"{one.page} shares: ", "dim"), ", ".join(one.shared)) for one in found if one.shared]
    return [head, table(found, cells), *shared]
