"""The closure of a retraction over sessions: forks share it, spawned sessions inherit it.

Each session is looked at as it sees itself: a fork's own links lead on in the fork alone. A session
that a fallen tool call spawned falls as a whole; where the last answer of a spawned session falls,
so does the result that its parent took from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from vmstore.core.page import LinkKind, Origin, Role
from vmstore.namespace.namespace import Namespace
from vmstore.retraction.causes import Made
from vmstore.views.branch import Branch
from vmstore.views.reads.dependents import DependencyStep, standing_on

SPAWNED = "spawned"


class AffectedPages(NamedTuple):
    """Affected pages of a session, by number, with the steps that lead there; roots have none.

    `lane` is the session's, `position` where it stood; `roots` the pages that fell by themselves, or
    with another session, by what they came of there.
    """

    lane: Branch
    position: int
    roots: dict[int, DependencyStep | None]
    pages: dict[int, list[DependencyStep]]


def fallout(ns: Namespace, made: Iterable[Made]) -> list[AffectedPages]:
    """The affected pages of every session that sees any, in the order the sessions were opened."""
    roots: dict[int, dict[int, DependencyStep | None]] = {}
    for session, page in made:
        roots.setdefault(session, {})[page] = None
    found: dict[int, AffectedPages] = {}
    waiting = set(roots)
    while waiting:
        session = min(waiting)
        waiting.remove(session)
        fallen = found[session] = _fallen(ns, session, roots[session])
        for other, pages in _handed_on(ns, fallen):
            known = roots.setdefault(other, {})
            if new := {page: step for page, step in pages.items() if page not in known}:
                known.update(new)
                waiting.add(other)
    return [found[session] for session in sorted(found)]


def _fallen(ns: Namespace, session: int, roots: dict[int, DependencyStep | None]) -> AffectedPages:
    lane = Branch(ns.views, session)
    position: Any = ns.views.execute("SELECT position FROM sessions WHERE session = ?", (session,)).get
    return AffectedPages(lane, position, roots, standing_on(lane, position, roots))


def _handed_on(ns: Namespace, fallen: AffectedPages) -> Iterable[tuple[int, dict[int, DependencyStep | None]]]:
    """Roots that other sessions take over."""
    session, db = fallen.lane.session, ns.views
    forks: list[Any] = db.execute(_FORKS, (session, int(Origin.FORK))).fetchall()
    for fork, at in forks:
        shared = {page: step for page, step in fallen.roots.items() if page <= at}
        if shared:
            yield fork, shared
    spawned: list[Any] = db.execute(_SPAWNED, (session, int(Origin.SPAWN))).fetchall()
    for child, call in spawned:
        if call in fallen.pages:
            own = db.execute("SELECT page FROM pages WHERE session = ?", (child,))
            yield child, {page: DependencyStep(page, call, SPAWNED) for (page,) in own}
    parents: list[Any] = db.execute(_PARENT, (int(Origin.SPAWN), session)).fetchall()
    for parent, call in parents:
        answer = {page for (page,) in db.execute(_LAST_SAID, (session, int(Role.ASSISTANT)))} & fallen.pages.keys()
        if answer:
            results = db.execute(_RESULTS, (parent, call, int(LinkKind.CAUSED_BY)))
            yield parent, {page: DependencyStep(page, min(answer), SPAWNED) for (page,) in results}


_FORKS = "SELECT session, fork_position FROM sessions WHERE parent = ? AND origin = ? AND hidden = 0"
_SPAWNED = """SELECT session, spawned_by FROM sessions
  WHERE parent = ? AND origin = ? AND spawned_by IS NOT NULL AND hidden = 0"""
_PARENT = """SELECT parent, spawned_by FROM sessions
  WHERE origin = ? AND session = ? AND parent IS NOT NULL AND spawned_by IS NOT NULL"""
_LAST_SAID = """SELECT page FROM pages WHERE session = ?1
  AND message = (SELECT max(message) FROM pages WHERE session = ?1 AND role = ?2 AND message > 0)"""
_RESULTS = "SELECT source FROM links WHERE session = ? AND target = ? AND kind = ?"
