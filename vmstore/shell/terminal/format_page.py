"""Formats answers about pages: lists, history, lineage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from vmstore.shell.terminal.format import bar, change, count, level, moment, number, size
from vmstore.shell.terminal.layout import Block, Line, StyledText, TableColumn, TextTable, one_line_each, table

if TYPE_CHECKING:
    from vmstore.namespace.results import Affinity, Event, Fault, Page, PageLink, Version

EVENTS = {
    "create": ("●", "good", "created"),
    "update": ("●", "warn", "changed"),
    "compress": ("●", "warn", "shortened"),
    "enter": ("→", "good", "entered the context"),
    "shown": ("·", "warn", "shown otherwise"),
    "leave": ("←", "bad", "left the context"),
    "link": ("·", "name", "linked"),
    "annotate": ("·", "name", "annotated"),
    "tag": ("·", "name", "tagged"),
    "reference": ("·", "name", "used or wanted"),
    "cite": ("·", "name", "cited"),
    "recall": ("·", "name", "recalled"),
    "fault_in": ("→", "good", "came when asked for"),
    "fault_denied": ("✗", "bad", "asked for in vain"),
    "prefetch": ("→", "good", "came unasked"),
    "evict": ("←", "bad", "gave way"),
    "pin": ("·", "good", "held"),
    "unpin": ("·", "warn", "let go"),
}
SUPERSEDED = "superseded"
CONTESTED = ("evict", "fault_in", "prefetch")
# How a link reads from the page that was asked about towards its source, and back.
UP = {"derives": "made from", "represents": "represents", "caused_by": "caused by", "part_of": "part of"}
DOWN = {
    "derives": "made into",
    "supersedes": "superseded by",
    "references": "referred to by",
    "contradicts": "contradicted by",
    "caused_by": "caused",
    "represents": "represented by",
    "has_caption": "caption of",
    "part_of": "has part",
}


def pages(listed: Sequence[Page], *, sessions: bool = False) -> TextTable:
    """Pages as they stood at a moment; importance and tags where any was said, the session where there are many."""
    weighed = any(page.importance != 0.5 for page in listed)
    tagged = any(page.tags for page in listed)
    columns = [TableColumn("session", style="name")] * sessions
    columns += [
        TableColumn("page", style="name"),
        TableColumn("tier"),
        TableColumn("level"),
        TableColumn("type"),
        TableColumn("role"),
    ]
    columns += [TableColumn(title, right=True) for title in ("version", "tokens", "size", "turn", "call")]
    columns += [TableColumn("importance", right=True)] * weighed
    columns += [TableColumn("created (UTC)", style="dim")]
    columns += [TableColumn("tags")] * tagged
    columns += [TableColumn("hint")]
    rows: list[tuple[Line, ...]] = [
        (
            *(page.session,) * sessions,
            page.page,
            StyledText(f"L{page.tier}", "good" if page.tier == 0 else "dim"),
            StyledText(level(page.level), "warn" if page.level else "dim"),
            page.type,
            page.role,
            number(page.version),
            number(page.tokens),
            size(page.bytes),
            number(page.created_turn),
            number(page.created_call),
            *(f"{page.importance:g}",) * weighed,
            moment(page.created_at),
            *(" ".join(page.tags),) * tagged,
            page.hint or "",
        )
        for page in listed
    ]
    return TextTable(columns, rows)


def page_head(page: Page, session: str) -> Line:
    """Which page this is and where."""
    hint = f" {page.hint}" if page.hint else ""
    place = "in the context" if page.tier == 0 else "out of the context"
    rest = f", {page.role} {page.type}, {count(page.tokens, 'token')}, {place}"
    return (StyledText(page.page, "head"), StyledText(f"{hint} of {session}", "bold"), rest)


def known(page: Page) -> str:
    """Formats the annotations of a page."""
    facts = [f"importance {page.importance:g}"]
    facts += [f"tagged {', '.join(page.tags)}"] if page.tags else []
    facts += [page.status] if page.status else []
    facts += [f"valid from {moment(page.valid_from)}"] if page.valid_from is not None else []
    facts += [f"valid to {moment(page.valid_to)}"] if page.valid_to is not None else []
    return ", ".join(facts + [f"{name} = {value}" for name, value in page.anchors.items()])


def faults(events: Sequence[Fault]) -> TextTable:
    """Formats faults in order, with reasons if a kernel decided them."""
    columns = [TableColumn(title, right=True, style="dim") for title in ("turn", "call", "position")]
    columns += [
        TableColumn("page", style="name"),
        TableColumn("out since", right=True),
        TableColumn("tokens", right=True),
    ]
    reasoned = any(event.reason or event.denied_because for event in events)
    columns += [TableColumn("reason"), TableColumn("denied because", style="warn")] * reasoned
    rows: list[tuple[Line, ...]] = []
    for event in events:
        out = "" if event.out_since is None else str(event.out_since)
        place = (
            number(event.turn),
            number(event.call),
            str(event.position),
            event.page or "",
            out,
            number(event.tokens),
        )
        rows.append((*place, *(event.reason or "", event.denied_because or "") * reasoned))
    return TextTable(columns, rows)


def versions(history: Sequence[Version]) -> TextTable:
    """The versions of a page in order, its shorter forms among them."""
    columns = [
        TableColumn("version", right=True),
        TableColumn("level"),
        TableColumn("position", right=True, style="dim"),
    ]
    columns += [TableColumn(title, right=True) for title in ("tokens", "added", "size", "added")]
    columns += [TableColumn("method"), TableColumn("by")]
    rows = [
        (
            number(version.version),
            StyledText(level(version.level), "warn" if version.level else "dim"),
            str(version.position),
            number(version.tokens),
            change(version.tokens_added),
            size(version.bytes),
            change(version.bytes_added),
            version.method or "",
            version.actor,
        )
        for version in history
    ]
    return TextTable(columns, rows)


def delta(version: Version) -> list[Line]:
    """Formats the line difference of a version."""
    if version.delta is None:
        return []
    styles = {"+": "good", "-": "bad", "@": "name"}
    return ["", *(StyledText(line, styles.get(line[:1], "dim")) for line in version.delta.splitlines())]


def affinities(neighbours: Sequence[Affinity]) -> TextTable:
    """Pages that stood together with one, nearest first."""
    cells: dict[TableColumn, Callable[[Affinity], Line]] = {
        TableColumn("page", style="name"): lambda neighbour: neighbour.page,
        TableColumn("affinity", right=True): lambda neighbour: f"{neighbour.affinity:.2f}",
        TableColumn("", style="name"): lambda neighbour: bar(round(neighbour.affinity * 1000), 1000),
        TableColumn("shared", right=True): lambda neighbour: number(neighbour.shared),
        TableColumn("calls", right=True): lambda neighbour: number(neighbour.calls),
        TableColumn("role"): lambda neighbour: neighbour.role,
        TableColumn("type"): lambda neighbour: neighbour.type,
        TableColumn("tokens", right=True): lambda neighbour: number(neighbour.tokens),
        TableColumn("begins", style="dim"): lambda neighbour: neighbour.text,
    }
    return table(neighbours, cells)


def history(events: Sequence[Event]) -> TextTable:
    """A page's events in order, as a timeline."""
    columns = [TableColumn(title, right=True, style="dim") for title in ("turn", "call", "position")]
    columns += [TableColumn(""), TableColumn("event"), TableColumn("")]
    rows = []
    for event in events:
        sign, style, words = EVENTS.get(event.event, ("·", "", event.event))
        row: tuple[Line, ...] = (
            number(event.turn),
            number(event.call),
            str(event.position),
            StyledText(sign, style),
            words,
            _event_details(event),
        )
        rows.append(row)
    return TextTable(columns, rows)


def _event_details(event: Event) -> Line:
    details = []
    if event.detail:
        details.append(_link(event.detail) if event.event == "link" else event.detail)
    if event.event in ("update", "compress", "shown") and event.version > 1:
        details.append(f"version {event.version}")
    if event.level:
        details.append(level(event.level))
    if event.method:
        details.append(event.method)
    if event.tokens is not None:
        details.append(count(event.tokens, "token"))
    if event.event in CONTESTED:
        details = [*details[1:], *details[:1]]  # the contest is long, and ends in numbers of its own
    return ", ".join(details)


def _link(detail: str) -> str:
    kind, _, page = detail.partition(" ")
    return f"{UP.get(kind, kind.replace('_', ' '))} {page}"


def few_lines(lines: Sequence[Line], rows: int | None) -> list[Block]:
    """Lines that are cut at the terminal's width, at most so many, and how many more there are."""
    rest = 0 if rows is None else max(0, len(lines) - rows)
    more: list[Block] = [StyledText(f"… and {count(rest, 'line')} more; --all shows them", "dim")] if rest else []
    return [one_line_each(lines[:rows]), *more]


def tree(root: str, relations: Sequence[PageLink], hints: Mapping[str, str], *, up: bool) -> list[Line]:
    """A walk as an indented tree; a page met again is named, not repeated."""
    branches: dict[str, list[PageLink]] = {}
    for relation in relations:
        branches.setdefault(relation.source if up else relation.target, []).append(relation)
    if not branches:
        return [StyledText("nothing it was made from is known" if up else "nothing made from it is known", "dim")]
    lines: list[Line] = []
    _grow(lines, root, "", branches, hints, {root}, up)
    return lines


def _grow(
    lines: list[Line],
    at: str,
    indent: str,
    branches: Mapping[str, list[PageLink]],
    hints: Mapping[str, str],
    seen: set[str],
    up: bool,
) -> None:
    """Adds the branches below a page, without recursion deeper than Python allows."""
    stack = [(at, indent, iter(_with_last(branches.get(at, ()))))]
    while stack:
        _, before, rest = stack[-1]
        step = next(rest, None)
        if step is None:
            stack.pop()
            continue
        relation, last = step
        far = relation.target if up else relation.source
        again = far in seen
        seen.add(far)
        kind = (UP if up else DOWN).get(relation.kind, relation.kind.replace("_", " "))
        hint = f" {hints[far]}" if far in hints else ""
        text = StyledText("  (see above)", "dim") if again else StyledText(f"  {relation.text}", "dim")
        stands = StyledText(f" {SUPERSEDED}" if relation.status == SUPERSEDED else "", "bad")
        branch = "└─ " if last else "├─ "
        lines.append((before, branch, StyledText(f"{kind} ", "warn"), StyledText(far, "name"), hint, stands, text))
        if not again and far in branches:
            stack.append((far, before + ("   " if last else "│  "), iter(_with_last(branches[far]))))


def _with_last(relations: Sequence[PageLink]) -> list[tuple[PageLink, bool]]:
    return [(relation, index == len(relations) - 1) for index, relation in enumerate(relations)]
