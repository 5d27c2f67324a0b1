"""A draft of a segment: texts read one after the other, until there are enough."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from vmstore.relevance.traits import CHARS_MAX, run_traits, text_traits, traits
from vmstore.relevance.words import Analyzer, WordMemo, tokens
from vmstore.search.contents import Content
from vmstore.search.segment import CHANGES, COLUMNS, NAMED, Table, TextSegment, assembled, counted

CACHED_MAX = 1 << 17  # tokens
TERMS_MAX = 1 << 20
ALL_READ = 1 << 15  # beside the traits of a text: those of its runs are among them
END_OF_WORD = ".,;:!?)"  # one of these says nothing of the word before it
FEW = 4_096  # terms of a draft that are sorted rather than counted


class Lexicon:
    """Numbers for terms as they are met, and for what of a text is found by the same terms each time it stands there.

    A term that counts for the length of a text has another number than one that does not. A piece is a token, or a run
    of an ASCII text without white space: what stands in such a run is the same wherever it stands.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.forget()

    def speak(self, analyzer: Analyzer) -> None:
        """Reads what follows by the rules of another language; what is found by the same term has one number."""
        self.analyzer = analyzer
        memos = WordMemo(self._token, CACHED_MAX), WordMemo(self._run, CACHED_MAX)
        self.tokens, self.runs = self._pieces.setdefault(analyzer.language, memos)

    def forget(self) -> None:
        """Starts over with an empty draft."""
        self.terms: list[str] = []
        self.counts = array("B")  # whether each number counts for the length
        self._numbers: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self.numbers = array("I")  # of all pieces, one after the other
        self.ends = array("Q", [0])
        self.traits = array("H")  # of each piece
        self._pieces: dict[str, tuple[WordMemo[int], WordMemo[int]]] = {}  # by language
        self.speak(self.analyzer)

    def piece(self, tokens: Iterable[str], traits: int) -> int:
        """The number of another piece, of some tokens."""
        for token in tokens:
            if lone := self.analyzer.lone_terms[token]:
                self.numbers.append(self._number(*lone))
                continue
            form = self.analyzer.form(token)
            self.numbers.extend(self._number(term, 1) for term in form.terms)
            self.numbers.extend(self._number(term, 0) for term in (*form.wholes, *form.stops))
        self.ends.append(len(self.numbers))
        self.traits.append(traits)
        return len(self.traits) - 1

    def _token(self, token: str) -> int:
        return self.piece((token,), 0)

    def _run(self, run: str) -> int:
        if run.isalpha():
            return self.piece((run,), run_traits(run))
        if run[-1] in END_OF_WORD and (word := run[:-1]).isalpha():
            return self.runs[word]
        return self.piece(tokens(run), run_traits(run))

    def _number(self, term: str, counts: int) -> int:
        known = self._numbers[counts]
        number = known.get(term)
        if number is None:
            number = known[term] = len(self.terms)
            self.terms.append(term)
            self.counts.append(counts)
        return number


class SegmentDraft:
    """Texts that are to be a segment."""

    def __init__(self, lexicon: Lexicon) -> None:
        if len(lexicon.numbers) > TERMS_MAX:
            lexicon.forget()
        self._lexicon = lexicon
        self._pieces = array("I")
        self._ends = array("Q", [0])
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
        if text.isascii() and "\x1b" not in text:
            self._pieces.extend(map(self._lexicon.runs.__getitem__, text.split()))
            known = text_traits(text) if len(text) <= CHARS_MAX else traits(text) | ALL_READ
        else:
            self._pieces.extend(map(self._lexicon.tokens.__getitem__, tokens(text)))
            known = traits(text) | ALL_READ
        self._ends.append(len(self._pieces))
        named = (self._name("speaker", speaker), self._name("tool", tool))
        self._rows.append((content.session, content.position, len(text), content.at, content.role, *named, known))

    def _name(self, kind: str, name: str | None) -> int:
        known = self._names[kind]
        return 0 if name is None else known.setdefault(name, len(known) + 1)

    def segment(self) -> TextSegment:
        """The segment of what was added."""
        lexicon, count = self._lexicon, len(self._rows)
        fields = np.array(self._rows, np.int64).reshape(count, 8).T
        pieces, texts = np.array(self._pieces, np.int64), np.array(self._ends, np.int64)
        held = np.frombuffer(lexicon.ends, np.uint64)  # not copied: a draft of one text knows all that were read before
        starts = held[pieces].astype(np.int64)
        sizes = held[pieces + 1].astype(np.int64) - starts
        ends = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(ends[-1]) + np.repeat(starts - ends[:-1], sizes)
        terms = _numbers(lexicon.numbers, np.uint32)[places].astype(np.int64)
        docs = np.repeat(np.arange(count), np.diff(ends[texts]))
        length = np.bincount(docs, _numbers(lexicon.counts, np.uint8)[terms], count)
        fields[7] = _all_traits(fields[7], _numbers(lexicon.traits, np.uint16)[pieces].astype(np.int64), texts)
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


def _numbers(values: array[int], kind: type[np.generic]) -> np.ndarray:
    """Numbers as they lie there, which must not grow meanwhile."""
    return np.frombuffer(values, kind) if values else np.empty(0, kind)


def _all_traits(known: NDArray[np.int64], of_pieces: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The traits of texts: those of each as a whole, and of its runs where they were not read with it."""
    found = np.bitwise_or.reduceat(np.append(of_pieces, 0), ends[:-1]) if len(known) else known
    found[ends[:-1] == ends[1:]] = 0  # what has no piece
    return np.where(known & ALL_READ, known ^ ALL_READ, known | found)


def _placed(used: np.ndarray) -> np.ndarray:
    """The place of each number among those in use."""
    places = np.zeros(int(used[-1]) + 1, np.int64)
    places[used] = np.arange(len(used))
    return places
