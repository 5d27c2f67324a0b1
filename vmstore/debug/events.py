"""What happened in a session, as one list: pages made, shown and gone, decisions with their reasons, what was named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from vmstore.core.decision import Load, Pressure, Search, Segment
from vmstore.core.mutation import MUTATION_NAMES, Evict
from vmstore.core.page import METHODS, Level
from vmstore.core.text.tool_outcome import ToolOutcome
from vmstore.core.work.trace import GuardType
from vmstore.debug.rows import PageRow, SessionRows
from vmstore.live.session_log import SessionLog
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.compactions import compactions_at
from vmstore.views.projectors.decisions import decided, decisions_at, live_since
from vmstore.views.projectors.pages import object_of
from vmstore.views.reads.reasons import reason_of, word_of

FROM_LOG = {Pressure.NUMBER, Search.NUMBER, Segment.NUMBER}  # read from the log, which has all their fields


class SessionEvent(NamedTuple):
    """One thing that happened at a position, to a page or, where that is 0, to none; why, where anybody said it."""

    position: int
    order: int
    page: int
    kind: str
    why: str | None = None


def happened(lane: Branch, log: Log, rows: SessionRows) -> list[SessionEvent]:
    """Everything up to the position of the rows, in order; at one position contents first, then decisions, stays."""
    live = live_since(lane, rows.position)
    found = [*_made(rows), *_moved(rows), *_decided(lane, rows.position), *_said(rows), *_settled(rows)]
    found += _compactions(lane, rows.position)
    found += _worked(lane, rows.position)
    if live is not None:
        found += _logged(lane, log, live, rows.position)
    return sorted(found, key=lambda event: event[:3])


def _made(rows: SessionRows) -> Iterator[SessionEvent]:
    """Pages and later contents."""
    for page in rows.pages:
        yield SessionEvent(page.page, 0, page.page, "create", _reason(page))
    for change in rows.changes:
        if change.level == Level.FULL:
            yield SessionEvent(change.position, 0, change.page, "update", f"version {change.version}")
        else:
            method = next((name for number, name in METHODS.items() if number == change.method), None)
            shown = Level(change.level).word
            yield SessionEvent(change.position, 0, change.page, "compress", f"{shown}, {method}" if method else shown)


def _reason(page: PageRow) -> str | None:
    """Why a line of a source was kept as it stood."""
    if page.labels is None or '"reason"' not in page.labels:
        return None
    labels = object_of(page.labels)
    return f"{labels.get('where')}: {labels['reason']}" if labels.get("reason") else None


def _moved(rows: SessionRows) -> Iterator[SessionEvent]:
    """Pages that entered the prompt, were shown otherwise there, or left it."""
    begun = {(stay.f, stay.page): stay for stay in rows.stays}
    for stay in rows.stays:
        if stay.f == stay.since:
            yield SessionEvent(stay.f, 2, stay.page, "enter")
        if stay.t is None:
            continue
        after = begun.get((stay.t, stay.page))
        if after is None:
            yield SessionEvent(stay.t, 2, stay.page, "leave")
        elif after.content != stay.content:
            yield SessionEvent(stay.t, 2, stay.page, "shown")


def _decided(lane: Branch, position: int) -> Iterator[SessionEvent]:
    """What a kernel was asked about pages and what it decided."""
    found = list(decided(lane, position, MUTATION_NAMES.keys() - FROM_LOG))
    asked = decisions_at(lane, {event.cause for event in found if event.cause})
    for event in found:
        kind, reason = MUTATION_NAMES[event.kind], reason_of(event, asked.get)
        if event.kind == Evict.NUMBER and event.level is not None:  # it stays, shown shorter
            kind, reason = "shorten", f"{reason}; {Level(event.level).word}"
        yield SessionEvent(event.position, 1, event.page, kind, reason)


def _said(rows: SessionRows) -> Iterator[SessionEvent]:
    """What was said of pages, and moments that were named."""
    for position, page in rows.annotations():
        yield SessionEvent(position, 1, page, "annotate")
    for mark in rows.marks:
        yield SessionEvent(mark.position, 1, 0, "mark", mark.name)


def _settled(rows: SessionRows) -> Iterator[SessionEvent]:
    """How the kernel works from there on, where that changed."""
    before: dict[str, Any] = {}
    for position, settings in rows.settings():
        now = object_of(settings)
        changed = {name: value for name, value in now.items() if before.get(name) != value}
        before = now
        if changed:
            listed = ", ".join(f"{name} {json.dumps(value)[:60]}" for name, value in changed.items())
            yield SessionEvent(position, 1, 0, "settings", listed)


def _compactions(lane: Branch, position: int) -> Iterator[SessionEvent]:
    """Where a summary replaced pages of the prompt."""
    for made in compactions_at(lane, position):
        left = len(made.left)
        what = f"{left} page{'s' * (left != 1)} left, {made.tokens:,} tokens"
        yield SessionEvent(made.position, 3, made.summary, "compaction", what)


def _worked(lane: Branch, position: int) -> Iterator[SessionEvent]:
    """Tools that ran, with what they touched, guards that spoke up, skills that were weighed, words on files."""
    for stretch in lane.upto(position):
        bounds = (stretch.session, stretch.low, stretch.high)
        for at, call, outcome, error, *touched in lane.db.execute(_RUNS, bounds):
            counts = zip(("read", "created", "modified"), map(json.loads, touched), strict=True)
            effects = ", ".join(f"{len(pages)} {what}" for what, pages in counts if pages)
            parts = (word_of(ToolOutcome, outcome), effects, error)
            yield SessionEvent(at, 1, call, "tool_call", "; ".join(part for part in parts if part))
        for at, kind, tool, count, page in lane.db.execute(_GUARDS, bounds):
            yield SessionEvent(at, 1, page or 0, "guard", f"{word_of(GuardType, kind)}; {tool}, {count} counted")
        for at, page, skill, count, tries in lane.db.execute(_SKILLS, bounds):
            yield SessionEvent(at, 1, page, "promote", f"{skill}; {count} of {tries} tries")
        for at, page, granted, who in lane.db.execute(_APPROVALS, bounds):
            yield SessionEvent(at, 1, page, "approve", f"{'approved' if granted else 'denied'} by {who or 'somebody'}")


_WITHIN = "WHERE session = ? AND position > ? AND position <= ? ORDER BY position"
_RUNS = f"SELECT position, call, outcome, error, read, created, modified FROM runs {_WITHIN}"
_GUARDS = f"SELECT position, type, tool, count, coalesce(warning, call) FROM guards {_WITHIN}"
_SKILLS = f"SELECT position, page, skill, count, tries FROM skills {_WITHIN}"
_APPROVALS = f"SELECT position, page, granted, who FROM approvals {_WITHIN.replace('ORDER', 'AND page ORDER')}"


def _logged(lane: Branch, log: Log, since: int, position: int) -> Iterator[SessionEvent]:
    """The events of a live session that only the log has: how full the prompt was, segments, searches."""
    facts = SessionLog(log, lane)
    for commit in facts.after(since - 1, position):
        for at, mutation in commit.mutations:
            if isinstance(mutation, Pressure):
                full = f"{word_of(Load, mutation.level)}; {mutation.used} of {mutation.budget} tokens"
                yield SessionEvent(at, 1, 0, "pressure", full)
            elif isinstance(mutation, Segment):
                title = None if mutation.title is None else facts.cell(at, mutation.title).decode("utf-8", "replace")
                yield SessionEvent(at, 1, mutation.summary or 0, "segment", title)
            elif isinstance(mutation, Search):
                query = facts.cell(at, mutation.query).decode("utf-8", "replace")
                yield SessionEvent(at, 1, 0, "search", query)
