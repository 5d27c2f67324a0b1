"""Pages as they stood at a moment, and what happened to one of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from vmstore.core.page import LinkKind, Method, Mime, Modality, PageType, Role, Tier
from vmstore.core.reference import page_name
from vmstore.log.port import Log
from vmstore.store.answers import Event, Page, Relation
from vmstore.views.context import read_cells
from vmstore.views.lane import Lane
from vmstore.views.lineage import Edge
from vmstore.views.projection import moment_at
from vmstore.views.residency import resident_at

PREVIEW_CHARS = 80


def pages_at(lane: Lane, position: int) -> list[Page]:
    """Every page there was at a position, in order of creation."""
    resident = {r.page: r for r in resident_at(lane, position)}
    versions: dict[int, Any] = {}
    rows: list[Any] = []
    for stretch in reversed(lane.upto(position)):
        args = (stretch.session, stretch.high)
        rows += lane.db.execute(_PAGES, args).fetchall()
        for row in lane.db.execute(_VERSIONS, args):
            versions[row[0]] = row
    found = []
    for page, message, type_, role, modality, mime, importance, hint, labels, turn, call, at in rows:
        _, version, tokens, size = versions[page]
        held = resident.get(page)
        if held is not None and held.level:
            tokens, size = _shown(lane, held.content)
        found.append(
            Page(
                page=page_name(page),
                message=f"m{message}" if message else None,
                type=PageType(type_).word,
                role=Role(role).word,
                modality=Modality(modality).word,
                mime=_mime(mime, labels),
                tier=int(Tier.L0 if held is not None else Tier.L2),
                level=held.level if held is not None else 0,
                version=version,
                tokens=tokens,
                bytes=size,
                importance=importance / 1_000_000,
                hint=hint,
                created_turn=turn,
                created_call=call,
                created_at=at,
                position=page,
            )
        )
    return found


def _shown(lane: Lane, content: int) -> tuple[int, int]:
    row = lane.db.execute(
        "SELECT tokens, size FROM versions WHERE session = ? AND position = ?", (lane.owner(content), content)
    ).get
    return row[0], row[1]


def _mime(mime: int, labels: str | None) -> str:
    if mime == Mime.OTHER and labels:
        return str(json.loads(labels).get("mime", Mime.OTHER.type))
    return Mime(mime).type


def history_of(lane: Lane, page: int, position: int) -> list[Event]:
    """What happened to a page up to a position: made, changed, shown, gone, linked."""
    events: list[tuple[int, int, dict[str, Any]]] = []
    for stretch in lane.upto(position):
        args = (stretch.session, page, stretch.high)
        for at, version, level, tokens, method in lane.db.execute(_CONTENTS, args):
            name = "compress" if level else "update" if version > 1 else "create"
            told: dict[str, Any] = {"event": name, "version": version, "level": level, "tokens": tokens}
            if method is not None:
                told["method"] = Method(method).word
            if name == "create":
                told["detail"] = _reason(lane, stretch.session, page)
            events.append((at, 0, told))
        for kind, target, at in lane.db.execute(_LINKED, args):
            told = {"event": "link", "detail": f"{LinkKind(kind).word} {page_name(target)}"}
            events.append((at, 1, told))
    events += _stays(lane, page, position)
    return [_event(lane, at, told) for at, _, told in sorted(events, key=lambda e: (e[0], e[1]))]


def _reason(lane: Lane, session: int, page: int) -> str | None:
    labels = lane.db.execute("SELECT labels FROM pages WHERE session = ? AND page = ?", (session, page)).get
    told = json.loads(labels) if labels else {}
    return told.get("reason") and f"{told['where']}: {told['reason']}"


def _stays(lane: Lane, page: int, position: int) -> list[tuple[int, int, dict[str, Any]]]:
    """Entering and leaving L0, and changes of level or content in between."""
    stays: dict[int, tuple[int, int | None, int, int, int]] = {}
    for stretch in lane.upto(position):
        args = (stretch.session, page, stretch.high)
        for f, t, level, content, since in (
            *lane.db.execute(_RESIDENTS, args),
            *lane.db.execute(_SPANS, args),
        ):
            ended = t if t is not None and t <= stretch.high else None
            stays.setdefault(f, (f, ended, level, content, since))  # a fork's own knowledge comes first
    versions = dict(lane.rows(_VERSION, {content for _, _, _, content, _ in stays.values()}))
    events: list[tuple[int, int, dict[str, Any]]] = []
    ordered = sorted(stays.values())
    for index, (f, t, level, content, since) in enumerate(ordered):
        version = versions[content]
        told = {"event": "enter" if f == since else "shown", "level": level, "version": version}
        if f <= position:
            events.append((f, 2, told))
        goes_on = index + 1 < len(ordered) and ordered[index + 1][0] == t
        if t is not None and t <= position and not goes_on:
            events.append((t, 2, {"event": "leave", "level": level, "version": version}))
    return events


def _event(lane: Lane, position: int, told: dict[str, Any]) -> Event:
    turn, call = moment_at(lane, position)
    return Event(position, turn, call, **{"level": 0, "version": 1, **told})


def relations(lane: Lane, log: Log, edges: Iterable[Edge], *, up: bool) -> list[Relation]:
    """Links as answers, with the beginning of the text on their far side."""
    edges = list(edges)
    texts = previews(lane, log, {edge.target if up else edge.source for edge in edges})
    return [
        Relation(
            edge.depth,
            page_name(edge.source),
            LinkKind(edge.kind).word,
            page_name(edge.target),
            edge.position,
            texts.get(edge.target if up else edge.source, ""),
        )
        for edge in edges
    ]


def previews(lane: Lane, log: Log, pages: Iterable[int]) -> dict[int, str]:
    """The beginning of each page's first content, on one line."""
    cells = {page: (cell, commitment) for page, cell, commitment in lane.rows(_CELLS, pages) if cell is not None}
    contents = read_cells(log, dict(cells.values()))
    return {page: preview(contents[cell]) for page, (cell, _) in cells.items()}


def preview(content: bytes) -> str:
    """The beginning of a content, on one line; what is no text says how long it is."""
    head = content[: 4 * PREVIEW_CHARS + 8]
    text = "" if b"\0" in head else " ".join(head.decode("utf-8", "ignore").split())
    if not text:
        return f"[{len(content)} bytes]" if content else ""
    return text if len(text) <= PREVIEW_CHARS else text[: PREVIEW_CHARS - 1] + "…"


_PAGES = """SELECT page, message, type, role, modality, mime, importance, hint, labels, turn, call, at
  FROM pages WHERE session = ? AND page <= ? ORDER BY page"""
_VERSIONS = """SELECT page, version, tokens, size FROM versions
  WHERE session = ? AND position <= ? AND level = 0 ORDER BY position"""
_CONTENTS = """SELECT position, version, level, tokens, method FROM versions
  WHERE session = ? AND page = ? AND position <= ?"""
_LINKED = "SELECT kind, target, position FROM links WHERE session = ? AND source = ? AND position <= ?"
_SPANS = "SELECT f, t, level, content, since FROM spans WHERE session = ? AND page = ? AND f <= ?"
_RESIDENTS = "SELECT f, NULL, level, content, since FROM residents WHERE session = ? AND page = ? AND f <= ?"
_VERSION = """SELECT position, version FROM versions
  WHERE session = ? AND position IN (SELECT value FROM json_each(?))"""
_CELLS = (
    """SELECT page, cell, commitment FROM versions WHERE session = ? AND position IN (SELECT value FROM json_each(?))"""
)
