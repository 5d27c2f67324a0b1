"""Decisions found in what was said, without a model: claims with their sources.

A sentence decides by itself ("we decided to use …"), or as the answer to a question or an offer of the
other side ("should we use A or B?" … "yes, B"). What names the topic of an earlier claim supersedes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from vmstore.core.page import Role, Standing, WordEnum
from vmstore.core.text import stems
from vmstore.core.text.tokenizer import words
from vmstore.errors import InputError
from vmstore.vm.claims import cues
from vmstore.vm.claims.patterns import SpeechAct
from vmstore.vm.claims.sentences import OfferedOption, Phrase, phrases, without_article
from vmstore.vm.recall.topics import profile

FINDER = "claims@3"
"""Who finds claims by patterns: what is said without a word of deciding is none since 3."""

NAME_CHARS_MAX = 48
NAME_WORDS_MAX = 5
TEXT_CHARS_MAX = 300
CLAIMS_MAX = 20  # of one turn
MESSAGES_OPEN = 3  # a question or an offer is answered within so many messages
VAGUE = frozenset(["approach", "choice", "decision", "option", "selection", "solution", "stack", "strategy"])

KEYS_MAX = 4_096  # topics of claims that hold, looked at for each message
STATED = 900_000
CHOSEN = 850_000  # one of the choices of a question
AGREED = 700_000  # agreement with an offer, or with the only choice
REVERSED_UNNAMED = 600_000  # taken back without a word of what


class ClaimSource(NamedTuple):
    """A message of the conversation, or a part of one: the page it stands on, who said it, the text."""

    page: int
    role: Role
    text: str


class ClaimKind(WordEnum):
    """The effect of a claim."""

    DECISION = 0
    REVERSAL = 1  # it takes the place of an earlier one


class Claim(msgspec.Struct, frozen=True):
    """A decision, in words that need no context.

    `name` is the claim's own (`claim_database`), `topic` as it was said; `sources` are the pages of the
    sentences it came from, in order. `supersedes` is the name of the claim whose place it takes,
    the same as its own where the topic was named; `confidence` is in parts per million.
    """

    text: str
    name: str
    topic: str
    sources: tuple[int, ...]
    kind: ClaimKind = ClaimKind.DECISION
    supersedes: str = ""
    confidence: int = STATED
    status: Standing = Standing.ACTIVE


class KnownClaim(NamedTuple):
    """A claim that holds so far; the newest come last."""

    name: str
    topic: str
    text: str


class _Open(NamedTuple):
    """An offer or question that awaits the other side's answer."""

    page: int
    role: Role
    choices: tuple[OfferedOption, ...]
    topic: str
    left: int


def find(
    turn: Sequence[ClaimSource], before: Sequence[ClaimSource] = (), known: Sequence[KnownClaim] = ()
) -> tuple[Claim, ...]:
    """The claims of a turn in order; `before` are the messages whose questions and offers it may answer."""
    finder = _Finder(known)
    for source in before[-2 * MESSAGES_OPEN :]:
        finder.hear(source, new=False)
    for source in turn:
        finder.hear(source, new=True)
    return tuple(finder.claims[:CLAIMS_MAX])


def handed_in(answer: bytes | str, pages: Iterable[int]) -> tuple[Claim, ...]:
    """The claims a callback wrote, a JSON list of objects like `Claim`; InputError where they cannot be taken.

    Sources must be among the pages it was shown.
    """
    try:
        claims = msgspec.json.decode(answer, type=tuple[Claim, ...])
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise InputError(
            f"no list of claims: {error!s:.200}; see specs/compression.md for the fields", code="not-claims"
        ) from error
    shown = frozenset(pages)
    for claim in claims[:CLAIMS_MAX]:
        if not claim.text.strip() or len(claim.text) > TEXT_CHARS_MAX or not claim.name.strip():
            raise InputError(
                f"claim {claim.name!r:.60} has no text, no name, or over {TEXT_CHARS_MAX} characters",
                code="not-a-claim",
            )
        if not claim.sources or not shown.issuperset(claim.sources):
            raise InputError(
                f"claim {claim.name!r:.60} names a source that is none of the pages shown to the callback",
                code="not-a-claim",
            )
        if not 0 <= claim.confidence <= 1_000_000:
            raise InputError(f"claim {claim.name!r:.60} has a confidence outside 0 to 1,000,000", code="not-a-claim")
    return claims[:CLAIMS_MAX]


def name_of(topic: str) -> str:
    """A claim's name by its topic: `claim_cache_size`."""
    telling = list(profile(topic).shown.values()) or words(topic)
    return "_".join(["claim", *telling[:NAME_WORDS_MAX]])[:NAME_CHARS_MAX]


def topic_of(name: str) -> str:
    """The topic of a claim by its name, for a caller that kept no more of it."""
    return own_name(name).removeprefix("claim_").replace("_", " ")


def own_name(name: str) -> str:
    """A claim's name without where a copy of it came from: that of `home:claim_cache.v1` is `claim_cache`."""
    copied = _COPIED.fullmatch(name)
    return name if copied is None else copied[1]


_COPIED = re.compile(r".*:(claim_\w+)\.v\d+")


@lru_cache(maxsize=KEYS_MAX)
def key_of(topic: str) -> tuple[str, ...]:
    """The key that equal topics share: their terms, without the words any topic may have."""
    terms = sorted(profile(topic).weights)
    telling = [term for term in terms if term not in _VAGUE_TERMS]
    return tuple(telling or terms)


def values(topic: str, text: str) -> set[str]:
    """The terms of what a claim says its topic is: the names and numbers in it, but for the word it begins with."""
    found = cues.NAMES.finditer(text := text.removeprefix("Decision: "))
    numbers = [match[0] for match in found if match.start() or " " not in text]
    return {term for name in numbers for term in stems.terms(name)} - set(stems.terms(topic))


_VAGUE_TERMS = frozenset(term for word in sorted(VAGUE) for term in profile(word).weights)


class _Finder:
    """Hears a conversation sentence by sentence."""

    def __init__(self, known: Sequence[KnownClaim]) -> None:
        self.claims: list[Claim] = []
        self._known = list(known)
        self._asked: _Open | None = None
        self._offered: _Open | None = None

    def hear(self, source: ClaimSource, new: bool) -> None:
        """Takes in one message; claims come of new ones only."""
        if source.role not in (Role.USER, Role.ASSISTANT):
            return
        answered = False
        for number, phrase in enumerate(phrases(source.text)):
            if phrase.act is SpeechAct.WISH:
                phrase = phrase._replace(act=SpeechAct.DECIDE if source.role == Role.USER else SpeechAct.OFFER)
            if phrase.act is SpeechAct.ASK:
                self._ask(source, phrase)
            elif phrase.act is SpeechAct.OFFER and not self._is_answer(source):
                self._offer(source, phrase)
            elif not answered or phrase.act in (SpeechAct.STATE, SpeechAct.DECIDE):
                answered |= self._decide(source, phrase, number == 0, new)
        self._asked, self._offered = _older(self._asked), _older(self._offered)

    def _ask(self, source: ClaimSource, phrase: Phrase) -> None:
        self._asked = _Open(source.page, source.role, phrase.choices, phrase.topic, MESSAGES_OPEN + 1)
        if self._offered is not None and self._offered.role != source.role:
            self._offered = None

    def _offer(self, source: ClaimSource, phrase: Phrase) -> None:
        """Keeps the first offer of a message: what comes after it are alternatives."""
        if self._offered is None or self._offered.page != source.page:
            topic = phrase.choices[0].topic or phrase.topic or (self._asked.topic if self._asked else "")
            self._offered = _Open(source.page, source.role, phrase.choices[:1], topic, MESSAGES_OPEN + 1)

    def _is_answer(self, source: ClaimSource) -> bool:
        return source.role == Role.USER and self._open(source) is not None

    def _open(self, source: ClaimSource) -> _Open | None:
        """The statement of the other side that this one answers: its offer, else its question."""
        for waiting in (self._offered, self._asked):
            if waiting is not None and waiting.role != source.role:
                return waiting
        return None

    def _decide(self, source: ClaimSource, phrase: Phrase, first: bool, new: bool) -> bool:
        """Makes what claims a sentence gives; whether it answered what was open."""
        waiting = self._open(source)
        decides = phrase.act is SpeechAct.STATE or (
            phrase.act in (SpeechAct.DECIDE, SpeechAct.OFFER) and (source.role == Role.USER or waiting is not None)
        )
        if decides and phrase.choices:
            for choice in phrase.choices:
                self._claim(
                    source, choice, phrase, waiting, STATED if phrase.act is not SpeechAct.OFFER else AGREED, new
                )
            return True
        if phrase.act is SpeechAct.DECIDE:
            self._offer(source, phrase)
            return False
        if waiting is None or not (first or phrase.agrees):
            return False
        found = _answer(phrase, waiting, source.role)
        if found is None and self._asked is not None and self._asked.role != source.role:
            waiting = self._asked
            found = _answer(phrase, waiting, source.role)
        if found is not None:
            choice, confidence = found
            self._claim(source, choice, phrase, waiting, confidence, new)
        return found is not None

    def _claim(
        self,
        source: ClaimSource,
        choice: OfferedOption,
        phrase: Phrase,
        waiting: _Open | None,
        confidence: int,
        new: bool,
    ) -> None:
        """Adds one claim, unless it says what is known; what it answered is answered."""
        topic = choice.topic or phrase.topic or (waiting.topic if waiting else "")
        earlier = self._earlier(topic, phrase)
        if phrase.swaps and earlier is None:
            return  # to put one thing in the place of another is a task, unless the other was decided
        if not topic and phrase.reverses and earlier is not None:
            topic, confidence = earlier.topic, confidence if phrase.instead_of else REVERSED_UNNAMED
        self._asked = self._offered = None
        others = _others(choice, waiting)
        text = f"Decision: {choice._replace(topic=topic).words}{others if not topic else ''}"[:TEXT_CHARS_MAX]
        topic = without_article(topic or choice.object)
        name = own_name(earlier.name) if earlier is not None else name_of(topic)
        if earlier is not None and earlier.text.casefold() == text.casefold():
            return
        self._known.append(KnownClaim(name, topic, text))
        if new:
            sources = (waiting.page, source.page) if waiting and waiting.page != source.page else (source.page,)
            kind = ClaimKind.DECISION if earlier is None else ClaimKind.REVERSAL
            supersedes = "" if earlier is None else earlier.name
            self.claims.append(Claim(text, name, topic, sources, kind, supersedes, confidence))

    def _earlier(self, topic: str, phrase: Phrase) -> KnownClaim | None:
        """The claim a new one takes the place of: of the same topic, or the one that is taken back."""
        newest = self._known[::-1]
        if topic:
            wanted = key_of(topic)
            found = next((claim for claim in newest if key_of(claim.topic) == wanted), None)
            if found is not None or not phrase.reverses:
                return found
            close = {claim.name: claim for claim in newest if _within(wanted, key_of(claim.topic))}
            return next(iter(close.values())) if len(close) == 1 else None
        if phrase.instead_of:
            wanted = key_of(phrase.instead_of)
            return next((claim for claim in newest if wanted and _within(wanted, key_of(claim.text))), None)
        return newest[0] if phrase.reverses and newest else None


def _older(question: _Open | None) -> _Open | None:
    return question._replace(left=question.left - 1) if question is not None and question.left > 1 else None


def _within(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    return all(term in whole for term in part)


def _answer(phrase: Phrase, waiting: _Open, role: Role) -> tuple[OfferedOption, int] | None:
    """The option an answer chooses, and how sure that is; None where it chooses nothing."""
    if phrase.act is SpeechAct.AGREE:
        return (waiting.choices[0], AGREED) if len(waiting.choices) == 1 else None
    if phrase.act is not SpeechAct.ANSWER or (role == Role.ASSISTANT and not phrase.agrees):
        return None
    if len(phrase.text.split()) > ANSWER_WORDS_MAX or len(waiting.choices) < 2:
        return None
    chosen = _chosen(phrase.text, waiting.choices)
    return None if chosen is None else (chosen, CHOSEN)


ANSWER_WORDS_MAX = 8
_PLACES = (("first", "former"), ("second", "latter"), ("third",))


def _chosen(text: str, choices: Sequence[OfferedOption]) -> OfferedOption | None:
    """The one choice of several that a short answer names."""
    spoken = [word.strip(".,!\"'").casefold() for word in text.split()]
    if any(word in ("not", "neither", "nor", "don't", "no", "than") for word in spoken):
        return None
    placed = [choice for choice, names in zip(choices, _PLACES, strict=False) if any(name in spoken for name in names)]
    if len(placed) == 1:
        return placed[0]
    named = [choice for choice in choices if _names(spoken, choice.object)]
    return named[0] if len(named) == 1 else None


def _names(spoken: Sequence[str], thing: str) -> bool:
    """Whether an answer has the words that tell a choice."""
    asked = thing.casefold().split()
    telling = [word for word in asked if word not in ("the", "our", "option")] if len(asked) > 1 else asked
    return all(word in spoken for word in telling)


def _others(choice: OfferedOption, waiting: _Open | None) -> str:
    """The options not chosen: they name the topic where nobody did."""
    if waiting is None or choice not in waiting.choices:
        return ""
    others = [choice_open.object for choice_open in waiting.choices if choice_open.object != choice.object]
    return f" rather than {' or '.join(others)}" if others else ""
