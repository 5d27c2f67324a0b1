"""What a fact adds to those known: something new, a further source or an earlier beginning of one, a next value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from vmstore.core.facts import FactType, Precision
from vmstore.core.page import Standing
from vmstore.facts.fact import StatedFact
from vmstore.facts.find import same
from vmstore.facts.reversal import ended

KNOWN_MAX = 4_000  # facts at hand, the newest
NEWS_US = 31 * 86_400_000_000  # what began so long before the last statement is news all the same, not history


class HeldFact(NamedTuple):
    """A fact that holds so far: its page, or 0 and its place among the additions where it has none yet."""

    fact: StatedFact
    page: int
    place: int = -1


class Addition(NamedTuple):
    """A fact to be written, and which one it replaces; or, without a fact, what is learned of one that is known.

    That is a further `source`, or that it `begins` earlier than was thought.
    """

    fact: StatedFact | None
    old: HeldFact | None
    source: int = 0
    begins: int | None = None


def additions(known: Sequence[HeldFact], found: Iterable[StatedFact]) -> list[Addition]:
    """What facts, in the order they were stated, add to those known."""
    held = list(known[-KNOWN_MAX:])
    made: list[Addition] = []
    for fact in found:
        again = next((other for other in reversed(held) if same(fact, other.fact) and _still(other, held)), None)
        if again is not None:
            if again.place < 0:
                if not set(fact.sources) <= set(again.fact.sources):
                    made.append(Addition(None, again, fact.sources[0]))
            elif (first := made[again.place].fact) is not None:
                sources = tuple(dict.fromkeys((*first.sources, *fact.sources)))
                made[again.place] = made[again.place]._replace(fact=msgspec.structs.replace(first, sources=sources))
            continue
        place = ended(fact, [other.fact for other in held])
        if place is None and fact.ends and fact.status is Standing.ABANDONED and fact.type is FactType.DECISION:
            continue  # an order to drop what nobody knows of
        old = None if place is None else held.pop(place)
        before = _current_before(fact, held)
        if before is not None and before.place < 0:
            made.append(Addition(None, before, begins=_just_before(fact)))
        elif before is not None and (first := made[before.place].fact) is not None:
            first = msgspec.structs.replace(first, valid_from=_just_before(fact))
            made[before.place] = made[before.place]._replace(fact=first)
        made.append(Addition(fact, old))
        held.append(HeldFact(fact, 0, len(made) - 1))
    return made


def _still(other: HeldFact, held: Sequence[HeldFact]) -> bool:
    """Whether a value at an address of one is the last that was stated there."""
    if not other.fact.one:
        return True
    return [each for each in held if _address(each.fact) == _address(other.fact)][-1] is other


def _current_before(fact: StatedFact, held: Sequence[HeldFact]) -> HeldFact | None:
    """The value that a fact took the place of though that was stated after the fact began: `I moved last week`.

    It was stated without a beginning, so it counts from when it was said, where in truth it held already before.
    """
    if not fact.one or fact.status is not Standing.ACTIVE or fact.precision is Precision.UNKNOWN:
        return None
    last = next((other for other in reversed(held) if _address(other.fact) == _address(fact)), None)
    if last is None or last.fact.status is not Standing.ACTIVE or last.fact.precision is not Precision.UNKNOWN:
        return None
    begins, stated = fact.valid_from, last.fact.valid_from
    return last if begins is not None and stated is not None and 0 <= stated - begins <= NEWS_US else None


def _just_before(fact: StatedFact) -> int:
    assert fact.valid_from is not None, "only a fact that says since when takes the place of a later statement"
    return fact.valid_from - 1


def _address(fact: StatedFact) -> tuple[str, str | None] | None:
    return (fact.subject.casefold(), fact.attribute) if fact.one else None
