"""Ranks pages for some words: BM25 over the stems of windows of their texts, in memory.

Robertson and Zaragoza, The Probabilistic Relevance Framework (2009). A long page counts by its best window,
so that one line of a log is found as well as a message that says nothing else.
"""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from vmstore.core.text.stems import terms

WINDOW_CHARS = 800  # about 200 tokens
CHARS_MAX = 200_000  # of a page; the rest of a longer one is not looked at
K1 = 1.2
B = 0.4  # windows differ little in length, and a short message says no more for being short
TERMS_MIN = 10  # a window of fewer counts as one of so many: a word alone is no better answer than a sentence
COMMON = 2  # a term that more than every second window has is left out where others are there
FEW = 64  # windows, below which no term is common


class Match(msgspec.Struct, frozen=True, gc=False):
    """A page that has some of the terms: its score, the terms."""

    score: float
    terms: tuple[str, ...]


class Postings:
    """The terms of pages, each with the windows that have it; what they said before counts for nothing."""

    def __init__(self) -> None:
        self._pages = array("q")  # of each window its page, 0 where that was taken out
        self._lengths = array("l")
        self._length = 0  # of all windows that pages have
        self._count = 0  # of these windows
        self._windows: dict[int, range] = {}
        self._having: dict[str, tuple[array[int], array[int]]] = {}  # windows, and how often each has the term

    def __contains__(self, page: int) -> bool:
        return page in self._windows

    def __len__(self) -> int:
        return len(self._windows)

    def add(self, page: int, text: str, beside: str = "") -> None:
        """A page comes, or says something else now; `beside` is what its words stand for, as a proposal's to "ok"."""
        self.drop([page])
        first = len(self._pages)
        for window in windows(text[:CHARS_MAX]):
            counts = Counter(terms(window))
            counts.update(terms(beside))
            number, length = len(self._pages), max(counts.total(), TERMS_MIN)
            self._pages.append(page)
            self._lengths.append(length)
            self._length += length
            for term, count in counts.items():
                known = self._having.get(term)
                if known is None:
                    known = self._having[term] = array("l"), array("l")
                known[0].append(number)
                known[1].append(count)
        self._windows[page] = range(first, len(self._pages))
        self._count += len(self._windows[page])

    def drop(self, pages: Iterable[int]) -> None:
        """Some pages are not to be found any more, nor to count in what a term tells: all terms are looked through."""
        dropped = [windows for page in pages if (windows := self._windows.pop(page, None))]
        if not dropped:
            return
        for windows in dropped:
            self._count -= len(windows)
            for window in windows:
                self._pages[window] = 0
                self._length -= self._lengths[window]
        for term, (having, times) in list(self._having.items()):
            for windows in dropped:
                low = bisect_left(having, windows.start)
                high = bisect_left(having, windows.stop, low)
                del having[low:high], times[low:high]
            if not having:
                del self._having[term]

    def matches(
        self, asked: Mapping[str, float], looked_at: Callable[[int], bool], *, common: bool = True
    ) -> dict[int, Match]:
        """The pages that have some terms, each of a weight, among those that are looked at.

        Where all terms are common they are looked for all the same, or with `common` left out none.
        """
        count = self._count
        if not count or not self._length:
            return {}
        mean = self._length / count
        rare = [term for term in asked if 0 < self.frequency(term) * COMMON <= max(count, FEW)]
        looked_for = rare or [term for term in asked if common and self.frequency(term)]
        scores: dict[int, float] = {}
        having: dict[int, list[str]] = {}
        for term in looked_for:
            weight = asked[term] * self.weight(term)
            for window, times in zip(*self._having[term], strict=True):
                norm = times + K1 * (1 - B + B * self._lengths[window] / mean)
                scores[window] = scores.get(window, 0.0) + weight * times * (K1 + 1) / norm
                having.setdefault(window, []).append(term)
        found: dict[int, Match] = {}
        pages = self._pages
        for window, score in scores.items():
            page = pages[window]
            if page and ((known := found.get(page)) is None or known.score < score) and looked_at(page):
                found[page] = Match(score, tuple(having[window]))
        return found

    def has(self, term: str) -> bool:
        """Whether some page has a term."""
        return term in self._having

    def weight(self, term: str) -> float:
        """How much a term tells, by how few windows have it."""
        count, frequency = self._count, self.frequency(term)
        return math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))

    def frequency(self, term: str) -> int:
        """How many windows have a term."""
        known = self._having.get(term)
        return len(known[0]) if known else 0


def windows(text: str) -> Iterator[str]:
    """A text in windows of about 200 tokens, cut between lines, else between sentences or words."""
    at = 0
    while len(text) - at > WINDOW_CHARS * 5 // 4:
        part = text[at : at + WINDOW_CHARS]
        cut = max(part.rfind("\n", WINDOW_CHARS // 2), part.rfind(". ", WINDOW_CHARS // 2))
        if cut < 0:
            blank = list(_BLANK.finditer(part, WINDOW_CHARS // 2))
            cut = blank[-1].start() if blank else WINDOW_CHARS - 1
        yield part[: cut + 1]
        at += cut + 1
    yield text[at:]


_BLANK = re.compile(r"\s")
