"""Verbs: which say the same (`runs` is asked for where `jogs` was stored), and how they read of somebody else."""

from __future__ import annotations

from functools import lru_cache

from vmstore.core.text.stems import stem
from vmstore.relevance.irregular import FORMS

GROUPS = (
    "like love enjoy adore prefer favor favour fancy appreciate",
    "dislike hate detest avoid loathe mind",
    "live reside stay dwell move relocate settle",
    "work serve job employ",
    "run jog exercise train sprint",
    "walk hike stroll trek",
    "use utilize employ adopt choose pick select decide switch migrate",
    "buy purchase get acquire order obtain",
    "own have possess keep hold",
    "want wish hope plan intend aim aspire mean",
    "start begin launch join take",
    "finish complete end graduate conclude",
    "stop quit leave drop abandon cancel retire",
    "visit travel go attend see tour",
    "make build create write craft produce develop design",
    "learn study practice practise read take",
    "teach instruct mentor coach tutor",
    "eat cook dine bake",
    "marry wed date engage",
    "pay spend cost earn save owe",
    "suffer hurt ache diagnose catch",
    "think believe consider find feel opine",
    "call name know rename",
    "meet befriend know",
    "give donate gift present offer",
    "play perform compete",
    "adopt foster raise",
)


_OF_OTHERS = {"have": "has", "do": "does", "am": "is", "are": "is", "don't": "doesn't", "haven't": "hasn't"}
_KEPT = """is was has had does did can could cannot can't will would won't wouldn't didn't never always not used
put set cut hit let cost quit hurt shut read"""
_AS_THEY_ARE = frozenset(_KEPT.split())


def of_another(verb: str) -> str:
    """A verb as its speaker said it, told of somebody else: `live in` is `lives in`, `trying to` is `is trying to`."""
    first, space, rest = verb.partition(" ")
    word = first.casefold()
    past = word in FORMS or (word.endswith("ed") and not word.endswith("eed"))
    if word in _OF_OTHERS:
        first = _OF_OTHERS[word]
    elif word.endswith("ing") and len(word) > 5:
        first = f"is {first}"
    elif not past and word not in _AS_THEY_ARE and word.isalpha() and (word[-1:] != "s" or word.endswith("ss")):
        if word.endswith("y") and word[-2:-1] not in "aeiou":
            first = f"{first[:-1]}ies"
        else:
            first += "es" if word.endswith(("ss", "x", "z", "ch", "sh", "o")) else "s"
    return first + space + rest


def _stem(word: str) -> str:
    """A verb's stem, of an irregular form its plain one's."""
    plain = FORMS.get(word.casefold(), word.casefold())
    return stem(plain) or plain


@lru_cache(maxsize=1)
def _groups() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in GROUPS:
        stems = {_stem(word) for word in line.split()}
        for each in stems:
            found.setdefault(each, set()).update(stems)
    return {each: frozenset(like) for each, like in found.items()}


def expanded(verb: str) -> frozenset[str]:
    """The stems of a verb and of those that say the same."""
    stems = {_stem(word) for word in verb.split()}
    return frozenset(stems.union(*(_groups().get(one, frozenset()) for one in stems)))


def is_like(verb: str, asked: frozenset[str]) -> bool:
    """Whether a stored verb, of one word or several, is among the stems asked for."""
    return any(_stem(word) in asked for word in verb.split())


def stem_of(words: str) -> str:
    """The stem of the verb in some words, which stands first."""
    return _stem(words.split(maxsplit=1)[0]) if words.strip() else ""
