"""The tags of a turn by its words, without a model: rule keyword@1.

A tag that is there already is taken before a new one is made. What says too little by itself is read again with the
pairs before it and goes on with their tags; what has words of its own, and none of theirs, is another topic and does
not. Everything follows from the texts, the tags there are and the aliases: the same turns give the same tags.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from vmstore.core.tags import TagMethod
from vmstore.core.text.stems import stem
from vmstore.core.text.tokenizer import words
from vmstore.relevance.characters import plain
from vmstore.relevance.stops import STOP_WORDS
from vmstore.tags.canonical import known_as, singular

LOOK_BACK = 5  # pairs
TAGS_MAX = 3  # of a turn
NEW_MAX = 2  # of these, tags that were not there before
CHARS_MAX = 4_000  # of each text, from its beginning; a longer one has its last 1,000 too
END_CHARS = 1_000
ASKED_WEIGHT = 2  # what the person says weighs double
SHORT_TERMS = 3  # a message with fewer terms says too little by itself
TERM_CHARS = (2, 30)
NEW_CHARS = 3  # a shorter word makes no new tag
NEW_WEIGHT = 3  # a term that is to be a new tag is said twice by the person, or by both
GENERAL = "_general"
"""What a turn is tagged with that is about nothing, and has nothing before it to go on with."""

# Words of talking and working that are in every topic.
_EVERYWHERE = """
able actually add also answer anything ask best better big bit call case change check day different done easy
everything fact feel fine first good great guess happen hard help hello hey idea issue keep kind know last later
left let like list little long look lot make many maybe mean minute much need new next nice nothing number old one
part people person place point possible pretty probably problem question quick really reason right run set show
side simple small soon sort stuff sure take talk thank thing time today together tomorrow try turn two type use
version wait way week word work would write wrong year yesterday yes
"""
_COMMON = frozenset(map(stem, _EVERYWHERE.split()))


class TurnText(NamedTuple):
    """What was said in a turn: by the person, and in answer."""

    asked: str
    answered: str = ""


class TaggedTurn(NamedTuple):
    """A turn before: what was said in it and its tags, by the names they count as."""

    text: TurnText
    tags: tuple[str, ...]


class TurnTerms(NamedTuple):
    """The terms of a turn by weight, each with the word it stands for, and those of the person alone."""

    weights: Mapping[str, int]
    shown: Mapping[str, str]
    asked: frozenset[str]


class FoundTag(NamedTuple):
    """A tag of a turn, and how it was found."""

    tag: str
    method: TagMethod


def terms_of(text: TurnText) -> TurnTerms:
    """What a turn is about, term by term."""
    weights: Counter[str] = Counter()
    shown: dict[str, Counter[str]] = {}
    asked: set[str] = set()
    for said, weight in ((text.asked, ASKED_WEIGHT), (text.answered, 1)):
        counts = Counter(words(_bounded(said)))
        small = _small_words(counts)
        for word, times in counts.items():
            term = "" if small and plain(word) in small else stem(word)
            if not term or term in _COMMON or word.isdecimal() or not TERM_CHARS[0] <= len(word) <= TERM_CHARS[1]:
                continue
            weights[term] += weight * times.bit_length()
            shown.setdefault(term, Counter())[singular(word)] += times
            if weight == ASKED_WEIGHT:
                asked.add(term)
    names = {term: min(forms, key=lambda form: (-forms[form], len(form), form)) for term, forms in shown.items()}
    return TurnTerms(weights, names, frozenset(asked))


def _small_words(counts: Mapping[str, int]) -> frozenset[str]:
    """The stop words of the language a text is in, by which list has most of its words; none of an English one."""
    held = {language: sum(counts.get(word, 0) for word in stops) for language, stops in STOP_WORDS.items()}
    language = max(held, key=lambda language: held[language])
    return STOP_WORDS[language] if held[language] > held["en"] else frozenset()


def _bounded(text: str) -> str:
    return text if len(text) <= CHARS_MAX + END_CHARS else f"{text[:CHARS_MAX]}\n{text[-END_CHARS:]}"


def tags_of(
    text: TurnText, before: Sequence[TaggedTurn], known: Mapping[str, int], aliases: Mapping[str, str]
) -> list[FoundTag]:
    """The tags of a turn, the weightiest first.

    `before` are the turns before it, the last one last; `known` the tags there are and in how many turns each is,
    `aliases` the names that count as others.
    """
    own = terms_of(text)
    short = len(own.asked) < SHORT_TERMS
    recent = list(before[-LOOK_BACK:])
    if short and not bled(own, recent):
        inherited = next((turn.tags for turn in reversed(recent) if turn.tags and turn.tags != (GENERAL,)), ())
        if inherited:
            return [FoundTag(tag, TagMethod.INHERITED) for tag in inherited[:TAGS_MAX]]
    found = _by_words(own, known, aliases, short=short)
    if not found and recent:
        found = _again(text, recent, known, aliases)
    return found or [FoundTag(GENERAL, TagMethod.KEYWORD)]


def bled(own: TurnTerms, recent: Sequence[TaggedTurn]) -> bool:
    """Whether the tags of the turns before would bleed into another topic: it has terms of its own, none of theirs."""
    if not own.asked:
        return False
    theirs = {term for turn in recent for term in terms_of(turn.text).weights}
    return not own.asked & theirs


def _by_words(own: TurnTerms, known: Mapping[str, int], aliases: Mapping[str, str], *, short: bool) -> list[FoundTag]:
    """The tags whose every word the turn has, then new ones made of its weightiest terms."""
    there = {tag: _stems(tag) for tag in (*known, *aliases) if tag != GENERAL}
    found: dict[str, int] = {}
    for name, stems in there.items():
        if stems and all(term in own.weights for term in stems):
            weight = sum(own.weights[term] for term in stems)
            if weight >= NEW_WEIGHT or stems & own.asked:
                tag = aliases.get(name, name)
                found[tag] = max(found.get(tag, 0), weight)
    ranked = sorted(found, key=lambda tag: (-found[tag], -known.get(tag, 0), tag))[:TAGS_MAX]
    used = {term for tag in ranked for term in _stems(tag)}
    least = 1 if short and not ranked else NEW_WEIGHT
    order = {term: at for at, term in enumerate(own.weights)}
    wanted = sorted(
        (
            term
            for term in own.weights
            if term not in used
            and own.weights[term] >= least
            and term in own.asked
            and len(own.shown[term]) >= NEW_CHARS
        ),
        key=lambda term: (-own.weights[term], order[term]),
    )
    fresh: list[str] = []
    for term in wanted[: 0 if ranked else NEW_MAX]:
        tag = known_as(own.shown[term], known, aliases)
        if tag and tag not in ranked and tag not in fresh:
            fresh.append(tag)
    return [FoundTag(tag, TagMethod.KEYWORD) for tag in (*ranked, *fresh)][:TAGS_MAX]


def _again(
    text: TurnText, recent: Sequence[TaggedTurn], known: Mapping[str, int], aliases: Mapping[str, str]
) -> list[FoundTag]:
    """The tags of a turn read with those before it, as far as they had them; else what the last of these had."""
    wider = terms_of(
        TurnText(text.asked, "\n".join((text.answered, *(f"{t.text.asked}\n{t.text.answered}" for t in recent))))
    )
    had = {tag for turn in recent for tag in turn.tags if tag != GENERAL}
    found = [tag for tag in _by_words(wider, known, aliases, short=False) if tag.tag in had]
    last = next((turn.tags for turn in reversed(recent) if turn.tags and turn.tags != (GENERAL,)), ())
    names = [tag.tag for tag in found] or list(last)
    return [FoundTag(tag, TagMethod.INHERITED) for tag in names[:TAGS_MAX]]


@lru_cache(maxsize=1 << 14)
def _stems(tag: str) -> frozenset[str]:
    return frozenset(term for word in words(tag) if (term := stem(word)))
