"""The full contents that sessions wrote: which there are between two commits, where they lie, and their texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apsw

from vmstore.core.erasure import ErasedContent, gone
from vmstore.core.text.json_text import loads, plain
from vmstore.core.text.tokenizer import readable
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.projectors.pages import object_of
from vmstore.views.stored_cells import read_cells

READ = 512  # contents read at once
READ_BYTES = 4 << 20  # of them, unless one alone has more
COMMITS = 256
CALLS_BACK = 64  # pages before a tool's result among which its call is looked for


class Content(NamedTuple):
    """A full content of a page, level 0: whose it is and what is known of it beside its bytes."""

    session: int
    position: int
    page: int
    version: int
    cell: int | None
    commitment: bytes | None
    size: int
    at: int
    role: int
    labels: str | None


class Stretch(NamedTuple):
    """What some commits wrote: the last of them, and of each session the positions above one, up to another."""

    ordinal: int
    sessions: dict[int, tuple[int, int]]
    mutations: int


def stretches(log: Log, after: int, upto: int) -> Iterator[Stretch]:
    """The commits after an ordinal up to another, some at a time."""
    while after < upto and (commits := log.tail(after, min(COMMITS, upto - after))):
        found: dict[int, tuple[int, int]] = {}
        for commit in commits:
            low, _ = found.get(commit.session, (commit.first - 1, 0))
            found[commit.session] = low, commit.last
        after = commits[-1].ordinal
        yield Stretch(after, found, sum(commit.count for commit in commits))


def contents(db: apsw.Connection, session: int, low: int, high: int) -> list[Content]:
    """The full contents a session wrote above a position, up to another, in order; those without a cell too."""
    rows: list[Any] = db.execute(_PAGES, (session, low, high)).fetchall()
    found = [Content(session, *row) for row in rows]
    changes: list[Any] = db.execute(_CHANGES, (session, low, high)).fetchall()
    if not changes:
        return found
    lane = Branch(db, session)
    for position, page, *fields in changes:
        owner = lane.owner(page)
        born: Any = db.execute(_BORN, (owner, page)).fetchone()
        if born is not None and owner != session:  # names are forgotten with the session that wrote them
            born = (*born[:2], None)
        found.append(Content(session, position, page, *fields, *(born or (0, 0, None))))
    return sorted(found, key=lambda content: content.position)


def texts(log: Log, db: apsw.Connection, wanted: Iterable[Content]) -> Iterator[tuple[Content, str | None]]:
    """Each content with its text; None where it is none, has none or was erased."""
    for some in _together(wanted):
        sealed = {content.cell: content.commitment for content in some if content.cell is not None}
        cells = read_cells(log, db, sealed, gone)
        for content in some:
            held = None if content.cell is None else cells[content.cell]
            yield content, None if held is None or isinstance(held, ErasedContent) else readable(held)


def _together(wanted: Iterable[Content]) -> Iterator[list[Content]]:
    some: list[Content] = []
    size = 0
    for content in wanted:
        if some and (len(some) == READ or size + content.size > READ_BYTES):
            yield some
            some, size = [], 0
        some.append(content)
        size += content.size
    if some:
        yield some


def speaker(content: Content) -> str | None:
    """Who is named as the one who said it."""
    return plain(object_of(content.labels).get("actor")) if content.labels and '"actor"' in content.labels else None


def tool(log: Log, db: apsw.Connection, content: Content, text: str) -> str | None:
    """The tool that a content calls, or whose result it is, by the call among the pages just before it."""
    if content.labels is None:
        return None
    if '"asks"' in content.labels:
        return _called(text)
    if '"answers"' not in content.labels:
        return None
    answers = object_of(content.labels).get("answers")
    rows: list[Any] = db.execute(_CALLS, (content.session, content.page, CALLS_BACK)).fetchall()
    for page, cell, commitment, labels in rows:
        if cell is not None and object_of(labels).get("asks") == answers:
            call = Content(content.session, page, page, 1, cell, commitment, 0, 0, 0, labels)
            ((_, asked),) = texts(log, db, [call])
            return None if asked is None else _called(asked)
    return None


def _called(text: str) -> str | None:
    """The name of the tool in a call as any provider writes it."""
    try:
        call = loads(text)
    except ValueError:
        return None
    if not isinstance(call, dict):
        return None
    inner = next((value for value in call.values() if isinstance(value, dict) and "name" in value), call)
    return plain(call.get("name")) or plain(inner.get("name"))


def sealed_at(db: apsw.Connection, places: Sequence[tuple[int, int]]) -> list[Content]:
    """The contents that sessions wrote at some positions, in the order asked; raises KeyError where there is none."""
    found: dict[tuple[int, int], Content] = {}
    groups: dict[int, list[int]] = {}
    for session, position in places:
        groups.setdefault(session, []).append(position)
    for session, positions in groups.items():
        rows: list[Any] = db.execute(_SEALED, (session, str(positions))).fetchall()
        for position, page, version, cell, commitment, size in rows:
            found[session, position] = Content(session, position, page, version, cell, commitment, size, 0, 0, None)
    return [found[place] for place in places]


_PAGES = """SELECT page, page, 1, cell, commitment, size, at, role, labels FROM pages
  WHERE session = ? AND page > ? AND page <= ? AND cell IS NOT NULL ORDER BY page"""
_CHANGES = """SELECT position, page, version, cell, commitment, size FROM changes
  WHERE session = ? AND position > ? AND position <= ? AND level = 0 ORDER BY position"""
_BORN = "SELECT at, role, labels FROM pages WHERE session = ? AND page = ?"
_CALLS = """SELECT page, cell, commitment, labels FROM pages
  WHERE session = ? AND page < ? AND labels IS NOT NULL ORDER BY page DESC LIMIT ?"""
_SEALED = """SELECT position, page, version, cell, commitment, size FROM versions
  WHERE session = ? AND position IN (SELECT value FROM json_each(?)) AND level = 0"""
