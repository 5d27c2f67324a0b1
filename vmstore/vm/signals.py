"""The pre-pass: which pages the next message may need, by what it says, before the model sees it.

Seed 000 phase 11. A message that speaks of what was said before wants claims, one about a topic the
pages on it, and each the summary of the last segment.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from functools import lru_cache
from itertools import filterfalse, islice
from typing import NamedTuple

import msgspec

from vmstore.core.decision import Signal
from vmstore.core.page import IMPORTANCE
from vmstore.errors import InputError
from vmstore.vm.reading import bounded, without_controls
from vmstore.vm.topics import Profile, closeness, leading, profile, stem

MESSAGE_CHARS_MAX = 4_000
PATTERN_CHARS_MAX = 500

RECALL = (
    # what was said or done before
    r"\b(?:as|like|what|which|where|when|how|why|who) (?:did |do |have |had |were |was )?(?:we|i|you|us)\b"
    r"[^.?!]{0,20}\b(?:decid|agree|discuss|sa[iy]|mention|chose|pick|settle|plan|t[eo]ld?|talk|us(?:e|ing)\b"
    r"|go with|went with)",
    r"\b(?:earlier|previously|before that|last time|the other day|back then|remember|recall|remind me|so far)\b",
    r"\b(?:we|i|you)(?:'d|'ve| had| have)? (?:already |just |once )?"
    r"(?:decided|agreed|discussed|said|mentioned|chose|picked|settled|planned|talked|told|went with)\b",
    # what was decided
    r"\b(?:that|our|the|my|your|which) (?:\w+ ){0,2}(?:decision|choice|plan|approach|agreement|strategy"
    r"|convention)s?\b",
    r"\bwhat(?:'s| is| was| were| are) (?:our|my|the) \w+",
    # going back
    r"\b(?:go(?:ing)? back to|revisit|return(?:ing)? to|back to (?:the|our|that)|again about|still (?:the|our"
    r"|using))\b",
)
"""What a message says that speaks of what was said before: the seed's three, as people say them."""


@lru_cache(maxsize=64)
def _pattern(pattern: str) -> re.Pattern[str]:
    if len(pattern) > PATTERN_CHARS_MAX:
        raise InputError(f"a recall pattern has {len(pattern):,} characters; {PATTERN_CHARS_MAX} are enough")
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise InputError(f"the recall pattern {pattern!r:.80} is no regular expression: {error}") from error


class Signals(msgspec.Struct, frozen=True):
    """What the pre-pass looks for, and how many pages each sign wants at most."""

    patterns: tuple[str, ...] = RECALL
    claims_max: int = 5
    pages_a_topic: int = 2
    topics_max: int = 5
    summary: bool = True

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            _pattern(pattern)
        if min(self.claims_max, self.pages_a_topic, self.topics_max) < 0:
            raise InputError("a number of pages the pre-pass may want is negative; 0 wants none")


USUAL = Signals()


class Hint(NamedTuple):
    """A page that may be wanted: what its hint or its topics say, and how much it weighs."""

    page: int
    about: Profile
    importance: int = IMPORTANCE


Having = Callable[[Collection[str]], Iterable[Hint]]
"""Gives the pages that have one of some terms; others beside them do no harm."""


class Hints:
    """Pages with a hint in the order they came to be, by page and by what they are about."""

    def __init__(self) -> None:
        self._hints: dict[int, Hint] = {}
        self._pages: dict[str, list[int]] = {}

    def __getitem__(self, page: int) -> Hint:
        return self._hints[page]

    def add(self, one: Hint) -> None:
        """The newest page, or another hint of it, which has the terms of the one before."""
        known = self._hints.get(one.page)
        self._hints[one.page] = one
        for term in one.about.weights:
            if known is None or term not in known.about.weights:
                self._pages.setdefault(term, []).append(one.page)

    def having(self, terms: Iterable[str], without: Container[int], newest: int) -> list[Hint]:
        """Those that have one of some terms, among so many of the newest that are not left out."""
        told = [pages for term in terms if (pages := self._pages.get(term))]
        last = list(islice(filterfalse(without.__contains__, reversed(self._hints)), newest)) if told else []
        found = {page for pages in told for page in pages[bisect_left(pages, last[-1]) :]} if last else set()
        return [self._hints[page] for page in found if page not in without]


class Wanted(NamedTuple):
    """A page the message may need, and the sign it was wanted by; the topic where that was one."""

    page: int
    signal: Signal
    topic: str = ""


def hint(page: int, text: str, importance: int = IMPORTANCE) -> Hint:
    """A page by what is said of it."""
    return Hint(page, profile(text), importance)


def recalls(message: str, signals: Signals = USUAL) -> bool:
    """Whether a message speaks of what was said before."""
    said = _bounded(message)
    return any(_pattern(pattern).search(said) for pattern in signals.patterns)


def wanted(
    message: str,
    claims: Sequence[Hint] = (),
    hints: Having = lambda terms: (),
    summaries: Sequence[int] = (),
    signals: Signals = USUAL,
) -> tuple[Wanted, ...]:
    """The pages a message may need, the surest first, none twice.

    `claims` are those that hold, `hints` is asked for the others, `summaries` are those of the segments,
    in the order they came to be. Equal ones go by importance, then the newer first.
    """
    found: dict[int, Wanted] = {}
    asked = profile(_bounded(message))
    if recalls(message, signals):
        for one in _best(asked, claims)[: signals.claims_max]:
            found.setdefault(one.page, Wanted(one.page, Signal.RECALL))
    terms = {stem(topic): topic for topic in leading([asked], signals.topics_max)}
    near = _best(asked, hints(terms)) if terms else []
    for term, topic in terms.items():
        about = (one for one in near if term in one.about.weights)
        for one in islice(about, signals.pages_a_topic):
            found.setdefault(one.page, Wanted(one.page, Signal.TOPIC, topic))
    if signals.summary and summaries:
        found.setdefault(summaries[-1], Wanted(summaries[-1], Signal.SUMMARY))
    return tuple(found.values())


def _best(asked: Profile, hints: Iterable[Hint]) -> list[Hint]:
    """Hints by how much of what is asked they have, then how alike they are, how important, how new."""
    near = [(*closeness(asked, one.about), one.importance, one.page, one) for one in hints]
    near.sort(reverse=True)  # a page is there once, so no two hints are compared
    return [one[-1] for one in near]


def _bounded(message: str) -> str:
    return "\n".join(bounded(without_controls(message), MESSAGE_CHARS_MAX)).replace("’", "'")
