"""Classifies sentences by their act in a decision: asks, offers, agrees, decides, takes back.

Patterns stand at the beginning of the sentence, after words that only lead in, so that "if we decided",
"they decided" and "as we decided" match none of them. English only.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from vmstore.vm.claims import patterns
from vmstore.vm.claims.patterns import SpeechAct
from vmstore.vm.recall.text_pieces import PieceKind, bounded, pieces, without_controls
from vmstore.vm.recall.topics import profile

MESSAGE_CHARS_MAX = 4_000  # in a longer message somebody's words stand around what was pasted
SENTENCE_CHARS_MAX = 400
OBJECT_WORDS_MAX = 14
TOPIC_WORDS_MAX = 6


class OfferedOption(NamedTuple):
    """Something that may be decided: what to do, of what, about what."""

    verb: str
    object: str
    topic: str = ""

    @property
    def words(self) -> str:
        """The choice as a sentence would have it."""
        about = f" for {self.topic}" if self.topic and self.verb in patterns.TAKES else ""
        return f"{self.verb} {self.object}".strip() + about


class Phrase(NamedTuple):
    """A sentence as it counts towards a decision."""

    act: SpeechAct
    choices: tuple[OfferedOption, ...] = ()
    topic: str = ""
    agrees: bool = False  # it opens with a word of agreement
    reverses: bool = False  # it takes back what was said before
    instead_of: str = ""  # what it takes back, where it says so
    text: str = ""
    swaps: bool = False  # it puts one thing in the place of another


def phrases(text: str) -> tuple[Phrase, ...]:
    """The acts of a message's sentences, in order; cached for the last few messages."""
    return _phrases(*bounded(text, MESSAGE_CHARS_MAX))


@lru_cache(maxsize=16)
def _phrases(*parts: str) -> tuple[Phrase, ...]:
    return tuple(read(sentence) for part in parts for sentence in spoken(part))


def spoken(text: str) -> list[str]:
    """The sentences somebody says in a text: code, tables and quotations are somebody else's."""
    found: list[str] = []
    for piece in pieces(patterns.QUOTED.sub("…", without_controls(text))):
        if piece.kind in (PieceKind.SENTENCE, PieceKind.ITEM) and len(piece.text) <= SENTENCE_CHARS_MAX:
            bare = patterns.ITEM.sub("", piece.text).replace("**", "").replace("`", "").replace("’", "'")
            found.append(plainly(" ".join(bare.split())))
    return found


def plainly(text: str) -> str:
    """A text without what is only uttered, and with the apostrophes that are left out in haste."""
    return patterns.HASTE.sub(lambda word: patterns.IN_FULL[word[0].casefold()], patterns.UTTERED.sub("", text))


def read(sentence: str) -> Phrase:
    """Classifies a sentence."""
    rest, topic, agrees, reverses = _led_in(sentence)
    if patterns.AGREED_WHOLE.fullmatch(sentence) or (agrees and not rest):
        return Phrase(SpeechAct.AGREE, agrees=True, text=sentence)
    if sentence.rstrip(" )\"'").endswith("?"):
        return _question(rest.rstrip("? )\"'"), topic)
    if not rest or patterns.UNSURE.search(rest) or patterns.DOUBTED.match(rest):
        return Phrase(SpeechAct.NONE, agrees=agrees, reverses=reverses, text=rest)
    return _decision(rest, topic, agrees, reverses)


def _led_in(sentence: str) -> tuple[str, str, bool, bool]:
    """A sentence without the words that lead in, and what these said: its topic, agreement, reversal."""
    topic, agrees, reverses = "", False, False
    if standing := patterns.STANDING.search(sentence):
        sentence = f"From now on, {sentence[: standing.start()]}"
    for _ in range(4):
        if found := patterns.AGREEING.match(sentence):
            agrees = True
        elif found := patterns.REVERSING.match(sentence):
            reverses = True
        elif found := patterns.ABOUT.match(sentence):
            topic = _topic(found[1])
        elif not (found := patterns.FILLER.match(sentence)):
            break
        sentence = sentence[found.end() :]
    return sentence.strip(), topic, agrees, reverses


def _decision(rest: str, topic: str, agrees: bool, reverses: bool) -> Phrase:
    """The decision or the offer a sentence states, without its lead-in."""
    instead_of = ""
    if found := patterns.INSTEAD_FIRST.match(rest):
        reverses, instead_of, rest = True, found[1], found[2]
    act, verb, no, tail = _headed(rest)
    if act is SpeechAct.OFFER and not verb and tail.startswith("to "):  # what is proposed to do
        offered = _decision(tail.removeprefix("to "), topic, agrees, reverses)
        return offered._replace(act=act if offered.choices else SpeechAct.NONE)
    if cut := patterns.INSTEAD.search(tail):
        reverses, instead_of = True, instead_of or cut[1] or ""
        tail = tail[: cut.start()] + (cut[2] or cut[3] or "")
    if verb in patterns.SWAPS and (swapped := patterns.SWAP.match(tail)):
        reverses, verb, instead_of, tail = True, "swap", swapped[1], swapped[2]
    if act is SpeechAct.OFFER and verb and (agrees or reverses):
        act = SpeechAct.DECIDE
    elif act is SpeechAct.OFFER and patterns.DOING.match(tail):
        return Phrase(SpeechAct.NONE, text=rest)
    choices = _choices("use" if act is SpeechAct.OFFER and not verb else _plain(verb, no), tail, topic)
    if act is SpeechAct.WISH and not any(choice.topic for choice in choices):
        act = SpeechAct.OFFER
    if act is not SpeechAct.ANSWER and not choices:
        act = SpeechAct.NONE
    reverses = reverses or verb in patterns.TURNS
    return Phrase(act, choices, topic, agrees, reverses, _bare(instead_of), rest, verb in patterns.SWAPS)


def _headed(rest: str) -> tuple[SpeechAct, str, str | None, str]:
    """Parses the head of a sentence: its act, its verb, whether it denies, and the rest."""
    if found := patterns.IT_IS.match(rest):
        return SpeechAct.DECIDE, "use", None, found[1]
    if found := patterns.MAKE.match(_bare(rest)):
        if found["value"]:
            return SpeechAct.DECIDE, "use", None, f"{found['value']} for {found['topic']}"
        return SpeechAct.DECIDE, "set", None, f"{found['what']} to {found['number']}"
    for act, pattern in patterns.HEADS:
        if found := pattern.match(rest):
            groups = found.groupdict()
            return act, (groups.get("verb") or "").lower(), groups.get("no"), rest[found.end() :]
    return SpeechAct.ANSWER, "", None, ""


def _choices(verb: str, tail: str, topic: str) -> tuple[OfferedOption, ...]:
    """The options a sentence chooses: one, or several where each has its own `for`."""
    tail = patterns.REASON.split(tail, maxsplit=1)[0]
    parts = [tail]
    if (
        verb in patterns.TAKES
        and len(several := patterns.AND.split(tail)) > 1
        and all(patterns.FOR.search(part) for part in several)
    ):
        parts = several
    found = [_choice(verb, part, topic) for part in parts]
    return tuple(choice for choice in found if choice is not None)


def _choice(verb: str, part: str, topic: str) -> OfferedOption | None:
    """One thing chosen; None where it is nothing that could be remembered."""
    part = _bare(part)
    if patterns.IDLE.match(f"{verb.removeprefix('do not ')} {part}".strip()):
        return None
    if verb in patterns.TAKES and (about := patterns.AS.search(part) or _last_for(part)):
        thing, named = part[: about.start()].strip(" ,"), _topic(about[1])
        if named and _is_something(thing):
            return OfferedOption(verb, thing, named)
    if not _is_something(part):
        return None
    if verb in patterns.SETS:
        to = patterns.SET_TO.match(part)
        return OfferedOption("set", part, f"{topic} {_topic(to[1])}".strip()) if to else None
    if not verb and (equal := patterns.IS.match(part)):
        return OfferedOption(verb, part, _topic(equal[1]) or topic)  # "the timeout is 30 seconds" is about the timeout
    return OfferedOption(verb, part, topic)


def _last_for(part: str) -> re.Match[str] | None:
    found = list(patterns.FOR.finditer(part))
    return found[-1] if found else None


def _question(rest: str, topic: str) -> Phrase:
    """Classifies a question: between options, whether to choose one, or which to choose."""
    if patterns.RECALLED.search(rest):
        return Phrase(SpeechAct.NONE, text=rest)
    rest = patterns.TAG.sub("", rest)
    if found := patterns.OPEN.match(rest):
        named = next((_topic(group) for group in found.groups() if group and _topic(group)), topic)
        listed = re.split(r"[:,–—]\s", rest, maxsplit=1)[1:]
        choices = _options("use", listed[0], named) if listed and patterns.OR.search(listed[0]) else ()
        return Phrase(SpeechAct.ASK if named or choices else SpeechAct.NONE, choices, named, text=rest)
    found = patterns.WHETHER.match(rest)
    if found is None and not (
        patterns.OR.search(rest) and len(rest.split()) <= 10 and not patterns.AUXILIARY.match(rest)
    ):
        return Phrase(SpeechAct.NONE, text=rest)
    verb = _plain((found and found["verb"]) or "use", None)
    choices = _options(verb, rest[found.end() :] if found else rest, topic)
    named = next((choice.topic for choice in reversed(choices) if choice.topic), topic)
    choices = tuple(group._replace(topic=named) for group in choices)
    return Phrase(SpeechAct.ASK if choices else SpeechAct.NONE, choices, named, text=rest)


def _options(verb: str, tail: str, topic: str) -> tuple[OfferedOption, ...]:
    found = []
    for part in patterns.OR.split(tail):
        again = patterns.HEAD_VERB.match(part)
        found.append(_choice(verb, part[again.end() :] if again else part, topic))
    return tuple(option for option in found if option is not None)


def _plain(verb: str, no: str | None) -> str:
    """A verb as a claim has it: in its plain form, one word for all ways to take something."""
    plain = "use" if patterns.TAKE_WHOLE.fullmatch(verb) or verb in patterns.SWAPS else " ".join(verb.lower().split())
    return f"do not {plain}" if no and plain else "not to" if no else plain


def _topic(text: str) -> str:
    """A topic as it was said, in a few words; nothing where it names none."""
    words = _bare(text.partition(",")[0]).split()
    return " ".join(words) if 0 < len(words) <= TOPIC_WORDS_MAX and profile(" ".join(words)).weights else ""


def without_article(topic: str) -> str:
    """A topic without its article: how a claim names it."""
    return patterns.ARTICLE.sub("", topic)


def _bare(text: str) -> str:
    return patterns.TRAILING.sub("", text.strip(" ,.!?;:-–—\"'()"))


def _is_something(text: str) -> bool:
    """Whether a text names a thing that can be understood alone."""
    words = text.split()
    return 0 < len(words) <= OBJECT_WORDS_MAX and not patterns.NOTHING.match(text) and any(c.isalnum() for c in text)
