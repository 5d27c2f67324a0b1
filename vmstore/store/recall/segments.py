"""The segments of a session, and those before and after them: in it, and in the sessions it goes on from or begot."""

from __future__ import annotations

from typing import Any

import msgspec

from vmstore.core.address import page_name
from vmstore.core.page import Origin
from vmstore.errors import UnknownError
from vmstore.namespace.namespace import Namespace
from vmstore.views.branch import NEVER, Branch
from vmstore.views.reads.segments import segment_rows


class SegmentInfo(msgspec.Struct, frozen=True):
    """A stretch of a session about one thing: its turns and pages, what sums it up, and how that stands.

    `layer` is 0 as it was said, 1 summed up, 2 the summary of a tag's segments, which has no number. `state` is open,
    ended, fresh, or stale where its summaries lack something that was said in it or changed since; `tokens_after`
    counts these and what stands in none.
    """

    session: str
    number: int | None
    layer: int
    tags: list[str]
    title: str | None
    first_turn: int
    last_turn: int
    pages: int
    tokens_before: int
    tokens_after: int
    summary: str | None
    state: str
    position: int


def segments_at(lane: Branch, name: str, position: int) -> list[SegmentInfo]:
    """The segments of a session at a moment, in order, then the summaries of tags."""
    return [
        SegmentInfo(
            name,
            row.number,
            row.layer,
            list(row.tags),
            row.title,
            row.first_turn,
            row.last_turn,
            row.pages,
            row.tokens_before,
            row.tokens_after,
            None if row.summary is None else page_name(row.summary),
            row.state,
            row.position,
        )
        for row in segment_rows(lane, position)
    ]


def ancestors_of(ns: Namespace, lane: Branch, name: str, position: int, number: int | None) -> list[SegmentInfo]:
    """The segments before one, or before the one under way, oldest first: those of what it goes on from come before."""
    own = _numbered(lane, name, position)
    at = _place(own, name, number) if own or number is not None else 0
    found, seen, key = own[:at], {lane.session}, lane.session
    while True:
        parent: Any = ns.views.execute(_PARENT, (key,)).fetchone()
        if parent is None or parent[0] in seen:
            return found
        key, parent_name, origin = parent
        seen.add(key)
        if origin != Origin.FORK:  # what a fork inherits is its own past, and listed already
            found = _numbered(Branch(ns.views, key), parent_name, NEVER) + found


def descendants_of(ns: Namespace, lane: Branch, name: str, position: int, number: int | None) -> list[SegmentInfo]:
    """The segments after one, or after the first, in order: those of what goes on from the session come after."""
    own = _numbered(lane, name, position)
    at = _place(own, name, number) + 1 if number is not None else 1
    found, seen, waiting = own[at:], {lane.session}, [lane.session]
    while waiting:
        children: list[Any] = ns.views.execute(_CHILDREN, (waiting.pop(0),)).fetchall()
        for key, child_name, fork_position in children:
            if key not in seen:
                seen.add(key)
                waiting.append(key)
                listed = _numbered(Branch(ns.views, key), child_name, NEVER)
                found += [segment for segment in listed if segment.position > fork_position]
    return found


def _numbered(lane: Branch, name: str, position: int) -> list[SegmentInfo]:
    return [segment for segment in segments_at(lane, name, position) if segment.number is not None]


def _place(own: list[SegmentInfo], name: str, number: int | None) -> int:
    if number is None:
        return len(own) - 1
    for at, segment in enumerate(own):
        if segment.number == number:
            return at
    known = ", ".join(str(segment.number) for segment in own[-5:]) or "none"
    raise UnknownError(f"there is no segment {number!r} in {name!r}; the last ones are {known}")


_PARENT = """SELECT o.session, o.name, s.origin FROM sessions s JOIN sessions o ON o.session = s.parent
  WHERE s.session = ?"""
_CHILDREN = f"""SELECT session, name, iif(origin = {int(Origin.FORK)}, fork_position, 0) FROM sessions
  WHERE parent = ? ORDER BY session"""
