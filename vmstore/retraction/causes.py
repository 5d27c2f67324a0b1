"""Causes of a retraction: a page, a session, an actor or a tool, and the pages that each made."""

from __future__ import annotations

from typing import Any

import msgspec

from vmstore.core.address import parse
from vmstore.core.asof import Head
from vmstore.core.page import LinkKind, Role
from vmstore.errors import InputError, UnknownError
from vmstore.namespace.namespace import Namespace, session_name
from vmstore.namespace.page_rows import actor
from vmstore.namespace.resolve import page_named, resolved
from vmstore.views.branch import Branch
from vmstore.views.erased_cells import seen
from vmstore.vm.protocol.tool_calls import tool_called

Made = tuple[int, int]
"""A page: the key of the session that made it, and its position."""


class RetractionCause(msgspec.Struct, frozen=True):
    """The cause of a retraction: a page, a session, an actor or a tool, the last three perhaps `in_session` alone."""

    page: str | None = None
    session: str | None = None
    actor: str | None = None
    tool: str | None = None
    in_session: str | None = None

    def __str__(self) -> str:
        parts = [f"{word} {text}" for word, text in self._given_words()]
        within = [] if self.in_session is None or self.page else [f"in session {self.in_session}"]
        return " ".join((*parts, *within))

    def _given_words(self) -> list[tuple[str, str]]:
        words = ("page", "session", "actor", "tool")
        return [(word, text) for word in words if (text := getattr(self, word)) is not None]

    def checked(self) -> RetractionCause:
        """The cause, if it is one; InputError where it is none, or several."""
        parts = self._given_words()
        if len(parts) != 1:
            named = " and ".join(word for word, _ in parts) or "nothing"
            raise InputError(
                f"{named} was named as the cause; name one: a page, a session, an actor or a tool", code="no-cause"
            )
        if not all(isinstance(text, str) and text for text in (parts[0][1], self.in_session or "s")):
            raise InputError(f"{parts[0][1]!r:.60} names no {parts[0][0]}; give its name")
        if self.session is not None and self.in_session is not None:
            raise InputError("a session is a cause as a whole; leave in_session out", code="whole-session")
        return self


def made_by(ns: Namespace, cause: RetractionCause) -> set[Made]:
    """The pages that a cause made, none of those that stand on them; UnknownError where there is none."""
    within = None if cause.in_session is None else _key(ns, cause.in_session)
    if cause.page is not None:
        return {_page(ns, cause.page, cause.in_session)}
    if cause.session is not None:
        key = _key(ns, cause.session)
        found = {(key, page) for (page,) in ns.views.execute("SELECT page FROM pages WHERE session = ?", (key,))}
        if not found:
            raise UnknownError(f"session {cause.session!r} made no page of its own, so nothing stands on it")
        return found
    if cause.actor is not None:
        return _named(ns, cause.actor, "actor", _actors(ns, within))
    return _named(ns, cause.tool or "", "tool", _results(ns, within))


def _page(ns: Namespace, reference: str, session: str | None) -> Made:
    session = session or parse(reference).session
    if session is None:
        session, reference = page_named(ns, reference)
    lane = Branch(ns.views, _key(ns, session))
    number, _ = resolved(ns, lane, session, reference, Head())
    return lane.owner(number), number


def _key(ns: Namespace, session: str) -> int:
    key = ns.key(session_name(session))
    if key is None:
        names = [row[0] for row in ns.views.execute("SELECT name FROM sessions WHERE hidden = 0 ORDER BY name")]
        raise UnknownError(f"there is no session {session!r}; {ns.nearest(session, names)}", code="no-session")
    return key


def _named(ns: Namespace, name: str, what: str, made: dict[str, set[Made]]) -> set[Made]:
    if name not in made:
        raise UnknownError(
            f"no page here was made by {what} {name!r:.60}; {ns.nearest(name, sorted(made))}", code="no-cause"
        )
    return made[name]


def _actors(ns: Namespace, within: int | None) -> dict[str, set[Made]]:
    """The pages by who made them: whom a page names, else its role, and the user or the agent of the session too."""
    found: dict[str, set[Made]] = {}
    for session in _sessions(ns, within):
        user, agent = _whose(ns, session)
        speakers = {int(Role.USER): user, int(Role.ASSISTANT): agent}
        for page, labels, role in ns.views.execute(_MADE, (session,)):
            for name in {actor(labels, role), speakers.get(role)} - {None}:
                found.setdefault(str(name), set()).add((session, page))
    return found


def _whose(ns: Namespace, session: int) -> tuple[str | None, str | None]:
    """The user and the agent of a session; of a fork those of where it came from, unless it has its own."""
    user = agent = None
    for stretch in Branch(ns.views, session).stretches:
        row = ns.views.execute("SELECT user, agent FROM sessions WHERE session = ?", (stretch.session,)).get
        user, agent = user or row[0], agent or row[1]
    return user, agent


def _results(ns: Namespace, within: int | None) -> dict[str, set[Made]]:
    """The results of tools, by the names of the tools; of a call whose content was erased nobody knows which."""
    found: dict[str, set[Made]] = {}
    for session in _sessions(ns, within):
        lane = Branch(ns.views, session)
        answers: list[Any] = ns.views.execute(_ANSWERS, (session, int(LinkKind.CAUSED_BY))).fetchall()
        called: dict[int, int | None] = dict(lane.rows(_CELLS, {call for _, call in answers}))
        cells = seen(ns.log, ns.views, {cell for cell in called.values() if cell is not None})
        for result, call in answers:
            sealed = cells.get(called.get(call) or 0)
            if sealed is not None and not sealed.erased:
                name = tool_called(sealed.content.decode("utf-8", "replace"))
                if name:
                    found.setdefault(name, set()).add((lane.owner(result), result))
    return found


def _sessions(ns: Namespace, within: int | None) -> list[int]:
    """The sessions that are looked through."""
    if within is not None:
        return [within]
    return [key for (key,) in ns.views.execute("SELECT session FROM sessions WHERE hidden = 0 ORDER BY session")]


_MADE = "SELECT page, labels, role FROM pages WHERE session = ?"
_ANSWERS = "SELECT source, target FROM links WHERE session = ? AND kind = ?"
_CELLS = "SELECT page, cell FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"
