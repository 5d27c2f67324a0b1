"""Cuts what somebody says into clauses that state something: without questions, suppositions, quotations and code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from vmstore.facts.grammar import Grammar
from vmstore.facts.predicate import ClausePredicate, read, words_of
from vmstore.facts.rule import RuleSet

TEXT_CHARS_MAX = 6_000
CLAUSE_CHARS_MAX = 800


class SpokenClause(NamedTuple):
    """A clause and the sentence it stands in."""

    text: str
    sentence: str


def clauses(text: str, rules: RuleSet) -> Iterable[SpokenClause]:
    """The clauses somebody says in a text that state something."""
    guards = rules.guards
    spoken = _NAME.sub(r"\1", _APOSTROPHE.sub("'", text[:TEXT_CHARS_MAX]))
    spoken = _CODE.sub(" ", spoken)
    spoken = "\n".join(line for line in spoken.split("\n") if not _ASIDE.match(line))
    for sentence in _SENTENCE.findall(guards["quoted"].sub("…", spoken)):
        bare = " ".join(sentence.split())
        if not bare or len(bare) > CLAUSE_CHARS_MAX or guards["supposed"].search(bare):
            continue
        is_pair = "pair" in guards and guards["pair"].match(bare) is not None
        parts = [bare] if is_pair else guards["clause"].split(bare)
        if bare.rstrip(" )\"'").endswith("?"):  # what stands before the question may be stated
            parts = [] if guards["asks"].match(bare) else parts[:-1]
        for part in parts:
            spoken_part = guards["led_in"].sub("", part.strip(" ,;:–—-"), count=1)
            for piece in _pieces(spoken_part, None if is_pair else rules.grammar):
                clause = guards["led_in"].sub("", piece.strip(" ,;:–—-").strip(), count=1)
                if clause and not guards["said"].search(clause):
                    yield SpokenClause(clause, bare)


def _pieces(part: str, grammar: Grammar | None) -> Iterable[str]:
    """A part of a sentence, cut where somebody else begins to act, or the same one does something else."""
    if grammar is None:
        yield part
        return
    lead = _TIMED_LEAD.match(part)
    start = lead.end() if lead else 0
    for joint in _JOINT.finditer(part, start):
        left, right = part[start : joint.start()], part[joint.end() :]
        if _TIMED.match(left) and not _TIME.match(left):
            if "," in joint[0]:  # what follows is what is said
                start = joint.end()
        elif _begins(left, joint[0], right, grammar):
            yield left
            start = joint.end()
    if _TIME.match(part[start:]) or not _TIMED.match(part[start:]):
        yield part[start:]


def _begins(left: str, joint: str, right: str, grammar: Grammar) -> bool:
    """Whether what follows a joint is a clause of its own."""
    if "where" in joint and _IS.search(left):
        return False  # `Bergen is where I grew up`
    before = read(left, grammar)
    if _THAT_ONE.match(right):
        return before is not None
    follows = read(right, grammar, None if before is None else before.subject._replace(name=before.subject.name or "-"))
    if follows is None:
        return False
    word = words_of(right)[0].plain
    if word in ("i", "me") and joint.strip() == "and" and before is None and _ONE.match(left.strip()):
        return False  # `Sam and I row`
    if "when" in joint:  # what it was the moment of: `I was walking when I met her`
        return before is not None and before.helper in ("was", "were") and follows.tense == "past"
    if grammar.is_in(word, "he") or grammar.is_in(word, "it"):
        return before is not None and follows.subject.end > 0
    if follows.subject.end and follows.subject.name != "-":
        return True
    if before is None:
        return False
    if before.tense == "progressive" and grammar.form(word, "ing"):
        return True
    return ("and" in joint or "but" in joint) and _goes_on(before, right, grammar)


def _goes_on(before: ClausePredicate, right: str, grammar: Grammar) -> bool:
    """Whether a verb without anybody goes on with what the one before it does: `lives there and runs a bakery`."""
    words = [word.plain if word.text.islower() else "-" for word in words_of(right)]
    while words and grammar.is_adverb(words[0]):
        words.pop(0)
    if not words:
        return False
    if grammar.is_in(words[0], "helpers"):
        return True
    if before.tense in ("past", "passive", "was"):
        return bool(grammar.form(words[0], "past") or grammar.form(words[0], "third"))
    if before.subject.name:
        return bool(grammar.form(words[0], "third"))
    return bool(grammar.form(words[0], "base")) and before.tense in ("present", "is")


_APOSTROPHE = re.compile(r"’|(?<=\w)`(?=(?:m|re|ve|ll|d|s|t)\b)", re.IGNORECASE)
_NAME = re.compile(r"(?<!`)`([\w.()\[\]/-]{1,60})`(?!`)")  # an identifier in code marks is a word
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+", re.DOTALL)
_ASIDE = re.compile(r"\s*(?:>|\||\$ |#|\d+\s{2,}|[-+]{3})")
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?=[\w@]))+[.!?]*")
_JOINT = re.compile(
    r"(?:,|;|:| -+| [–—])?\s+(?:and|but|so|because|although|though|while|where|plus|then|when)\s+"
    r"|[,;:]\s+|\s+(?:-+|[–—])\s+",
    re.IGNORECASE,
)
_ONE = re.compile(r"(?:(?:my|our) [\w' -]{2,30}|(?-i:[A-Z])[\w'-]+)$", re.IGNORECASE)
_THAT_ONE = re.compile(r"th(?:at|is) one(?:'s| is| was)\b", re.IGNORECASE)
_IS = re.compile(r"(?:\b(?:is|are|was|were)|'s)$", re.IGNORECASE)
_TIMED_LEAD = re.compile(  # a time without a comma after it: `since we met I took up rowing`
    r"(?:(?:\w+ )?\w+,)?\W*(?:when|after|before|since|until|while)\s(?:i|we|my|our|he|she|they|it)\b"
    r"(?:\s[\w']+){1,6}?\s(?=(?:i|we)\s)",
    re.IGNORECASE,
)
_TIME = re.compile(  # a time that is no clause: `since Monday I row`, `before my exam I was ill`, `while in Rome we`
    r"\W*(?:(?:after|before|since|until|as of)\s(?:(?:my|our)\s[\w']+\s|(?!(?:i|we|my|our|he|she|they|it)\b)"
    r"(?:[\w']+\s){1,3}?)|while\s(?:in|at|on)\s(?:[\w']+\s){1,3}?)(?=(?:i|we)\b)",
    re.IGNORECASE,
)
_TIMED = re.compile(r"\W*(?:when|after|before|since|until|while|as)\b", re.IGNORECASE)
