"""Words that are written alike: one or two typos apart, or with most of their runs of four letters in common.

A word of 4 letters may have one typo, one of 8 letters two if its first letter is right: a letter more, less or
other, or two neighbours that changed places. Words with digits have none: another version is another version.
One half of a word stays as it is, so that a vocabulary in order need not be compared word by word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

ONE_TYPO, TWO_TYPOS = 4, 8  # letters a word has at least
GRAM = 4
ALIKE = 0.6  # twice the runs that both have, by those of each
_ROUNDING = 1e-9
_FIRST, _LAST = "\x02", "\x03"  # stand before and after a word, so that its beginning and end are letters of it too


def typos_allowed(word: str) -> int:
    """How many typos are forgiven in a word."""
    if len(word) < ONE_TYPO or _DIGIT.search(word):
        return 0
    return 1 if len(word) < TWO_TYPOS else 2


def typos(word: str, other: str, most: int) -> int | None:
    """How many typos are between two words; None where it is more than some (Damerau 1964, Ukkonen's band)."""
    if abs(len(word) - len(other)) > most:
        return None
    word, other = _differing(word, other)
    if not word or not other:
        return len(word or other)
    if most == 1:
        return 1 if len(word) == len(other) == 1 or (len(word) == 2 and word == other[::-1]) else None
    far = most + 1
    before: list[int] = []
    row = [number if number <= most else far for number in range(len(other) + 1)]
    for at, letter in enumerate(word, 1):
        earlier, before = before, row
        low, high = max(1, at - most), min(len(other), at + most)
        row = [far] * (len(other) + 1)
        row[0] = at if at <= most else far
        for to in range(low, high + 1):
            last = other[to - 1]
            cost = min(before[to - 1] + (letter != last), before[to] + 1, row[to - 1] + 1)
            if at > 1 and to > 1 and letter == other[to - 2] and word[at - 2] == last:
                cost = min(cost, earlier[to - 2] + 1)
            row[to] = min(cost, far)
        if min(row) > most:
            return None
    return row[-1] if row[-1] <= most else None


def _differing(word: str, other: str) -> tuple[str, str]:
    """Two words without what they begin and end with alike, which no fewest typos change."""
    shorter = min(len(word), len(other))
    begin = end = 0
    while begin < shorter and word[begin] == other[begin]:
        begin += 1
    while end < shorter - begin and word[-1 - end] == other[-1 - end]:
        end += 1
    return word[begin : len(word) - end], other[begin : len(other) - end]


def likeness(word: str, other: str) -> float:
    """How alike two words are written, from 0 to 1: the runs of four letters that both have, among those of each."""
    return _share(grams(word), len(word), other)


def _share(mine: frozenset[str], length: int, other: str) -> float:
    return 2 * len(mine & grams(other)) / (runs(length) + runs(len(other)))


def runs(length: int) -> int:
    """How many runs of four a word has, its beginning and end counted as letters."""
    return max(1, length + 2 - GRAM + 1)


def grams(word: str) -> frozenset[str]:
    """The runs of four letters of a word, its beginning and end counted as letters."""
    edged = f"{_FIRST}{word}{_LAST}"
    return frozenset([edged[at : at + GRAM] for at in range(max(1, len(edged) - GRAM + 1))])


def halves(word: str) -> tuple[str, str]:
    """The first and the second half of a word: what is like it begins or ends so, or is `turned`."""
    middle = len(word) // 2
    return word[:middle], word[middle:]


def turned(word: str) -> str:
    """A word with the letters at its middle in each other's place: the one typo that is in both halves."""
    first, second = halves(word)
    return first[:-1] + second[:1] + first[-1:] + second[1:]


def likest(word: str, words: Iterable[str], limit: int) -> list[str]:
    """The words most like one, without itself: those with fewer typos first, then those more alike."""
    most = typos_allowed(word)
    if not most or limit < 1:
        return []
    begin, end = halves(word)
    turn, mine = turned(word), grams(word)
    longest = 2 * runs(len(word)) / ALIKE  # what is longer shares too little of its runs
    shortest = (ALIKE / (2 - ALIKE)) * (len(word) - 1)  # and what is shorter has too few
    found = []
    for other in words:
        if len(other) > longest:
            continue
        if not (other.startswith(begin) or other.endswith(end) or other == turn) or other == word:
            continue
        if _DIGIT.search(other):
            continue
        apart = typos(word, other, most if other[0] == word[0] else 1)
        if apart is None and len(other) < shortest:
            continue
        alike = _share(mine, len(word), other)
        if apart is not None or alike >= ALIKE - _ROUNDING:
            found.append((most + 1 if apart is None else apart, -alike, other))
    return [other for _, _, other in sorted(found)[:limit]]


_DIGIT = re.compile(r"\d")
