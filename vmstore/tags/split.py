"""Tags that have grown too broad: which turns of one go under a narrower name of two words.

A tag is split once, one a turn, where it stands in fifteen turns and in fifteen of a hundred.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vmstore.tags.canonical import spelled
from vmstore.tags.tagger import GENERAL, TurnText, terms_of

TURNS_MIN = 15
SHARE_MIN = 0.15
GROUP_MIN = 3  # turns under a narrower name
GROUPS_MAX = 5


class TagSplit(NamedTuple):
    """A tag, the narrower tags in its place by turn, and the one of most turns, which it counts as from then on."""

    tag: str
    turns: Mapping[int, str]
    canonical: str


def due(counts: Mapping[str, int], turns: int, done: frozenset[str]) -> str | None:
    """The tag to be split next: of those that are too broad and never were, the one of most turns."""
    broad = [
        tag
        for tag, count in counts.items()
        if tag != GENERAL and tag not in done and count >= TURNS_MIN and count >= SHARE_MIN * turns
    ]
    return min(broad, key=lambda tag: (-counts[tag], tag), default=None)


def split(tag: str, turns: Sequence[tuple[int, TurnText]]) -> TagSplit | None:
    """How the turns of a tag fall under narrower ones; None where fewer than two groups of them are about one thing."""
    own = set(terms_of(TurnText(tag.replace("-", " "))).weights)
    turn_terms = [(number, terms_of(text)) for number, text in turns]
    spread: Counter[str] = Counter(term for _, terms in turn_terms for term in terms.asked - own)
    shown: dict[str, str] = {}
    for _, terms in turn_terms:
        for term in terms.asked:
            shown.setdefault(term, terms.shown[term])
    most = len(turn_terms) * 3 // 4  # what nearly every turn has tells them apart no more than the tag does
    heads = sorted((t for t in spread if GROUP_MIN <= spread[t] <= most), key=lambda t: (-spread[t], t))[:GROUPS_MAX]
    groups: dict[str, list[int]] = {}
    for number, terms in turn_terms:
        mine = [term for term in heads if term in terms.asked]
        if mine:
            groups.setdefault(max(mine, key=lambda term: (terms.weights[term], -heads.index(term))), []).append(number)
    kept = {term: numbers for term, numbers in groups.items() if len(numbers) >= GROUP_MIN}
    if len(kept) < 2:
        return None
    names = {term: spelled(f"{tag} {shown[term]}") for term in kept}
    largest = min(kept, key=lambda term: (-len(kept[term]), names[term]))
    placed = {number: names[term] for term, numbers in kept.items() for number in numbers}
    return TagSplit(tag, dict(sorted(placed.items())), names[largest])
