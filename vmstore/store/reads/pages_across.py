"""The catalog of many sessions at once: each page as the session that made it has it."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest
from itertools import islice
from typing import Any, NamedTuple

from vmstore.core.address import page_position, parse
from vmstore.core.asof import AsOf, Head, LoggedTime, Time
from vmstore.core.page import PageType
from vmstore.errors import InputError, UnknownError
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.page_rows import described
from vmstore.namespace.results import Page
from vmstore.store.reads.page_query import EVER, PageQuery, SelectedPage, chosen, place_of, value
from vmstore.views.branch import Branch
from vmstore.views.projectors.pages import TYPED
from vmstore.views.reads.resolve_asof import basis

ANY = PageQuery()


class SessionFilter(NamedTuple):
    """A filter of sessions by their users; None for all."""

    user: str | None = None
    agent: str | None = None


class _Place(NamedTuple):
    """A page's place among those of all sessions."""

    key: int
    session: str
    tie: int
    page: int


def pages_across(ns: Namespace, at: AsOf, wanted: PageQuery, sought: SessionFilter, after: str | None) -> list[Page]:
    """The pages that are wanted of the sessions that are sought, each session as it stood at a time.

    By position session comes after session in the order of their names, and only as many are looked
    at as it takes; any other order looks at all of them.
    """
    if not isinstance(at, Head | Time | LoggedTime):
        raise InputError(
            f"{at} is another moment in each session; across sessions give a time, or ask one session",
            code="moment-of-one-session",
        )
    start = None if after is None else _named(ns, after, at, wanted)
    lanes: dict[str, tuple[Branch, int]] = {}
    places = _places(ns, at, wanted, sought, start, lanes)
    if wanted.order_by == "position":
        found = list(islice(places, wanted.limit))
    else:
        later = (place for place in places if start is None or place > start)
        found = sorted(later) if wanted.limit is None else nsmallest(wanted.limit, later)
    return _described(found, lanes)


def _described(found: list[_Place], lanes: dict[str, tuple[Branch, int]]) -> list[Page]:
    """The pages at some places, made into answers session by session."""
    wanted: dict[str, list[int]] = {}
    for place in found:
        wanted.setdefault(place.session, []).append(place.page)
    rows = {
        (session, page.position): page
        for session, pages in wanted.items()
        for page in described(lanes[session][0], lanes[session][1], pages)
    }
    return [rows[place.session, place.page] for place in found]


def _places(
    ns: Namespace,
    at: AsOf,
    wanted: PageQuery,
    sought: SessionFilter,
    start: _Place | None,
    lanes: dict[str, tuple[Branch, int]],
) -> Iterator[_Place]:
    by_position = wanted.order_by == "position"
    alone = wanted if by_position else wanted._replace(limit=None)
    for key, name in sessions_of(ns, sought, wanted):
        if by_position and start is not None and name < start.session:
            continue
        found = _stood(ns, key, at)
        if found is None:
            continue
        lane, position = lanes[name] = found
        after = start.page if by_position and start is not None and name == start.session else None
        for number in chosen(lane, position, alone, after):
            yield _place(lane, name, number, wanted)


def _place(lane: Branch, session: str, found: SelectedPage, wanted: PageQuery) -> _Place:
    if wanted.order_by == "position":
        return _Place(0, session, 0, found.page)
    if wanted.order_by == "recency":  # positions are a session's own; what many have in common is time
        return _Place(-_happened(lane, -found.key), session, found.tie, found.page)
    return _Place(found.key, session, found.tie, found.page)


def _happened(lane: Branch, position: int) -> int:
    """The time a position happened; before everything for position 0."""
    when: Any = lane.db.execute(_AT, (lane.session, position)).get if position else -EVER
    return int(when)


def _stood(ns: Namespace, key: int, at: AsOf) -> tuple[Branch, int] | None:
    """A session's own branch and its position at a moment; None where it had not begun."""
    lane = Branch(ns.views, key).alone()
    try:
        return lane, basis(lane, at).position
    except UnknownError:
        return None


def sessions_of(
    ns: Namespace, sought: SessionFilter, wanted: PageQuery = ANY, *, hidden: bool = False
) -> list[tuple[int, str]]:
    """The sessions that are sought and can hold what is wanted, by name, as far as an index tells."""
    type_ = value("type", PageType, wanted.type)
    conditions = ["1" if hidden else "hidden = 0"]
    conditions += [f"{word} = :{word}" for word in sought._fields if getattr(sought, word) is not None]
    if sought == SessionFilter():  # a user's sessions are fewer than what all sessions hold of a type or a tag
        conditions += [_HAS_TYPE] if type_ else []
        conditions += [_HAS_TAG] if wanted.tag is not None else []
    sql = f"SELECT session, name FROM sessions WHERE {' AND '.join(conditions)}"
    rows: list[Any] = ns.views.execute(sql, {**sought._asdict(), "type": type_, "tag": wanted.tag}).fetchall()
    return sorted(rows, key=lambda row: str(row[1]))


def _named(ns: Namespace, reference: str, at: AsOf, wanted: PageQuery) -> _Place:
    """The place of the page that a reference like `s1/p17` names."""
    address = parse(reference)
    page = page_position(address.page)
    if address.session is None or page is None:
        raise InputError(
            f"{reference!r} names no page of a session; give the session and the page, like s1/p17",
            code="not-an-address",
        )
    key = ns.key(address.session)
    found = None if key is None else _stood(ns, key, at)
    if found is None:
        raise UnknownError(
            f"there is no session {address.session!r} at that moment; give the last page you got", code="no-session"
        )
    lane, position = found
    return _place(lane, address.session, place_of(lane, position, wanted.order_by, page), wanted)


_AT = "SELECT at_max FROM commits WHERE session = ? AND last >= ? ORDER BY last LIMIT 1"
_HAS_TYPE = f"session IN (SELECT session FROM pages INDEXED BY pages_type WHERE type = :type AND {TYPED})"
_HAS_TAG = "session IN (SELECT session FROM tags WHERE tag = :tag)"
