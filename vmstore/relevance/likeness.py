"""Words that are written alike: one or two typos apart, or with most of their runs of four letters in common.

A word of 4 letters may have one typo, one of 8 letters two if its first letter is right: a letter more, less or
other, or two neighbours that changed places. Words with digits have none: another version is another version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bits = NDArray[np.uint64]

ONE_TYPO, TWO_TYPOS = 4, 8  # letters a word has at least
GRAM = 4
ALIKE = 0.6  # twice the runs that both have, by those of each
CHUNK = 1 << 16  # words whose bits are compared together
PAIRS_A_TYPO = 3  # so many pairs of letters are others where two letters changed places
_ROUNDING = 1e-9
_LOW = 63  # the bits of a number that name one of 64
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


def likeness(word: str, other: str) -> float:
    """How alike two words are written, from 0 to 1: the runs of four letters that both have, among those of each."""
    return 2 * len(_grams(word) & _grams(other)) / (_runs(len(word)) + _runs(len(other)))


def _runs(length: int) -> int:
    """How many runs of four a word has, its beginning and end counted as letters."""
    return max(1, length + 2 - GRAM + 1)


def _grams(word: str) -> frozenset[str]:
    edged = f"{_FIRST}{word}{_LAST}"
    return frozenset(edged[at : at + GRAM] for at in range(max(1, len(edged) - GRAM + 1)))


def likest(word: str, words: Iterable[str], limit: int) -> list[str]:
    """The words most like one, without itself: those with fewer typos first, then those more alike."""
    most = typos_allowed(word)
    if not most or limit < 1:
        return []
    low, high = _lengths(len(word), most)
    found = []
    for other in words:
        if not low <= len(other) <= high or other == word or _DIGIT.search(other):
            continue
        apart = typos(word, other, most if other[0] == word[0] else 1)
        alike = likeness(word, other)
        if apart is not None or alike >= ALIKE - _ROUNDING:
            found.append((most + 1 if apart is None else apart, -alike, other))
    return [other for _, _, other in sorted(found)[:limit]]


class Outlines:
    """The outlines of many words, to find the few that may be like another without comparing all.

    Of each word 64 bits for its letters, 64 for its pairs and 128 for its runs of four. None is missed that `likest`
    would find among all, and so many differ that of half a million words some hundred are left. Needs numpy.
    """

    def __init__(self, words: Iterable[str]) -> None:
        import numpy

        chunks: list[_Chunk] = []
        first = 0
        some = iter(words)
        while chunk := list(islice(some, CHUNK)):
            chunks.append(_chunk(chunk, first, numpy))
            first += len(chunk)
        self._chunks = chunks

    def near(self, word: str) -> list[int]:
        """The numbers, in the order they were given, of the words that may be like one."""
        import numpy

        most = typos_allowed(word)
        if not most:
            return []
        asked = _chunk([word], 0, numpy)
        return sorted(number for chunk in self._chunks for number in _near(chunk, word, asked, most, numpy))


class _Chunk(NamedTuple):
    """Some words by length: the number of each and its bits."""

    numbers: NDArray[np.int64]
    lengths: NDArray[np.int64]
    firsts: Bits
    letters: Bits
    pairs: Bits
    grams: tuple[Bits, Bits]


def _chunk(words: list[str], first: int, numpy: Any) -> _Chunk:
    """The bits of some words: of each letter, pair and run of four the bit its number falls on."""
    lengths = numpy.fromiter(map(len, words), numpy.int64, len(words))
    edged = "".join(f"{_FIRST}{word}{_LAST}" for word in words)
    codes = numpy.frombuffer(edged.encode("utf-32-le", "surrogatepass"), "<u4").astype(numpy.uint64)
    ends = numpy.cumsum(lengths + 2)
    starts = ends - lengths - 2
    pairs = codes[:-1] * 31 + codes[1:]
    grams = (pairs[:-2] * 961 + pairs[2:]) % 127 if len(codes) > 3 else pairs[:0]
    order = numpy.argsort(lengths, kind="stable")

    def bits(numbers: Any) -> Any:
        return _together(numbers, starts, ends, len(codes), numpy)[order]

    return _Chunk(
        order + first,
        lengths[order],
        codes[starts + 1][order],
        bits(codes & _LOW),
        bits(pairs & _LOW),
        (bits(grams), bits(grams - 64)),
    )


def _together(numbers: Any, starts: Any, ends: Any, size: int, numpy: Any) -> Any:
    """The bits of each word: of the numbers below 64, those that do not reach into the next word."""
    bits = numpy.zeros(size, numpy.uint64)
    bits[: len(numbers)] = numpy.where(numbers < 64, numpy.uint64(1) << (numbers & _LOW), 0)
    for beyond in range(1, size - len(numbers) + 1):
        over = ends - beyond
        bits[over[over >= starts]] = 0
    return numpy.bitwise_or.reduceat(bits, starts)


def _near(chunk: _Chunk, word: str, asked: _Chunk, most: int, numpy: Any) -> set[int]:
    """The numbers of the words whose bits may be those of one with so many typos, or of one with like runs."""
    low, high = numpy.searchsorted(chunk.lengths, (len(word) - most, len(word) + most + 1)).tolist()
    here = slice(low, high)
    letters = _apart(chunk.letters[here], asked.letters, numpy)
    near = letters <= most
    if most > 1:
        near &= (letters <= 1) | (chunk.firsts[here] == asked.firsts)
    near &= _apart(chunk.pairs[here], asked.pairs, numpy) <= PAIRS_A_TYPO * most
    found = set(chunk.numbers[here][near].tolist())
    shortest, longest = _lengths(len(word), most)
    low, high = numpy.searchsorted(chunk.lengths, (shortest, longest + 1)).tolist()
    runs = numpy.maximum(1, chunk.lengths[low:high] + 2 - GRAM + 1) + _runs(len(word))
    shared = numpy.ceil(ALIKE / 2 * runs - _ROUNDING)  # as many as both have at least
    missing = sum(_ones(mine & ~others[low:high], numpy) for mine, others in zip(asked.grams, chunk.grams, strict=True))
    alike = missing <= len(_grams(word)) - shared
    found.update(chunk.numbers[low:high][alike].tolist())
    return found


def _apart(bits: Any, asked: Any, numpy: Any) -> Any:
    """How many bits are set in one and not in the other, the larger number of both ways."""
    return numpy.maximum(_ones(bits & ~asked, numpy), _ones(asked & ~bits, numpy))


def _ones(bits: Any, numpy: Any) -> Any:
    """How many bits of each number are set."""
    if hasattr(numpy, "bitwise_count"):  # numpy 2
        return numpy.bitwise_count(bits)
    return numpy.unpackbits(bits.view(numpy.uint8).reshape(-1, 8), axis=1).sum(axis=1, dtype=numpy.uint8)


def _lengths(length: int, most: int) -> tuple[int, int]:
    """How short and how long words are that may be like one of a length."""
    return min(length - most, -(-length // 2)), max(length + most, 2 * length)


_DIGIT = re.compile(r"\d")
