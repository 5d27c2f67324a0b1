"""Formats answers about stores, sessions and contexts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from vmstore.shell.terminal.format import bar, change, count, level, listing, moment, money, number, seconds, size
from vmstore.shell.terminal.layout import Block, Line, StyledText, TableColumn, TextTable, table

if TYPE_CHECKING:
    from vmstore.namespace.reports import ImportedSession, Info
    from vmstore.namespace.results import CallInfo, Change, Diff, Entry, Response, TurnInfo
    from vmstore.store.reads.context import Context
    from vmstore.views.reads.context import ShownPage

FIDELITY = {
    "recorded": "recorded: the request exactly as it was sent",
    "derived": "derived: this file doesn't contain the raw request, so the context was rebuilt from the transcript",
}
STATUS = {"ok": "good", "failed": "bad", "aborted": "warn", "gap": "warn"}
SIGNS = {
    "entered": ("+", "good"),
    "left": ("-", "bad"),
    "compressed": ("~", "warn"),
    "changed": ("~", "warn"),
    "moved": ("~", "dim"),
}
DETAIL_CHARS = 90


def info(store_info: Info) -> list[Block]:
    """Formats the counts and sizes of a store."""
    behind = sorted(set(store_info.positions.values()))
    total = store_info.bytes_log + store_info.bytes_views + store_info.bytes_blobs
    rows: list[tuple[Line, Line]] = [
        ("sessions", number(store_info.sessions)),
        ("commits", number(store_info.commits)),
        ("mutations", number(store_info.mutations)),
        ("pages", number(store_info.pages)),
        ("log", size(store_info.bytes_log)),
        ("views", size(store_info.bytes_views)),
        ("blobs", size(store_info.bytes_blobs)),
        ("in all", size(total)),
    ]
    followed = f"at commit {listing([number(n) for n in behind])} of the log: {', '.join(sorted(store_info.positions))}"
    return [
        TextTable((TableColumn("", style="dim"), TableColumn("", right=True)), rows),
        ("views ", StyledText(followed, "dim")),
    ]


def _fidelity_word(word: str) -> Line:
    return StyledText(word, "warn" if word == "derived" else "")


def turns(infos: Sequence[TurnInfo]) -> TextTable:
    """Turns in order."""
    columns = (
        TableColumn("turn", right=True),
        TableColumn("calls", right=True),
        TableColumn("position", right=True),
        TableColumn("at (UTC)"),
    )
    rows = [
        (number(turn.turn), number(turn.calls), str(turn.position), StyledText(moment(turn.at), "dim"))
        for turn in infos
    ]
    return TextTable(columns, rows)


def calls(infos: Sequence[CallInfo]) -> TextTable:
    """Calls in order, with what they cost and how they ended."""
    cells: dict[TableColumn, Callable[[CallInfo], Line]] = {
        TableColumn("call", right=True): lambda call: number(call.call),
        TableColumn("turn", right=True): lambda call: number(call.turn),
        TableColumn("pages", right=True): lambda call: number(call.pages),
        TableColumn("tokens", right=True): lambda call: number(call.tokens),
        TableColumn("reported", right=True): lambda call: number(call.tokens_reported),
        TableColumn("cached", right=True, spare=2): lambda call: number(call.tokens_cached),
        TableColumn("out", right=True): lambda call: number(call.tokens_out),
        TableColumn("cost", right=True): lambda call: money(call.cost, call.cost_estimated),
        TableColumn("latency", right=True): lambda call: seconds(call.latency_ms),
        TableColumn("fidelity", spare=4): lambda call: _fidelity_word(call.fidelity),
        TableColumn("status"): lambda call: StyledText(call.status, STATUS.get(call.status, "dim")),
        TableColumn("at (UTC)", style="dim", spare=5): lambda call: moment(call.at),
        TableColumn("model", spare=3): lambda call: call.model or "",
        TableColumn("ended by"): lambda call: StyledText(call.error, "bad") if call.error else call.stop or "",
    }
    return table(infos, cells)


def imported(reports: Sequence[ImportedSession]) -> TextTable:
    """Sessions as an import left them."""
    cells: dict[TableColumn, Callable[[ImportedSession], Line]] = {
        TableColumn("session", style="name"): lambda report: report.session,
        TableColumn("format"): lambda report: report.format,
        TableColumn("fidelity"): lambda report: _fidelity_word(report.fidelity),
        TableColumn("turns", right=True): lambda report: number(report.turns),
        TableColumn("calls", right=True): lambda report: number(report.calls),
        TableColumn("messages", right=True): lambda report: number(report.messages),
        TableColumn("pages", right=True): lambda report: number(report.pages),
        TableColumn("unread lines", right=True): lambda report: StyledText(
            number(report.raw) if report.raw else "", "warn"
        ),
    }
    return table(reports, cells)


def fidelity(word: str) -> Line:
    """Explains the fidelity of a context."""
    return StyledText(FIDELITY[word], "warn" if word == "derived" else "good")


def context_head(prompt: Context) -> list[Block]:
    """Which context this is, how faithful, how large."""
    basis = prompt.basis
    where = f", call {basis.call} of turn {basis.turn}, position {basis.position}"
    if prompt.tokens_reported is None:
        reported = "the provider reported none"
    else:
        reported = f"{number(prompt.tokens_reported)} reported by the provider"
    tokens: Line = (StyledText(number(prompt.tokens), "bold"), f" tokens estimated, {reported}")
    pages = f" · {count(len(prompt.page_ids), 'page')}"
    model = f" · {prompt.model}" if prompt.model else ""
    return [
        (StyledText(basis.session, "head"), StyledText(where, "bold")),
        fidelity(prompt.fidelity),
        (tokens, pages, model),
        "",
    ]


def response_head(response: Response) -> list[Block]:
    """Of which call a response is, how it ended, how faithful it is."""
    about = [response.status, *(text for text in (response.stop, response.model) if text)]
    if response.exception is not None:
        about.append(response.exception)
    faithful = RESPONSES[response.rule] if response.erased is None else response.erased
    style = "good" if response.rule is None and response.erased is None else "warn"
    head: Line = (StyledText(f"the response to call {response.call}", "bold"), f" · {' · '.join(about)}")
    return [head, StyledText(faithful, style), ""]


RESPONSES = {
    None: "recorded: equal in every field to what came back",
    "stream": "derived: put together from the parts of a stream",
    "messages": "derived: its messages are known, and what stands beside them; the response itself was not kept",
}


def context(prompt: Context, rows: int | None = None) -> list[Block]:
    """Formats a context page by page: all pages, or the first and last of them."""
    total = len(prompt.page_ids)
    first, last = ends(total, rows)
    head = context_head(prompt)
    if first == total:
        return [*head, context_table(prompt, range(total))]
    shown = context_table(prompt, [*range(first), *range(last, total)])
    between: Line = StyledText(f"… {count(last - first, 'page')} between them; --all shows them", "dim")
    return [*head, shown._replace(notes={first: between})]


def ends(total: int, rows: int | None) -> tuple[int, int]:
    """How many rows stand before those left out where at most `rows` are shown, and where the others go on."""
    if rows is None or total <= rows:
        return total, total
    return rows // 2, total - (rows - rows // 2)


def context_table(prompt: Context, indexes: Sequence[int]) -> TextTable:
    """Some of the pages of a context, by index."""
    from vmstore.core.page import Modality

    pages, lines = prompt.pages, prompt.lines()
    largest = max((page.tokens for page in pages), default=0)
    columns = [
        TableColumn("", right=True, style="dim"),
        TableColumn("page", style="name"),
        TableColumn("role"),
        TableColumn("type", spare=2),
    ]
    columns += [TableColumn("level", spare=1), TableColumn("tokens", right=True)]
    columns += [TableColumn("", style="name", spare=4), TableColumn("since", style="dim", spare=3), TableColumn("text")]
    rows = []
    for index in indexes:
        page = pages[index]
        modality = Modality(prompt.shown[index].modality)
        plain = modality in (Modality.TEXT, Modality.STRUCTURED)
        kind = page.type if plain else f"{page.type}, {modality.word}"
        shown = level(page.level) + (", pinned" if page.pinned else "")
        rows.append(
            (
                number(page.order),
                page.page,
                StyledText(page.role, "bold" if page.role == "user" else ""),
                kind,
                StyledText(shown, "warn" if page.level else "dim"),
                number(page.tokens),
                bar(page.tokens, largest),
                f"turn {page.since_turn} call {page.since_call}",
                _begins(prompt.shown[index], lines.get(page.page)),
            )
        )
    return TextTable(columns, rows)


def _begins(shown: ShownPage, line: str | None) -> Line:
    if line is None:
        return StyledText(f"about {shown.tokens:,} tokens the source does not hold", "warn")
    return line


def diff(difference: Diff, rows: int | None = None) -> list[Block]:
    """Formats the difference of two contexts, what takes most tokens first; at most `rows` changes where given."""
    before, after = difference.before, difference.after
    steps = f" call {before.call} (turn {before.turn}) → call {after.call} (turn {after.turn})"
    freed = difference.tokens_after - difference.tokens_before
    tokens: Line = (
        f"{number(difference.tokens_before)} → {number(difference.tokens_after)} tokens (",
        StyledText(change(freed), "warn" if freed < 0 else "bold"),
        f"), {count(difference.unchanged, 'page')} unchanged",
    )
    head: list[Block] = [(StyledText(before.session, "head"), StyledText(steps, "bold")), tokens]
    if not difference.changes:
        return [*head, StyledText("nothing changed", "dim")]
    ordered = largest_first(difference.changes)
    shown = ordered if rows is None else few(ordered, rows)
    rest = len(ordered) - len(shown)
    more: list[Block] = [StyledText(f"… and {number(rest)} more; --all shows them", "dim")] if rest else []
    return [*head, *moved(difference.changes), "", diff_table(shown), *more]


def moved(changes: Sequence[Change]) -> list[Line]:
    """How many pages left, with how many decisions among them, and how many entered, each with their tokens."""
    lines: list[Line] = []
    for word in ("left", "entered"):
        some = [changed for changed in changes if changed.change == word]
        decisions = sum(changed.type == "claim" for changed in some)
        among = f", {count(decisions, 'decision')} among them" if decisions else ""
        sign, style = SIGNS[word]
        tokens = sum(changed.tokens_after or changed.tokens_before for changed in some)
        if some:
            what = f" {word}, {count(tokens, 'token')}{among}"
            lines.append((StyledText(f"{sign} {count(len(some), 'page')}", style), what))
    return lines


def largest_first(changes: Sequence[Change]) -> list[Change]:
    """What left, the largest first; then what is shown otherwise, and what entered in its order."""
    order = {"left": 0, "entered": 2}
    return sorted(
        changes,
        key=lambda changed: (order.get(changed.change, 1), -changed.tokens_before * (changed.change == "left")),
    )


def few(changes: Sequence[Change], rows: int) -> list[Change]:
    """At most so many changes: half of the room is for what left, and each half may take what the other leaves."""
    left = [changed for changed in changes if changed.change == "left"]
    others = changes[len(left) :]
    room = max(rows - len(others), rows // 2)
    return [*left[:room], *others[: rows - min(room, len(left))]]


def diff_table(changes: Sequence[Change]) -> TextTable:
    """Pages that entered, left or are shown otherwise."""
    columns = [
        TableColumn(""),
        TableColumn("page"),
        TableColumn("role", spare=1),
        TableColumn("type", spare=2),
        TableColumn("tokens", right=True),
        TableColumn("", spare=3),
    ]
    columns.append(TableColumn("text"))
    rows = []
    for changed in changes:
        sign, style = SIGNS.get(changed.change, ("~", "warn"))
        rows.append(
            (
                StyledText(sign, style),
                StyledText(changed.page, style),
                StyledText(changed.role, style),
                StyledText(changed.type, style),
                StyledText(_tokens(changed), style),
                StyledText(_levels(changed), style),
                changed.text,
            )
        )
    return TextTable(columns, rows)


def _tokens(changed: Change) -> str:
    if changed.change in ("entered", "left"):
        return number(changed.tokens_after or changed.tokens_before)
    return f"{number(changed.tokens_before)} → {number(changed.tokens_after)}"


def _levels(changed: Change) -> str:
    if changed.change in ("entered", "left"):
        known_level = changed.level_before if changed.level_after is None else changed.level_after
        return level(known_level) if known_level else ""
    if changed.level_before == changed.level_after:
        return "new version"
    return f"{level(changed.level_before)} → {level(changed.level_after)}"


def entry(changed: Entry) -> Line:
    """One mutation of a tail."""
    fields = " ".join(
        f"{key}={_value(value)}" for key, value in (changed.mutation or {}).items() if value not in (None, ())
    )
    detail = fields if len(fields) <= DETAIL_CHARS else fields[: DETAIL_CHARS - 1] + "…"
    return (
        StyledText(f"{changed.cursor:>10}  ", "dim"),
        StyledText(changed.session, "name"),
        f" {changed.position:>6} ",
        StyledText(f"{changed.kind:<10}", "bold"),
        StyledText(f"{moment(changed.at)}  {detail}", "dim"),
    )


def _value(value: object) -> str:
    return value.hex()[:8] if isinstance(value, bytes) else str(value).replace(" ", "")
