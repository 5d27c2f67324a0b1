"""Decisions kept in their own words: agreement to a proposal, a choice of what was listed, a statement.

Where the grammar of `vmstore.vm.claims.sentences` hears nothing, the sentence itself is the claim, with
the question or the proposal it answers: so no claim is without its subject. English only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from vmstore.core.text.stems import terms
from vmstore.vm.claims import cues, patterns
from vmstore.vm.claims.sentences import plainly, spoken
from vmstore.vm.recall.text_pieces import bounded, sentences, without_controls
from vmstore.vm.recall.topics import topics

CHARS_MAX = 280  # of what is quoted
WHOLE_CHARS = (
    180  # a message up to so long that says one thing is quoted whole: its reason or its value may stand apart
)
ANSWER_WORDS_MAX = 14
NOTED_CHARS_MAX = 12
CHOICE_WORDS_MAX = 9
TASK_WORDS_MAX = 40
BRIEF_WORDS = 6  # what is so short and refuses nothing agrees
SPOKEN_CHARS_MAX = 1_200  # in a longer message decisions are few, and what was pasted is much
TOPIC_WORDS_MAX = 8
CHANGEABLE = 12  # decisions, the newest, that a change may be of which names only what they were
WAS_CHARS = 90
ADDRESS_CHARS_MAX = 60


class Quote(NamedTuple):
    """What was decided, in the words it was said in, what of, and whether it answers the message before."""

    text: str
    topic: str
    answers: bool
    reverses: bool = False


def answered(text: str, offered: str, asked: str, *, may_choose: bool = True) -> Quote | None:
    """What a short answer settles: it agrees with an offer or chooses of it; `asked` came before."""
    plain = _plain(text)
    if len(plain.split()) > ANSWER_WORDS_MAX or "?" in plain or not (offer := _plain(offered)):
        return None
    before = _plain(asked) if _plain(asked).endswith("?") and len(asked) <= CHARS_MAX // 2 else ""
    chosen = _chosen(plain, offered, offer) if may_choose else ""
    if chosen:
        return _quote(f"{chosen} ({_asking(offer, before)})", f"{before} {offer}", chosen)
    new = set(terms(plain)) - set(terms(offer))
    brief = may_choose and (
        len(new) <= 1 if len(plain.split()) > BRIEF_WORDS else not new or bool(set(terms(plain)) - new)
    )
    agrees = (cues.AGREES.search(plain) and cues.PROPOSES.search(offer)) or brief
    if _is_a_task(offer) or (
        " or " in (sentences(offer) or [""])[-1] and not re.search(r"\bi lean|vote\b", offer, cues.CASE)
    ):
        return None
    if not agrees or cues.TASK.match(plain) or cues.REFUSES.search(cues.MILD.sub("", plain)) or not _ends_open(offer):
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
    plain = spoken(text)
    whole = _plain(text)
    words = whole.split()
    for number, sentence in enumerate(plain):
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
            if len(words) <= cues.PLAIN_WORDS_MAX and not cues.TROUBLE.search(_without_reason(sentence))
            else cues.STATES
        )
        if number == len(plain) - 1 and len(forms) > len(cues.STATES):
            forms = (*forms, *cues.HABITS)
        if match := _matched(forms, sentence):
            named = {name: value or "" for name, value in match.groupdict().items()}
            lead = ""
            if ":" in sentence and cues.CHANGES.search(named.get("s", "")):  # "correction: …" is no thing
                named["s"] = ""
            topic = (
                _subject(named.get("s", ""), sentence)
                or _topic(named.get("t", ""))
                or (_about(sentence) if cues.FOR.search(sentence) else "")
            )
            if not topic:  # what it is about was said just before, or in no words of its own
                lead = plain[number - 1] if number and not plain[number - 1].endswith(("!", "?")) else ""
                topic = _about(f"{lead} {sentence}" if lead else sentence)
            if not topic:
                continue
            reverses = cues.REVERSES.search(" ".join(plain[max(0, number - 1) : number + 1])) is not None
            found.append(Quote(f"{lead} {sentence}".strip()[:CHARS_MAX], topic, False, reverses))
    if len(found) == 1 and len(whole) <= WHOLE_CHARS and "\n" not in text.strip():
        return [found[0]._replace(text=whole)]
    return found


def _matched(forms: Sequence[re.Pattern[str]], sentence: str) -> re.Match[str] | None:
    """The first of some forms that a sentence has, else what it says behind a reason."""
    parts = [sentence]
    if led := cues.CLAUSE.match(sentence):
        parts.append(sentence[led.end() :])
    elif so := cues.SO.search(sentence):
        parts.append(sentence[so.end() :])
    return next((match for part in parts for form in forms if (match := form.search(part))), None)


def acknowledged(answer: str, offered: str) -> Quote | None:
    """What the user laid down, where the model's short answer only takes note of it."""
    plain = _plain(offered)
    note = cues.TAKES_NOTE.search(answer)
    if len(answer.split()) > cues.ACKNOWLEDGED_WORDS_MAX or "?" in answer or not note or stated(offered):
        return None
    if note.start() > NOTED_CHARS_MAX and cues.WORK.match(plain):  # it reports work, and nothing is taken note of
        return None
    if "?" in plain or not 1 < len(plain.split()) <= 25 or cues.UNSURE.search(plain) or _decides_nothing(plain):
        return None
    found = cues.LABEL.match(plain) or cues.LAYS_DOWN.search(plain)
    named = [value for value in found.groupdict().values() if value] if found else []
    topic = (_topic(named[0]) or _about(plain)) if named else ""
    return Quote(plain, topic, True) if topic else None


def changed(text: str, known: Sequence[tuple[str, str]]) -> tuple[Quote, int] | None:
    """What takes the place of an earlier decision, and of which of the known, newest first by topic and text.

    It has words of a change, and names what the decision is of, or else what it was; of several that it names
    the one it says most of.
    """
    plain = _plain(text)
    doubted = cues.DOUBTED.search(plain) or cues.OTHERS.match(plain) or _sets_a_task(plain)
    if plain.endswith("?") or not 1 < len(plain.split()) <= 40 or doubted:
        return None
    turns = cues.CHANGES.search(plain) is not None
    named = set(terms(plain))
    best: tuple[tuple[int, int, int], int] | None = None
    for number, (topic, before) in enumerate(known):
        of, old = set(terms(topic)), values(topic, before)
        whole = of <= named and (len(of) > 1 or addresses(plain, topic))
        gives_way = (turns and of and whole and agree(plain, topic, before)) or replaces(plain, topic, before)
        if gives_way and named - of - old:
            rank = (len(of & named) + 2 * bool(old & named), len(of), -number)
            best = max(best, (rank, number)) if best else (rank, number)
    if best is not None:
        return _change(plain, *known[best[1]]), best[1]
    subjects = _subjects(plain)
    decided = {term for topic, _ in known for term in terms(topic)}
    things = [thing for found in cues.NAMED.finditer(plain) if not decided.isdisjoint(thing := set(terms(found[1])))]
    for number, (topic, before) in enumerate(known[:CHANGEABLE] if turns else ()):
        of, old = set(terms(topic)), values(topic, before)
        others = (*subjects, *things) if len(of) > 1 else subjects
        fits = old & named and not any(of - subject and subject - of - old for subject in others)
        if (fits or (number == 0 and len(named) <= 2)) and named - old - of:  # it names no other subject
            return _change(plain, topic, before), number
    return None


def replaces(text: str, topic: str, before: str) -> bool:
    """Whether a text says what takes the place of a claim: it names what it was, and the topic or a part of it."""
    named, of = set(terms(text)), set(terms(topic))
    if len(of) < 2 or of.isdisjoint(named):
        return False
    was = set(terms(before.removeprefix("Decision: "))) - of
    if of <= named:
        return cues.GIVES_WAY.search(text) is not None and not was.isdisjoint(named)
    subjects = [*_subjects(text), *(set(terms(found[1])) for found in cues.NAMED.finditer(text))]
    return _gone(text, was) and not any(of - other and other - of - was for other in subjects)


def _subjects(text: str) -> list[set[str]]:
    """What a text speaks of, by its terms."""
    return [set(terms(found[1])) for form in (cues.OF, cues.SUBJECT) for found in form.finditer(text)]


def _gone(text: str, was: set[str]) -> bool:
    """Whether a text names a value as what is no more: with a word for that."""
    gone = (terms(found[1] or found[2]) for found in cues.NO_MORE.finditer(text))
    return any(words and words[0] in was for words in gone)


def addresses(text: str, topic: str) -> bool:
    """Whether a text speaks of a topic itself, in its words: of no part of it, and of nothing that is longer called."""
    form = _address(topic)
    return form is not None and form.search(_plain(text)) is not None


@lru_cache(maxsize=1_024)
def _address(topic: str) -> re.Pattern[str] | None:
    said = topic.split()
    if not terms(topic) or len(topic) > ADDRESS_CHARS_MAX:
        return None
    one = len(said) == 1
    before = r"(?:\A|[.:;,!?] |\b(?:the|our|my|all|every|for|on|of|as|about) )" if one else r"(?<![\w-])"
    return re.compile(before + r"\W+".join(map(re.escape, said)) + cues.ENDS, cues.CASE)


def values(topic: str, text: str) -> set[str]:
    """The terms of what a claim says its topic is: the names and numbers in it, but for the word it begins with."""
    found = cues.NAMES.finditer(text := text.removeprefix("Decision: "))
    numbers = [match[0] for match in found if match.start() or " " not in text]
    return {term for name in numbers for term in terms(name)} - set(terms(topic))


def _change(sentence: str, topic: str, before: str) -> Quote:
    was = before.removeprefix("Decision: ").split(" (of ")[0][:WAS_CHARS]
    return Quote(f"{sentence} (of {topic}; before: {was})", topic, False, True)


def _without_reason(sentence: str) -> str:
    """A sentence up to where it says why."""
    led = cues.CLAUSE.match(sentence)
    return cues.WHY.split(sentence[led.end() if led else 0 :], maxsplit=1)[0]


def _sets_a_task(said: str) -> bool:
    """Whether a message says what is to be done next, at its beginning or its end."""
    return (
        any(form.match(said) for form in (cues.TASK, cues.WORK, cues.LOOKING))
        or cues.ERRAND_LAST.search(said) is not None
    )


def _is_a_task(offer: str) -> bool:
    """Whether what is offered is to be done now, and is nothing to remember."""
    return len(offer.split()) <= TASK_WORDS_MAX and cues.ERRAND.search(offer) is not None


def _ends_open(offer: str) -> bool:
    """Whether a message leaves something to be answered: it proposes near its end, or asks there."""
    return offer.endswith("?") or cues.PROPOSES.search(" ".join(sentences(offer)[-3:])) is not None


def _decides_nothing(sentence: str) -> bool:
    """Whether it only speaks of a decision, or of what somebody does next."""
    doubted = patterns.DOUBTED.match(sentence) and not cues.AFTER_TALK.match(sentence)
    if led := cues.CLAUSE.match(sentence):  # "now that it is up, list its routes" says what its second half does
        return _decides_nothing(sentence[led.end() :])
    undecided = (
        doubted or cues.OTHERS.match(sentence) or patterns.RECALLED.search(sentence) or cues.TASK.match(sentence)
    )
    if undecided or sentence.rstrip(".! ").endswith(", it is"):
        return True
    begun = cues.BEGINS.match(sentence)
    return patterns.IDLE.match(sentence, begun.end() if begun else 0) is not None


def _quote(text: str, about: str, chosen: str = "") -> Quote | None:
    topic = _about(about.replace(chosen, " ") if chosen else about)
    return Quote(text[:CHARS_MAX], topic, True) if topic else None


def _plain(text: str) -> str:
    bare = "\n".join(bounded(without_controls(text), 4_000)).replace("’", "'").replace("`", "").replace("**", "")
    return plainly(" ".join(bare.split()))


def _chosen(plain: str, offered: str, offer: str) -> str:
    """Which of several things that were offered an answer names, by its place or its words."""
    if len(plain.split()) > CHOICE_WORDS_MAX or re.search(
        r"\b(?:none|neither|both|later|don't know|not sure|whatever)\b", plain, cues.CASE
    ):
        return ""
    listed = _listed(offered, offer)
    if len(listed) > 1:
        if place := cues.PLACE.search(plain):
            at = next((n for n, names in enumerate(cues.PLACES) if place[1].casefold() in names), len(listed))
            if at < len(listed):
                return listed[at]
        answer = set(terms(plain))
        named = [option for option in listed if answer & set(terms(option))]
        if len(named) == 1 and not re.search(r"\b(?:not|no)\b", plain, cues.CASE):
            return named[0]
    if (
        offer.endswith("?")
        and cues.WHICH.search(offer)
        and not cues.REFUSES.search(plain)
        and terms(plain)
        and not cues.AGREES.match(plain)
    ):
        return plain.rstrip(".!")
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
    """What a sentence is about: what stands after `for` or behind an article, else its topics; not its reason."""
    return named(text) or " ".join(topics(text, 3))


def named(text: str) -> str:
    """The thing that a text names as what it is about; nothing where it names none."""
    for part in dict.fromkeys((_without_reason(text), text)):
        for form in (cues.FOR, cues.NAMED, cues.BESIDE):
            if thing := next((thing for one in form.finditer(part) if (thing := _topic(one[1]))), ""):
                return thing
    return ""


def agree(text: str, topic: str, before: str) -> bool:
    """Whether a text may be of the same as a claim of the topic: it says nothing else of it, nor of another thing.

    One thing has many sides: "the shop opens at nine" takes no place of "the shop stands in Rome".
    """
    of, old = set(terms(topic)), values(topic, before)
    if not old.isdisjoint(terms(text)) or (len(of) > 1 and addresses(text, topic)):
        return True
    new, known = (_without_reason(_plain(one).removeprefix("Decision: ")) for one in (text, before))
    frames = [set(terms(one)) - of - values(topic, one) for one in (new, known)]
    things = [{term for found in cues.NAMED.finditer(one) for term in terms(found[1])} - of for one in (new, known)]
    return not any(all(both) and both[0].isdisjoint(both[1]) for both in (frames, things))


def _subject(subject: str, sentence: str) -> str:
    """What a sentence has before its verb, unless it says behind it what it is for: "Redis will do for the cache"."""
    end = sentence.find(subject) + len(subject)
    subject = cues.MODAL.sub("", subject)
    behind = cues.OF.search(sentence, end) if not cues.DEFINITE.match(subject) else None
    return (_topic(behind[1]) if behind is not None else "") or _topic(subject)


def _topic(text: str) -> str:
    text = re.split(r"(?:\b(?:so|and|then|but)|[.!;])\s", text, flags=cues.CASE)[-1]
    if about := cues.CALLED.match(text := text.strip(" ,.:;=-")):
        text = text[about.end() :]
    words = text.split()[:TOPIC_WORDS_MAX]
    if words and words[0].casefold().partition("'")[0] in cues.NO_TOPIC:
        return ""
    while words and words[0].casefold() in cues.LEADING:
        words = words[1:]
    while len(words) > 1 and words[-1].casefold() in cues.NO_TOPIC:
        words = words[:-1]
    return " ".join(words) if terms(" ".join(words)) else ""
