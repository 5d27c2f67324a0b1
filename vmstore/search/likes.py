"""The terms of a vocabulary that may be other spellings of a word, picked out of all of them at once.

`vmstore.relevance.likeness` says which are: here those are left out that cannot be, by their length, by how often they
have which letters, and by the runs of four letters that they share with the word.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vmstore.relevance.candidates import distinct
from vmstore.relevance.likeness import ALIKE, GRAM, grams, halves, runs, typos_allowed

Bytes = NDArray[np.uint8]
Numbers = NDArray[np.int64]
ASCII = 128
ROUNDING = 1e-6
_LINE = 10


class TermSpelling:
    """How the terms of a vocabulary are spelled: lines of bytes, in order."""

    def __init__(self, lines: Bytes) -> None:
        self._lines = lines
        self._ends = np.flatnonzero(lines == _LINE).astype(np.uint32)

    def _sizes(self, numbers: Numbers) -> tuple[Numbers, Numbers]:
        """Where some terms begin, and how long they are."""
        starts = np.where(numbers > 0, self._ends[numbers - 1].astype(np.int64) + 1, 0)
        return starts, self._ends[numbers].astype(np.int64) - starts

    @cached_property
    def _last(self) -> NDArray[np.uint16]:
        """The last two bytes of each term as a number."""
        ends = self._ends.astype(np.int64)
        found: NDArray[np.uint16] = self._lines[ends - 1] + self._lines[ends - 2].astype(np.uint16) * 256
        return found

    @cached_property
    def _plain(self) -> NDArray[np.bool_]:
        """Whether a term is of ASCII alone."""
        starts = np.append(0, self._ends[:-1] + 1)
        found: NDArray[np.bool_] = np.maximum.reduceat(self._lines, starts) < ASCII
        return found

    def ending(self, suffix: bytes) -> Numbers:
        """The numbers of the terms that end so, in order; the suffix has two bytes at least."""
        found = np.flatnonzero(self._last == suffix[-1] + suffix[-2] * 256)
        _, sizes = self._sizes(found)
        found = found[sizes >= len(suffix)]
        for back in range(3, len(suffix) + 1):
            found = found[self._lines[self._ends[found] - back] == suffix[-back]]
        return found

    def terms(self, numbers: Numbers) -> set[str]:
        """Some terms."""
        starts, sizes = self._sizes(numbers)
        each = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
        return {self._lines[start:end].tobytes().decode("utf-8", "surrogatepass") for start, end in each}

    def beside(self, word: str, begun: range, longest: int) -> tuple[Bytes, Numbers, set[str]]:
        """The terms with a half of a word, those of ASCII as `rows_of` has them with their sizes, and the others.

        `begun` are those that begin with its first half.
        """
        end = halves(word)[1].encode("utf-8", "surrogatepass")
        some = distinct(np.append(np.arange(begun.start, begun.stop), self.ending(end)).astype(np.int64))
        plain = self._plain[some] & word.isascii()
        others = self.terms(some[~plain])
        starts, sizes = self._sizes(some[plain])
        short = sizes <= longest
        return self._rows(starts[short], sizes[short], longest), sizes[short], others

    def _rows(self, starts: Numbers, sizes: Numbers, longest: int) -> Bytes:
        """Terms as rows of bytes, with 2 before and 3 after each, and nothing from there on."""
        columns = np.arange(-1, longest + 2)
        inside = (columns >= 0) & (columns < sizes[:, None])
        rows = np.where(inside, self._lines[np.where(inside, starts[:, None] + columns, 0)], 0).astype(np.uint8)
        rows[:, 0] = 2
        rows[np.arange(len(rows)), sizes + 1] = 3
        return rows


def perhaps_alike(word: str, vocabularies: Sequence[tuple[TermSpelling, range]]) -> set[str]:
    """The terms of some vocabularies that may be other spellings of a word, and a few more."""
    longest = max(int(2 * runs(len(word)) / ALIKE), GRAM)  # what is longer shares too little of its runs
    parts = [spelling.beside(word, begun, longest) for spelling, begun in vocabularies]
    found = {term for _, _, others in parts for term in others}
    if parts and word.isascii():
        rows, sizes = np.concatenate([rows for rows, _, _ in parts]), np.concatenate([sizes for _, sizes, _ in parts])
        may = np.flatnonzero(_few_typos(word, rows, sizes) | _shared(word, rows, sizes))
        held = zip(rows[may], sizes[may].tolist(), strict=True)
        found.update(row[1 : size + 1].tobytes().decode() for row, size in held)
    return found


def _few_typos(word: str, rows: Bytes, sizes: Numbers) -> NDArray[np.bool_]:
    """Whether terms may be within the typos that are forgiven: a typo changes how often two letters stand there, or
    one letter and the length.
    """
    letters = sorted({*word})
    kinds = np.full(256, len(letters))
    kinds[[ord(letter) for letter in letters]] = np.arange(len(letters))
    kinds[[0, 2, 3]] = len(letters) + 1
    many = len(letters) + 2
    places = kinds[rows] + np.arange(len(rows))[:, None] * many
    counts = np.bincount(places.ravel(), minlength=len(rows) * many).reshape(len(rows), many)
    apart = np.abs(counts[:, :-2] - [word.count(letter) for letter in letters]).sum(axis=1) + counts[:, -2]
    few: NDArray[np.bool_] = apart + np.abs(sizes - len(word)) <= 2 * typos_allowed(word)
    return few


def _shared(word: str, rows: Bytes, sizes: Numbers) -> NDArray[np.bool_]:
    """Whether terms have enough runs of four letters in common with a word."""
    wide = rows.astype(np.uint32)
    codes = wide[:, :-3] | wide[:, 1:-2] << 8 | wide[:, 2:-1] << 16 | wide[:, 3:] << 24
    common = np.zeros(len(rows), np.int64)
    for gram in grams(word):
        common += (codes == int.from_bytes(gram.encode(), "little")).any(axis=1)
    every = runs(len(word)) + np.maximum(1, sizes + 2 - GRAM + 1)
    shared: NDArray[np.bool_] = 2 * common >= (ALIKE - ROUNDING) * every
    return shared
