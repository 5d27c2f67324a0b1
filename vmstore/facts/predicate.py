"""Reads a clause into its subject, its verb and what is said with it, by the grammar of its language.

Nothing is looked up of what a sentence is about: who acts stands first or behind a time, then helping verbs, denials
and adverbs, then the verb. A clause that is built otherwise is not read.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from vmstore.facts.grammar import Grammar

SUBJECT_WORDS_MAX = 6  # of a subject that is no pronoun
LEAD_CHARS_MAX = 60  # of what may stand before who acts
_JOINED = r"n't\b|'(?:m|re|ve|ll|d|s)\b"
_WORD = re.compile(rf"{_JOINED}|[\w@][\w@./&+#-]*?(?={_JOINED})|[\w@](?:[\w@./&+#-]*[\w@+#])?|[^\w\s]", re.IGNORECASE)
_SHORT = {"'m": "am", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would", "'s": "is", "n't": "not",
          "ca": "can", "wo": "will", "ai": "am"}  # fmt: skip


class ClauseWord(NamedTuple):
    """A word of a clause, in small letters and full form, and where it stands."""

    text: str
    plain: str
    start: int
    end: int


class ClauseSubject(NamedTuple):
    """Who acts: `name` is empty for who speaks; `owner` where it is somebody's or something's own; its last word."""

    name: str
    is_own: bool
    end: int
    is_named: bool = False


class ClausePredicate(NamedTuple):
    """What a clause says of a subject. `tense` is present, past, progressive, perfect,
    passive, future, is, was, able or wish.

    `verb` is the plain form of the verb, `words` how it was said with its preposition, `what` all after that.
    """

    subject: ClauseSubject
    verb: str
    words: str
    what: str
    tense: str
    is_denied: bool
    helper: str
    is_lead: bool


def words_of(clause: str) -> list[ClauseWord]:
    """The words of a clause, with what is drawn together taken apart."""
    found = []
    for match in _WORD.finditer(clause):
        text = match[0].lower()
        found.append(ClauseWord(match[0], _SHORT.get(text, text), match.start(), match.end()))
    return found


def read(clause: str, grammar: Grammar, before: ClauseSubject | None = None) -> ClausePredicate | None:
    """What a clause says; `before` is who the clause before it was about, for `he`, and for a verb without anybody."""
    words = words_of(clause)
    subject, is_lead = subject_of(clause, words, grammar, before)
    return None if subject is None else _predicate(clause, words, subject, grammar, is_lead=is_lead)


def subject_of(
    clause: str, words: list[ClauseWord], grammar: Grammar, before: ClauseSubject | None = None
) -> tuple[ClauseSubject | None, bool]:
    """Who a clause is about, and whether something else stands first."""
    first = next((at for at, word in enumerate(words) if word.plain in ("i", "we")), None)
    if first is not None and _may_lead(clause[: words[first].start], grammar):
        return ClauseSubject("", False, first + 1), first > 0
    at = 0
    comma = next((at for at, word in enumerate(words) if word.text == ","), None)
    if comma is not None and words[comma].start <= LEAD_CHARS_MAX and grammar.patterns["lead"].match(clause):
        at = comma + 1
    while at < len(words) and grammar.is_adverb(words[at].plain) and not grammar.is_in(words[at].plain, "quantifiers"):
        if grammar.is_in(words[at].plain, "hedges"):
            return None, False
        at += 1
    if at >= len(words):
        return None, False
    found = (
        _pronoun(words, at, grammar, before) or _noun(clause, words, at, grammar) or _unsaid(words, at, grammar, before)
    )
    return found, at > 0


def _may_lead(text: str, grammar: Grammar) -> bool:
    """Whether what stands before who acts only says when, where or how."""
    lead = text.strip(" ,")
    if not lead:
        return True
    if grammar.patterns["no_lead"].search(lead):
        return False
    return len(lead) <= LEAD_CHARS_MAX and grammar.patterns["lead"].match(lead + " ") is not None


def _pronoun(words: list[ClauseWord], at: int, grammar: Grammar, before: ClauseSubject | None) -> ClauseSubject | None:
    if before is None or not before.name or not grammar.is_in(words[at].plain, "he"):
        return None
    return before._replace(end=at + 1)


def _noun(clause: str, words: list[ClauseWord], at: int, grammar: Grammar) -> ClauseSubject | None:
    """A subject of several words: of one's own, of a thing, or a name; it ends where a verb begins."""
    start, head = at, words[at].plain
    following = words[at + 1].plain if at + 1 < len(words) else ""
    if grammar.is_in(head, "quantifiers") and (following == "of" or grammar.is_in(following, "mine")):
        start = at + (2 if at + 1 < len(words) and words[at + 1].plain == "of" else 1)
        head = words[start].plain if start < len(words) else ""
    is_own, is_thing = grammar.is_in(head, "mine"), grammar.is_in(head, "articles")
    is_named = words[at].text[:1].isupper() and not grammar.is_in(head, "no_names")
    begin = start + 1 if is_own or is_thing else start
    for end in range(begin + 1, min(len(words), begin + SUBJECT_WORDS_MAX) + 1):
        if end >= len(words):
            return None
        word = words[end]
        if is_own and word.plain == "and" and end + 1 < len(words) and words[end + 1].plain in ("i", "me"):
            return ClauseSubject("", False, end + 2)
        if word.text == "," and grammar.is_in(head, "mine") and _apposed(words, end):
            continue
        if not (word.text[0].isalnum() or word.text[0] == "'") or word.plain in ("i", "we", "that", "who", "which"):
            return None
        if not _is_verb(words, end, grammar):
            continue
        name = clause[words[begin].start : words[end - 1].end].partition(",")[0].strip()
        if is_own or is_thing:
            return ClauseSubject(name, is_own, end)
        return ClauseSubject(name, False, end, is_named) if _is_name(words[start:end], grammar, words, end) else None
    return None


def _apposed(words: list[ClauseWord], comma: int) -> bool:
    """Whether a name stands between two commas: `my boss, Ingrid, is retiring`."""
    return comma + 2 < len(words) and words[comma + 1].text[:1].isupper() and words[comma + 2].text == ","


def _is_name(name: list[ClauseWord], grammar: Grammar, words: list[ClauseWord], verb: int) -> bool:
    """Whether what stands before a verb can be somebody's name or a thing that is spoken of."""
    if any(grammar.is_in(word.plain, "no_names") or grammar.is_adverb(word.plain) for word in name):
        return False
    if len(name) > 3 or name[0].plain.endswith("ing") or (len(name) > 1 and grammar.form(name[0].plain, "base")):
        return False
    if len(name) == 1 and name[0].plain.endswith("s") and words[verb].plain in ("happen", "start", "run", "do", "are"):
        return True
    plain = grammar.form(words[verb].plain, "third", "past")
    if plain and grammar.is_in(plain, "personal"):
        return name[0].text[:1].isupper()
    to_me = any(word.plain in ("me", "us") for word in words[verb + 1 : verb + 3])
    return to_me and bool(plain) and grammar.is_in(plain, "affecting")


def _is_verb(words: list[ClauseWord], at: int, grammar: Grammar) -> bool:
    """Whether the word at a place begins what is said of the subject before it."""
    word = words[at]
    if word.text.lower() == "'s":
        return at + 1 < len(words) and grammar.patterns["after_is"].match(words[at + 1].plain) is not None
    if grammar.is_in(word.plain, "helpers"):
        return True
    if grammar.is_adverb(word.plain) and at + 1 < len(words):
        return grammar.form(words[at + 1].plain, "third", "past", "base") != ""
    if grammar.form(word.plain, "third", "past"):
        return True
    return bool(grammar.form(word.plain, "base")) and words[at - 1].plain.endswith(("s", "children", "people", "men"))


def _unsaid(words: list[ClauseWord], at: int, grammar: Grammar, before: ClauseSubject | None) -> ClauseSubject | None:
    """Who speaks, where a clause begins with the verb: `Took a trip`, `Gonna try it`, `Haven't been there`."""
    word = words[at]
    follows = words[at + 1].plain if at + 1 < len(words) else ""
    if before is not None and (
        grammar.form(word.plain, "third", "past", "base") or grammar.is_in(word.plain, "helpers")
    ):
        return before._replace(end=at)
    is_past = grammar.form(word.plain, "past") not in ("", "be") and grammar.form(word.plain, "base") == ""
    is_helped = grammar.is_in(word.plain, "unsaid") and (word.plain != "have" or follows in ("not", "been"))
    return ClauseSubject("", False, at) if (is_past and follows) or is_helped else None


def _predicate(
    clause: str, words: list[ClauseWord], subject: ClauseSubject, grammar: Grammar, *, is_lead: bool
) -> ClausePredicate | None:
    at, helper, denied, adverbs = subject.end, "", False, list[str]()
    tense = ""
    while at < len(words):
        word = words[at].plain
        following = words[at + 1].plain if at + 1 < len(words) else ""
        if word in ("not", "never") or (word == "no" and following == "longer"):
            denied, at = True, at + 1 + (word == "no")
        elif grammar.is_adverb(word) and not (word == "like" and not following):
            adverbs.append(word)
            at += 1
        elif grammar.is_in(word, "helpers") and _helps(words, at, grammar):
            helper, at = helper if grammar.is_in(helper, "modals") else word, at + 1
        else:
            break
    if at >= len(words) or any(grammar.is_in(word, "hedges") for word in adverbs):
        return None
    is_speaker = not subject.name and 0 < subject.end == at
    verb, tense, at = _verb(words, at, helper, grammar, is_speaker=is_speaker)
    if not verb:
        return None
    end = at
    while end < len(words) and grammar.is_in(words[end].plain, "particles") and words[end].text.islower():
        end += 1
    said = " ".join(word.plain for word in words[at - 1 : end])
    if tense == "passive":
        said = f"{'is' if helper == 'am' else helper} {said}"
    if tense in ("is", "was"):
        said = " ".join([helper or verb, *(word.plain for word in words[at:end])])
    what = clause[words[end].start :] if end < len(words) else ""
    if not what and helper == "can" and not grammar.is_in(verb, "talking"):  # `I can swim`
        return ClausePredicate(subject, verb, "", clause[words[at - 1].start :], tense, denied, helper, is_lead)
    if not what and end > at:  # nothing but a particle
        end = at
        what, said = clause[words[end].start :], words[at - 1].plain
    return ClausePredicate(subject, verb, said, what, tense, denied, helper, is_lead)


def _helps(words: list[ClauseWord], at: int, grammar: Grammar) -> bool:
    """Whether a word that may help another verb does: `have been`, not `have a dog`."""
    word = words[at].plain
    if word in ("have", "has", "had", "do", "does", "did"):
        rest = [one.plain for one in words[at + 1 : at + 5]]
        while rest and (grammar.is_adverb(rest[0]) or rest[0] in ("not", "never")):
            rest.pop(0)
        if not rest:
            return words[at + 1].plain in ("not", "never") if at + 1 < len(words) else False
        if word.startswith("d"):
            return grammar.form(rest[0], "base") != "" or rest[0] in ("have", "be")
        return rest[0] in ("been", "had") or grammar.form(rest[0], "participle") != "" or rest[0].endswith("ed")
    return True


def _verb(words: list[ClauseWord], at: int, helper: str, grammar: Grammar, *, is_speaker: bool) -> tuple[str, str, int]:
    """The verb at a place in its plain form, its tense, and the place after it."""
    word = words[at].plain
    if helper in ("am", "are", "is", "was", "were", "been", "be"):
        past = helper in ("was", "were")
        if grammar.form(word, "ing") or (word.endswith("ing") and not grammar.is_in(word, "no_verbs")):
            return grammar.form(word, "ing") or word, "progressive" if not past else "past", at + 1
        if helper == "been" and word == "to":
            return "been", "perfect", at
        if plain := grammar.form(word, "participle"):
            return plain, "passive", at + 1
        return "be", "was" if past or helper == "been" else "is", at
    if helper in ("have", "has", "had"):
        return grammar.form(word, "participle") or word, "perfect", at + 1
    if helper in ("will", "gonna", "shall"):
        return grammar.form(word, "base") or word, "future", at + 1
    if helper in ("would", "could", "might", "may", "should", "must", "can"):
        return grammar.form(word, "base") or word, "wish" if helper == "would" else "able", at + 1
    if helper in ("do", "does", "did"):
        return grammar.form(word, "base") or word, "past" if helper == "did" else "present", at + 1
    plain = grammar.form(word, "base", "third")
    if plain:
        return plain, "present", at + 1
    if plain := grammar.form(word, "past"):
        return plain, "past", at + 1
    if is_speaker and word.isalpha() and not grammar.is_in(word, "no_names") and not grammar.is_in(word, "particles"):
        return word, "past" if word.endswith("ed") else "present", at + 1  # a verb nobody listed
    return "", "", at
