"""The terms of a text: its words without their English endings, so that the forms of a word are found as one.

The endings are those of Porter (1980): an ending goes, or becomes a shorter one, where enough of a word stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from vmstore.core.text.tokenizer import words

WORD_CHARS_MAX = 40  # what is longer is a digest or an encoded picture, and nobody searches for it by its words
SHORT = 3  # words up to so many letters have no ending to lose


def terms(text: str) -> list[str]:
    """The terms of a text in order, as often as they stand in it; stop words are left out."""
    return [term for word in _split(text) if (term := stem(word))]


def _split(text: str) -> Iterator[str]:
    """The words of a text; a name in camel case counts by its parts too, writing without spaces by pairs of signs."""
    for word in words(text):
        if word.isascii() or not _UNSPACED.search(word):
            yield word
        else:
            yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
    for name in _CAMEL.findall(text):
        yield from (part.casefold() for part in _HUMP.split(name))


@lru_cache(maxsize=1 << 15)
def stem(word: str) -> str:
    """A word in small letters without its English endings; nothing of a stop word."""
    if word in STOP_WORDS or len(word) > WORD_CHARS_MAX:
        return ""
    word = _IRREGULAR.get(word, word)
    if len(word) <= SHORT or word in _WHOLE or not word.isascii() or not word.isalpha():
        return word
    word = _inflected(_plural(word))
    if word.endswith("y") and len(word) > SHORT and word[-2] not in "aeiou":
        word = word[:-1] + "i"
    for endings in _DERIVED:
        word = _replaced(word, endings, 1)
    return _final(_replaced(word, _LAST, 2))


def _plural(word: str) -> str:
    if word.endswith("sses") or word.endswith("ies"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _inflected(word: str) -> str:
    """A word without `ed` or `ing`, ending as it does where it stands alone."""
    if word.endswith("eed"):
        return word[:-1] if _syllables(word[:-3]) else word
    for ending in ("ing", "ed"):
        rest = word[: -len(ending)]
        if word.endswith(ending) and _VOWEL.search(rest):
            if rest.endswith(("at", "bl", "iz")):
                return rest + "e"
            if rest[-1:] == rest[-2:-1] and rest[-1] not in "aeioulsz":
                return rest[:-1]
            return rest + "e" if _syllables(rest) == 1 and _closed(rest) else rest
    return word


def _replaced(word: str, endings: dict[str, str], least: int) -> str:
    """A word with its longest ending of some replaced, where what stays before it has so many syllables."""
    for length in range(min(7, len(word) - 1), 1, -1):
        other = endings.get(word[-length:])
        if other is not None:
            rest = word[:-length]
            if word[-length:] == "ion" and rest[-1:] not in ("s", "t"):
                return word
            return rest + other if _syllables(rest) >= least else word
    return word


def _final(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        count = _syllables(rest)
        return rest if count > 1 or (count == 1 and not _closed(rest)) else word
    return word[:-1] if word.endswith("ll") and _syllables(word[:-1]) > 1 else word


def _syllables(part: str) -> int:
    """How often a vowel is followed by a consonant: Porter's measure."""
    return len(_VOWELS_THEN_CONSONANT.findall(part))


def _closed(part: str) -> bool:
    """Whether it ends in consonant, vowel, consonant, as `hop` does, which stands for `hope` too."""
    return _CLOSED.search(part) is not None


_VOWEL = re.compile("[aeiouy]")
_VOWELS_THEN_CONSONANT = re.compile("(?:[aeiou]|(?<=[^aeiou])y)(?:[^aeiouy]|(?<=[aeiou])y)")
_CLOSED = re.compile("(?:^|[^aeiou])[aeiouy][^aeiouwxy]$")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0e7f]")
_CAMEL = re.compile(r"\b[A-Za-z]{1,40}?[a-z][A-Z][A-Za-z]{1,40}\b")
_HUMP = re.compile("(?<=[a-z])(?=[A-Z])")


def _table(text: str) -> dict[str, str]:
    return {old: new for old, _, new in (pair.partition(":") for pair in text.split())}


_DERIVED = (
    _table(
        "ational:ate tional:tion enci:ence anci:ance izer:ize abli:able alli:al entli:ent eli:e ousli:ous"
        " ization:ize ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous aliti:al iviti:ive biliti:ble"
    ),
    _table("icate:ic ative: alize:al iciti:ic ical:ic ful: ness:"),
)
_LAST = _table("al: ance: ence: er: ic: able: ible: ant: ement: ment: ent: ion: ou: ism: ate: iti: ous: ive: ize:")
_IRREGULAR = _table(
    "chose:choose chosen:choose kept:keep built:build ran:run sent:send wrote:write written:write stored:store"
    " found:find began:begin broke:break broken:break held:hold spoke:speak paid:pay sold:sell bought:buy"
)
assert all(2 <= len(ending) <= 7 for endings in (*_DERIVED, _LAST) for ending in endings), (
    "`_replaced` looks at the last 7 letters of a word, down to 2"
)
_WHOLE = frozenset(("news", "important", "importance"))  # what they seem to come of is another word
_STOPPED = """
a about after again all also am an and any are aren as at be because been before being but by can cannot could
couldn did didn do does doesn don done for from get go going had has hasn have haven having he her here him his how i
if in into is isn it its itself just let ll me might mine more most must my need no nor not now of off ok okay on once
only or other our ours out over own please re s same shall she should shouldn so some such t than that the their them
then there these they this those through to too up us ve very was wasn we well were weren what when where which while
who whom why will with won would wouldn yes yet you your yours
agreed ago decide decided decides decision decisions earlier previously recall remember remind said say tell think told
want wanted see seen once
"""
STOP_WORDS = frozenset(_STOPPED.split())
assert STOP_WORDS.isdisjoint(_IRREGULAR), "a stop word is left out before its regular form would be looked up"
