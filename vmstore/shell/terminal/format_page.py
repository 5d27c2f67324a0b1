"""How answers about pages look as sheets: their list, their history, their lineage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from vmstore.shell.terminal.format import bar, change, count, level, moment, number, size
from vmstore.shell.terminal.layout import Column, Line, Span, Table

if TYPE_CHECKING:
    from vmstore.namespace.results import Affinity, Event, Fault, Page, Relation, Version

EVENTS = {
    "create": ("●", "good", "created"),
    "update": ("●", "warn", "changed"),
    "compress": ("●", "warn", "shortened"),
    "enter": ("→", "good", "entered the context"),
    "shown": ("·", "warn", "shown otherwise"),
    "leave": ("←", "bad", "left the context"),
    "link": ("·", "name", "linked"),
    "annotate": ("·", "name", "annotated"),
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


def pages(found: Sequence[Page], *, sessions: bool = False) -> Table:
    """Pages as they stood at a moment; importance and tags where any was said, the session where there are many."""
    weighed = any(one.importance != 0.5 for one in found)
    tagged = any(one.tags for one in found)
    columns = [Column("session", style="name")] * sessions
    columns += [Column("page", style="name"), Column("tier"), Column("level"), Column("type"), Column("role")]
    columns += [Column(title, right=True) for title in ("version", "tokens", "size", "turn", "call")]
    columns += [Column("importance", right=True)] * weighed
    columns += [Column("created (UTC)", style="dim")]
    columns += [Column("tags")] * tagged
    columns += [Column("hint")]
    rows: list[tuple[Line, ...]] = [
        (
            *(one.session,) * sessions,
            one.page,
            Span(f"L{one.tier}", "good" if one.tier == 0 else "dim"),
            Span(level(one.level), "warn" if one.level else "dim"),
            one.type,
            one.role,
            number(one.version),
            number(one.tokens),
            size(one.bytes),
            number(one.created_turn),
            number(one.created_call),
            *(f"{one.importance:g}",) * weighed,
            moment(one.created_at),
            *(" ".join(one.tags),) * tagged,
            one.hint or "",
        )
        for one in found
    ]
    return Table(columns, rows)


def page_head(found: Page, session: str) -> Line:
    """Which page this is and where."""
    hint = f" {found.hint}" if found.hint else ""
    place = "in the context" if found.tier == 0 else "out of the context"
    told = f", {found.role} {found.type}, {count(found.tokens, 'token')}, {place}"
    return (Span(found.page, "head"), Span(f"{hint} of {session}", "bold"), told)


def known(found: Page) -> str:
    """What is known of a page, in words."""
    told = [f"importance {found.importance:g}"]
    told += [f"tagged {', '.join(found.tags)}"] if found.tags else []
    told += [found.status] if found.status else []
    told += [f"valid from {moment(found.valid_from)}"] if found.valid_from is not None else []
    told += [f"valid to {moment(found.valid_to)}"] if found.valid_to is not None else []
    return ", ".join(told + [f"{name} = {value}" for name, value in found.anchors.items()])


def faults(found: Sequence[Fault]) -> Table:
    """What a kernel was asked for, or what came back without one, in order."""
    columns = [Column(title, right=True, style="dim") for title in ("turn", "call", "position")]
    columns += [Column("page", style="name"), Column("out since", right=True), Column("tokens", right=True)]
    asked = any(one.reason or one.denied_because for one in found)
    columns += [Column("reason"), Column("denied because", style="warn")] * asked
    rows: list[tuple[Line, ...]] = []
    for one in found:
        out = "" if one.out_since is None else str(one.out_since)
        place = (number(one.turn), number(one.call), str(one.position), one.page or "", out, number(one.tokens))
        rows.append((*place, *(one.reason or "", one.denied_because or "") * asked))
    return Table(columns, rows)


def versions(found: Sequence[Version]) -> Table:
    """The versions of a page in order, its shorter forms among them."""
    columns = [Column("version", right=True), Column("level"), Column("position", right=True, style="dim")]
    columns += [Column(title, right=True) for title in ("tokens", "added", "size", "added")]
    columns += [Column("method"), Column("by")]
    rows = [
        (
            number(one.version),
            Span(level(one.level), "warn" if one.level else "dim"),
            str(one.position),
            number(one.tokens),
            change(one.tokens_added),
            size(one.bytes),
            change(one.bytes_added),
            one.method or "",
            one.actor,
        )
        for one in found
    ]
    return Table(columns, rows)


def delta(one: Version) -> list[Line]:
    """What a version changed, line by line."""
    if one.delta is None:
        return []
    styles = {"+": "good", "-": "bad", "@": "name"}
    return ["", *(Span(line, styles.get(line[:1], "dim")) for line in one.delta.splitlines())]


def affinities(found: Sequence[Affinity]) -> Table:
    """Pages that stood together with one, nearest first."""
    columns = [Column("page", style="name"), Column("affinity", right=True), Column("", style="name")]
    columns += [Column("shared", right=True), Column("calls", right=True), Column("role"), Column("type")]
    columns += [Column("tokens", right=True), Column("begins", style="dim")]
    rows = [
        (
            one.page,
            f"{one.affinity:.2f}",
            bar(round(one.affinity * 1000), 1000),
            number(one.shared),
            number(one.calls),
            one.role,
            one.type,
            number(one.tokens),
            one.text,
        )
        for one in found
    ]
    return Table(columns, rows)


def history(found: Sequence[Event]) -> Table:
    """A page's events in order, as a timeline."""
    columns = [Column(title, right=True, style="dim") for title in ("turn", "call", "position")]
    columns += [Column(""), Column("event"), Column("")]
    rows = []
    for one in found:
        sign, style, words = EVENTS.get(one.event, ("·", "", one.event))
        row: tuple[Line, ...] = (
            number(one.turn),
            number(one.call),
            str(one.position),
            Span(sign, style),
            words,
            _told(one),
        )
        rows.append(row)
    return Table(columns, rows)


def _told(one: Event) -> Line:
    told = []
    if one.detail:
        told.append(_link(one.detail) if one.event == "link" else one.detail)
    if one.event in ("update", "compress", "shown") and one.version > 1:
        told.append(f"version {one.version}")
    if one.level:
        told.append(level(one.level))
    if one.method:
        told.append(one.method)
    if one.tokens is not None:
        told.append(count(one.tokens, "token"))
    if one.event in CONTESTED:
        told = [*told[1:], *told[:1]]  # the contest is long, and ends in numbers of its own
    return ", ".join(told)


def _link(detail: str) -> str:
    kind, _, page = detail.partition(" ")
    return f"{UP.get(kind, kind.replace('_', ' '))} {page}"


def tree(root: str, found: Sequence[Relation], hints: Mapping[str, str], *, up: bool) -> list[Line]:
    """A walk as an indented tree; a page met again is named, not repeated."""
    branches: dict[str, list[Relation]] = {}
    for relation in found:
        branches.setdefault(relation.source if up else relation.target, []).append(relation)
    if not branches:
        return [Span("nothing it was made from is known" if up else "nothing made from it is known", "dim")]
    lines: list[Line] = []
    _grow(lines, root, "", branches, hints, {root}, up)
    return lines


def _grow(
    lines: list[Line],
    at: str,
    indent: str,
    branches: Mapping[str, list[Relation]],
    hints: Mapping[str, str],
    seen: set[str],
    up: bool,
) -> None:
    """Adds the branches below a page, without recursion deeper than Python allows."""
    stack = [(at, indent, iter(_last_told(branches.get(at, ()))))]
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
        text = Span("  (see above)", "dim") if again else Span(f"  {relation.text}", "dim")
        stands = Span(f" {SUPERSEDED}" if relation.status == SUPERSEDED else "", "bad")
        branch = "└─ " if last else "├─ "
        lines.append((before, branch, Span(f"{kind} ", "warn"), Span(far, "name"), hint, stands, text))
        if not again and far in branches:
            stack.append((far, before + ("   " if last else "│  "), iter(_last_told(branches[far]))))


def _last_told(relations: Sequence[Relation]) -> list[tuple[Relation, bool]]:
    return [(relation, index == len(relations) - 1) for index, relation in enumerate(relations)]
