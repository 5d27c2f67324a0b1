"""The facts of a prompt: those that hold, who the user is, and which texts were the source of what holds no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """Facts by place: those that hold, all of them; and the sources of those that hold no more.

    `successors` are the facts that hold now in the place of one that does not, by that one and by its sources.
    """

    current: Mapping[Place, KnownFact]
    ever: frozenset[Place]
    replaced: frozenset[Place]
    successors: Mapping[Place, KnownFact]


NO_FACTS = FactsAtHand({}, frozenset(), frozenset(), {})


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
    kept = {place for fact in current.values() for place in _sources(fact)}
    replaced = {place for fact in gone for place in _sources(fact)}
    return FactsAtHand(current, frozenset(map(_place, ever)), frozenset(replaced - kept), _successors(ever, current))


def _successors(ever: Sequence[KnownFact], current: Mapping[Place, KnownFact]) -> dict[Place, KnownFact]:
    """What holds now in the place of each fact that does not, by the places of that fact and of its sources."""
    following = {_place(fact): _named(fact.superseded_by, fact.session) for fact in ever if fact.superseded_by}
    found = {}
    for fact in ever:
        place, passed = _place(fact), set[Place]()
        while place in following and place not in passed:
            passed.add(place)
            place = following[place]
        if passed and place in current:
            found.update(dict.fromkeys((_place(fact), *_sources(fact)), current[place]))
    return found


def _named(page: str, session: str) -> Place:
    """The place that a name like `p17`, or `june/p17` of another session, stands for."""
    other, _, number = page.rpartition("/p")
    return (other, int(number)) if other else (session, int(page[1:]))


def _sources(fact: KnownFact) -> list[Place]:
    return [(fact.session, int(page[1:])) for page in fact.sources]


def _place(fact: KnownFact) -> Place:
    return fact.session, int(fact.page[1:])
