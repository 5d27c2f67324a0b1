"""A draft of a segment: texts read one after the other, until there are enough."""

from __future__ import annotations

from array import array
from itertools import chain

import numpy as np

from vmstore.relevance.traits import traits
from vmstore.relevance.words import Analyzer, tokens
from vmstore.search.contents import Content
from vmstore.search.segment import CHANGES, COLUMNS, NAMED, Table, TextSegment, assembled, counted

CACHED_CHARS_MAX = 64
CACHED_MAX = 1 << 17  # tokens
TERMS_MAX = 1 << 20
FEW = 4_096  # terms of a draft that are sorted rather than counted


class Lexicon:
    """Numbers for terms as they are met: one for a term that counts for the length of a text, one for any other."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.forget()

    def forget(self) -> None:
        """Starts over with an empty draft."""
        self.terms: list[str] = []
        self.counts = array("B")  # whether each number counts for the length
        self._numbers: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self.tokens = _Tokens(self)

    def numbers(self, token: str) -> tuple[int, ...]:
        """The numbers of all that a token is found by."""
        form = self.analyzer.form(token)
        if len(form.terms) == 1 and not form.wholes and not form.stops:
            return (self._number(form.terms[0], 1),)  # a word, as most tokens are
        return (
            *(self._number(term, 1) for term in form.terms),
            *(self._number(term, 0) for term in (*form.wholes, *form.stops)),
        )

    def _number(self, term: str, counts: int) -> int:
        known = self._numbers[counts]
        number = known.get(term)
        if number is None:
            number = known[term] = len(self.terms)
            self.terms.append(term)
            self.counts.append(counts)
        return number


class _Tokens(dict[str, tuple[int, ...]]):
    def __init__(self, lexicon: Lexicon) -> None:
        super().__init__()
        self._lexicon = lexicon

    def __missing__(self, token: str) -> tuple[int, ...]:
        numbers = self._lexicon.numbers(token)
        if len(token) <= CACHED_CHARS_MAX:
            if len(self) >= CACHED_MAX:
                self.clear()
            self[token] = numbers
        return numbers


class SegmentDraft:
    """Texts that are to be a segment."""

    def __init__(self, lexicon: Lexicon) -> None:
        if len(lexicon.terms) > TERMS_MAX:
            lexicon.forget()
        self._lexicon = lexicon
        self._terms = array("I")
        self._ends = array("Q")
        self._rows: list[tuple[int, ...]] = []
        self._changes: list[tuple[int, ...]] = []
        self._names: dict[str, dict[str, int]] = {kind: {} for kind in NAMED}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def empty(self) -> bool:
        """Whether nothing is in it, not even a change."""
        return not self._rows and not self._changes

    def add(self, content: Content, text: str | None, speaker: str | None, tool: str | None) -> None:
        """Takes a content; one without a text counts where it takes the place of one."""
        if content.version > 1:
            doc = -1 if text is None else len(self._rows)
            self._changes.append((content.session, content.position, content.page, content.version, doc))
        if text is None:
            return
        self._terms.extend(chain.from_iterable(map(self._lexicon.tokens.__getitem__, tokens(text))))
        self._ends.append(len(self._terms))
        named = (self._name("speaker", speaker), self._name("tool", tool))
        self._rows.append(
            (content.session, content.position, len(text), content.at, content.role, *named, traits(text))
        )

    def _name(self, kind: str, name: str | None) -> int:
        known = self._names[kind]
        return 0 if name is None else known.setdefault(name, len(known) + 1)

    def segment(self) -> TextSegment:
        """The segment of what was added."""
        lexicon, count = self._lexicon, len(self._rows)
        fields = np.array(self._rows, np.int64).reshape(count, 8).T
        ends = np.frombuffer(self._ends, np.uint64).astype(np.int64) if count else np.empty(0, np.int64)
        terms = np.frombuffer(self._terms, np.uint32).astype(np.int64) if self._terms else np.empty(0, np.int64)
        docs = np.repeat(np.arange(count), np.diff(ends, prepend=0))
        length = np.bincount(docs, np.frombuffer(lexicon.counts, np.uint8)[terms], count) if count else ends
        names = ("position", "chars", "at", "role", *NAMED, "traits")
        columns = {**dict(zip(names, fields[1:], strict=True)), "length": length.astype(np.int64)}
        changes = np.array(self._changes, np.int64).reshape(len(self._changes), len(CHANGES))
        whole = Table(
            fields[0],
            {name: columns[name] for name in COLUMNS},
            changes,
            {kind: list(known) for kind, known in self._names.items()},
        )
        table, numbers = whole.sorted()
        used = np.unique(terms) if len(terms) < FEW else np.flatnonzero(np.bincount(terms))
        spelled = [lexicon.terms[number].encode() for number in used.tolist()]
        vocabulary = sorted(set(spelled))
        rank = {term: n for n, term in enumerate(vocabulary)}
        ranks = np.fromiter(map(rank.__getitem__, spelled), np.int64, len(spelled))
        which = np.searchsorted(used, terms) if len(terms) < FEW else _placed(used)[terms]
        return assembled(counted(ranks[which], numbers[docs]), vocabulary, table)


def _placed(used: np.ndarray) -> np.ndarray:
    """The place of each number among those in use."""
    places = np.zeros(int(used[-1]) + 1, np.int64)
    places[used] = np.arange(len(used))
    return places
