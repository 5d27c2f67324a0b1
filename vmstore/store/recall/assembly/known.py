"""The facts of a prompt: those that hold, who the user is, and which texts were the source of what holds no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from vmstore.core.asof import AsOf, LoggedTime, Position
from vmstore.namespace.namespace import Namespace
from vmstore.store.recall.fact_reads import known
from vmstore.store.recall.results import KnownFact
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import logged_at

Place = tuple[str, int]
"""A session by its name, and a page."""


class FactsAtHand(NamedTuple):
    """Facts by place: those that hold, all of them; and the sources of those that hold no more."""

    current: Mapping[Place, KnownFact]
    ever: frozenset[Place]
    replaced: frozenset[Place]


NO_FACTS = FactsAtHand({}, frozenset(), frozenset())


def facts_at(ns: Namespace, lane: Branch, name: str, user: str | None, position: int) -> FactsAtHand:
    """The facts of a session at a position; with a user those of the user's sessions."""
    if ns.views.execute("SELECT 1 FROM facts LIMIT 1").get is None:
        return NO_FACTS
    when: AsOf = Position(position)
    if user is not None:  # a position is of one session: the others as they stood when it was logged
        when = LoggedTime(logged_at(lane, position))
    own = None if user is not None else name
    ever = known(ns, own, user, when, ever=True)
    current = {_place(fact): fact for fact in known(ns, own, user, when)}
    gone = [fact for fact in ever if _place(fact) not in current]
    kept = {(fact.session, int(page[1:])) for fact in current.values() for page in fact.sources}
    replaced = {(fact.session, int(page[1:])) for fact in gone for page in fact.sources}
    return FactsAtHand(current, frozenset(map(_place, ever)), frozenset(replaced - kept))


def _place(fact: KnownFact) -> Place:
    return fact.session, int(fact.page[1:])
