"""What a person asks for: words, "phrases", `prefix*`, `-not` and `OR`, read from what was typed.

Nothing that can be typed is an error. An operator that cannot be meant as one is text, and what was done about
anything odd stands in `notes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from vmstore.relevance.characters import folded, settled
from vmstore.relevance.words import Analyzer, has_signs, is_number, pieces, signs_of, tokens

CHARS_MAX = 16_384  # a page of text; who searches with more has handed over a file
WORDS_MAX = 256
PHRASE_WORDS_MAX = 64
HASH_CHARS_MIN = 6
SHOWN_CHARS = 200  # of an asked word, where it is shown


class AskedKind(StrEnum):
    """What an asked word is, by how it was typed."""

    WORD = "word"
    STOP = "stop"
    IDENTIFIER = "identifier"
    PATH = "path"
    HASH = "hash"
    PREFIX = "prefix"
    SIGNS = "signs"
    EITHER = "either"


class Asked(NamedTuple):
    """One word that is asked for, and what answers it."""

    text: str
    kind: AskedKind
    terms: tuple[str, ...] = ()
    """A text with any of them has the word."""
    prefixes: tuple[str, ...] = ()
    """So has one with a term that begins with any of these."""
    parts: tuple[str, ...] = ()
    """The terms of a name's parts: a text with some of them answers less well than one with the whole."""


class AskedPhrase(NamedTuple):
    """Words that are to stand next to each other."""

    text: str
    sequence: tuple[str, ...]
    """Its words in order, stop words too."""
    terms: tuple[str, ...]
    """Those a text must have, without stop words."""
    wholes: tuple[str, ...] = ()
    """Names typed as a whole, which a text must have as a whole."""


Wanted = Asked | AskedPhrase


class WordQuery(NamedTuple):
    """What a person asks for."""

    raw: str
    words: tuple[Asked, ...] = ()
    """All that is asked for, those of phrases too; the more a text has of them, the better."""
    phrases: tuple[AskedPhrase, ...] = ()
    required: tuple[tuple[Wanted, ...], ...] = ()
    """Of each group a text must have one: what was quoted or has a `+`, with its alternatives by `OR`."""
    excluded: tuple[Wanted, ...] = ()
    """What a text must not have."""
    notes: tuple[str, ...] = ()
    """What was done about anything odd, one sentence each."""

    @property
    def empty(self) -> bool:
        """Whether it asks for nothing."""
        return not self.words and not self.phrases


class _Item(NamedTuple):
    """A piece of what was typed: its operator (`-`, `+`, `OR` or none) and the rest."""

    operator: str
    text: str
    quoted: bool
    begun: str = ""
    """What the word begins with, where a `*` stands for its end."""


def parse_query(text: str, analyzer: Analyzer) -> WordQuery:
    """Reads what a person typed; never raises."""
    return _Reader(text, analyzer).query()


class _Reader:
    """Reads one text, a piece at a time."""

    def __init__(self, text: str, analyzer: Analyzer) -> None:
        self._raw = text
        self._analyzer = analyzer
        self._notes: list[str] = []
        self._stops: list[str] = []
        self._words: dict[tuple[tuple[str, ...], tuple[str, ...]], Asked] = {}  # by what answers them
        self._phrases: list[AskedPhrase] = []
        self._required: list[tuple[Wanted, ...]] = []
        self._excluded: list[Wanted] = []

    def query(self) -> WordQuery:
        """All of it."""
        for group in self._groups(self._items(self._shown())):
            self._take(group)
        if not self._words and not self._phrases:
            self._ask_stops()
        words = tuple(self._words.values())
        if len(words) > WORDS_MAX:
            self._notes.append(
                f"Only the first {WORDS_MAX} words are asked for; {len(words) - WORDS_MAX} are left out."
            )
        return WordQuery(
            self._raw,
            words[:WORDS_MAX],
            tuple(self._phrases),
            tuple(self._required),
            tuple(self._excluded),
            tuple(dict.fromkeys(self._notes)),
        )

    def _shown(self) -> str:
        """As much of it as is looked at, its quotes plain."""
        text = self._raw
        if len(text) > CHARS_MAX:
            self._notes.append(f"Only the first {CHARS_MAX} of {len(text)} characters are asked for.")
            text = text[:CHARS_MAX]
        return _QUOTES.sub('"', text)

    def _items(self, text: str) -> list[_Item]:
        if "\n" in text.strip():
            if _OPERATORS.search(text):
                self._notes.append("A text of several lines is searched as it is: its operators are words.")
            return [_Item("", text, False)]
        found = [self._item(match) for match in _ITEM.finditer(text)]
        asked = [item for item in found if item.operator not in ("-", "OR") and self._has_words(item.text)]
        if not asked and any(item.operator == "-" for item in found):
            self._notes.append("Nothing is asked for but what to leave out, so that is asked for.")
            found = [item._replace(operator="") if item.operator == "-" else item for item in found]
        return found

    def _item(self, match: re.Match[str]) -> _Item:
        sign, phrase, chunk = match.groups()
        if phrase is not None:
            return _Item(sign, phrase, True)
        if chunk == "OR":
            return _Item("OR", chunk, False)
        if _OPEN.match(chunk):
            before = chunk.lstrip(_MARKS)[:40]
            self._notes.append(f"The quote before {before or 'nothing'} is not closed; its words are asked for.")
            return _Item("", chunk, False)
        operator, rest = "", chunk
        if signed := _SIGNED.fullmatch(chunk):
            operator, rest = signed.groups()
        if (begun := _PREFIX.fullmatch(rest)) and not has_signs(begun.group(1)):
            return _Item(operator, rest, False, begun.group(1))
        return _Item(operator, rest, False)

    def _has_words(self, text: str) -> bool:
        return any(form.sequence for form in self._analyzer.forms(text))

    def _groups(self, items: list[_Item]) -> Iterator[list[_Item]]:
        """The pieces, those between which an `OR` stands together."""
        group: list[_Item] = []
        joined = False
        for at, item in enumerate(items):
            if item.operator == "OR":
                following = items[at + 1].operator if at + 1 < len(items) else "OR"
                joined = bool(group) and group[-1].operator != "-" and following not in ("OR", "-")
                if not joined:
                    self._notes.append("An OR without something on both sides is left out.")
                continue
            if joined or not group:
                group.append(item)
            else:
                yield group
                group = [item]
            joined = False
        if group:
            yield group

    def _take(self, group: list[_Item]) -> None:
        """Adds what the pieces of a group ask for."""
        found = [wanted for item in group for wanted in self._wanted(item)]
        if group[0].operator == "-":
            self._excluded += found
            return
        for wanted in found:
            if isinstance(wanted, AskedPhrase):
                self._phrases.append(wanted)
        required = any(isinstance(wanted, AskedPhrase) for wanted in found)
        if required and len(group) > 1:
            self._required.append(tuple(found))
        else:
            self._required += (
                (wanted,) for wanted in found if isinstance(wanted, AskedPhrase) or group[0].operator == "+"
            )
        asked = [one for wanted in found for one in self._asked_by(wanted)]
        if len(group) > 1 and not required and asked:
            asked = [_either(" OR ".join(item.text for item in group), asked)]
        for one in asked:
            self._words.setdefault((one.terms, one.prefixes), one)

    def _asked_by(self, wanted: Wanted) -> list[Asked]:
        return [wanted] if isinstance(wanted, Asked) else self._asked(wanted.text)

    def _wanted(self, item: _Item) -> list[Wanted]:
        if item.quoted:
            phrase = self._phrase(item.text)
            return [phrase] if phrase else []
        if item.begun:
            return [self._prefix(item.text, item.begun)]
        return list(self._asked(item.text))

    def _phrase(self, text: str) -> AskedPhrase | None:
        named = tokens(text)
        forms = [self._analyzer.asked(token) for token in named]
        sequence = [term for form in forms for term in form.sequence]
        if not sequence:
            return None
        if len(sequence) > PHRASE_WORDS_MAX:
            self._notes.append(f"Of a phrase of {len(sequence)} words the first {PHRASE_WORDS_MAX} are compared.")
            sequence = sequence[:PHRASE_WORDS_MAX]
        terms = dict.fromkeys(term for form in forms for term in form.terms if term in sequence)
        whole = [form.wholes[-1] for token, form in zip(named, forms, strict=True) if form.wholes and _as_one(token)]
        wholes = dict.fromkeys(whole[:PHRASE_WORDS_MAX])
        return AskedPhrase(text, tuple(sequence), tuple(terms), tuple(wholes))

    def _asked(self, text: str) -> list[Asked]:
        """The words of a piece without operators."""
        found: list[Asked] = []
        for token in tokens(text):
            for piece in pieces(token):
                found += _pairs(piece) if has_signs(piece) else self._named(piece)
        return found

    def _prefix(self, text: str, begun: str) -> Asked:
        small = folded(settled(begun)).lstrip("/")
        plain_name = small if _SEPARATED.search(small) else _JOINTS.sub("", small)
        stem = self._analyzer.word(small)
        return Asked(text, AskedKind.PREFIX, (stem,) if stem != plain_name else (), (plain_name,))

    def _named(self, token: str) -> Iterator[Asked]:
        form = self._analyzer.asked(token)
        token = token[:SHOWN_CHARS]
        small = folded(token)
        self._stops += form.stops
        if _HASH.fullmatch(small) and not small.isdecimal() and not small.isalpha():
            yield Asked(token, AskedKind.HASH, (small,), (small,))
        elif form.wholes and not is_number(token):
            kind = AskedKind.PATH if "/" in token else AskedKind.IDENTIFIER
            yield Asked(token, kind, form.wholes[-1:], (), (*form.wholes[:-1], *form.terms))
        elif len(form.terms) == 1:
            yield Asked(token, AskedKind.WORD, self._analyzer.spellings(token, form.terms[0]), (), form.wholes)
        else:
            for term in form.terms:
                yield Asked(term, AskedKind.WORD, (term,))

    def _ask_stops(self) -> None:
        """Asks for the stop words, where there is nothing else."""
        if self._stops:
            self._notes.append("All its words are among the most frequent; they are asked for all the same.")
        elif not self._excluded:
            what = "The question is empty" if not self._raw.strip() else "The question has no word or sign to look for"
            self._notes.append(f"{what}; nothing is found by it.")
        for word in self._stops:
            self._words[(word,), ()] = Asked(word, AskedKind.STOP, (word,))


def _either(text: str, asked: list[Asked]) -> Asked:
    """Some words as alternatives of one."""
    return Asked(
        text,
        AskedKind.EITHER,
        tuple(dict.fromkeys(term for one in asked for term in one.terms)),
        tuple(dict.fromkeys(prefix for one in asked for prefix in one.prefixes)),
        tuple(dict.fromkeys(part for one in asked for part in one.parts)),
    )


def _pairs(run: str) -> Iterator[Asked]:
    """Signs that stand together are asked for in pairs, one that stands alone by itself."""
    signs = signs_of(run)
    if len(signs) == 1:
        yield Asked(run, AskedKind.SIGNS, (signs[0],))
    for first, second in pairwise(signs):
        yield Asked(first + second, AskedKind.SIGNS, (first + second,), (), (first, second))


def _as_one(token: str) -> bool:
    """Whether a token of a phrase is a name that is wanted as a whole."""
    return not has_signs(token) and not is_number(token)


_QUOTES = re.compile("[\u201c\u201d\u201e\u00ab\u00bb\uff02]")
_MARKS = '-+"('
_ITEM = re.compile(r'\(*([-+]?)"([^"]*+)"|(\S+)')
_OPEN = re.compile(r'\(*[-+]?"')
_SIGNED = re.compile(r"([-+])([^\W\d_]\S+)")
_PREFIX = re.compile(r'([^\s*"]+\w)\*')
_OPERATORS = re.compile(r'(?:^|\s)(?:[-+]?"|-[^\W\d_]|OR\s)')
_SEPARATED = re.compile("[./@]")
_JOINTS = re.compile("[-_:]+")
_HASH = re.compile(f"[0-9a-f]{{{HASH_CHARS_MIN},64}}")
