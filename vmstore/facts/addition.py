"""What a fact adds to those that are known: something new, a further source of one, or a value in another's place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from vmstore.core.facts import FactType
from vmstore.core.page import Standing
from vmstore.facts.fact import StatedFact
from vmstore.facts.find import same
from vmstore.facts.reversal import ended

KNOWN_MAX = 4_000  # facts at hand, the newest


class HeldFact(NamedTuple):
    """A fact that holds so far: its page, or 0 and its place among the additions where it has none yet."""

    fact: StatedFact
    page: int
    place: int = -1


class Addition(NamedTuple):
    """A fact to be written, and which one it replaces; or, without a fact, a further `source` of one that is known."""

    fact: StatedFact | None
    old: HeldFact | None
    source: int = 0


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
        made.append(Addition(fact, old))
        held.append(HeldFact(fact, 0, len(made) - 1))
    return made


def _still(other: HeldFact, held: Sequence[HeldFact]) -> bool:
    """Whether a value at an address of one is the last that was stated there."""
    if not other.fact.one:
        return True
    address = other.fact.subject.casefold(), other.fact.attribute
    return [one for one in held if (one.fact.subject.casefold(), one.fact.attribute) == address][-1] is other
