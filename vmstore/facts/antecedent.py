"""What `it`, `they`, `he` and `she` stand for: the thing or the people of the clause right before, in one utterance."""

from __future__ import annotations

import re
from typing import NamedTuple

from vmstore.facts.grammar import Grammar
from vmstore.facts.predicate import ClausePredicate, ClauseSubject

THING_WORDS_MAX = 8
_GOES_ON = re.compile(r",| (?:to|that|which|who|because|when|where|and|or|but|so|last|next|this|yesterday|in \d)\b|\"")
_DETERMINED = re.compile(r"(?:(?P<own>my|our)|an?|the|this|that|these|those|some|(?-i:[A-Z])[\w-]+)\b", re.IGNORECASE)
_POINTING = re.compile(r"(?P<word>it|them|him|her)\b(?! (?:up|all)\b)")


class Antecedents(NamedTuple):
    """Who or what a pronoun of the next clause stands for: one thing, several things or people, and one person."""

    it: ClauseSubject | None = None
    they: ClauseSubject | None = None
    he: ClauseSubject | None = None

    def of(self, word: str, grammar: Grammar) -> ClauseSubject | None:
        """What a pronoun stands for; None where that is not known."""
        if grammar.is_in(word, "it"):
            return self.it
        if word in ("they", "them", "these", "those"):
            return self.they
        return self.he if grammar.is_in(word, "he") or word in ("him", "her") else None


def named_in(read_as: ClausePredicate, what: str, before: Antecedents, grammar: Grammar) -> Antecedents:
    """What pronouns after a clause stand for: its object where it names one, else its subject, else what they did."""
    after = before
    if read_as.subject.name and read_as.subject.name != "-":
        after = _with(after, read_as.subject, grammar)
    thing = _thing(what, grammar)
    return after if thing is None or read_as.subject.name else _with(after, thing, grammar)


def in_its_place(what: str, before: Antecedents, grammar: Grammar) -> str:
    """An object with what its pronoun stands for in its place; as it is where that is not known."""
    match = _POINTING.match(what)
    meant = before.of(match["word"], grammar) if match else None
    if match is None or meant is None:
        return what
    return f"{'my ' if meant.is_own else ''}{meant.name}{what[match.end() :]}"


def _with(known: Antecedents, subject: ClauseSubject, grammar: Grammar) -> Antecedents:
    words = subject.name.split()
    is_person = any(grammar.is_in(word.lower(), "relatives") for word in words)
    is_several = " and " in subject.name or (words[-1].endswith("s") and not words[-1].endswith(("ss", "us", "is")))
    subject = subject._replace(end=0)
    if is_several:
        return known._replace(they=subject)
    if is_person:
        return known._replace(he=subject, they=subject)
    is_name = subject.is_named and len(words) <= 2 and subject.name[:1].isupper()  # of a person, or of a thing
    return known._replace(it=subject, he=subject, they=subject) if is_name else known._replace(it=subject)


def _thing(what: str, grammar: Grammar) -> ClauseSubject | None:
    """The thing that an object names, without what is said of it."""
    match = _DETERMINED.match(what)
    if match is None and not grammar.form(what.partition(" ")[0].lower(), "ing"):
        return None
    name = _GOES_ON.split(what, maxsplit=1)[0].strip(" .!")
    is_own = match is not None and match["own"] is not None
    name = name.partition(" ")[2] if is_own else name
    return ClauseSubject(name, is_own, 0) if name and len(name.split()) <= THING_WORDS_MAX else None
