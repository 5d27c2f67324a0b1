"""Resolving a reference to a page of one session."""

from __future__ import annotations

from typing import Any

from vmstore.core.address import Address, Name, page_name, page_position, parse, resolve
from vmstore.core.asof import AsOf, as_of
from vmstore.errors import InputError, UnknownError
from vmstore.namespace.namespace import Namespace
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import ResolvedMoment, basis


def resolved(ns: Namespace, lane: Branch, session: str, reference: str | int, when: AsOf) -> tuple[int, ResolvedMoment]:
    """The page a reference names in a session, and the moment it is asked of: its own, or `when`.

    Raises UnknownError naming the nearest page, or the pages it could be.
    """
    listed = (
        Address(namespace=None, session=None, page=f"p{reference}") if isinstance(reference, int) else parse(reference)
    )
    if listed.namespace is not None and listed.namespace != ns.name:
        raise UnknownError(
            f"there is no page {reference} here; all pages here are of namespace {ns.name!r}", code="other-namespace"
        )
    if listed.session is not None and listed.session != session:
        raise InputError(
            f"{reference} names a page of session {listed.session!r}, and this is {session!r}", code="other-session"
        )
    moment = {k: v for k in ("turn", "call", "position") if (v := getattr(listed, k)) is not None}
    if moment:
        when = as_of(**moment)
    found = basis(lane, when)
    number = _page(lane, listed.page)
    if number is None:
        raise UnknownError(
            f"there is no page {listed.page!r} in session {session!r}; {_nearest(ns, lane, listed.page)}",
            code="no-page",
        )
    if number > found.position:
        raise UnknownError(
            f"{page_name(number)} was created at position {number}, after {when} of {session!r}", code="page-came-later"
        )
    return number, found


def page_named(ns: Namespace, reference: str) -> tuple[str, str]:
    """The session and the page that a reference is an unambiguous tail of; raises UnknownError where it is not."""
    address = parse(reference)
    position = page_position(address.page)
    hits = _named(ns, "(p.page = ? OR p.hint = ?)", (-1 if position is None else position, address.page))
    _, session, page = resolve(address, hits or _named(ns, "p.page > ?", (0,)))
    return session, page


def _named(ns: Namespace, condition: str, arguments: tuple[Any, ...]) -> list[Name]:
    """Pages by namespace, session and each of their names."""
    rows: list[Any] = ns.views.execute(
        "SELECT s.name, p.page, p.hint FROM pages p JOIN sessions s ON s.session = p.session"
        f" WHERE s.hidden = 0 AND {condition}",
        arguments,
    ).fetchall()
    names = [(ns.name, session, page_name(page)) for session, page, _ in rows]
    return names + [(ns.name, session, hint) for session, _, hint in rows if hint]


def _page(lane: Branch, name: str) -> int | None:
    position = page_position(name)
    named = [] if position is None else _pages(lane, "page = ?", position)
    hits = named or _pages(lane, "hint = ?", name)
    if len(hits) > 1:
        listed = ", ".join(page_name(hit) for hit in hits[:5])
        raise UnknownError(f"{name!r} names {len(hits)} pages ({listed}); name one of them")
    return hits[0] if hits else None


def _pages(lane: Branch, condition: str, value: object) -> list[int]:
    """The pages of the nearest stretch of a lane that meet a condition."""
    for stretch in lane.stretches:
        sql = f"SELECT page FROM pages WHERE session = ? AND page <= ? AND {condition} ORDER BY page"
        hits = [row[0] for row in lane.db.execute(sql, (stretch.session, stretch.high, value))]
        if hits:
            return hits
    return []


def _nearest(ns: Namespace, lane: Branch, name: str) -> str:
    position = page_position(name)
    pages = [
        row
        for stretch in lane.stretches
        for row in lane.db.execute(
            "SELECT page, hint FROM pages WHERE session = ? AND page <= ?",
            (stretch.session, stretch.high),
        )
    ]
    if not pages:
        return "the session has no page yet"
    if position is not None:
        return f"the nearest is {page_name(min((p for p, _ in pages), key=lambda p: (abs(p - position), p)))}"
    return ns.nearest(name, [hint for _, hint in pages if hint] or [page_name(p) for p, _ in pages])
