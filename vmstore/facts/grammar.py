"""The word classes of a language whose clauses are subject, verb and object: what the reading of a clause goes by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from vmstore.relevance.irregular import FORMS

_SIBILANT = ("s", "x", "z", "ch", "sh", "o")
_VOWELS = frozenset("aeiou")


class Grammar(NamedTuple):
    """Words by class, in small letters. `forms` has of each form of a known verb its plain form and which it is.

    The forms are `base`, `third` (he lives), `past`, `participle` and `ing`; one word may be several.
    """

    forms: Mapping[str, tuple[str, frozenset[str]]]
    classes: Mapping[str, frozenset[str]]
    patterns: Mapping[str, re.Pattern[str]]

    def is_in(self, word: str, name: str) -> bool:
        """Whether a word is of a class."""
        return word in self.classes[name]

    def is_adverb(self, word: str) -> bool:
        """Whether a word says how or how often, and may stand between who acts and the verb."""
        known = self.classes["adverbs"]
        return word in known or (word.endswith("ly") and len(word) > 4 and word not in self.classes["no_adverbs"])

    def form(self, word: str, *kinds: str) -> str:
        """The plain form of a verb that stands in one of some forms; empty where the word is no such verb."""
        plain, known = self.forms.get(word, ("", frozenset[str]()))
        return plain if known.intersection(kinds) else ""


def grammar_of(written: Mapping[str, Any]) -> Grammar:
    """The grammar that a pattern file declares."""
    lists: Mapping[str, str] = written["classes"]
    classes = {name: frozenset(words.split()) for name, words in lists.items()}
    forms: dict[str, tuple[str, set[str]]] = {}
    for verb in lists["verbs"].split():
        for form, kind in _regular(verb):
            forms.setdefault(form, (verb, set()))[1].add(kind)
    for form, verb in {**FORMS, **dict(pair.split(":") for pair in written["irregular"].split())}.items():
        if verb in classes["verbs"]:
            forms.setdefault(form, (verb, set()))[1].update(("past", "participle"))
    for form, _, verb in (pair.partition(":") for pair in written["thirds"].split()):
        forms.setdefault(form, (verb, set()))[1].add("third")
    patterns = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in written["patterns"].items()}
    return Grammar({form: (verb, frozenset(kinds)) for form, (verb, kinds) in forms.items()}, classes, patterns)


def _regular(verb: str) -> list[tuple[str, str]]:
    """The forms of an English verb by the rules of spelling."""
    stem = verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else verb
    third = verb + "es" if verb.endswith(_SIBILANT) else verb + "s"
    past = verb + "d" if verb.endswith("e") else verb + "ed"
    if len(verb) > 2 and verb[-1] == "y" and verb[-2] not in _VOWELS:
        third, past = verb[:-1] + "ies", verb[:-1] + "ied"
    found = [(verb, "base"), (third, "third"), (past, "past"), (past, "participle"), (stem + "ing", "ing")]
    if len(verb) > 2 and verb[-1] not in "aeiouwxy" and verb[-2] in _VOWELS and verb[-3] not in _VOWELS:
        doubled = verb + verb[-1]  # stop, stopped
        found += [(doubled + "ed", "past"), (doubled + "ed", "participle"), (doubled + "ing", "ing")]
    return found
