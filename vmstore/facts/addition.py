"""What a fact adds to those that are known: something new, a further source of one, or a value in another's place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from vmstore.core.page import Standing
from vmstore.core.text.stems import terms
from vmstore.facts.fact import StatedFact
from vmstore.facts.find import same

SHARED_MIN = 0.3  # of the telling terms of the shorter fact, that one which is taken back shares
KNOWN_MAX = 4_000  # facts at hand, the newest
TAKES_BACK = re.compile(
    r"\b(?:no longer|any ?more|not .{0,40}after all|instead|actually|scratch that|correction|changed my mind"
    r"|stopp?(?:ed)?|quit|gave up|given up|dropped|cancel(?:led|ed)?|switched|moved|replaced|used to"
    r"|don't .{0,30}(?:any ?more|now)|isn't|aren't|broke up|split up|left|sold|lost|handed in|forget what)\b",
    re.IGNORECASE,
)
"""What a sentence has that takes back what was said before."""


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
        old = taken_back(fact, held)
        made.append(Addition(fact, old))
        if old is not None:
            held.remove(old)
        held.append(HeldFact(fact, 0, len(made) - 1))
    return made


def _still(other: HeldFact, held: Sequence[HeldFact]) -> bool:
    """Whether a value at an address of one is the last that was stated there."""
    if not other.fact.one:
        return True
    address = other.fact.subject.casefold(), other.fact.attribute
    return [one for one in held if (one.fact.subject.casefold(), one.fact.attribute) == address][-1] is other


def taken_back(fact: StatedFact, held: Sequence[HeldFact]) -> HeldFact | None:
    """The fact that a sentence takes back or replaces without an address: the newest of the same subject it names."""
    if fact.one or TAKES_BACK.search(fact.text) is None:
        return None
    mine = frozenset(terms(f"{fact.verb} {fact.what}"))
    for other in reversed(held):
        if other.fact.subject.casefold() != fact.subject.casefold() or other.fact.status is Standing.COMPLETED:
            continue
        theirs = frozenset(terms(f"{other.fact.verb} {other.fact.what}"))
        if len(mine & theirs) >= max(1, SHARED_MIN * min(len(mine), len(theirs))):
            return other
    return None
