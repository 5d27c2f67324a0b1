"""Which earlier fact a statement ends: the one of the same subject that it names, speaks against or counts again.

It is said by a fact's `ends` ("gave up the violin"), by the opposite verb of the same object ("I eat fish", "I don't
eat fish"), or by another number of the same thing where the sentence says that it changed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from vmstore.core.page import Standing
from vmstore.core.text.stems import terms
from vmstore.facts.fact import StatedFact
from vmstore.facts.verbs import stem_of

NAMED_MIN = 2 / 3  # of the terms that a sentence says are no more, which the fact that it ends must have
CHANGED = re.compile(
    r"^(?:please )?(?:set|change|raise|lower|bump|increase|reduce)\b"
    r"|\b(?:now|these days|nowadays|lately|new|actually|up to|down to|instead|correction|any ?more|no longer|since"
    r"|from (?:now|today|\w+) on|changed?"
    r"|moved|raised|went up|went down|jetzt|inzwischen|nun|doch|maintenant|désormais|plutôt)\b",
    re.IGNORECASE,
)
BEGINS = re.compile(
    r"\b(?:start|beg[aiu]n|join|sign|adopt|enrol|engage|took up|take up|becam?e|mov|switch|got|bought|chose|decid|book"
    r"|reserv|order|plan|hir|rent|schedul|arrang|install|subscrib|sett?l)\w*",
    re.IGNORECASE,
)
"""Verbs of an event after which something goes on."""
AGAINST = re.compile(
    r"\b(?:not|never|no longer|\w+n't|hate[sd]?|dislikes?|avoids?|detests?|loathes?"
    r"|nicht|keine?n?|nie|hasse|ne|déteste)\b",
    re.IGNORECASE,
)
NAME_WORDS = 2  # of an object, in which its name stands
_NAME = re.compile(r"\b[A-ZÄÖÜ][\w-]+")
_TO = re.compile(r"\b(?:to|for) [a-z]+$")
_NEW = re.compile(r"(?:an?|my|our|the) (?:brand )?new (?P<thing>[\w-]+)")
_DAY = re.compile(r"\b(mon|tues|wednes|thurs|fri|satur|sun)days?\b")
_BEHIND = re.compile(r"[,;:(]| (?:because|since|until|for now|yesterday|today|last|next|this)\b")
_OF = re.compile(r" (?:at|with|in|on|for|from|to|of|after|before|last|this)\b")
_IS = re.compile(
    r"(?:is|are|was|have|costs?|goes|went|has|had|runs|starts?|ends?|ist|sind|kostet|liegt|beginnt)\b", re.IGNORECASE
)
_COUNTED = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_NUMBER = re.compile(rf"\d|\b(?:{_COUNTED})\b", re.IGNORECASE)
_MOVED = re.compile(
    r"\b(?:moved|changed|rescheduled|postponed|pushed|shifted|switched|went up|went down|rose|fell|dropped)\b"
)
_UPTO = re.compile(r"\b(?:up|down) to\b")
_KIND = re.compile(r"(?P<number>(?:[$€£]|about |around )?\d)|(?P<name>[A-ZÄÖÜ])|(?P<thing>an? )")
_PLACED = re.compile(
    r"^(?:goes? to|going to|attends?|works? (?:at|for|as)|drives?|lives? (?:in|at)|stay(?:ing)? (?:at|in|with)"
    r"|report to|bank with|study (?:at)?|happen|start|leaves?|uses?|take|prefer|wants|host)\b"
)
"""Verbs that go with one thing at a time, where a sentence says that it is another now."""
_IDLE = frozenset(
    terms(
        "thing idea plan plans entire whole current said mention new old change changes instead please now again whole"
        " membership subscription account class lesson school fan member"
    )
)


def ended(fact: StatedFact, held: Sequence[StatedFact]) -> int | None:
    """The place of the earlier fact that a statement ends, of several the one it names most and then the newest."""
    whole = _BEHIND.split(fact.ends, maxsplit=1)[0]
    named = [frozenset(terms(words)) - _IDLE for words in (whole, _OF.split(whole, maxsplit=1)[0])]
    best: tuple[float, int] | None = None
    for place, other in enumerate(held):
        if not _goes_on(other) or (fact.one and fact.attribute == other.attribute):
            continue
        share = _named(fact, other, named[0]) or _named(fact, other, named[1]) or _named_at(fact, other)
        if not share and (_against(fact, other) or _counted_again(fact, other) or _stated_anew(fact, other)):
            share = 1.0
        if share and (best is None or (share, place) > best):
            best = share, place
    return None if best is None else best[1]


def _goes_on(fact: StatedFact) -> bool:
    """Whether a fact held on until something ended it; an event that is over stays what it was."""
    if fact.status is Standing.COMPLETED:
        return BEGINS.match(fact.verb) is not None
    return fact.status is not Standing.ABANDONED


def _named(fact: StatedFact, other: StatedFact, wanted: frozenset[str]) -> float:
    """How far a statement names an earlier fact as no more: 0 where it does not."""
    if not wanted:
        return 0.0
    theirs = frozenset(terms(f"{other.subject} {other.verb} {other.what}"))
    share = len(wanted & theirs) / len(wanted)
    is_gone = fact.ends == fact.subject  # somebody died, left or split up: what is said of them elsewhere is over, too
    if share < NAMED_MIN or not (is_gone or _of_one(fact, other) or wanted >= frozenset(terms(_thing(other)))):
        return 0.0
    if wanted <= frozenset(terms(fact.what)) and is_against(other):
        return 0.0  # it was against it before
    return share + len(wanted & theirs) / (1 + len(theirs))


def _named_at(fact: StatedFact, other: StatedFact) -> float:
    """How far a statement ends what begins with a name in it: `the Corfu trip`, where `Corfu in June` was booked."""
    names = frozenset(terms(" ".join(_NAME.findall(_OF.split(_BEHIND.split(fact.ends)[0], maxsplit=1)[0]))))
    first = frozenset(terms(" ".join(other.what.split()[:NAME_WORDS])))
    return NAMED_MIN if names and names <= first and fact.subject == other.subject else 0.0


def _of_one(fact: StatedFact, other: StatedFact) -> bool:
    """Whether two facts are about one subject, or the later one's subject and something of its own."""
    mine, theirs = fact.subject.casefold(), other.subject.casefold()
    return mine == theirs or theirs.startswith(f"{mine}'s ")


def _against(fact: StatedFact, other: StatedFact) -> bool:
    """Whether two facts say the opposite of one object."""
    if fact.subject.casefold() != other.subject.casefold() or fact.type is not other.type:
        return False
    mine, theirs = frozenset(terms(fact.what)), frozenset(terms(other.what))
    return bool(mine) and (mine <= theirs or theirs <= mine) and is_against(fact) is not is_against(other)


def is_against(fact: StatedFact) -> bool:
    """Whether a fact denies what its object names."""
    return AGAINST.search(fact.verb) is not None


def _thing(fact: StatedFact) -> str:
    """What a fact is about, without whose it is."""
    return fact.subject.rpartition("'s ")[2]


def _counted_again(fact: StatedFact, other: StatedFact) -> bool:
    """Whether a statement gives another number of the thing that an earlier one counts, and says that it changed."""
    if not (_NUMBER.search(fact.what) and _NUMBER.search(other.what)) or CHANGED.search(fact.text) is None:
        return False
    if _IS.match(fact.verb) is None:
        return False
    is_as_before = fact.verb == other.verb or _UPTO.search(fact.verb) is not None
    if fact.subject == other.subject and is_as_before and _same_but_number(fact.what, other.what):
        return True
    if _is_person(fact):
        return False  # what somebody is counts nothing that is theirs
    thing = frozenset(terms(_thing(fact))) - _IDLE
    theirs = frozenset(terms(f"{other.subject} {other.what}"))
    return bool(thing) and thing <= theirs and _numbers(fact.what) != _numbers(other.what)


def _same_but_number(one: str, other: str) -> bool:
    """Whether two objects count the same: `two cats`, `three cats`."""
    mine, theirs = (frozenset(terms(_NUMBER.sub(" ", text.lower()))) for text in (one, other))
    return bool(mine) and mine == theirs and _numbers(one) != _numbers(other)


def _stated_anew(fact: StatedFact, other: StatedFact) -> bool:
    """Whether a statement gives what an earlier one did another object, and says that it changed."""
    if fact.verb == "now has" and _days(fact) & _days(other):
        return True  # `it's yoga on Mondays now`
    if _newly(fact, other):
        return True
    if not _of_same(fact, other) or is_against(fact) or is_against(other):
        return False
    mine, theirs = frozenset(terms(fact.what)), frozenset(terms(other.what))
    if not mine or not theirs or mine == theirs or fact.ends:
        return False
    if _TO.findall(f"{fact.verb} {fact.what}") == _TO.findall(f"{other.verb} {other.what}") != [] and _changes(fact):
        return True  # `I take the bus to work`, `I cycle to work these days`
    is_person = _is_person(fact) and fact.subject == other.subject
    if not is_person and (_MOVED.search(fact.verb) or _MOVED.match(fact.what)) and _IS.match(other.verb):
        return True
    if CHANGED.search(fact.text) is None or stem_of(fact.verb) != stem_of(other.verb):
        return False
    if fact.verb == other.verb and _PLACED.search(fact.verb):
        return True
    if mine & theirs:
        return True
    return not is_person and _kind(fact.what) == _kind(other.what) != "" and fact.verb == other.verb


def _changes(fact: StatedFact) -> bool:
    """Whether a statement of how things go says that it is otherwise now."""
    return fact.status in (Standing.ACTIVE, Standing.RECURRING) and CHANGED.search(fact.text) is not None


def _of_same(fact: StatedFact, other: StatedFact) -> bool:
    """Whether two facts have one subject, or a thing that is somebody's in one and named alone in the other."""
    mine, theirs = fact.subject.casefold(), other.subject.casefold()
    return mine == theirs or (mine in (_thing(fact).casefold(), "user") and mine == _thing(other).casefold())


def _newly(fact: StatedFact, other: StatedFact) -> bool:
    """Whether a statement is of a new one of what an earlier one says who or what it is: `we have a new landlord`."""
    match = _NEW.match(fact.what)
    if match is None or other.subject != f"{fact.subject}'s {match['thing'].lower()}":
        return False
    return _IS.match(other.verb) is not None


def _days(fact: StatedFact) -> frozenset[str]:
    """The days of the week that a fact names."""
    return frozenset(_DAY.findall(f"{fact.subject} {fact.what}".lower()))


def _is_person(fact: StatedFact) -> bool:
    """Whether a fact is about who speaks, or somebody by name, and not about a thing."""
    return fact.subject == "user" or (fact.subject.istitle() and "'s " not in fact.subject)


def _kind(what: str) -> str:
    """Whether an object is a number, a name or a thing of a kind; empty where it is none of these."""
    match = _KIND.match(what)
    return (match.lastgroup or "") if match else ""


def _numbers(text: str) -> list[str]:
    return re.findall(rf"\d[\d.,:]*|\b(?:{_COUNTED})\b", text.lower())
