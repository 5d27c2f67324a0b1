"""Pages as they stood at a moment, and what happened to one of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from vmstore.core.address import page_name
from vmstore.core.page import LinkKind, Mime, Modality, PageType, Role, Standing, Tier
from vmstore.core.text.json_text import plain
from vmstore.log.port import Log
from vmstore.namespace.results import Page, PageLink
from vmstore.views.branch import Branch
from vmstore.views.projectors.decisions import holders
from vmstore.views.projectors.lineage import Edge, ended
from vmstore.views.projectors.pages import object_of
from vmstore.views.projectors.residency import ResidentRow, resident_at
from vmstore.views.reads.annotations import PageNotes, notes_of
from vmstore.views.reads.page_calls import seen, turns_of
from vmstore.views.reads.page_lines import page_lines


def described(lane: Branch, position: int, pages: Sequence[int]) -> list[Page]:
    """Pages as they stood at a position, in the order given; costs what they and their stays are."""
    born = {row[0]: row for row in lane.rows(_PAGES, pages)}
    names = dict(_names(lane, {row[-1] for row in born.values()}))
    contents = _contents_at(lane, position, born)
    notes = notes_of(lane, position, pages)
    held_by = holders(lane, position, pages)
    calls = seen(lane, position, pages)
    last = {page: max(few.stop for few in calls[page]) - 1 for page in calls}
    turns = turns_of(lane, set(last.values()))
    represented = _represented(lane, position, pages)
    found = []
    for number in pages:
        page, _, _, message, type_, role, modality, mime, importance, hint, labels, turn, call, at, owner = born[number]
        place, version, tokens, size = contents[page]
        note = notes.get(page) or PageNotes()
        found.append(
            Page(
                page=page_name(page),
                session=names[owner],
                message=f"m{message}" if message else None,
                type=_TYPES[type_],
                role=_ROLES[role],
                modality=_MODALITIES[modality],
                mime=_mime(mime, labels),
                tier=_L0 if place is not None else _L2,
                level=place.level if place is not None else 0,
                version=version,
                tokens=tokens,
                bytes=size,
                importance=(importance if note.importance is None else note.importance) / 1_000_000,
                pinned=page in held_by,
                tags=note.tags,
                hint=hint,
                actor=actor(labels, role),
                status=None if note.status is None else Standing(note.status).word,
                valid_from=note.valid_from,
                valid_to=note.valid_to,
                anchors=note.anchors,
                represents=[page_name(target) for target in sorted(represented.get(page, ()))],
                created_turn=turn,
                created_call=call,
                created_at=at,
                last_access_turn=turns[last[page]] if page in last else None,
                access_count=sum(map(len, calls.get(page, ()))),
                position=page,
            )
        )
    return found


class CountedSize(NamedTuple):
    """The size of a page: of its form in L0, or of its last full version, whose number is `version`."""

    held: ResidentRow | None
    version: int
    tokens: int
    size: int


def _contents_at(lane: Branch, position: int, born: Mapping[int, Any]) -> dict[int, CountedSize]:
    """The last full version of each page, and the size of what the prompt shows of it where it is there."""
    found = {page: CountedSize(None, 1, tokens, size) for page, tokens, size, *_ in born.values()}
    listed = json.dumps(list(born))
    for stretch in reversed(lane.upto(position)):
        for page, *later in lane.db.execute(_LATER, (listed, stretch.session, stretch.high)):
            found[page] = CountedSize(None, *later)
    residents = [resident for resident in resident_at(lane, position) if resident.page in found]
    shown: dict[int, Any] = {at: size for at, *size in lane.rows(_SHOWN, [r.content for r in residents])}
    for resident in residents:
        found[resident.page] = CountedSize(resident, found[resident.page].version, *shown[resident.content])
    return found


def _names(lane: Branch, sessions: Iterable[int]) -> Iterator[tuple[int, str]]:
    for session in sessions:
        yield session, lane.db.execute("SELECT name FROM sessions WHERE session = ?", (session,)).get


def _represented(lane: Branch, position: int, pages: Sequence[int]) -> dict[int, set[int]]:
    """The pages that each page stands for, up to a position."""
    listed = json.dumps(pages)
    found: dict[int, set[int]] = {}
    gone, kind = ended(lane, position), int(LinkKind.REPRESENTS)
    for stretch in lane.upto(position):
        for source, target, at in lane.db.execute(_REPRESENTS, (listed, stretch.session, stretch.high)):
            if at > gone.get((source, target, kind), 0):
                found.setdefault(source, set()).add(target)
    return found


def actor(labels: str | None, role: int) -> str:
    """The author of a page: the actor in its labels, else its role."""
    named = plain(object_of(labels).get("actor")) if labels and '"actor"' in labels else None
    return named or _ROLES[role]


def _mime(mime: int, labels: str | None) -> str:
    if mime == Mime.OTHER and labels:
        return plain(object_of(labels).get("mime")) or Mime.OTHER.type
    return Mime(mime).type


def relations(lane: Branch, log: Log, edges: Iterable[Edge], position: int, *, up: bool) -> list[PageLink]:
    """Links as answers, with the beginning of the text on their far side and how that stands at a position."""
    edges = list(edges)
    far = {edge.target if up else edge.source for edge in edges}
    texts, notes = page_lines(lane, log, far), notes_of(lane, position, far)
    stand = {page: Standing(note.status).word for page, note in notes.items() if note.status is not None}
    return [
        PageLink(
            edge.depth,
            page_name(edge.source),
            LinkKind(edge.kind).word,
            page_name(edge.target),
            edge.position,
            texts.get(edge.target if up else edge.source, ""),
            stand.get(edge.target if up else edge.source),
        )
        for edge in edges
    ]


_TYPES, _ROLES, _MODALITIES = ({int(one): one.word for one in words} for words in (PageType, Role, Modality))
_L0, _L2 = int(Tier.L0), int(Tier.L2)
_PAGES = """SELECT page, tokens, size, message, type, role, modality, mime, importance, hint, labels,
   turn, call, at, session
  FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"""
_LATER = """SELECT c.page, c.version, c.tokens, c.size
  FROM json_each(?) one CROSS JOIN changes c INDEXED BY changes_page
   ON c.session = ? AND c.page = one.value AND c.position <= ? AND c.level = 0 ORDER BY c.position"""
_SHOWN = """SELECT position, tokens, size FROM versions
  WHERE session = ? AND position IN (SELECT value FROM json_each(?))"""
_REPRESENTS = f"""SELECT l.source, l.target, l.position FROM json_each(?) one CROSS JOIN links l
   ON l.session = ? AND l.source = one.value AND l.position <= ? AND l.kind = {int(LinkKind.REPRESENTS)}"""
