"""Decisions kept in their own words: agreement to a proposal, a choice of what was listed, a statement.

Where the grammar of `vmstore.vm.claims.sentences` hears nothing, the sentence itself is the claim, with
the question or the proposal it answers: so no claim is without its subject. English only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from vmstore.core.text.stems import terms
from vmstore.vm.claims import cues, patterns
from vmstore.vm.claims.sentences import spoken
from vmstore.vm.recall.text_pieces import bounded, sentences, without_controls
from vmstore.vm.recall.topics import topics

CHARS_MAX = 280  # of what is quoted
ANSWER_WORDS_MAX = 14
NOTED_CHARS_MAX = 12
CHOICE_WORDS_MAX = 9
TASK_WORDS_MAX = 40
BRIEF_WORDS = 6  # what is so short and refuses nothing agrees
SPOKEN_CHARS_MAX = 1_200  # in a longer message decisions are few, and what was pasted is much
TOPIC_WORDS_MAX = 8
CHANGEABLE = 12  # decisions, the newest, that a change may be of which names only what they were
WAS_CHARS = 90


class Quote(NamedTuple):
    """What was decided, in the words it was said in, what of, and whether it answers the message before."""

    text: str
    topic: str
    answers: bool
    reverses: bool = False


def answered(text: str, offered: str, asked: str, *, may_choose: bool = True) -> Quote | None:
    """What a short answer settles: it agrees with an offer or chooses of it; `asked` came before."""
    said = _plain(text)
    if len(said.split()) > ANSWER_WORDS_MAX or "?" in said or not (offer := _plain(offered)):
        return None
    before = _plain(asked) if _plain(asked).endswith("?") and len(asked) <= CHARS_MAX // 2 else ""
    chosen = _chosen(said, offered, offer) if may_choose else ""
    if chosen:
        return _quote(f"{chosen} ({_asking(offer, before)})", f"{before} {offer}", chosen)
    brief = may_choose and (len(said.split()) <= BRIEF_WORDS or len(set(terms(said)) - set(terms(offer))) <= 1)
    agrees = (cues.AGREES.search(said) and cues.PROPOSES.search(offer)) or brief
    if _is_a_task(offer) or (
        " or " in (sentences(offer) or [""])[-1] and not re.search(r"\bi lean|vote\b", offer, cues.CASE)
    ):
        return None
    if not agrees or cues.TASK.match(said) or cues.REFUSES.search(cues.MILD.sub("", said)) or not _ends_open(offer):
        return None
    whole = offer if len(offer) <= CHARS_MAX else _proposal(offer)
    whole = re.sub(
        r"\s*\b(?:shall|should|may|can) (?:i|we) (?:start|go ahead|do (?:it|that|so)|proceed)\?\Z",
        "",
        whole,
        flags=cues.CASE,
    )
    return _quote(f"{before} {whole}".strip(), whole)


def stated(text: str) -> list[Quote]:
    """What the user states as decided, each in the sentence that says it."""
    if len(text) > SPOKEN_CHARS_MAX or "```" in text:
        return []
    found: list[Quote] = []
    said = spoken(text)
    whole = _plain(text)
    told = whole.split()
    for number, sentence in enumerate(said):
        if not 2 < len(sentence.split()) <= 40 and not cues.LABEL.match(sentence):
            continue
        if (
            sentence.endswith(("?", ":"))
            or _decides_nothing(sentence)
            or cues.UNSURE.search(sentence)
            or sentence[:1] in "\"'>“«"
        ):
            continue
        forms = (
            (*cues.STATES, *cues.PLAIN)
            if len(told) <= cues.PLAIN_WORDS_MAX and not cues.TROUBLE.search(whole)
            else cues.STATES
        )
        if match := next((match for form in forms if (match := form.search(sentence))), None):
            named = {name: value or "" for name, value in match.groupdict().items()}
            lead = ""
            topic = _subject(named.get("s", ""), sentence) or (_about(sentence) if cues.FOR.search(sentence) else "")
            if not topic:  # what it is about was said just before, or in no words of its own
                lead = said[number - 1] if number and not said[number - 1].endswith(("!", "?")) else ""
                topic = _about(f"{lead} {sentence}" if lead else sentence)
            if not topic:
                continue
            reverses = cues.REVERSES.search(" ".join(said[max(0, number - 1) : number + 1])) is not None
            found.append(Quote(f"{lead} {sentence}".strip()[:CHARS_MAX], topic, False, reverses))
    return found


def acknowledged(answer: str, said: str) -> Quote | None:
    """What the user laid down, where the model's short answer only takes note of it."""
    told = _plain(said)
    note = cues.TAKES_NOTE.search(answer)
    if len(answer.split()) > cues.ACKNOWLEDGED_WORDS_MAX or "?" in answer or not note or stated(said):
        return None
    if note.start() > NOTED_CHARS_MAX and cues.WORK.match(told):  # what was done is told, and nothing taken note of
        return None
    if "?" in told or not 1 < len(told.split()) <= 25 or cues.UNSURE.search(told):
        return None
    found = cues.LABEL.match(told) or cues.LAYS_DOWN.search(told)
    named = [value for value in found.groupdict().values() if value] if found else []
    topic = (_topic(named[0]) or _about(told)) if named else ""
    return Quote(told, topic, True) if topic else None


def changed(text: str, known: Sequence[tuple[str, str]]) -> tuple[Quote, int] | None:
    """What takes the place of an earlier decision, and of which of the known, newest first by topic and text.

    It has words of a change, and names what the decision is of, or else what it was.
    """
    said = _plain(text)
    doubted = cues.DOUBTED.search(said) or cues.TASK.match(said) or cues.WORK.match(said)
    if said.endswith("?") or not 1 < len(said.split()) <= 40 or doubted:
        return None
    turns = cues.CHANGES.search(said) is not None
    named = set(terms(said))
    for number, (topic, before) in enumerate(known):
        of = set(terms(topic))
        gives_way = (turns and of and of <= named) or replaces(said, topic, before)
        if gives_way and named - of - values(topic, before):
            return _change(said, topic, before), number
    subjects = [set(terms(found[1])) for form in (cues.OF, cues.SUBJECT) for found in form.finditer(said)]
    for number, (topic, before) in enumerate(known[:CHANGEABLE] if turns else ()):
        of, old = set(terms(topic)), values(topic, before)
        fits = old & named and not any(of - subject and subject - of - old for subject in subjects)
        if (fits or (number == 0 and len(named) <= 2)) and named - old - of:  # it names no other subject
            return _change(said, topic, before), number
    return None


def replaces(text: str, topic: str, before: str) -> bool:
    """Whether a text names the whole topic of a claim and what it was, and has a word of giving way."""
    named, of = set(terms(text)), set(terms(topic))
    if len(of) < 2 or not of <= named:
        return False
    was = set(terms(before.removeprefix("Decision: "))) - of
    return cues.GIVES_WAY.search(text) is not None and not was.isdisjoint(named)


def values(topic: str, text: str) -> set[str]:
    """The terms of what a claim says its topic is: the names and numbers in it, but for the word it begins with."""
    found = cues.NAMES.finditer(text := text.removeprefix("Decision: "))
    told = [one[0] for one in found if one.start() or " " not in text]
    return {term for name in told for term in terms(name)} - set(terms(topic))


def _change(said: str, topic: str, before: str) -> Quote:
    was = before.removeprefix("Decision: ").split(" (of ")[0][:WAS_CHARS]
    return Quote(f"{said} (of {topic}; before: {was})", topic, False, True)


def _is_a_task(offer: str) -> bool:
    """Whether what is offered is to be done now, and is nothing to remember."""
    return len(offer.split()) <= TASK_WORDS_MAX and cues.ERRAND.search(offer) is not None


def _ends_open(offer: str) -> bool:
    """Whether a message leaves something to be answered: it proposes near its end, or asks there."""
    return offer.endswith("?") or cues.PROPOSES.search(" ".join(sentences(offer)[-3:])) is not None


def _decides_nothing(sentence: str) -> bool:
    """Whether it only speaks of a decision, or of what somebody does next."""
    doubted = patterns.DOUBTED.match(sentence) and not cues.AFTER_TALK.match(sentence)
    told = doubted or patterns.RECALLED.search(sentence) or cues.TASK.match(sentence)
    if told or sentence.rstrip(".! ").endswith(", it is"):
        return True
    begun = cues.BEGINS.match(sentence)
    return patterns.IDLE.match(sentence, begun.end() if begun else 0) is not None


def _quote(text: str, about: str, chosen: str = "") -> Quote | None:
    topic = _about(about.replace(chosen, " ") if chosen else about)
    return Quote(text[:CHARS_MAX], topic, True) if topic else None


def _plain(text: str) -> str:
    bare = "\n".join(bounded(without_controls(text), 4_000)).replace("’", "'").replace("`", "").replace("**", "")
    return " ".join(bare.split())


def _chosen(said: str, offered: str, offer: str) -> str:
    """Which of several things that were offered an answer names, by its place or its words."""
    if len(said.split()) > CHOICE_WORDS_MAX or re.search(
        r"\b(?:none|neither|both|later|don't know|not sure|whatever)\b", said, cues.CASE
    ):
        return ""
    listed = _listed(offered, offer)
    if len(listed) > 1:
        if place := cues.PLACE.search(said):
            at = next((n for n, names in enumerate(cues.PLACES) if place[1].casefold() in names), len(listed))
            if at < len(listed):
                return listed[at]
        answer = set(terms(said))
        named = [one for one in listed if answer & set(terms(one))]
        if len(named) == 1 and not re.search(r"\b(?:not|no)\b", said, cues.CASE):
            return named[0]
    if (
        offer.endswith("?")
        and cues.WHICH.search(offer)
        and not cues.REFUSES.search(said)
        and terms(said)
        and not cues.AGREES.match(said)
    ):
        return said.rstrip(".!")
    return ""


def _listed(offered: str, offer: str) -> list[str]:
    items = cues.ITEMS.findall(offered)
    if len(items) > 1:
        return [item.strip(" ,.;?") for item in items]
    inline = cues.INLINE.split(offer)[1:]
    if len(inline) > 1:
        return [re.split(r"[.?;]\s|\Z", item)[0].strip(" ,.;?") for item in inline]
    for part in sentences(offer):
        if " or " in part:
            head, _, last = part.rstrip("?. ").rpartition(" or ")
            first = re.split(r",|:|\b(?:be|prefer|want|use|as|generated|offers|idea|for)\b", head)[-1]
            return [first.strip(" ,"), last.strip(" ,")]
    return []


def _asking(offer: str, before: str) -> str:
    """The question that was answered, without the list."""
    head = cues.INLINE.split(re.split(r"\s[-*•]\s", offer)[0])[0].strip()
    return f"{before} {head}".strip()[: CHARS_MAX // 2]


def _proposal(offer: str) -> str:
    """The sentence of a long message that proposes, with the one before it."""
    parts = sentences(offer)
    at = next((n for n, part in enumerate(parts) if cues.PROPOSES.search(part)), 0)
    return " ".join(parts[max(0, at - 1) : at + 1])[-CHARS_MAX:]


def _about(text: str) -> str:
    """What a sentence is about: what stands after `for` or before the verb, else its topics."""
    if found := cues.FOR.search(text):
        return _topic(found[1])
    return " ".join(topics(text, 3))


def _subject(subject: str, sentence: str) -> str:
    """What a sentence has before its verb, unless it says behind it what it is for: "Redis will do for the cache"."""
    end = sentence.find(subject) + len(subject)
    subject = cues.MODAL.sub("", subject)
    behind = cues.OF.search(sentence, end) if not cues.DEFINITE.match(subject) else None
    return _topic(subject if behind is None else behind[1])


def _topic(text: str) -> str:
    words = text.strip(" ,.:;=-").split()[:TOPIC_WORDS_MAX]
    if words and words[0].casefold() in cues.NO_TOPIC:
        return ""
    while words and words[0].casefold() in cues.LEADING:
        words = words[1:]
    return " ".join(words) if terms(" ".join(words)) else ""
