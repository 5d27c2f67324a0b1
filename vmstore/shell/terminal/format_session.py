"""How answers about stores, sessions and contexts look as sheets."""

from __future__ import annotations

from collections.abc import Sequence

from vmstore.core.page import Modality
from vmstore.namespace.page_rows import preview
from vmstore.namespace.reports import Imported, Info
from vmstore.namespace.results import CallInfo, Change, Diff, Entry, Response, SessionInfo, TurnInfo
from vmstore.shell.terminal.format import bar, change, count, dollars, level, listing, moment, number, seconds, size
from vmstore.shell.terminal.layout import Block, Column, Line, Span, Table
from vmstore.store.reads.context import Context
from vmstore.views.reads.context import Shown

FIDELITY = {
    "recorded": "recorded: the request as it was sent, equal in every field",
    "derived": "derived: rebuilt by a rule from what the source holds; the request itself was not in it",
}
STATUS = {"ok": "good", "failed": "bad", "aborted": "warn", "gap": "warn"}
SIGNS = {"entered": ("+", "good"), "left": ("-", "bad"), "compressed": ("~", "warn"), "changed": ("~", "warn")}
DETAIL_CHARS = 90


def info(found: Info) -> list[Block]:
    """What a store holds."""
    behind = sorted(set(found.positions.values()))
    total = found.bytes_log + found.bytes_views + found.bytes_blobs
    rows: list[tuple[Line, Line]] = [
        ("sessions", number(found.sessions)),
        ("commits", number(found.commits)),
        ("mutations", number(found.mutations)),
        ("pages", number(found.pages)),
        ("log", size(found.bytes_log)),
        ("views", size(found.bytes_views)),
        ("blobs", size(found.bytes_blobs)),
        ("in all", size(total)),
    ]
    followed = f"at commit {listing([number(n) for n in behind])} of the log: {', '.join(sorted(found.positions))}"
    return [Table((Column("", style="dim"), Column("", right=True)), rows), ("views ", Span(followed, "dim"))]


def sessions(found: Sequence[SessionInfo]) -> Table:
    """Sessions with their counts."""
    right = ("turns", "calls", "messages", "pages", "tokens")
    columns = [Column("session", style="name"), Column("origin"), Column("fidelity")]
    columns += [Column(title, right=True) for title in right]
    columns += [Column("opened (UTC)", style="dim"), Column("title")]
    rows = [
        (
            one.session,
            _origin(one),
            _fidelity_word(one.fidelity),
            number(one.turns),
            number(one.calls),
            number(one.messages),
            number(one.pages),
            number(one.tokens),
            moment(one.opened_at),
            one.title or "",
        )
        for one in found
    ]
    return Table(columns, rows)


def _origin(one: SessionInfo) -> Line:
    if one.parent is None:
        return one.origin
    place = f" at {one.fork_position}" if one.fork_position else ""
    return f"{one.origin} of {one.parent}{place}"


def _fidelity_word(word: str) -> Line:
    return Span(word, "warn" if word == "derived" else "")


def turns(found: Sequence[TurnInfo]) -> Table:
    """Turns in order."""
    columns = (
        Column("turn", right=True),
        Column("calls", right=True),
        Column("position", right=True),
        Column("at (UTC)"),
    )
    rows = [(number(one.turn), number(one.calls), str(one.position), Span(moment(one.at), "dim")) for one in found]
    return Table(columns, rows)


def calls(found: Sequence[CallInfo]) -> Table:
    """Calls in order, with what they cost and how they ended."""
    names = ("call", "turn", "pages", "tokens", "reported", "cached", "out", "cost", "latency")
    columns = [Column(name, right=True) for name in names]
    columns += [
        Column("fidelity"),
        Column("status"),
        Column("at (UTC)", style="dim"),
        Column("model"),
        Column("ended by"),
    ]
    rows = [
        (
            number(one.call),
            number(one.turn),
            number(one.pages),
            number(one.tokens),
            number(one.tokens_reported),
            number(one.tokens_cached),
            number(one.tokens_out),
            dollars(one.cost),
            seconds(one.latency_ms),
            _fidelity_word(one.fidelity),
            Span(one.status, STATUS.get(one.status, "dim")),
            moment(one.at),
            one.model or "",
            Span(one.error, "bad") if one.error else one.stop or "",
        )
        for one in found
    ]
    return Table(columns, rows)


def imported(found: Sequence[Imported]) -> Table:
    """Sessions as an import left them."""
    columns = [Column("session", style="name"), Column("format"), Column("fidelity")]
    columns += [Column(name, right=True) for name in ("turns", "calls", "messages", "pages", "mutations")]
    columns += [Column("kept raw", right=True), Column("position", right=True)]
    rows = [
        (
            one.session,
            one.format,
            _fidelity_word(one.fidelity),
            number(one.turns),
            number(one.calls),
            number(one.messages),
            number(one.pages),
            number(one.mutations),
            Span(number(one.raw), "warn" if one.raw else "dim"),
            str(one.position),
        )
        for one in found
    ]
    return Table(columns, rows)


def fidelity(word: str) -> Line:
    """What a context's fidelity means."""
    return Span(FIDELITY[word], "warn" if word == "derived" else "good")


def context_head(found: Context) -> list[Block]:
    """Which context this is, how faithful, how large."""
    basis = found.basis
    where = f", call {basis.call} of turn {basis.turn}, position {basis.position}"
    if found.tokens_reported is None:
        reported = "the provider reported none"
    else:
        reported = f"{number(found.tokens_reported)} reported by the provider"
    tokens: Line = (Span(number(found.tokens), "bold"), f" tokens estimated, {reported}")
    pages = f" · {count(len(found.page_ids), 'page')}"
    model = f" · {found.model}" if found.model else ""
    return [(Span(basis.session, "head"), Span(where, "bold")), fidelity(found.fidelity), (tokens, pages, model), ""]


def response_head(found: Response) -> list[Block]:
    """Of which call a response is, how it ended, how faithful it is."""
    about = [found.status, *(text for text in (found.stop, found.model) if text)]
    if found.exception is not None:
        about.append(found.exception)
    said = RESPONSES[found.rule] if found.erased is None else found.erased
    style = "good" if found.rule is None and found.erased is None else "warn"
    head: Line = (Span(f"the response to call {found.call}", "bold"), f" · {' · '.join(about)}")
    return [head, Span(said, style), ""]


RESPONSES = {
    None: "recorded: equal in every field to what came back",
    "stream": "derived: put together from the parts of a stream",
    "messages": "derived: its messages are known, and what stands beside them; the response itself was not kept",
}


def context(found: Context) -> list[Block]:
    """What the model saw, page by page."""
    return [*context_head(found), context_table(found, range(len(found.page_ids)))]


def context_table(found: Context, chosen: Sequence[int]) -> Table:
    """Some of the pages of a context, by index."""
    pages, contents = found.pages, found.contents()
    largest = max((page.tokens for page in pages), default=0)
    columns = [Column("", right=True, style="dim"), Column("page", style="name"), Column("role"), Column("type")]
    columns += [Column("level"), Column("tokens", right=True), Column("", style="name")]
    columns += [Column("since", style="dim"), Column("begins")]
    rows = []
    for index in chosen:
        page = pages[index]
        modality = Modality(found.shown[index].modality)
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
                _begins(found.shown[index], contents.get(page.page)),
            )
        )
    return Table(columns, rows)


def _begins(shown: Shown, content: bytes | None) -> Line:
    if content is None:
        return Span(f"about {shown.tokens:,} tokens the source does not hold", "warn")
    return preview(content)


def diff(found: Diff) -> list[Block]:
    """What changed between two contexts."""
    before, after = found.before, found.after
    steps = f" call {before.call} (turn {before.turn}) → call {after.call} (turn {after.turn})"
    moved = found.tokens_after - found.tokens_before
    tokens: Line = (
        f"{number(found.tokens_before)} → {number(found.tokens_after)} tokens (",
        Span(change(moved), "warn" if moved < 0 else "bold"),
        f"), {count(found.unchanged, 'page')} unchanged",
    )
    head: list[Block] = [(Span(before.session, "head"), Span(steps, "bold")), tokens]
    if not found.changes:
        return [*head, Span("nothing changed", "dim")]
    return [*head, "", diff_table(found.changes)]


def diff_table(changes: Sequence[Change]) -> Table:
    """Pages that entered, left or are shown otherwise."""
    columns = [Column(""), Column("page"), Column("role"), Column("type"), Column("tokens", right=True), Column("")]
    columns.append(Column("begins", style="dim"))
    rows = []
    for one in changes:
        sign, style = SIGNS.get(one.change, ("~", "warn"))
        rows.append(
            (
                Span(sign, style),
                Span(one.page, style),
                Span(one.role, style),
                Span(one.type, style),
                Span(_tokens(one), style),
                Span(_levels(one), style),
                one.text,
            )
        )
    return Table(columns, rows)


def _tokens(one: Change) -> str:
    if one.change in ("entered", "left"):
        return number(one.tokens_after or one.tokens_before)
    return f"{number(one.tokens_before)} → {number(one.tokens_after)}"


def _levels(one: Change) -> str:
    if one.change in ("entered", "left"):
        known = one.level_before if one.level_after is None else one.level_after
        return level(known) if known else ""
    if one.level_before == one.level_after:
        return "new version"
    return f"{level(one.level_before)} → {level(one.level_after)}"


def entry(found: Entry) -> Line:
    """One mutation of a tail."""
    told = " ".join(
        f"{key}={_value(value)}" for key, value in (found.mutation or {}).items() if value not in (None, ())
    )
    detail = told if len(told) <= DETAIL_CHARS else told[: DETAIL_CHARS - 1] + "…"
    return (
        Span(f"{found.cursor:>10}  ", "dim"),
        Span(found.session, "name"),
        f" {found.position:>6} ",
        Span(f"{found.kind:<10}", "bold"),
        Span(f"{moment(found.at)}  {detail}", "dim"),
    )


def _value(value: object) -> str:
    return value.hex()[:8] if isinstance(value, bytes) else str(value).replace(" ", "")
