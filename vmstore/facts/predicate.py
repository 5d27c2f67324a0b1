"""Reads a clause into its subject, its verb and what is said with it, by the grammar of its language.

Nothing is looked up of what a sentence is about: who acts stands first or behind a time, then helping verbs, denials
and adverbs, then the verb. A clause that is built otherwise is not read.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from vmstore.facts.grammar import Grammar

SUBJECT_WORDS_MAX = 6  # of a subject that is no pronoun
APPOSED_WORDS = 7  # between two commas, the second of them counted
REACH_WORDS = 10  # of what a subject does, in which who speaks is named
LEAD_CHARS_MAX = 60  # of what may stand before who acts
_QUOTES = "'\"“”"
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
    """Who acts: `name` is empty for who speaks; whether it is who speaks' own; the place after its last word.

    `apposed` is what it is besides: `Ingrid` in `my boss, Ingrid, is retiring`.
    """

    name: str
    is_own: bool
    end: int
    is_named: bool = False
    apposed: str = ""


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
        at = 0 if any(grammar.is_in(word.plain, "being") for word in words[:comma]) else comma + 1
    while at < len(words) and grammar.is_adverb(words[at].plain) and not grammar.is_in(words[at].plain, "quantifiers"):
        if grammar.is_in(words[at].plain, "hedges"):
            return None, False
        at += 1
    behind = _behind_lead(clause, words, at, grammar)
    if behind is not None:
        return behind, True
    is_quoted = at < len(words) and words[at].text in _QUOTES
    at += is_quoted
    if at >= len(words):
        return None, False
    found = _pronoun(words, at, grammar, before) or _noun(clause, words, at, grammar)
    if found is None and not is_quoted:
        found = _unsaid(words, at, grammar, before)
    return found, at > 0


def _behind_lead(clause: str, words: list[ClauseWord], at: int, grammar: Grammar) -> ClauseSubject | None:
    """Something of one's own that acts behind a time or a place: `two years ago my dad moved`."""
    for begin in range(at + 1, len(words)):
        if words[begin].start > LEAD_CHARS_MAX:
            break
        if grammar.is_in(words[begin].plain, "mine") and _may_lead(clause[: words[begin].start], grammar):
            found = _noun(clause, words, begin, grammar)
            if found is not None and found.name:
                return found
    return None


def _may_lead(text: str, grammar: Grammar) -> bool:
    """Whether what stands before who acts only says when, where or how."""
    lead = text.strip(" ,")
    if not lead:
        return True
    if grammar.patterns["no_lead"].search(lead):
        return False
    return len(lead) <= LEAD_CHARS_MAX and grammar.patterns["lead"].match(lead + " ") is not None


def _pronoun(words: list[ClauseWord], at: int, grammar: Grammar, before: ClauseSubject | None) -> ClauseSubject | None:
    word = words[at].plain
    if before is None or not before.name or not (grammar.is_in(word, "he") or grammar.is_in(word, "it")):
        return None
    if grammar.is_in(word, "it") and not (at + 1 < len(words) and _is_verb(words, at + 1, grammar)):
        return None  # `this garden`
    return before._replace(end=at + 1)


def _noun(clause: str, words: list[ClauseWord], at: int, grammar: Grammar) -> ClauseSubject | None:
    """A subject of several words: of one's own, of a thing, or a name; it ends where a verb begins."""
    start, head = _whose(words, at, grammar)
    following = words[at + 1].plain if at + 1 < len(words) else ""
    if start == at and grammar.is_in(head, "quantifiers") and (following == "of" or grammar.is_in(following, "mine")):
        start = at + (2 if following == "of" else 1)
        head = words[start].plain if start < len(words) else ""
    if grammar.is_in(head, "it") and start + 1 < len(words) and _is_verb(words, start + 1, grammar):
        return None  # `that sounds good`
    is_own, is_thing = grammar.is_in(head, "mine"), grammar.is_in(head, "articles")
    is_named = words[at].text[:1].isupper() and not grammar.is_in(head, "no_names")
    begin = start + 1 if is_own or is_thing else start
    is_kin = grammar.is_in(head, "relatives") and (is_named or (at + 1 < len(words) and words[at + 1].text == "'s"))
    is_own = is_own or is_kin  # `Dad's surgery`
    end = begin + 1
    while end < min(len(words), begin + SUBJECT_WORDS_MAX + 1):
        word = words[end]
        follows = words[end + 1].plain if end + 1 < len(words) else ""
        if word.plain == "and" and follows in ("i", "me") and (is_own or is_thing or is_named):
            return ClauseSubject("", False, end + 2)
        is_pair = head == "me" and words[start + 1].plain == "and" and end > start + 2
        if is_pair and (_is_verb(words, end, grammar) or grammar.form(word.plain, "base")):
            return ClauseSubject("", False, end)  # `me and my brother row`
        if head != "me" and grammar.is_in(word.plain, "mine"):
            return None
        if word.text == "," and (is_own or is_thing):
            return _between_commas(clause, words, (at, begin, end), grammar, is_own=is_own)
        if word.plain in ("i", "we", "that", "who", "which") or not (word.text[0].isalnum() or word.text[0] in _QUOTES):
            return None
        if _is_verb(words, end, grammar):
            name = clause[words[begin].start : words[end - 1].end].replace('"', "").strip(_QUOTES)
            if is_own and start > at and grammar.is_in(words[at].plain, "partial"):  # not said of all of them
                return ClauseSubject(clause[words[at].start : words[end - 1].end], False, end, is_named=True)
            if is_own or is_thing:
                return ClauseSubject(name, is_own, end)
            return _other(name, words, (start, end), grammar, is_named=is_named)
        end += 1
    return None


def _between_commas(
    clause: str, words: list[ClauseWord], place: tuple[int, int, int], grammar: Grammar, *, is_own: bool
) -> ClauseSubject | None:
    """A subject of which something is said between two commas: who it is besides, or `who lives in Kiel`."""
    at, begin, comma = place
    is_relative = comma + 1 < len(words) and words[comma + 1].plain in ("who", "which")
    closing = next((later for later in range(comma + 2, len(words)) if words[later].text == ","), 0)
    if not closing or closing + 1 >= len(words) or not _is_verb(words, closing + 1, grammar):
        return None
    name = clause[words[begin].start : words[comma - 1].end]
    if is_relative:
        return ClauseSubject(name, is_own, closing + 1)
    first = next((word.text for word in words[comma + 1 : closing] if word.text not in _QUOTES), "")
    if not first[:1].isupper() or closing - comma > APPOSED_WORDS:
        return None
    apposed = clause[words[comma + 1].start : words[closing - 1].end].strip(_QUOTES)
    if words[at].plain == "one":  # `one of the trainers, Ida, rows`
        said_before = f"one{clause[words[at].end : words[comma - 1].end]}"
        return ClauseSubject(apposed, is_own=False, end=closing + 1, is_named=True, apposed=said_before)
    return ClauseSubject(name, is_own, closing + 1, apposed=apposed)


def _whose(words: list[ClauseWord], at: int, grammar: Grammar) -> tuple[int, str]:
    """Where a subject's noun begins behind how many of them: `a lot of my friends`, `everyone in our house`."""
    said = [word.plain for word in words[at : at + 4]]
    is_many = said[:1] == ["a"] and said[1:2] in (["lot"], ["few"], ["couple"]) and said[2:3] == ["of"]
    is_within = grammar.is_in(said[0], "everyone") and said[1:2] in (["in"], ["at"], ["on"])
    skipped = 3 if is_many else 2 if is_within else 0
    is_mine = 0 < skipped < len(said) and grammar.is_in(said[skipped], "mine")
    start = at + skipped if is_mine else at
    return start, words[start].plain


def _other(
    name: str, words: list[ClauseWord], place: tuple[int, int], grammar: Grammar, *, is_named: bool
) -> ClauseSubject | None:
    """A subject without an article: a name, something that does something to who speaks, or somebody of many."""
    start, end = place
    if _is_name(words[start:end], grammar, words, end):
        return ClauseSubject(name, False, end, is_named)
    said = [words[start], *(word for word in words[start + 1 : end] if not grammar.is_in(word.plain, "particles"))]
    if any(grammar.is_in(word.plain, "no_names") for word in said[grammar.is_in(said[0].plain, "indefinite") :]):
        return None
    is_verb = grammar.form(said[0].plain, "base") and not said[0].plain.endswith("ing") and len(said) > 1
    to_me = any(word.plain in ("me", "us", "my", "our") for word in words[end : end + REACH_WORDS])
    is_relative = grammar.is_in(said[-1].plain, "relatives") and grammar.is_in(said[0].plain, "indefinite")
    return ClauseSubject(name, False, end, True) if is_relative or (to_me and not is_verb) else None


def _is_name(name: list[ClauseWord], grammar: Grammar, words: list[ClauseWord], verb: int) -> bool:
    """Whether what stands before a verb can be somebody's name or a thing that is spoken of."""
    if len(name) == 3 and name[1].plain == "and" and name[0].text[0].isupper() and name[2].text[0].isupper():
        return True
    name = [word for word in name if word.text.lower() != "'s"]  # `Dad's surgery`
    if any(grammar.is_in(word.plain, "no_names") or grammar.is_adverb(word.plain) for word in name):
        return False
    if len(name) == 1 and grammar.is_in(words[verb].plain, "being") and name[0].text.isalpha():
        return True
    if len(name) > 3 or name[0].plain.endswith("ing") or (len(name) > 1 and grammar.form(name[0].plain, "base")):
        return False
    if len(name) == 1 and name[0].plain.endswith("s") and words[verb].plain in ("happen", "start", "run", "do", "are"):
        return True
    plain = grammar.form(words[verb].plain, "third", "past")
    if plain and name[0].text[:1].isupper():
        return True
    to_me = any(word.plain in ("me", "us") for word in words[verb + 1 : verb + 3])
    return to_me and bool(plain) and grammar.is_in(plain, "affecting")


def _is_verb(words: list[ClauseWord], at: int, grammar: Grammar) -> bool:
    """Whether the word at a place begins what is said of the subject before it."""
    word = words[at]
    if word.text.lower() == "'s" and words[at - 1].plain in ("it", "he", "she", "that", "this", "there"):
        return True
    if word.text.lower() == "'s":
        return at + 1 < len(words) and grammar.patterns["after_is"].match(words[at + 1].plain) is not None
    if grammar.is_in(word.plain, "helpers"):
        return True
    if grammar.is_adverb(word.plain) and at + 1 < len(words):
        return grammar.form(words[at + 1].plain, "third", "past", "base") != ""
    if at + 1 < len(words) and grammar.is_in(words[at + 1].plain, "helpers"):
        return False  # `the football matches are`
    if grammar.form(word.plain, "third", "past") or _looks_past(words, at, grammar):
        return True
    return bool(grammar.form(word.plain, "base")) and words[at - 1].plain.endswith(("s", "children", "people", "men"))


def _looks_past(words: list[ClauseWord], at: int, grammar: Grammar) -> bool:
    """Whether a word has the past form of a verb that nobody listed, and stands before what a verb is followed by."""
    word, follows = words[at], words[at + 1] if at + 1 < len(words) else None
    if follows is None or not word.plain.endswith("ed") or len(word.plain) < 5 or not word.text.islower():
        return False
    return grammar.is_in(follows.plain, "particles") or grammar.is_in(follows.plain, "determiners")


def _precedes_noun(word: str, grammar: Grammar) -> bool:
    return grammar.is_in(word, "determiners") or grammar.is_in(word, "particles")


def _unsaid(words: list[ClauseWord], at: int, grammar: Grammar, before: ClauseSubject | None) -> ClauseSubject | None:
    """Who speaks, where a clause begins with the verb: `Took a trip`, `Gonna try it`, `Haven't been there`."""
    word = words[at]
    follows = words[at + 1].plain if at + 1 < len(words) else ""
    if before is not None and (
        grammar.form(word.plain, "third", "past", "base", "ing") or grammar.is_in(word.plain, "helpers")
    ):
        return before._replace(end=at)
    is_past = grammar.form(word.plain, "past") not in ("", "be") and grammar.form(word.plain, "base") == ""
    is_helped = grammar.is_in(word.plain, "unsaid") and (word.plain != "have" or follows in ("not", "been"))
    is_going_on = word.plain.endswith("ing") and grammar.form(word.plain, "ing") != "" and bool(follows)
    later = [at for at in range(at + 1, len(words)) if not _precedes_noun(words[at - 1].plain, grammar)]
    if is_going_on and not any(_is_verb(words, one, grammar) for one in later):
        return ClauseSubject("", False, at)  # `Working on a new song.`
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
            at += 2 if word in ("sort", "kind") and following == "of" else 1
        elif grammar.is_in(word, "helpers") and _helps(words, at, grammar):
            word = "had" if words[at].text.lower() == "'d" and _is_had(words, at + 1, grammar) else word
            helper, at = helper if grammar.is_in(helper, "modals") else word, at + 1
        else:
            break
    if at >= len(words) or any(grammar.is_in(word, "hedges") for word in adverbs):
        return None
    is_speaker = not subject.name and 0 < subject.end <= at
    verb, tense, at = _verb(words, at, helper, grammar, is_speaker=is_speaker)
    if not verb:
        return None
    end = at
    while end < len(words) and grammar.is_in(words[end].plain, "particles") and words[end].text.islower():
        end += 1
        if words[end - 1].plain == "to":
            break  # what follows is done, as in `to up my game`, or where to
    said = " ".join(word.plain for word in words[at - 1 : end])
    scarce = next((word for word in adverbs if grammar.is_in(word, "scarcely")), "")
    said = f"{scarce} {said}".strip()
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


def _is_had(words: list[ClauseWord], at: int, grammar: Grammar) -> bool:
    """Whether what follows `'d` makes it `had`: `I'd never seen`."""
    while at < len(words) and (grammar.is_adverb(words[at].plain) or words[at].plain in ("not", "never")):
        at += 1
    word = words[at].plain if at < len(words) else ""
    return word == "been" or (grammar.form(word, "participle") != "" and not grammar.form(word, "base"))


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
        is_last = not any(one.text[0].isalnum() for one in words[at + 1 :])
        if is_last and not is_speaker and word.endswith("ing"):
            return "be", "was" if past or helper == "been" else "is", at  # `one of my hobbies is rowing`
        if grammar.form(word, "ing") or (word.endswith("ing") and not grammar.is_in(word, "no_verbs")):
            return grammar.form(word, "ing") or word, "progressive" if not past else "past", at + 1
        if helper == "been" and word == "to":
            return "been", "perfect", at
        if plain := grammar.form(word, "participle") or (not is_speaker and _looks_past(words, at, grammar) and word):
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
    if not is_speaker and (plain := grammar.form(word, "ing")):
        return plain, "progressive", at + 1  # goes on from a clause before: `reading maps and drawing new ones`
    if _looks_past(words, at, grammar):
        return word, "past", at + 1
    if is_speaker and word.isalpha() and not grammar.is_in(word, "no_names") and not grammar.is_in(word, "particles"):
        return word, "past" if word.endswith("ed") else "present", at + 1  # a verb nobody listed
    return "", "", at
