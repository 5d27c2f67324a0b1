"""Topics of texts: terms, topics, and similarity of two texts.

Nothing here was learned anywhere: a term weighs by how often it stands in the text. Numbers are whole,
similarities in parts per million, and order comes from the text alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from math import isqrt
from typing import NamedTuple

from vmstore.core.tags import TOPIC
from vmstore.core.text.tokenizer import words
from vmstore.vm.recall.text_pieces import bounded, without_controls

TOPICS_MAX = 8
TERMS_MAX = 4_000  # the terms of a text that are compared; what comes later in it is not
TERM_CHARS_MAX = 30
PPM = 1_000_000


class Profile(NamedTuple):
    """The terms of a text by weight, each with the word it stands for, in the order they first stand in it."""

    weights: dict[str, int]
    shown: dict[str, str]
    sum: int  # of the weights
    norm: int  # the sum of their squares


def profile(text: str) -> Profile:
    """The profile texts are compared by, a long one by its two ends; cached for the last few."""
    return _profile("\n".join(bounded(without_controls(text))).strip())


@lru_cache(maxsize=16)
def _profile(text: str) -> Profile:
    found: dict[str, dict[str, int]] = {}
    for word, times in Counter(words(text)).items():
        term = _term(word)
        for form in (word,) if term else _pairs(word):
            forms = found.get(term or form)
            if forms is None:
                if len(found) == TERMS_MAX:
                    continue
                forms = found[term or form] = {}
            forms[form] = forms.get(form, 0) + times
    # A word said four times weighs three, not four: what is repeated is no longer news.
    weights = {term: sum(forms.values()).bit_length() for term, forms in found.items()}
    shown = {term: next(iter(forms)) if len(forms) == 1 else _usual(forms) for term, forms in found.items()}
    values = weights.values()
    return Profile(weights, shown, sum(values), sum(weight * weight for weight in values))


def _usual(forms: dict[str, int]) -> str:
    """The form in which a word is used most often, of those the shortest."""
    return max(forms, key=lambda form: (forms[form], -len(form)))


def closeness(asked: Profile, of: Profile) -> tuple[int, int]:
    """Closeness of a text to a question, in parts per million: coverage and similarity.

    Coverage is how much of what is asked it has; similarity how alike the two are: 0 where they share
    no term, a million where all weigh the same.
    """
    asks, has = asked.weights, of.weights
    covered = shared = 0
    for term in asks.keys() & has.keys():
        weight = asks[term]
        covered += weight
        shared += weight * has[term]
    if not shared:
        return 0, 0
    return covered * PPM // asked.sum, isqrt(shared * shared * PPM * PPM // (asked.norm * of.norm))


def topics(text: str, topics_max: int = TOPICS_MAX) -> tuple[str, ...]:
    """The topics of a text, the weightiest first; of a page this is level 3."""
    return leading([profile(text)], topics_max)


def tagged(labels: bytes) -> bytes:
    """The weightiest topic that a page's labels name, as they write it; empty where they name none."""
    _, found, rest = labels.partition(_TAGGED)
    return rest.partition(b'"')[0] if found else b""


def leading(profiles: Iterable[Profile], topics_max: int = TOPICS_MAX) -> tuple[str, ...]:
    """The topics of several texts together, as of a turn's pages; equal ones in the order they were said."""
    weights: dict[str, int] = {}
    shown: dict[str, str] = {}
    for profile_of in profiles:
        for term, weight in profile_of.weights.items():
            before = weights.get(term)
            if before is None:
                word = shown[term] = profile_of.shown[term]
                before = min(len(word) // 2, 6)
            weights[term] = before + 8 * weight
    named = [term for term, word in shown.items() if len(word) > 1 and not word.isdigit()]  # a number alone names none
    named.sort(key=weights.__getitem__, reverse=True)  # the sort is stable: equal weights stay in order of the text
    return tuple(shown[term] for term in named[:topics_max])


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """A word without its English endings, so that its forms count as one; other words stay as they are."""
    if len(word) <= 3 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("xes", "ches", "shes", "sses")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending, chars_min in (("ing", 6), ("ed", 5)):
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(word) >= chars_min and _VOWEL.search(rest) and not word.endswith("eed"):
            word = rest[:-1] if len(rest) > 3 and rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


@lru_cache(maxsize=1 << 14)
def _term(word: str) -> str:
    """The term of a word; empty where it tells no topic, or is written without spaces."""
    if not 1 < len(word) <= TERM_CHARS_MAX or word in STOP_WORDS:
        return ""
    return "" if (_HASH.fullmatch(word) if word.isascii() else _UNSPACED.search(word)) else stem(word)


def _pairs(word: str) -> Iterable[str]:
    """Pairs of characters of writing without spaces; none for other words."""
    if word.isascii() or not _UNSPACED.search(word):
        return ()
    return (word[at : at + 2] for at in range(max(1, len(word) - 1)))


_TAGGED = f'"{TOPIC}'.encode()
_VOWEL = re.compile("[aeiouy]")
_HASH = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")

_SMALL = """
a about above after again against ain all also although am among an and another any anybody anyone anything are aren
around as at away back be because been before being below between both but by came can cannot could couldn did didn
do does doesn doing don done down during each either else enough etc even ever every everyone everything few first
for from further get gets getting give given gives go goes going gone got had hadn has hasn have haven having he her
here hers herself him himself his how however i if in indeed instead into is isn it its itself just keep kind last
later least less let lets like ll lot made make makes making many may maybe me might mine more most much must mustn
my myself need needs neither never new next no nobody none nor not nothing now of off often ok okay on once one ones
only onto or other others otherwise our ours ourselves out over own per perhaps please put quite rather re really
right s same say says see seems seen several shall she should shouldn since so some somebody someone something
sometimes soon still such sure t take taken takes than thank thanks that the their theirs them themselves then there
therefore these they thing things this those though through thus to together too took toward towards two under
unless until up upon us use used uses using ve very via want wants was wasn way we well went were weren what
whatever when where whether which while who whoever whole whom whose why will with within without won would wouldn
yes yet you your yours yourself yourselves
"""
# Words about talking and deciding, which name no subject.
_TALK = """
ago agree agreed agreement ask asked asking believe choose chose chosen decide decided decides decision decisions
discuss discussed discussing earlier exactly guess hello help hey hi idea know known look looking looks mean means
mention mentioned perfect previous previously question recall recommend remember remind said sounds suggest talk
talked talking tell think thought told try trying understand
"""
# What stands in every program and every address.
_PROGRAMS = """
args bool com const def elif false float foo function http https import int isinstance kwargs len null org print
return self str string true undefined var void www
"""
STOP_WORDS = frozenset(f"{_SMALL} {_TALK} {_PROGRAMS}".split())
