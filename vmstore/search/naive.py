"""The texts of a moment without an index: every one of them is read and taken apart, for each question.

It is what answers where numpy is not installed, and what the index is compared with: the same rows, postings and
columns, in lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import apsw

from vmstore.log.port import Log
from vmstore.relevance.likeness import likest
from vmstore.relevance.texts import COLUMNS
from vmstore.relevance.traits import traits
from vmstore.search.contents import Content, contents, speaker, texts, tool
from vmstore.search.place import analyzer, rules_of
from vmstore.views.branch import Branch
from vmstore.views.reads.system_entries import Languages


class NaiveRow(NamedTuple):
    """A text in force: the number of its lane, what is known of it, how often it has each term, how many count."""

    lane: int
    content: Content
    text: str
    counts: Counter[str]
    length: int
    traits: int
    speaker: str | None
    tool: str | None


NAMED = {"speaker": NaiveRow._fields.index("speaker"), "tool": NaiveRow._fields.index("tool")}


class NaiveColumns(NamedTuple):
    """The columns of some rows, as lists."""

    length: list[int]
    chars: list[int]
    session: list[int]
    page: list[int]
    version: list[int]
    position: list[int]
    at_us: list[int]
    speaker: list[int]
    role: list[int]
    tool: list[int]
    traits: list[int]


class NaiveTexts:
    """The texts in force at the moments of some lanes."""

    def __init__(
        self, log: Log, db: apsw.Connection, moments: Sequence[tuple[Branch, int]], languages: Languages | None = None
    ) -> None:
        self._languages = languages or Languages()
        sessions = (stretch.session for branch, position in moments for stretch in branch.upto(position))
        self.analyzer = rules_of(self._languages, sessions)
        self._log = log
        self._db = db
        self.rows = [
            row for lane, (branch, position) in enumerate(moments) for row in self._in_force(lane, branch, position)
        ]
        self.count = len(self.rows)
        self.words = sum(row.length for row in self.rows)

    def _in_force(self, lane: int, branch: Branch, position: int) -> Iterator[NaiveRow]:
        """The texts of a lane in the order they were written: of each page the last full content."""
        there: list[Content] = []
        for stretch in reversed(branch.upto(position)):
            there += contents(self._db, stretch.session, stretch.low, stretch.high)
        last = {content.page: content.position for content in there}
        held = (content for content in there if last[content.page] == content.position)
        for content, text in texts(self._log, self._db, held):
            if text is not None:
                forms = analyzer(self._languages.of(content.session)).forms(text)
                counts = Counter(term for form in forms for term in (*form.terms, *form.wholes, *form.stops))
                length = sum(len(form.terms) for form in forms)
                named = speaker(content), tool(self._log, self._db, content, text)
                yield NaiveRow(lane, content, text, counts, length, traits(text), *named)

    def postings(self, term: str) -> tuple[list[int], list[int]]:
        """The rows that have the term, ascending, and how often each has it."""
        rows = [number for number, row in enumerate(self.rows) if term in row.counts]
        return rows, [self.rows[number].counts[term] for number in rows]

    @cached_property
    def _terms(self) -> Counter[str]:
        return Counter(term for row in self.rows for term in row.counts)

    def terms_from(self, prefix: str, limit: int) -> list[str]:
        """Terms that begin so, the most frequent first."""
        found = [term for term in self._terms if term.startswith(prefix)]
        return sorted(found, key=lambda term: (-self._terms[term], term))[:limit]

    def terms_like(self, word: str, limit: int) -> list[str]:
        """Terms that are written like a word, the most alike first."""
        return likest(word, self._terms, limit)

    def columns(self, rows: Sequence[int], wanted: Container[str] = COLUMNS) -> NaiveColumns:
        """What is known of the rows beside their words; all of it, whatever is wanted."""
        some = [self.rows[number] for number in rows]
        numbers = {kind: {name: n for n, name in enumerate(self.names(kind))} for kind in NAMED}
        return NaiveColumns(
            [row.length for row in some],
            [len(row.text) for row in some],
            [row.content.session for row in some],
            [row.content.page for row in some],
            [row.content.version for row in some],
            [row.content.position for row in some],
            [row.content.at for row in some],
            [numbers["speaker"][row.speaker or ""] for row in some],
            [row.content.role for row in some],
            [numbers["tool"][row.tool or ""] for row in some],
            [row.traits for row in some],
        )

    def names(self, kind: str) -> list[str]:
        """What the numbers of the columns `speaker` and `tool` stand for; 0 stands for nobody and nothing."""
        named = (row[NAMED[kind]] for row in self.rows)
        return list(dict.fromkeys(["", *(str(name) for name in named if name)]))

    def texts(self, rows: Sequence[int]) -> list[str]:
        """The texts themselves."""
        return [self.rows[number].text for number in rows]

    def places(self, rows: Sequence[int]) -> list[float]:
        """How far on each row stands in its lane, from 0 for the first to 1 for the last."""
        lanes = [row.lane for row in self.rows]
        first, many = {lane: lanes.index(lane) for lane in set(lanes)}, Counter(lanes)
        return [(row - first[lanes[row]]) / max(many[lanes[row]] - 1, 1) for row in rows]

    def lane_rows(self, lanes: Sequence[int]) -> tuple[list[int], list[int]]:
        """The first row of each lane, and the one after its last."""
        every = [row.lane for row in self.rows]
        first = [every.index(lane) for lane in lanes]
        return first, [low + every.count(lane) for low, lane in zip(first, lanes, strict=True)]

    def lanes(self, rows: Sequence[int]) -> list[int]:
        """Which of the lanes each row stands in, by number."""
        return [self.rows[number].lane for number in rows]
