"""Annotations of pages at a moment: importance, tags, status, validity, anchors.

A row never changes: what holds is what the last row at or before a position says, in the nearest
stretch of a lane that says anything. Nothing is replayed, and a moment long ago costs what the head does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from vmstore.views.branch import Branch
from vmstore.views.projectors.pages import NOTED, WEIGHED, object_of


class PageNotes(msgspec.Struct):
    """The annotations of a page; None in a field that was never annotated."""

    importance: int | None = None
    status: int | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    anchors: dict[str, Any] = {}
    tags: list[str] = []


def notes_of(lane: Branch, position: int, pages: Iterable[int]) -> dict[int, PageNotes]:
    """The annotations of pages at a position; pages without any are left out."""
    listed = json.dumps(list(pages))
    found: dict[int, PageNotes] = {}
    for stretch in reversed(lane.upto(position)):
        about = (listed, stretch.session, stretch.high)
        for page, importance, status, valid_from, valid_to, anchors in lane.db.execute(_NOTES, about):
            note = found.setdefault(page, PageNotes())
            note.importance = note.importance if importance is None else importance
            note.status = note.status if status is None else status
            note.valid_from = note.valid_from if valid_from is None else valid_from
            note.valid_to = note.valid_to if valid_to is None else valid_to
            note.anchors |= object_of(anchors)
        for page, tag, is_held in lane.db.execute(_TAGS, about):
            note = found.setdefault(page, PageNotes())
            note.tags = [other for other in note.tags if other != tag] + [tag] * is_held
    for note in found.values():
        note.tags.sort()
        note.anchors = {name: value for name, value in note.anchors.items() if value is not None}
    return found


def anchored(lane: Branch, position: int, after: int = 0) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The changes of anchors after a position up to another, in order: where each stands, its page, values by name."""
    for stretch in reversed(lane.upto(position)):
        rows: list[Any] = lane.db.execute(_ANCHORED, (stretch.session, after, stretch.high)).fetchall()
        yield from ((at, page, object_of(anchors)) for at, page, anchors in rows)


def tagged(lane: Branch, position: int, tag: str) -> set[int]:
    """The pages that have a tag at a position: costs what was ever said of that tag."""
    counts: dict[int, int] = {}
    for stretch in reversed(lane.upto(position)):
        counts.update(lane.db.execute(_TAGGED, (tag, stretch.session, stretch.high)))
    return {page for page, holds in counts.items() if holds}


def importances(lane: Branch, position: int) -> dict[int, int]:
    """The importance of every page that somebody weighed after it was made, at a position."""
    found: dict[int, int] = {}
    for stretch in reversed(lane.upto(position)):
        found.update(lane.db.execute(_IMPORTANCES, (stretch.session, stretch.high)))
    return found


def weighing(lane: Branch, position: int, low: int, below: int) -> set[int]:
    """The pages whose importance at a position is from `low` to under `below`, found by index.

    No index holds the pages that nobody weighed, so what they weigh may not lie within.
    """
    born: dict[int, int] = {}
    noted: set[int] = set()
    for stretch in lane.upto(position):
        within = (stretch.session, low, below, stretch.high)
        born.update(lane.db.execute(BORN, within))
        noted.update(page for (page,) in lane.db.execute(WEIGHED_LATER, within))
    last: dict[int, int] = {}
    listed = json.dumps([*born, *noted])
    for stretch in reversed(lane.upto(position)):
        last.update(lane.db.execute(_WEIGHED, (listed, stretch.session, stretch.high)))
    return {page for page in born.keys() | noted if low <= last.get(page, born.get(page, below)) < below}


_NOTES = """SELECT n.page, importance, status, valid_from, valid_to, anchors FROM json_each(?) one
  CROSS JOIN notes n ON n.session = ? AND n.page = one.value AND n.position <= ? ORDER BY n.position"""
_ANCHORED = """SELECT position, page, anchors FROM notes WHERE session = ? AND position > ? AND position <= ?
  AND anchors IS NOT NULL ORDER BY position"""
_TAGS = """SELECT t.page, t.tag, t.held FROM json_each(?) one CROSS JOIN tags t INDEXED BY tags_page
   ON t.session = ? AND t.page = one.value AND t.position <= ? ORDER BY t.position"""
_TAGGED = "SELECT page, held FROM tags WHERE tag = ? AND session = ? AND position <= ? ORDER BY page, position"
_IMPORTANCES = f"""SELECT page, importance FROM notes WHERE session = ? AND position <= ? AND {NOTED}
  ORDER BY page, position"""
BORN = f"""SELECT page, importance FROM pages INDEXED BY pages_importance
  WHERE session = ? AND importance >= ? AND importance < ? AND page <= ? AND {WEIGHED}"""
WEIGHED_LATER = f"""SELECT page FROM notes INDEXED BY notes_importance
  WHERE session = ? AND importance >= ? AND importance < ? AND position <= ? AND {NOTED}"""
_WEIGHED = f"""SELECT n.page, n.importance FROM json_each(?) one
  CROSS JOIN notes n ON n.session = ? AND n.page = one.value AND n.position <= ? AND {NOTED} ORDER BY n.position"""
