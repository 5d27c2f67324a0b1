"""A segment: the postings of up to 65,535 texts and what is known of each, as arrays that never change.

Its texts are numbered in the order of session and position. A term's posting list is the numbers of the
texts that have it, two bytes each, or one bit for every text where that is shorter. How often a text has a term
is kept where that is more than once. Segments are built from texts or merged from others; a file of one is its
arrays one after the other, mapped into memory where it is read.
"""

from __future__ import annotations

import json
import mmap
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vmstore.search.likes import TermSpelling

Array = NDArray[Any]
Buffer = bytes | memoryview | mmap.mmap

DOCS_MAX = 65_535
BITS_MIN = 4_096  # texts of a segment from which on frequent terms are kept as bits
BLOCK = 64  # terms that are gone through once the vocabulary is cut down to them
MAGIC = b"vmstext\n"
ALIGNED = 8
NAMED = ("speaker", "tool")
COLUMNS = ("position", "length", "chars", "at", "role", *NAMED, "traits")
CHANGES = ("change_session", "change_position", "change_page", "change_version", "change_doc")
_TERM, _DOC, _COUNT = 40, 24, (1 << 24) - 1  # of a key: term, text and count in one number, so that one sort orders all

assert DOCS_MAX < 1 << 16, "a posting is two bytes"


class Packed(NamedTuple):
    """A column of whole numbers as `base + scale * values`, the values as short as they can be."""

    base: int
    scale: int
    values: Array

    def at(self, docs: Array | slice) -> NDArray[np.int64]:
        """The numbers of some texts."""
        found = self.values[docs].astype(np.int64)
        if self.scale != 1:
            found *= self.scale
        if self.base:
            found += self.base
        return found


def packed(values: NDArray[np.int64]) -> Packed:
    """Numbers as few bytes as they need."""
    if not len(values):
        return Packed(0, 1, values.astype(np.uint8))
    base = int(values.min())
    scale = int(np.gcd.reduce(values - base)) or 1
    return Packed(base, scale, _short((values - base) // scale))


def _short(values: Array) -> Array:
    """Numbers from 0 up in the shortest type that holds them."""
    return values.astype(np.min_scalar_type(int(values.max()) if len(values) else 0))


def _sizes(ends: Array) -> NDArray[np.int64]:
    """How long each of some lists is that end there."""
    sizes: NDArray[np.int64] = ends.astype(np.int64)
    sizes[1:] -= ends[:-1]
    return sizes


def _place(values: Array, number: int) -> int:
    """How many of some numbers in order are not above one, which their type holds."""
    return int(np.searchsorted(values, values.dtype.type(number), "right"))


class TextSegment:
    """Texts with their postings; see the module."""

    def __init__(self, arrays: Mapping[str, Array], about: Mapping[str, Any], terms: Buffer) -> None:
        self.arrays = arrays
        self.about = about
        self.terms = terms
        self.docs: int = about["docs"]
        self.words: int = about["words"]
        self.names: dict[str, list[str]] = about["names"]
        self.vocabulary: int = about["vocabulary"]
        self._ends = arrays["ends"]
        self._blocks: list[int] = arrays["blocks"].tolist()
        self._firsts = [self._first(at) for at in self._blocks[:-1]]
        self._bits: dict[int, int] = dict(zip(arrays["bits"].tolist(), arrays["bits_df"].tolist(), strict=True))
        self._often: dict[str, Any] = {name: arrays[f"often_{name}"] for name in ("terms", "ends", "docs", "counts")}

    # ---- what is known of its texts

    @cached_property
    def columns(self) -> dict[str, Packed]:
        """The columns by name."""
        packing = self.about["columns"]
        return {name: Packed(int(packing[name][0]), int(packing[name][1]), self.arrays[name]) for name in COLUMNS}

    @cached_property
    def runs(self) -> dict[int, tuple[int, int]]:
        """The texts of each session, by its key: the first, and the one after the last."""
        starts = self.arrays["starts"].tolist()
        return dict(zip(self.arrays["sessions"].tolist(), pairwise(starts), strict=True))

    @cached_property
    def changed(self) -> dict[int, tuple[int, int]]:
        """The changes of each session that has any, by its key, as places among all: the first, the one after."""
        sessions, starts = np.unique(self.arrays["change_session"], return_index=True)
        bounds = [*starts.tolist(), len(self.arrays["change_session"])]
        return dict(zip(sessions.tolist(), pairwise(bounds), strict=True))

    def reach(self, session: int) -> tuple[int, int]:
        """The positions of a session that it is made of: above the first, up to the second; (0, 0) of another's."""
        start, end = self.runs.get(session, (0, 0))
        positions = self.columns["position"].at(np.array([start, end - 1])).tolist() if start < end else []
        start, end = self.changed.get(session, (0, 0))
        positions += self.arrays["change_position"][start:end].tolist()
        return (min(positions) - 1, max(positions)) if positions else (0, 0)

    @cached_property
    def later(self) -> tuple[Array, Array, Array]:
        """The texts that are later versions of their page, in order, with page and version."""
        docs = self.arrays["change_doc"]
        held = docs >= 0
        return docs[held], self.arrays["change_page"][held], self.arrays["change_version"][held]

    @cached_property
    def sums(self) -> NDArray[np.int64]:
        """How many words all texts before each have together."""
        return np.concatenate([[0], np.cumsum(self.columns["length"].at(slice(None)))])

    def session_of(self, docs: Array) -> NDArray[np.int64]:
        """Who wrote some texts."""
        if len(self.arrays["sessions"]) == 1:
            return np.full(len(docs), self.arrays["sessions"][0], np.int64)
        runs = np.searchsorted(self.arrays["starts"], docs, "right") - 1
        return self.arrays["sessions"][runs].astype(np.int64)

    def within(self, session: int, low: int, high: int) -> tuple[int, int]:
        """The texts a session wrote above one position, up to another: the first of them, and the one after."""
        start, end = self.runs.get(session, (0, 0))
        if start == end:
            return 0, 0
        column = self.columns["position"]
        values, ends = column.values, (int(column.values[start]), int(column.values[end - 1]))
        # Values stand for positions above their base: round down, since who stands at a bound is within it.
        low, high = (low - column.base) // column.scale, (high - column.base) // column.scale
        first = start if low < ends[0] else start + _place(values[start:end], min(low, ends[1]))
        last = end if high >= ends[1] else start + _place(values[start:end], max(high, -1)) if high >= 0 else start
        return (first, last) if first < last else (0, 0)

    # ---- its vocabulary

    def _block(self, number: int) -> bytes:
        return bytes(self.terms[self._blocks[number] : self._blocks[number + 1]])

    def _first(self, at: int) -> bytes:
        piece = bytes(self.terms[at : at + 32])
        while b"\n" not in piece:
            piece = bytes(self.terms[at : at + 4 * len(piece)])
        return piece[: piece.index(b"\n")]

    def number(self, term: bytes) -> int:
        """A term's number; -1 where no text has it."""
        block = bisect_right(self._firsts, term) - 1
        if block < 0:
            return -1
        if self._firsts[block] == term:
            return block * BLOCK
        held = self._block(block)
        at = held.find(b"\n%s\n" % term)
        return -1 if at < 0 else block * BLOCK + held.count(b"\n", 0, at) + 1

    def beginning(self, prefix: bytes) -> tuple[int, list[bytes]]:
        """The terms that begin so, in order, and the number of the first."""
        first = max(bisect_left(self._firsts, prefix) - 1, 0)
        last = first
        while last < len(self._firsts) and self._firsts[last][: len(prefix)] <= prefix:
            last += 1
        held = bytes(self.terms[self._blocks[first] : self._blocks[last]]).split(b"\n")[:-1]
        start = bisect_left(held, prefix)
        end = bisect_left(held, prefix + b"\xff", start)  # no term has that byte
        return first * BLOCK + start, held[start:end]

    @cached_property
    def spelling(self) -> TermSpelling:
        """How its terms are spelled."""
        return TermSpelling(np.frombuffer(self.terms, np.uint8, self._blocks[-1]))

    @property
    def _all(self) -> bytes:
        return bytes(self.terms[: self._blocks[-1]])

    def every_term(self) -> list[bytes]:
        """The whole vocabulary, in order."""
        return self._all.split(b"\n")[:-1]

    # ---- postings

    def frequency(self, number: int) -> int:
        """How many texts have a term."""
        if number in self._bits:
            return self._bits[number]
        return int(self._ends[number]) - (int(self._ends[number - 1]) if number else 0)

    def frequencies(self, first: int, count: int) -> list[int]:
        """How many texts have each of some terms that follow each other."""
        ends = self._ends[max(first - 1, 0) : first + count].astype(np.int64)
        found: list[int] = (np.diff(ends) if first else _sizes(ends)).tolist()
        for number, many in self._bits.items():
            if first <= number < first + count:
                found[number - first] = many
        return found

    def having(self, number: int) -> Array:
        """The texts that have a term, in order."""
        start = int(self._ends[number - 1]) if number else 0
        found: Array = self.arrays["postings"][start : int(self._ends[number])]
        if number in self._bits:
            return np.flatnonzero(np.unpackbits(found.view(np.uint8), bitorder="little").view(np.bool_))
        return found

    def often(self, number: int) -> tuple[Array, Array] | None:
        """The texts that have a term more than once, and how often; None where none has."""
        terms, ends = self._often["terms"], self._often["ends"]
        at = int(np.searchsorted(terms, terms.dtype.type(number)))  # another type would have all of them converted
        if at == len(terms) or terms[at] != number:
            return None
        which = slice(int(ends[at - 1]) if at else 0, int(ends[at]))
        return self._often["docs"][which], self._often["counts"][which]

    def keys(self, ranks: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """All postings as keys, of terms and texts renumbered."""
        sizes = _sizes(self._ends)
        frequency = sizes.copy()
        for number, many in self._bits.items():
            frequency[number] = many
        terms = np.repeat(np.arange(self.vocabulary, dtype=np.int64), frequency)
        docs = np.empty(len(terms), np.int64)
        if self._bits:
            bits = np.zeros(self.vocabulary, bool)
            bits[list(self._bits)] = True
            docs[~bits[terms]] = self.arrays["postings"][~np.repeat(bits, sizes)]
            starts = np.cumsum(frequency) - frequency
            for number, many in self._bits.items():
                docs[starts[number] : starts[number] + many] = self.having(number)
        else:
            docs[:] = self.arrays["postings"]
        counts = np.ones(len(terms), np.int64)
        often = _sizes(self._often["ends"])
        wanted = (np.repeat(self._often["terms"].astype(np.int64), often) << 16) | self._often["docs"]
        counts[np.searchsorted((terms << 16) | docs, wanted)] = self._often["counts"]
        return (ranks[terms] << _TERM) | (numbers[docs] << _DOC) | counts

    # ---- as a file

    def pieces(self) -> Iterator[bytes]:
        """What a file of it holds, one piece after the other."""
        arrays = {**self.arrays, "terms": np.frombuffer(self._all, np.uint8)}
        places, at = {}, 0
        for name, array in arrays.items():
            places[name] = (array.dtype.str, at, len(array))
            at += -(-array.nbytes // ALIGNED) * ALIGNED
        head = json.dumps({**self.about, "arrays": places}, separators=(",", ":")).encode()
        head += b" " * (-(len(MAGIC) + 8 + len(head)) % ALIGNED)
        yield MAGIC + len(head).to_bytes(8, "little") + head
        for array in arrays.values():
            yield array.tobytes() + bytes(-array.nbytes % ALIGNED)


def opened(buffer: Buffer) -> TextSegment:
    """The segment a file holds; ValueError where it is none."""
    start = len(MAGIC) + 8
    if bytes(buffer[: len(MAGIC)]) != MAGIC:
        raise ValueError("it is no segment")
    end = start + int.from_bytes(buffer[len(MAGIC) : start], "little")
    about = json.loads(bytes(buffer[start:end]))
    arrays = {
        name: np.frombuffer(buffer, dtype, count, end + at) for name, (dtype, at, count) in about.pop("arrays").items()
    }
    return TextSegment(arrays, about, memoryview(arrays.pop("terms").data))


class Table(NamedTuple):
    """What is known of texts beside their words, as columns of numbers, and what changed pages before."""

    session: NDArray[np.int64]
    columns: dict[str, NDArray[np.int64]]
    changes: NDArray[np.int64]
    """A row for each full content that followed another, text or not, as `CHANGES` names its numbers."""
    names: dict[str, list[str]]

    def sorted(self) -> tuple[Table, NDArray[np.int64]]:
        """In the order of session and position; and the new number of each text."""
        order = np.lexsort((self.columns["position"], self.session))
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.arange(len(order))
        changes = self.changes[np.lexsort((self.changes[:, 1], self.changes[:, 0]))]
        changes[:, 4] = np.append(numbers, -1)[changes[:, 4]]
        columns = {name: values[order] for name, values in self.columns.items()}
        return Table(self.session[order], columns, changes, self.names), numbers


def joined(tables: Sequence[Table]) -> Table:
    """Tables one after the other."""
    names: dict[str, dict[str, int]] = {kind: {} for kind in NAMED}
    columns: dict[str, list[NDArray[np.int64]]] = {name: [] for name in COLUMNS}
    changes, before = [], 0
    for table in tables:
        for name, values in table.columns.items():
            if name in NAMED:
                known = names[name]
                renamed = [0, *(known.setdefault(text, len(known) + 1) for text in table.names[name])]
                values = np.array(renamed, np.int64)[values]
            columns[name].append(values)
        moved = table.changes.copy()
        moved[moved[:, 4] >= 0, 4] += before
        changes.append(moved)
        before += len(table.session)
    return Table(
        np.concatenate([table.session for table in tables]),
        {name: np.concatenate(parts) for name, parts in columns.items()},
        np.concatenate(changes),
        {kind: list(known) for kind, known in names.items()},
    )


def table_of(segment: TextSegment) -> Table:
    """What a segment knows of its texts."""
    lengths = _sizes(segment.arrays["starts"])[1:]
    session = np.repeat(segment.arrays["sessions"].astype(np.int64), lengths)
    columns = {name: column.at(slice(None)) for name, column in segment.columns.items()}
    changes = np.stack([segment.arrays[name].astype(np.int64) for name in CHANGES], axis=1)
    return Table(session, columns, changes, dict(segment.names))


def merged(segments: Sequence[TextSegment]) -> TextSegment:
    """One segment of the texts of several; each later one continues where its sessions ended in the one before."""
    table, numbers = joined([table_of(segment) for segment in segments]).sorted()
    spelled = [segment.every_term() for segment in segments]
    vocabulary = sorted(set().union(*spelled))
    ranks = {term: rank for rank, term in enumerate(vocabulary)}
    keys, before = [], 0
    for segment, terms in zip(segments, spelled, strict=True):
        own = np.fromiter(map(ranks.__getitem__, terms), np.int64, len(terms))
        keys.append(segment.keys(own, numbers[before : before + segment.docs]))
        before += segment.docs
    return assembled(np.sort(np.concatenate(keys), kind="stable"), vocabulary, table)


def counted(terms: NDArray[np.int64], docs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Postings as keys, from the terms of texts as often as they stand there."""
    keys = np.sort((terms << 16) | docs)
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.minimum(np.diff(first, append=len(keys)), _COUNT)
    keys = keys[first]
    return (keys >> 16 << _TERM) | ((keys & 0xFFFF) << _DOC) | counts


def assembled(keys: NDArray[np.int64], vocabulary: Sequence[bytes], table: Table) -> TextSegment:
    """A segment from its postings in order, its terms in order, and what is known of its texts."""
    docs = len(table.session)
    terms, numbers, counts = keys >> _TERM, (keys >> _DOC) & 0xFFFF, keys & _COUNT
    arrays: dict[str, Array] = _postings(terms, numbers.astype(np.uint16), len(vocabulary), docs)
    often = counts > 1
    last = np.flatnonzero(np.diff(terms[often], append=-1))
    arrays |= {
        "often_terms": terms[often][last].astype(np.uint32),
        "often_ends": (last + 1).astype(np.uint32),
        "often_docs": numbers[often].astype(np.uint16),
        "often_counts": _short(counts[often]),
    }
    spelled = [b"\n".join([*vocabulary[at : at + BLOCK], b""]) for at in range(0, len(vocabulary), BLOCK)]
    arrays["blocks"] = np.cumsum([0, *map(len, spelled)]).astype(np.uint32)
    starts = np.flatnonzero(np.diff(table.session, prepend=-1))
    arrays["sessions"], arrays["starts"] = table.session[starts], np.append(starts, docs).astype(np.uint32)
    columns = {name: packed(values) for name, values in table.columns.items()}
    arrays |= {name: column.values for name, column in columns.items()}
    arrays |= {name: table.changes[:, n].copy() for n, name in enumerate(CHANGES)}
    about = {
        "docs": docs,
        "words": int(table.columns["length"].sum()),
        "vocabulary": len(vocabulary),
        "names": table.names,
        "columns": {name: (column.base, column.scale) for name, column in columns.items()},
    }
    return TextSegment(arrays, about, b"".join(spelled))


def _postings(terms: NDArray[np.int64], numbers: NDArray[np.uint16], vocabulary: int, docs: int) -> dict[str, Array]:
    """Posting lists by term: two bytes a text, or a bit for each text of the segment where that is shorter."""
    frequency = np.bincount(terms, minlength=vocabulary)
    width = -(-docs // 16)
    bits = np.flatnonzero(frequency > width) if docs >= BITS_MIN else np.empty(0, np.int64)
    sizes = frequency.copy()
    sizes[bits] = width
    ends = np.cumsum(sizes)
    postings = numbers
    if len(bits):
        postings = np.empty(int(ends[-1]), np.uint16)
        as_bits = np.zeros(vocabulary, bool)
        as_bits[bits] = True
        postings[~np.repeat(as_bits, sizes)] = numbers[~as_bits[terms]]
        starts = np.cumsum(frequency) - frequency
        for number in bits.tolist():
            held = np.zeros(16 * width, np.uint8)
            held[numbers[starts[number] : starts[number] + frequency[number]]] = 1
            postings[ends[number] - width : ends[number]] = np.packbits(held, bitorder="little").view(np.uint16)
    return {
        "ends": ends.astype(np.uint32),
        "bits": bits.astype(np.uint32),
        "bits_df": frequency[bits].astype(np.uint32),
        "postings": postings,
    }
