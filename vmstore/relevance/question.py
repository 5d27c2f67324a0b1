"""What the features need to know of a question: the words it is scored by, and what kind of answer it wants.

Kinds are read from English words, as the resolver of times is; a question without them wants no kind, and is
scored by its words alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from vmstore.relevance.likeness import likeness
from vmstore.relevance.likeness import typos as typos_between
from vmstore.relevance.query import Asked, AskedKind, WordQuery
from vmstore.relevance.time.times import times_in

NEEDLES_MAX = 24  # of a question: what is longer is a page, and its rarest words say enough
PART_WEIGHT = 0.4  # of a part of a name, beside the name as a whole
TYPO_WEIGHT = 0.8
SENTENCE = 4  # words, from which on a question is one
PREFIX_MAX = 64  # terms that begin so
KNOWN_MAX = 256  # terms that begin so or are written alike, of any moment
SPELLED_ROWS_MAX = 40  # texts that have a word; what more have is taken as it is written
LIKE_MAX = 12  # other spellings of a word that are looked for
LIKE_SHARE = 0.4  # of their runs of four characters, for two words to be spellings of one
EXACT = frozenset({AskedKind.IDENTIFIER, AskedKind.PATH, AskedKind.HASH})


class Terms(Protocol):
    """What is asked of texts to find the terms of a question; rows are arrays or lists."""

    def postings(self, term: str) -> tuple[Any, Any]:
        """The rows that have the term, and how often."""
        ...

    def terms_from(self, prefix: str, limit: int) -> list[str]:
        """Known terms that begin so."""
        ...

    def terms_like(self, word: str, limit: int) -> list[str]:
        """Known terms that are written much like a word."""
        ...

    def names(self, kind: str) -> list[str]:
        """The speakers or tools there are."""
        ...


class Needle(NamedTuple):
    """One thing to look for: a text with any of the terms has it."""

    text: str
    terms: tuple[str, ...]
    weight: float = 1.0
    prefixes: tuple[str, ...] = ()
    exact: bool = False
    """Whether it is a name as a whole, an identifier, a path or a hash, of which no other spelling is looked for."""
    likes: tuple[tuple[str, float], ...] = ()
    """Other spellings, each with how alike it is."""


class Wants(NamedTuple):
    """What kind of answer is asked for."""

    time: bool
    amount: bool
    name: bool
    title: bool
    error: bool
    user: bool
    end: bool


class Question(NamedTuple):
    """A question as the features see it."""

    needles: tuple[Needle, ...]
    wants: Wants
    words: frozenset[str]
    """Its words as typed, in lower case, to find the speakers and tools it names."""
    spans: tuple[tuple[int, int], ...]
    """The times it speaks of: from, and before when, in microseconds."""
    sentence: bool
    """Whether it says more than its words: it has words that are not looked for, or many."""


def question_of(query: WordQuery, now_us: int) -> Question:
    """Reads a question asked at a moment."""
    text = query.raw[:4_096]
    low = text.casefold().replace("’", "'")
    spans = tuple((span.from_us, span.to_us) for span in times_in(text, now_us, question=True))
    wants = Wants(*(bool(pattern.search(low)) for pattern in _WANTS))
    words = frozenset(word.removesuffix("'s") for word in _WORD.findall(low))
    sentence = len(query.words) >= SENTENCE or len(text.split()) > len(query.words)
    return Question(tuple(_needles(query.words)), wants, words, spans, sentence)


def _needles(words: Sequence[Asked]) -> Iterable[Needle]:
    found: dict[tuple[str, ...], Needle] = {}
    for word in words:
        if word.terms or word.prefixes:
            exact = word.kind in EXACT
            found.setdefault((*word.terms, *word.prefixes), Needle(word.text, word.terms, 1.0, word.prefixes, exact))
    for word in words:
        for part in word.parts:
            found.setdefault((part,), Needle(part, (part,), PART_WEIGHT))
    return list(found.values())[:NEEDLES_MAX]


def spoken_names(texts: Terms, question: Question) -> frozenset[str]:
    """The words of a question that are a speaker's name, whenever they speak."""
    speakers = {word for name in texts.names("speaker") for word in words_of(name)}
    return question.words & speakers


def needles_of(texts: Terms, question: Question, spoken: frozenset[str]) -> list[Needle]:
    """The needles of a question among some texts: with other spellings, and without the speakers it names.

    Who is named says who spoke, which is a feature of its own; in what they say themselves the name is rare. A word
    that no text has is taken for its most frequent spelling within one typo.
    """
    needles = [one for one in question.needles if one.text.casefold().removesuffix("'s") not in spoken]
    needles = needles or list(question.needles)
    lone = len(needles) == 1 and not question.sentence
    return [_spelled(texts, needle, lone) for needle in needles]


def _spelled(texts: Terms, needle: Needle, lone: bool) -> Needle:
    """A needle with the terms that begin so, and its other spellings; what no text of the moment has is left out.

    A word that many texts have is spelled as it should be: other spellings are looked for where it is rare. Who types
    a single word wants the texts that have it as it is, where there are some.
    """
    if needle.prefixes:
        begun = (term for prefix in needle.prefixes for term in texts.terms_from(prefix, KNOWN_MAX))
        there = (term for term in dict.fromkeys(begun) if len(texts.postings(term)[0]))
        return needle._replace(terms=tuple(dict.fromkeys((*needle.terms, *sorted(there)[:PREFIX_MAX]))))
    if needle.exact or not needle.terms:
        return needle
    word = needle.terms[0]
    having = len(texts.postings(word)[0])
    if having > SPELLED_ROWS_MAX or (having and lone):
        return needle
    others = [term for term in texts.terms_like(word, KNOWN_MAX) if term not in needle.terms]
    counts = {term: len(texts.postings(term)[0]) for term in others}
    others = [term for term in others if counts[term]]
    if not any(len(texts.postings(term)[0]) for term in needle.terms):
        typos = [term for term in others if typos_between(word, term, 1) is not None]
        if typos:
            best = min(typos, key=lambda term: (-counts[term], term))
            return needle._replace(terms=(best,), weight=needle.weight * TYPO_WEIGHT)
    alike = sorted((-likeness(word, term), term) for term in others)[:LIKE_MAX]
    return needle._replace(likes=tuple((term, -share) for share, term in alike if -share >= LIKE_SHARE))


def words_of(name: str) -> list[str]:
    """The words of a name, as those of a question are compared."""
    return _WORD.findall(name.casefold())


def named(names: Sequence[str], question: Question) -> list[int]:
    """The numbers of the names that a question has a word of."""
    found = ((number, words_of(name)) for number, name in enumerate(names))
    return [number for number, words in found if not question.words.isdisjoint(words)]


_WORD = re.compile(r"\w+(?:'\w+)?")
_WANTS = tuple(
    re.compile(pattern)
    for pattern in (
        r"^when\b|\bwhen (?:did|does|do|is|was|were|will|had|has)\b|\b(?:what|which) (?:date|day|month|year|time)\b"
        r"|\bhow long\b|\bsince when\b",
        r"\bhow (?:many|much|often|long|old|far|big|large|fast)\b|\bwhat number\b|\b(?:number|count) of\b",
        r"\b(?:who|whom|whose|where|which)\b|\bnamed?\b|\bnames\b|\bcalled\b"
        r"|\bwhat (?:city|cities|country|countries|states?|places?|brand|team|company|car|artists?|authors?)\b",
        r"\b(?:books?|movies?|films?|songs?|games?|series|album|titles?|called|named|quotes?|posters?|signs?|says?)\b",
        r"\b(?:errors?|exceptions?|fail(?:s|ed|ure|ing)?|crash\w*|broken?|bug|warnings?|traceback)\b"
        r"|\w(?:error|exception)\b",
        r"\b(?:user|customer|client|reporter|person|human)s?\b|\b(?:did|do|does|have|had) (?:i|he|she|they)\b"
        r"|\b(?:i|he|she|they) (?:ask|said|say|want|told|tell|complain|suggest|mention|decid|insist|object|request"
        r"|prefer|worr|notic)\w*",
        r"\b(?:last|final|finally|end|ended|latest|now|finished|done|remain\w*|left)\b",
    )
)
