"""Finds the earlier pages that a page uses by reading both, for sessions whose source has no references."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

RUN_WORDS = 8
HOLDERS_MAX = 4
NAME = re.compile(r"\w[\w/.:@#-]{4,}\w")
MARKED = re.compile(r".*[/_.:@#\d-]", re.DOTALL)  # as far as a name may begin: up to the last sign that makes it one
WORD = re.compile(r"\w+")
ESCAPES = re.compile(r"\\[nrt\"\\]")  # of JSON within a text


class Evidence(IntEnum):
    """Evidence that a page was used."""

    CITED = 0
    NAMED = 1
    QUOTED = 2
    SAME = 3


class WrittenPage(NamedTuple):
    """A page as it was written: its number, its text, and the ids that others cite it by."""

    page: int
    text: str
    ids: tuple[str, ...] = ()


class PageUse(NamedTuple):
    """An earlier page that `by` used, and the strongest evidence of it."""

    by: int
    page: int
    evidence: Evidence


def references(pages: Iterable[WrittenPage]) -> Iterator[PageUse]:
    """The uses of earlier pages by each page, in the order the pages were written; within one, older pages first.

    A page is used by a later one that

    - holds the same text (SAME), or shares a run of eight words with it (QUOTED);
    - holds a name it holds: a word of six characters and more with a digit or one of `/ _ . : @ # -`
      in it, as paths, addresses and numbers of orders have (NAMED);
    - holds one of the ids it is cited by (CITED).

    What more than four pages held before says nothing about any of them, ids aside; of those that
    hold it, the newest counts. Reading costs the length of the texts, memory the runs they hold.
    """
    index = _Index()
    for written in pages:
        found = index.find(written)
        yield from (PageUse(written.page, page, found[page]) for page in sorted(found))
        index.add(written)


class _Index:
    """The newest holder of each term, and the number of holders."""

    def __init__(self) -> None:
        self._holders: dict[str, tuple[int, int]] = {}
        self._cited: dict[str, int] = {}
        self._same: dict[str, int] = {}
        self._reading: tuple[int, list[str], list[str]] = (-1, [], [])

    def find(self, written: WrittenPage) -> dict[int, Evidence]:
        """The earlier pages a page uses, each with the strongest evidence."""
        names, runs = names_of(written.text), runs_of(written.text)
        self._reading = (written.page, names, runs)
        found: dict[int, Evidence] = {}
        for name in names:
            if (page := self._cited.get(name)) is not None:
                found[page] = max(found.get(page, Evidence.CITED), Evidence.CITED)
        for evidence, texts in ((Evidence.NAMED, names), (Evidence.QUOTED, runs)):
            for text in texts:
                page, count = self._holders.get(text, (-1, 0))
                if 0 < count <= HOLDERS_MAX:
                    found[page] = max(found.get(page, evidence), evidence)
        if (same := self._same.get(written.text)) is not None:
            found[same] = Evidence.SAME
        return found

    def add(self, written: WrittenPage) -> None:
        """Takes in a page that was just looked up."""
        page, names, runs = self._reading
        assert page == written.page, "a page is read before it is taken in"
        for text in (*names, *runs):
            self._holders[text] = (page, self._holders.get(text, (0, 0))[1] + 1)
        self._cited |= dict.fromkeys(written.ids, page)
        if written.text:
            self._same[written.text] = page


def names_of(text: str) -> list[str]:
    """The names in a text, each once."""
    found: dict[str, None] = {}
    for chunk in ESCAPES.sub(" ", text).split():
        marked = MARKED.match(chunk)
        if marked is not None:  # looked for once a chunk: before each sign it cost the square of a long one
            found |= dict.fromkeys(name[0] for name in NAME.finditer(chunk) if name.start() < marked.end())
    return list(found)


def runs_of(text: str) -> list[str]:
    """Every eight words in a row, each once."""
    words: Sequence[str] = WORD.findall(ESCAPES.sub(" ", text))
    return list(dict.fromkeys(" ".join(words[n : n + RUN_WORDS]) for n in range(len(words) - RUN_WORDS + 1)))
