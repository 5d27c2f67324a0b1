"""Formats answers about stores, sessions and contexts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from vmstore.shell.terminal.format import bar, change, count, dollars, level, listing, moment, number, seconds, size
from vmstore.shell.terminal.layout import Block, Column, Line, Span, Table, table

if TYPE_CHECKING:
    from vmstore.namespace.reports import Imported, Info
    from vmstore.namespace.results import CallInfo, Change, Diff, Entry, Response, SessionInfo, TurnInfo
    from vmstore.store.reads.context import Context
    from vmstore.views.reads.context import Shown

FIDELITY = {
    "recorded": "recorded: the request as it was sent, equal in every field",
    "derived": "derived: rebuilt by a rule from what the source holds; the request itself was not in it",
}
STATUS = {"ok": "good", "failed": "bad", "aborted": "warn", "gap": "warn"}
SIGNS = {"entered": ("+", "good"), "left": ("-", "bad"), "compressed": ("~", "warn"), "changed": ("~", "warn")}
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
    return [Table((Column("", style="dim"), Column("", right=True)), rows), ("views ", Span(followed, "dim"))]


def sessions(infos: Sequence[SessionInfo]) -> Table:
    """Sessions with their counts."""
    cells: dict[Column, Callable[[SessionInfo], Line]] = {
        Column("session", style="name"): lambda session: session.session,
        Column("origin"): lambda session: _origin(session),
        Column("fidelity"): lambda session: _fidelity_word(session.fidelity),
        Column("turns", right=True): lambda session: number(session.turns),
        Column("calls", right=True): lambda session: number(session.calls),
        Column("messages", right=True): lambda session: number(session.messages),
        Column("pages", right=True): lambda session: number(session.pages),
        Column("tokens", right=True): lambda session: number(session.tokens),
        Column("opened (UTC)", style="dim"): lambda session: moment(session.opened_at),
        Column("title"): lambda session: session.title or "",
    }
    return table(infos, cells)


def _origin(session: SessionInfo) -> Line:
    if session.parent is None:
        return session.origin
    place = f" at {session.fork_position}" if session.fork_position else ""
    return f"{session.origin} of {session.parent}{place}"


def _fidelity_word(word: str) -> Line:
    return Span(word, "warn" if word == "derived" else "")


def turns(infos: Sequence[TurnInfo]) -> Table:
    """Turns in order."""
    columns = (
        Column("turn", right=True),
        Column("calls", right=True),
        Column("position", right=True),
        Column("at (UTC)"),
    )
    rows = [(number(turn.turn), number(turn.calls), str(turn.position), Span(moment(turn.at), "dim")) for turn in infos]
    return Table(columns, rows)


def calls(infos: Sequence[CallInfo]) -> Table:
    """Calls in order, with what they cost and how they ended."""
    cells: dict[Column, Callable[[CallInfo], Line]] = {
        Column("call", right=True): lambda call: number(call.call),
        Column("turn", right=True): lambda call: number(call.turn),
        Column("pages", right=True): lambda call: number(call.pages),
        Column("tokens", right=True): lambda call: number(call.tokens),
        Column("reported", right=True): lambda call: number(call.tokens_reported),
        Column("cached", right=True): lambda call: number(call.tokens_cached),
        Column("out", right=True): lambda call: number(call.tokens_out),
        Column("cost", right=True): lambda call: dollars(call.cost),
        Column("latency", right=True): lambda call: seconds(call.latency_ms),
        Column("fidelity"): lambda call: _fidelity_word(call.fidelity),
        Column("status"): lambda call: Span(call.status, STATUS.get(call.status, "dim")),
        Column("at (UTC)", style="dim"): lambda call: moment(call.at),
        Column("model"): lambda call: call.model or "",
        Column("ended by"): lambda call: Span(call.error, "bad") if call.error else call.stop or "",
    }
    return table(infos, cells)


def imported(reports: Sequence[Imported]) -> Table:
    """Sessions as an import left them."""
    cells: dict[Column, Callable[[Imported], Line]] = {
        Column("session", style="name"): lambda report: report.session,
        Column("format"): lambda report: report.format,
        Column("fidelity"): lambda report: _fidelity_word(report.fidelity),
        Column("turns", right=True): lambda report: number(report.turns),
        Column("calls", right=True): lambda report: number(report.calls),
        Column("messages", right=True): lambda report: number(report.messages),
        Column("pages", right=True): lambda report: number(report.pages),
        Column("mutations", right=True): lambda report: number(report.mutations),
        Column("kept raw", right=True): lambda report: Span(number(report.raw), "warn" if report.raw else "dim"),
        Column("position", right=True): lambda report: str(report.position),
    }
    return table(reports, cells)


def fidelity(word: str) -> Line:
    """Explains the fidelity of a context."""
    return Span(FIDELITY[word], "warn" if word == "derived" else "good")


def context_head(prompt: Context) -> list[Block]:
    """Which context this is, how faithful, how large."""
    basis = prompt.basis
    where = f", call {basis.call} of turn {basis.turn}, position {basis.position}"
    if prompt.tokens_reported is None:
        reported = "the provider reported none"
    else:
        reported = f"{number(prompt.tokens_reported)} reported by the provider"
    tokens: Line = (Span(number(prompt.tokens), "bold"), f" tokens estimated, {reported}")
    pages = f" · {count(len(prompt.page_ids), 'page')}"
    model = f" · {prompt.model}" if prompt.model else ""
    return [(Span(basis.session, "head"), Span(where, "bold")), fidelity(prompt.fidelity), (tokens, pages, model), ""]


def response_head(response: Response) -> list[Block]:
    """Of which call a response is, how it ended, how faithful it is."""
    about = [response.status, *(text for text in (response.stop, response.model) if text)]
    if response.exception is not None:
        about.append(response.exception)
    faithful = RESPONSES[response.rule] if response.erased is None else response.erased
    style = "good" if response.rule is None and response.erased is None else "warn"
    head: Line = (Span(f"the response to call {response.call}", "bold"), f" · {' · '.join(about)}")
    return [head, Span(faithful, style), ""]


RESPONSES = {
    None: "recorded: equal in every field to what came back",
    "stream": "derived: put together from the parts of a stream",
    "messages": "derived: its messages are known, and what stands beside them; the response itself was not kept",
}


def context(prompt: Context) -> list[Block]:
    """Formats a context page by page."""
    return [*context_head(prompt), context_table(prompt, range(len(prompt.page_ids)))]


def context_table(prompt: Context, indexes: Sequence[int]) -> Table:
    """Some of the pages of a context, by index."""
    from vmstore.core.page import Modality

    pages, contents = prompt.pages, prompt.contents()
    largest = max((page.tokens for page in pages), default=0)
    columns = [Column("", right=True, style="dim"), Column("page", style="name"), Column("role"), Column("type")]
    columns += [Column("level"), Column("tokens", right=True), Column("", style="name")]
    columns += [Column("since", style="dim"), Column("begins")]
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
                Span(page.role, "bold" if page.role == "user" else ""),
                kind,
                Span(shown, "warn" if page.level else "dim"),
                number(page.tokens),
                bar(page.tokens, largest),
                f"turn {page.since_turn} call {page.since_call}",
                _begins(prompt.shown[index], contents.get(page.page)),
            )
        )
    return Table(columns, rows)


def _begins(shown: Shown, content: bytes | None) -> Line:
    from vmstore.namespace.page_rows import preview

    if content is None:
        return Span(f"about {shown.tokens:,} tokens the source does not hold", "warn")
    return preview(content)


def diff(difference: Diff) -> list[Block]:
    """Formats the difference of two contexts."""
    before, after = difference.before, difference.after
    steps = f" call {before.call} (turn {before.turn}) → call {after.call} (turn {after.turn})"
    moved = difference.tokens_after - difference.tokens_before
    tokens: Line = (
        f"{number(difference.tokens_before)} → {number(difference.tokens_after)} tokens (",
        Span(change(moved), "warn" if moved < 0 else "bold"),
        f"), {count(difference.unchanged, 'page')} unchanged",
    )
    head: list[Block] = [(Span(before.session, "head"), Span(steps, "bold")), tokens]
    if not difference.changes:
        return [*head, Span("nothing changed", "dim")]
    return [*head, "", diff_table(difference.changes)]


def diff_table(changes: Sequence[Change]) -> Table:
    """Pages that entered, left or are shown otherwise."""
    columns = [Column(""), Column("page"), Column("role"), Column("type"), Column("tokens", right=True), Column("")]
    columns.append(Column("begins", style="dim"))
    rows = []
    for changed in changes:
        sign, style = SIGNS.get(changed.change, ("~", "warn"))
        rows.append(
            (
                Span(sign, style),
                Span(changed.page, style),
                Span(changed.role, style),
                Span(changed.type, style),
                Span(_tokens(changed), style),
                Span(_levels(changed), style),
                changed.text,
            )
        )
    return Table(columns, rows)


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
        Span(f"{changed.cursor:>10}  ", "dim"),
        Span(changed.session, "name"),
        f" {changed.position:>6} ",
        Span(f"{changed.kind:<10}", "bold"),
        Span(f"{moment(changed.at)}  {detail}", "dim"),
    )


def _value(value: object) -> str:
    return value.hex()[:8] if isinstance(value, bytes) else str(value).replace(" ", "")
