"""Finds the page that a reference names, in whichever session it is."""

from __future__ import annotations

from typing import Any

from vmstore.core.reference import page_name, page_position, parse, resolve
from vmstore.store.namespace import Namespace


def find_page(ns: Namespace, reference: str) -> tuple[str, str]:
    """The session and page that a reference is an unambiguous tail of; asked while the views stand still.

    Raises UnknownError naming the nearest page, or the pages it could be.
    """
    told = parse(reference)
    position = page_position(told.page)
    hits = _pages(ns, "(p.page = ? OR p.hint = ?)", (-1 if position is None else position, told.page))
    _, session, page = resolve(told, hits or _pages(ns, "p.page > ?", (0,)))
    return session, page


def _pages(ns: Namespace, condition: str, arguments: tuple[Any, ...]) -> list[tuple[str, str, str]]:
    """Pages by namespace, session and each of their names."""
    rows: list[Any] = ns.views.execute(
        "SELECT s.name, p.page, p.hint FROM pages p JOIN sessions s ON s.session = p.session"
        f" WHERE s.hidden = 0 AND {condition}",
        arguments,
    ).fetchall()
    names = [(ns.name, session, page_name(page)) for session, page, _ in rows]
    return names + [(ns.name, session, hint) for session, _, hint in rows if hint]
