"""A corpus: the texts some sessions hold at a moment, how many and how long, and which hold a word.

Of each page that holds a text the content in force counts, at level 0: compressing a page hides
none of its words. How long they are together is a running sum: a content adds its own length and
takes away that of the content it follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import apsw

from vmstore.core.erasure import ErasedContent, gone
from vmstore.core.text.tokenizer import readable, words
from vmstore.log.port import Log
from vmstore.views.branch import NEVER, Branch, BranchRange
from vmstore.views.stored_cells import read_cells

READ = 256  # contents read at once


class IndexedContent(NamedTuple):
    """A full content of a page: who wrote it, where, and its cell."""

    session: int
    position: int
    page: int
    version: int
    cell: int
    commitment: bytes


class CorpusTotals(NamedTuple):
    """How many texts, and how many words they have together."""

    texts: int
    words: int

    def plus(self, other: CorpusTotals) -> CorpusTotals:
        """Both together."""
        return CorpusTotals(self.texts + other.texts, self.words + other.words)


class ContentTerms(NamedTuple):
    """What a content adds to the texts of a lane, and to those its session wrote itself."""

    content: IndexedContent
    words: list[str]
    seen: CorpusTotals
    alone: CorpusTotals


class Corpus(Protocol):
    """What a search asks of the texts; stretches are those of the lane it looks at.

    `alone` where the lane is what a session wrote itself: nothing it inherited was there before it.
    """

    def holding(self, wanted: Sequence[str], stretches: Iterable[BranchRange]) -> Iterator[tuple[int, int]]:
        """Session and position of every content with one of the words, in force or not; others may be among them."""
        ...

    def totals(self, stretches: Iterable[BranchRange], alone: bool) -> CorpusTotals:
        """Of all texts in force at the end of the stretches."""
        ...

    def texts(self, contents: Iterable[IndexedContent]) -> Iterator[tuple[IndexedContent, str]]:
        """The contents that are text, with it."""
        ...


class ScanCorpus:
    """A corpus without an index: everything above some commit is read."""

    def __init__(self, log: Log, db: apsw.Connection, after: int = 0) -> None:
        self._log = log
        self._db = db
        self._after = after

    def holding(self, wanted: Sequence[str], stretches: Iterable[BranchRange]) -> Iterator[tuple[int, int]]:
        """Every content, whatever its words: who asks reads them anyhow."""
        for stretch in stretches:
            for content in self.contents(stretch):
                yield content.session, content.position

    def totals(self, stretches: Iterable[BranchRange], alone: bool) -> CorpusTotals:
        """The sum of what each content adds."""
        found = CorpusTotals(0, 0)
        for stretch in stretches:
            for gain in self.gains(self.contents(stretch)):
                found = found.plus(gain.alone if alone else gain.seen)
        return found

    def contents(self, stretch: BranchRange) -> Iterator[IndexedContent]:
        """The full contents a session wrote on a stretch, in order, opaque ones left out."""
        low = max(stretch.low, self._seen(stretch.session))
        for row in self._db.execute(_CONTENTS, (stretch.session, low, stretch.high)):
            yield IndexedContent(stretch.session, *row)

    def everything(self) -> Iterator[IndexedContent]:
        """The full contents of all sessions that wrote since."""
        for session in self._written():
            yield from self.contents(BranchRange(session, 0, NEVER))

    def gains(self, contents: Iterable[IndexedContent]) -> Iterator[ContentTerms]:
        """Each content with what it adds: it may take the place of another."""
        for some in _together(contents):
            for content, text in zip(some, self._texts(some), strict=True):
                found = words(text or "")
                whole = seen = alone = CorpusTotals(int(text is not None), len(found))
                if content.version > 1:
                    before, inherited = self._before(content)
                    seen = whole.plus(before)
                    alone = whole if inherited else seen
                yield ContentTerms(content, found, seen, alone)

    def texts(self, contents: Iterable[IndexedContent]) -> Iterator[tuple[IndexedContent, str]]:
        """The contents that are text, with it."""
        for some in _together(contents):
            for content, text in zip(some, self._texts(some), strict=True):
                if text is not None:
                    yield content, text

    def _texts(self, contents: Sequence[IndexedContent]) -> list[str | None]:
        sealed = {content.cell: content.commitment for content in contents}
        cells = read_cells(self._log, self._db, sealed, gone)
        texts = (cells[content.cell] for content in contents)
        return [None if isinstance(text, ErasedContent) else readable(text) for text in texts]

    def _before(self, content: IndexedContent) -> tuple[CorpusTotals, bool]:
        """What the content whose place one took counted for, below zero; whether another session wrote it."""
        found: list[Any] = []
        for stretch in Branch(self._db, content.session).upto(content.position - 1):
            args = (stretch.session, content.page, stretch.high)
            found += ((row[0], stretch.session, row) for row in self._db.execute(_EARLIER, args))
        _, session, (position, version, cell, commitment) = max(found)
        inherited = session != content.session
        if cell is None:
            return CorpusTotals(0, 0), inherited
        (text,) = self._texts([IndexedContent(session, position, content.page, version, cell, commitment)])
        return CorpusTotals(-int(text is not None), -len(words(text or ""))), inherited

    def _written(self) -> list[int]:
        """The sessions that wrote since; those that did not are not gone through."""
        if not self._after:
            rows: list[Any] = self._db.execute("SELECT session FROM sessions ORDER BY session").fetchall()
            return [session for (session,) in rows]
        found, after = set[int](), self._after
        while some := self._log.tail(after, READ):
            found.update(commit.session for commit in some)
            after = some[-1].ordinal
        return sorted(found)

    def _seen(self, session: int) -> int:
        """How far a session had come at the commit this begins after."""
        if not self._after:
            return 0
        found = self._db.execute(_SEEN, (session, self._after)).get
        return int(found or 0)


def _together(contents: Iterable[IndexedContent]) -> Iterator[list[IndexedContent]]:
    some: list[IndexedContent] = []
    for content in contents:
        some.append(content)
        if len(some) == READ:
            yield some
            some = []
    if some:
        yield some


_CONTENTS = """SELECT position, page, version, cell, commitment FROM versions
  WHERE session = ? AND position > ? AND position <= ? AND level = 0 AND cell IS NOT NULL
  ORDER BY position"""
_EARLIER = """SELECT position, version, cell, commitment FROM versions
  WHERE session = ? AND page = ? AND position <= ? AND level = 0"""
_SEEN = "SELECT last FROM commits WHERE session = ? AND ordinal <= ? ORDER BY last DESC LIMIT 1"
