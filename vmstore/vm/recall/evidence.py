"""Pages an answer may have come from, where nobody logged it: those new to its call, those whose words it repeats.

This is evidence and no link: a page that ranks first was in the prompt and fits best, and may not have been used.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vmstore.core.page import Role
from vmstore.vm.recall.used_pages import ESCAPES, WORD, names_of, runs_of

CHARS_MAX = 200_000  # of a page or an answer
SHARED_MAX = 5
SHORT = 2  # a word of so many letters is in every text
# What a page gets beside its words, where the page that fits best by its words gets 1. Chosen on half of 70 decisions
# of five real sessions, see specs/decisions/0040-evidence-is-no-link.md; the other half is what is quoted.
NEW = 0.6  # it was new to the call, and the model did not write it itself
NEWEST = 1.0  # it is the newest that the model did not write itself; the one before gets half, the next a third
ASKED, SAID = 0.6, 0.7  # the share that counts of the words of the model's own calls, and of its own texts
LENGTH = 0.2  # long pages hold any word: the power of their different words that is divided by
WORDS_MIN = 8


class SeenPage(NamedTuple):
    """A page of the prompt of the call that gave an answer: its text, a tool's arguments where it `asks` a tool."""

    page: int
    text: str
    role: Role
    asks: bool
    new: bool


class LikelySource(NamedTuple):
    """A page an answer may have come from: how well it fits, and what both have, the rarest first."""

    page: int
    score: float
    shared: tuple[str, ...]


class _Terms(NamedTuple):
    """Words, names and runs of words that a text can be known by."""

    words: frozenset[str]
    names: frozenset[str]
    runs: frozenset[str]


def ranked(said: str, seen: Sequence[SeenPage]) -> list[LikelySource]:
    """The pages that an answer may have come from, the most likely first.

    A page counts by the share it has of the answer's words, of its names (paths, addresses, numbers of orders) and of
    its runs of eight words, each weighed by how few pages have it; then by whether it was new to the call.
    """
    answer = _terms(said)
    terms = [_terms(one.text) for one in seen]
    weights = [_weights(kind, [other[at] for other in terms]) for at, kind in enumerate(answer)]
    fits = [_fit(one, weights) for one in terms]
    best = max(fits, default=0.0) or 1.0
    others = sorted((one.page for one in seen if one.role is not Role.ASSISTANT), reverse=True)
    place = {page: at for at, page in enumerate(others, 1)}
    found = []
    for one, own, fit in zip(seen, terms, fits, strict=True):
        score = fit / best * (ASKED if one.asks else SAID if one.role is Role.ASSISTANT else 1.0)
        if one.page in place:
            score += NEWEST / place[one.page] + (NEW if one.new else 0.0)
        found.append(LikelySource(one.page, score, _shared(own, weights)))
    return sorted(found, key=lambda one: (-one.score, -one.page))


def _terms(text: str) -> _Terms:
    text = text[:CHARS_MAX]
    folded = text.casefold()
    words = (word for word in WORD.findall(ESCAPES.sub(" ", folded)) if len(word) > SHORT or word.isdigit())
    return _Terms(frozenset(words), frozenset(name.casefold() for name in names_of(text)), frozenset(runs_of(folded)))


def _weights(of: Iterable[str], held: Sequence[frozenset[str]]) -> dict[str, float]:
    """How much each text of an answer tells, by how many pages hold it; nothing of what none holds."""
    counts = Counter(text for each in held for text in each.intersection(of))
    return {text: math.log(1 + (len(held) - n + 0.5) / (n + 0.5)) for text, n in counts.items()}


def _fit(own: _Terms, weights: Sequence[dict[str, float]]) -> float:
    """How well a page fits an answer by what both have."""
    shares = 0.0
    for texts, weight in zip(own, weights, strict=True):
        shares += sum(weight[text] for text in texts.intersection(weight)) / (sum(weight.values()) or 1.0)
    return float(shares / max(len(own.words), WORDS_MIN) ** LENGTH)


def _shared(own: _Terms, weights: Sequence[dict[str, float]]) -> tuple[str, ...]:
    """Texts that a page and an answer both have, names before runs before words, the rarest first, none said twice."""
    found: list[str] = []
    shown: set[str] = set()
    for at in (1, 2, 0):
        weight = weights[at]
        for text in sorted(own[at].intersection(weight), key=lambda one: (-weight[one], -len(one), one)):
            words = set(WORD.findall(text))
            if len(found) < SHARED_MAX and len(words & shown) * 2 < len(words):
                found.append(text)
                shown |= words
    return tuple(found)
