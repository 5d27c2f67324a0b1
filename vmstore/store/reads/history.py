"""History of a page: made, changed, annotated, shown, gone, linked, used, and decisions about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vmstore.core.address import page_name
from vmstore.core.erasure import ErasureReason
from vmstore.core.mutation import MUTATION_NAMES, Delete
from vmstore.core.page import LinkKind, Method, Standing
from vmstore.core.tags import TagMethod
from vmstore.core.text.json_text import plain
from vmstore.namespace.results import Event
from vmstore.views.branch import Branch, BranchRange
from vmstore.views.projectors.decisions import decisions_at, decisions_of
from vmstore.views.projectors.pages import object_of
from vmstore.views.projectors.redactions import RedactionRecord, hidden_in, words_of
from vmstore.views.reads.reasons import detail_of, word_of
from vmstore.views.reads.resolve_asof import moment_at


def history_of(lane: Branch, page: int, position: int) -> list[Event]:
    """Events of a page up to a position, in order."""
    events: list[tuple[int, int, dict[str, Any]]] = []
    for stretch in lane.upto(position):
        args = (stretch.session, page, stretch.high)
        for at, version, level, tokens, method in lane.db.execute(_CONTENTS, args):
            name = "compress" if level else "update" if version > 1 else "create"
            event: dict[str, Any] = {"event": name, "version": version, "level": level, "tokens": tokens}
            if method is not None:
                event["method"] = Method(method).word
            if name == "create":
                event["detail"] = _reason(lane, stretch.session, page)
            events.append((at, 0, event))
        for name, sql in _LINKED.items():
            for kind, target, at in lane.db.execute(sql, args):
                events.append((at, 1, {"event": name, "detail": f"{LinkKind(kind).word} {page_name(target)}"}))
        for name, sql in _SPOKEN_AGAINST.items():
            for kind, source, at in lane.db.execute(sql, args):
                events.append((at, 1, {"event": name, "detail": f"{_BY[kind]} {page_name(source)}"}))
        events += [(at, 1, {"event": "flush"}) for (at,) in lane.db.execute(_FLUSHED, args)]
        events += [(at, 1, {"event": "tag", "detail": detail}) for at, detail in _tagged(lane, args)]
        events += [(at, 1, {"event": "annotate", "detail": detail}) for at, detail in _said(lane, stretch, page)]
        for at, reason in lane.db.execute(_ERASED, args):
            events.append((at, 2, {"event": "erase", "detail": ErasureReason(reason).word}))
    events += [(record.position, 1, _hidden(record)) for record in hidden_in(lane, page, position)]
    events += _stays(lane, page, position)
    events += _decided(lane, page, position)
    return [_event(lane, at, event) for at, _, event in sorted(events, key=lambda e: (e[0], e[1]))]


def _reason(lane: Branch, session: int, page: int) -> str | None:
    labels = lane.db.execute("SELECT labels FROM pages WHERE session = ? AND page = ?", (session, page)).get
    labels_object = object_of(labels)
    where, reason = plain(labels_object.get("where")), plain(labels_object.get("reason"))
    return reason and (f"{where}: {reason}" if where else reason)


def _said(lane: Branch, stretch: BranchRange, page: int) -> Iterator[tuple[int, str]]:
    """Each annotation of a page in a stretch, in words."""
    args = (stretch.session, page, stretch.high)
    tags: dict[int, list[str]] = {}
    for position, tag, is_held in lane.db.execute(_TAGS, args):
        tags.setdefault(position, []).append(f"{'+' if is_held else '-'}{tag}")
    for position, importance, status, valid_from, valid_to, anchors in lane.db.execute(_NOTES, (*args, Delete.NUMBER)):
        words = tags.get(position, [])
        words += [] if importance is None else [f"importance {importance / 1e6:g}"]
        words += [] if status is None else [Standing(status).word]
        words += [] if valid_from is None else [f"valid from {valid_from}"]
        words += [] if valid_to is None else [f"valid to {valid_to}"]
        words += [f"{name} = {value}" for name, value in object_of(anchors).items()]
        yield position, ", ".join(words)


def _tagged(lane: Branch, args: tuple[int, int, int]) -> Iterator[tuple[int, str]]:
    """Each tag that a mutation of its own gave or took away, and how it was found."""
    for position, tag, held, method in lane.db.execute(_TAG, args):
        yield position, f"{'+' if held else '-'}{tag}, {word_of(TagMethod, method)}"


def _hidden(record: RedactionRecord) -> dict[str, Any]:
    """Redactions in a page before it was written; never the value."""
    return {"event": "redact", "detail": words_of(record), "tokens": record.tokens_after or None}


def _stays(lane: Branch, page: int, position: int) -> list[tuple[int, int, dict[str, Any]]]:
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
        event = {"event": "enter" if f == since else "shown", "level": level, "version": version}
        if f <= position:
            events.append((f, 2, event))
        goes_on = index + 1 < len(ordered) and ordered[index + 1][0] == t
        if t is not None and t <= position and not goes_on:
            events.append((t, 2, {"event": "leave", "level": level, "version": version}))
    return events


def _decided(lane: Branch, page: int, position: int) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Requests and decisions of a kernel about the page, with the reasons."""
    found = decisions_of(lane, page, position)
    asked = decisions_at(lane, {decision.cause for decision in found if decision.cause})
    versions = dict(lane.rows(_VERSION, {decision.content for decision in found if decision.content}))
    for decision in found:
        event: dict[str, Any] = {"event": MUTATION_NAMES[decision.kind], "detail": detail_of(decision, asked.get)}
        if decision.content:
            event |= {"level": decision.level, "version": versions[decision.content]}
        if decision.tokens is not None:
            event["tokens"] = decision.tokens
        yield decision.position, 1, event


def _event(lane: Branch, position: int, fields: dict[str, Any]) -> Event:
    turn, call = moment_at(lane, position)
    return Event(position, turn, call, **{"level": 0, "version": 1, **fields})


_CONTENTS = """SELECT position, version, level, tokens, method FROM versions
  WHERE session = ? AND page = ? AND position <= ?"""
_LINKED = {
    "link": "SELECT kind, target, position FROM links WHERE session = ? AND source = ? AND position <= ?",
    "unlink": "SELECT kind, target, position FROM unlinks WHERE session = ? AND source = ? AND position <= ?",
}
# Links from other pages that change what a page is worth: its own history must say so.
_BY = {int(LinkKind.SUPERSEDES): "superseded by", int(LinkKind.CONTRADICTS): "contradicted by"}
_SPOKEN_AGAINST = {
    name: f"SELECT kind, source, position FROM {table} WHERE session = ? AND target = ? AND position <= ?"
    f" AND source <> target AND kind IN ({', '.join(map(str, _BY))})"
    for name, table in (("link", "links"), ("unlink", "unlinks"))
}
_FLUSHED = "SELECT position FROM flushes WHERE session = ? AND page = ? AND position <= ?"
_NOTES = """SELECT position, importance, status, valid_from, valid_to, anchors FROM notes n
  WHERE session = ? AND page = ? AND position <= ? AND NOT EXISTS (SELECT 1 FROM decisions d
   WHERE d.session = n.session AND d.position = n.position AND d.page = n.page AND d.kind = ?)"""
_TAGS = "SELECT position, tag, held FROM tags WHERE session = ? AND page = ? AND position <= ? ORDER BY position, tag"
_TAG = """SELECT position, tag, held, method FROM tags
  WHERE session = ? AND page = ? AND position <= ? AND method IS NOT NULL"""
_SPANS = "SELECT f, t, level, content, since FROM spans WHERE session = ? AND page = ? AND f <= ?"
_RESIDENTS = "SELECT f, NULL, level, content, since FROM residents WHERE session = ? AND page = ? AND f <= ?"
_VERSION = """SELECT position, version FROM versions
  WHERE session = ? AND position IN (SELECT value FROM json_each(?))"""
_ERASED = """SELECT DISTINCT e.position, r.reason FROM versions v JOIN erased e ON e.cell = v.cell
  JOIN erasures r ON r.position = e.position AND r.session = e.session
  WHERE v.session = ?1 AND v.page = ?2 AND e.session = ?1 AND e.position <= ?3"""
