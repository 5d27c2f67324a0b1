"""The texts of a moment: which of the indexed texts are in force there, as dense rows, with their postings.

A lane is, segment after segment, a few runs of texts that follow each other, since a segment has its texts in the
order of session and position. A text that a later version of its page replaced, within the lane and the moment,
is cut out of its run.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vmstore.relevance.candidates import distinct
from vmstore.relevance.likeness import halves, likest, turned, typos_allowed
from vmstore.relevance.texts import COLUMNS, TextColumns
from vmstore.relevance.words import Analyzer
from vmstore.search.likes import perhaps_alike
from vmstore.search.segment import COLUMNS as PACKED
from vmstore.search.segment import NAMED, TextSegment

Array = NDArray[Any]
Lane = Sequence[tuple[int, int, int]]
"""Stretches in the order they were written: a session, and the positions above one, up to another."""
Read = Callable[[Sequence[tuple[int, int]]], list[str]]
"""The texts that sessions wrote at some positions."""

POSTINGS_MAX = 64  # lists kept for who asks again


class RowRun(NamedTuple):
    """Texts of a segment that follow each other in a lane, from one up to before another; the row of the first."""

    segment: int
    first: int
    end: int
    row: int = 0


class Placing:
    """Where the texts of one segment stand among the rows; -1 for those that do not."""

    def __init__(self, segment: TextSegment, runs: Sequence[RowRun]) -> None:
        self.segment = segment
        self.runs = runs
        only = runs[0]
        self._whole = len(runs) == 1 and only.first == 0 and only.end == segment.docs
        self._shift = only.row - only.first

    @cached_property
    def _rows(self) -> NDArray[np.int32]:
        rows = np.full(self.segment.docs, -1, np.int32)
        for run in self.runs:
            rows[run.first : run.end] = np.arange(run.row, run.row + run.end - run.first, dtype=np.int32)
        return rows

    def postings(self, number: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The rows that have a term, and how often."""
        docs = self.segment.having(number)
        often = self.segment.often(number)
        counts = np.ones(len(docs), np.int32)
        if often is not None:
            counts[np.searchsorted(docs, often[0])] = often[1]
        if self._whole:
            return docs.astype(np.int32) + np.int32(self._shift), counts
        if len(self.runs) == 1:
            only = self.runs[0]
            low, high = np.searchsorted(docs, np.array([only.first, only.end], docs.dtype)).tolist()
            return docs[low:high].astype(np.int32) + np.int32(self._shift), counts[low:high]
        rows = self._rows[docs]
        seen = rows >= 0
        return rows[seen], counts[seen]

    def has(self, number: int) -> bool:
        """Whether any row has a term of the segment."""
        return self._whole or len(self.postings(number)[0]) > 0

    def frequencies(self, first: int, count: int) -> list[int]:
        """How many rows have each of some terms that follow each other."""
        if self._whole:
            return self.segment.frequencies(first, count)
        return [len(self.postings(number)[0]) for number in range(first, first + count)]


class MomentTexts:
    """The texts in force at a moment of some lanes; see `vmstore.relevance.texts.Texts`."""

    def __init__(self, segments: Sequence[TextSegment], lanes: Sequence[Lane], read: Read, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self._segments = segments
        self._read = read
        self._postings: dict[str, tuple[NDArray[np.int32], NDArray[np.int32]]] = {}
        self._like: dict[str, list[str]] = {}
        runs: list[RowRun] = []
        layers: list[tuple[set[int], list[RowRun]]] = []  # lanes that share a session stand in several
        rows = [0]
        for lane in lanes:
            placed = _numbered(_in_force(segments, lane), rows[-1])
            rows.append(placed[-1].row + placed[-1].end - placed[-1].first if placed else rows[-1])
            runs += placed
            sessions = {session for session, _, _ in lane}
            layer = next((layer for layer in layers if layer[0].isdisjoint(sessions)), None)
            if layer is None:
                layers.append(layer := (set(), []))
            layer[0].update(sessions)
            layer[1].extend(placed)
        self._runs = runs
        self._lanes = np.array(rows, np.int64)
        self.count = rows[-1]
        self._placings, self._in_order = _placings(segments, [held for _, held in layers])

    @cached_property
    def words(self) -> int:
        """How many terms all rows have together."""
        total = 0
        for run in self._runs:
            segment = self._segments[run.segment]
            whole = run.first == 0 and run.end == segment.docs
            total += segment.words if whole else int(segment.sums[run.end] - segment.sums[run.first])
        return total

    # ---- terms

    def postings(self, term: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The rows that have the term, ascending, and how often each has it."""
        found = self._postings.get(term)
        if found is None:
            found = self._found(term.encode("utf-8", "surrogatepass"))
            if len(self._postings) >= POSTINGS_MAX:
                self._postings.clear()
            self._postings[term] = found
        return found

    def _found(self, term: bytes) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        parts = []
        for placing in self._placings:
            number = placing.segment.number(term)
            if number >= 0:
                parts.append(placing.postings(number))
        if not parts:
            return _NONE, _NONE
        rows, counts = parts[0] if len(parts) == 1 else (np.concatenate(each) for each in zip(*parts, strict=True))
        if not self._in_order:
            order = np.argsort(rows, kind="stable")
            rows, counts = rows[order], counts[order]
        return rows, counts

    def terms_from(self, prefix: str, limit: int) -> list[str]:
        """The terms of these rows that begin so, those of the most rows first."""
        begin = prefix.encode("utf-8", "surrogatepass")
        found: dict[bytes, int] = {}
        for placing in self._placings:
            first, terms = placing.segment.beginning(begin)
            for term, many in zip(terms, placing.frequencies(first, len(terms)), strict=True):
                if many:
                    found[term] = found.get(term, 0) + many
        order = sorted(found, key=lambda term: (-found[term], term))
        return [term.decode("utf-8", "surrogatepass") for term in order[:limit]]

    def terms_like(self, word: str, limit: int) -> list[str]:
        """The terms of these rows that are written like a word, the most alike first; see `relevance.likeness`."""
        if not typos_allowed(word):
            return []
        found = self._like.get(word)
        if found is None:
            if len(self._like) >= POSTINGS_MAX:
                self._like.clear()
            found = self._like[word] = self._alike(word)
        return found[:limit]

    def _alike(self, word: str) -> list[str]:
        begin = halves(word)[0].encode("utf-8", "surrogatepass")
        vocabularies = []
        for segment in (placing.segment for placing in self._placings if placing.segment.vocabulary):
            first, terms = segment.beginning(begin)
            vocabularies.append((segment.spelling, range(first, first + len(terms))))
        perhaps = {turned(word), *perhaps_alike(word, vocabularies)}
        alike = likest(word, perhaps, len(perhaps))
        return [term for term in alike if self._has(term.encode("utf-8", "surrogatepass"))]

    def _has(self, term: bytes) -> bool:
        """Whether any of these rows has a term."""
        numbers = ((placing, placing.segment.number(term)) for placing in self._placings)
        return any(number >= 0 and placing.has(number) for placing, number in numbers)

    # ---- rows

    @cached_property
    def _starts(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Of each run its first row, its segment, and what is added to a row to give the text's number there."""
        runs = np.array(self._runs, np.int64).reshape(len(self._runs), len(RowRun._fields))
        return runs[:, 3], runs[:, 0], runs[:, 1] - runs[:, 3]

    def _where(self, rows: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The segment and the number there of each row."""
        starts, segments, shifts = self._starts
        run = np.searchsorted(starts, rows, "right") - 1
        return segments[run], rows + shifts[run]

    def lengths(self, rows: Array) -> NDArray[np.int32]:
        """How many terms some rows have: the column `length` alone."""
        found = np.empty(len(rows), np.int32)
        for number, here, docs in self._groups(rows):
            found[here] = self._segments[number].columns["length"].at(docs)
        return found

    def _groups(self, rows: Array) -> Iterable[tuple[int, Array | slice, Array]]:
        """Rows by segment: its number, which of the rows, their numbers there."""
        if not len(rows):
            return
        if len(self._runs) == 1:
            only = self._runs[0]
            yield only.segment, slice(None), np.asarray(rows, np.int64) + (only.first - only.row)
            return
        segments, docs = self._where(rows)
        first = int(segments[0])
        if (segments == first).all():
            yield first, slice(None), docs
            return
        for number in distinct(segments).tolist():
            here = np.flatnonzero(segments == number)
            yield number, here, docs[here]

    def columns(self, rows: Array, wanted: Container[str] = COLUMNS) -> TextColumns:
        """What is known of the rows beside their words; a column that is not wanted is of zeros."""
        found: dict[str, Array] = {name: np.zeros(len(rows), _TYPES.get(name, np.int32)) for name in _FIELDS}
        packed = [name for name in PACKED if _FIELDS_OF.get(name, name) in wanted]
        for number, here, docs in self._groups(rows):
            segment = self._segments[number]
            for name in packed:
                values = segment.columns[name].at(docs)
                found[_FIELDS_OF.get(name, name)][here] = (
                    self._global[name][number][values] if name in NAMED else values
                )
            if "session" in wanted:
                found["session"][here] = segment.session_of(docs)
            if "page" in wanted:
                positions = segment.columns["position"].at(docs)
                found["page"][here], found["version"][here] = _pages(segment, docs, positions)
        return TextColumns(**found)

    @cached_property
    def _names(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {kind: {} for kind in NAMED}
        for segment in self._segments:
            for kind, names in segment.names.items():
                for name in names:
                    found[kind].setdefault(name, len(found[kind]) + 1)
        return found

    @cached_property
    def _global(self) -> dict[str, list[Array]]:
        """Of each segment the numbers here for the numbers there, by kind of name."""
        return {
            kind: [np.array([0, *map(known.__getitem__, segment.names[kind])], np.int64) for segment in self._segments]
            for kind, known in self._names.items()
        }

    def names(self, kind: str) -> list[str]:
        """What the numbers of the columns `speaker` and `tool` stand for; 0 stands for nobody and nothing."""
        return ["", *self._names[kind]]

    def texts(self, rows: Sequence[int] | Array) -> list[str]:
        """The texts themselves, read from the log."""
        wanted = np.asarray(rows, np.int64)
        session, position = np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.int64)
        for number, here, docs in self._groups(wanted):
            segment = self._segments[number]
            session[here], position[here] = segment.session_of(docs), segment.columns["position"].at(docs)
        places = list(zip(session.tolist(), position.tolist(), strict=True))
        return self._read(places)

    def places(self, rows: Array) -> NDArray[np.float64]:
        """How far on each row stands in its lane, from 0 for the first to 1 for the last."""
        first, end = self.lane_rows(self.lanes(rows))
        return np.asarray((rows - first) / np.maximum(end - first - 1, 1), np.float64)

    def lanes(self, rows: Array) -> NDArray[np.int64]:
        """Which of the lanes each row stands in, by number."""
        return np.searchsorted(self._lanes, rows, "right") - 1

    def lane_rows(self, lanes: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first row of each lane, and the one after its last."""
        return self._lanes[lanes], self._lanes[np.asarray(lanes) + 1]


_NONE = np.empty(0, np.int32)
_FIELDS = TextColumns._fields
_FIELDS_OF = {"at": "at_us"}  # of columns of a segment that have another name there
_TYPES = dict.fromkeys(("session", "page", "position", "at_us"), np.int64)


def _pages(segment: TextSegment, docs: Array, positions: Array) -> tuple[Array, Array]:
    """Page and version of texts: a page has the position of its first version."""
    later, pages, versions = segment.later
    if not len(later):
        return positions, np.ones(len(docs), np.int64)
    at = np.minimum(np.searchsorted(later, docs), len(later) - 1)
    is_later = later[at] == docs
    return np.where(is_later, pages[at], positions), np.where(is_later, versions[at], 1)


def _in_force(segments: Sequence[TextSegment], lane: Lane) -> list[RowRun]:
    """The runs of a lane's texts, in the order they were written, without those that later versions replaced."""
    runs = []
    for session, low, high in lane:
        for number, segment in enumerate(segments):
            first, end = segment.within(session, low, high)
            if first < end:
                runs.append(RowRun(number, first, end))
    gone = _replaced(segments, lane, runs)
    return runs if not gone else [piece for run in runs for piece in _cut(run, gone.get(run.segment, ()))]


def _cut(run: RowRun, gone: Sequence[int]) -> Iterable[RowRun]:
    """A run without some texts of its segment, which are in order."""
    first = run.first
    for doc in gone:
        if first <= doc < run.end:
            if first < doc:
                yield run._replace(first=first, end=doc)
            first = doc + 1
    if first < run.end:
        yield run._replace(first=first)


def _replaced(segments: Sequence[TextSegment], lane: Lane, runs: Sequence[RowRun]) -> dict[int, list[int]]:
    """The texts of each segment whose page has a later version in the lane."""
    changes = []
    for session, low, high in lane:
        for number, segment in enumerate(segments):
            start, end = segment.changed.get(session, (0, 0))
            if start < end:
                change_columns = [segment.arrays[f"change_{name}"][start:end] for name in ("page", "position", "doc")]
                seen = (change_columns[1] > low) & (change_columns[1] <= high)
                changes.append(np.stack([*(each[seen] for each in change_columns), np.full(seen.sum(), number)]))
    if not changes:
        return {}
    pages, positions, docs, numbers = np.concatenate(changes, axis=1)
    order = np.lexsort((positions, pages))
    pages, docs, numbers = pages[order], docs[order], numbers[order]
    before = np.append(pages[1:] == pages[:-1], False) & (docs >= 0)
    gone: dict[int, list[int]] = {}
    for number, doc in zip(numbers[before].tolist(), docs[before].tolist(), strict=True):
        gone.setdefault(number, []).append(doc)
    born = distinct(pages)
    for run in runs:
        column = segments[run.segment].columns["position"]
        positions = column.at(slice(run.first, run.end))
        at = np.searchsorted(positions, born)
        inside = at < len(positions)
        held = at[inside][positions[at[inside]] == born[inside]]
        gone.setdefault(run.segment, []).extend((held + run.first).tolist())
    return {number: sorted(each) for number, each in gone.items() if each}


def _numbered(runs: Sequence[RowRun], row: int) -> list[RowRun]:
    """Runs with the row of the first of each."""
    rows = accumulate((run.end - run.first for run in runs), initial=row)
    return [run._replace(row=at) for run, at in zip(runs, rows, strict=False)]


def _placings(segments: Sequence[TextSegment], layers: Sequence[Sequence[RowRun]]) -> tuple[list[Placing], bool]:
    """Where the texts of each segment stand; and whether that is in order, so that nothing has to be sorted."""
    placings, rows = [], []
    for layer in layers:
        held: dict[int, list[RowRun]] = {}
        for run in layer:
            held.setdefault(run.segment, []).append(run)
        for number in sorted(held):
            runs = sorted(held[number], key=lambda run: run.first)
            placings.append(Placing(segments[number], runs))
            rows += [run.row for run in runs]
    return placings, all(before < after for before, after in pairwise(rows))
