"""Characters as search reads them: one form of each, and which of them are signs, marks and pictures.

A sign stands for itself, since its writing sets no spaces between words: Chinese, Japanese, Korean, Thai, Lao,
Burmese and Khmer. A mark belongs to the letter before it. Accents are marks that search passes over.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import chain
from typing import NamedTuple

SHORT = 512  # characters; the sorting of so many marks costs nothing
MARKS_MAX = 30  # of one letter; more would be an attack on the sort, and Unicode's own stream format has no more

SIGNS = (
    "\u0e01-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u109f\u1780-\u17d3\u1100-\u11ff\u3005\u3007"
    "\u3040-\u30fa\u30fc-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
PICTURES = "\u20a0-\u20cf\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
PAIRED = "\U0001f1e6-\U0001f1ff"  # two of these letters are a flag
_SKIN = "\U0001f3fb-\U0001f3ff"

# Beyond the first 65,536 characters each range of an expression costs time for every sign that is compared:
# there whole stretches of writings that have marks count as such, letters and all.
_MARKS_BEYOND = "\U00010a01-\U00011fff\U00016af0-\U00016f92\U0001e000-\U0001e94a\U000e0100-\U000e01ef"

_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u20d0-\u20ff\ufe00-\ufe0f]+")
UNSEEN = "\u00ad\u200c-\u200f\u202a-\u202e\u2060-\u2069\ufeff" + _SKIN
APOSTROPHES = "'\u2018\u2019\u02bc\u00b4"
_UNSEEN = re.compile(f"[{UNSEEN}]+")
# What printed English has beside ASCII, and what other writings have for an apostrophe or a hyphen.
_PRINTED = {
    "\u2018": "'",
    "\u2019": "'",
    "\u02bc": "'",
    "\u00b4": "'",
    "\u2010": "-",
    "\u2011": "-",
    "\u2013": " ",
    "\u2014": " ",
    "\u201c": '"',
    "\u201d": '"',
    "\u201e": '"',
    "\u2026": " ",
}
# Letters with a stroke or tail, which is no accent that could be taken off.
_LETTERS = str.maketrans("\u00f8\u0142\u0111\u0127\u0131\u00f0\u03c2", "oldhid\u03c3", "") | {
    0xE6: "ae",
    0x153: "oe",
    0xFE: "th",
    0x14B: "n",
}


class Classes(NamedTuple):
    """What the expressions over all of Unicode are made of: the marks, a run too long, one sign with its marks."""

    marks: str
    mark: re.Pattern[str]
    too_many: re.Pattern[str]
    sign: re.Pattern[str]
    signs: re.Pattern[str]


@cache
def classes() -> Classes:
    """Reads the marks from the tables of Python, the first time a text is not plain English."""
    marks = "".join(_ranges()) + _MARKS_BEYOND
    return Classes(
        marks,
        re.compile(f"[{marks}]"),
        re.compile(f"([{marks}]{{{MARKS_MAX}}})[{marks}]+"),
        re.compile(f"([{SIGNS}][{marks}]*+)"),
        re.compile(f"((?:[{SIGNS}][{marks}]*+)++)"),
    )


# Where marks can stand below 0xFE30: between these are the signs of East Asia, Hangul and what is private.
_WITH_MARKS = (range(0x300, 0x3100), range(0xA600, 0xAC00), range(0xFB00, 0xFE30))


def _ranges() -> list[str]:
    """The marks as ranges of an expression."""
    found: list[list[int]] = []
    for code in chain.from_iterable(_WITH_MARKS):
        if unicodedata.category(chr(code))[0] == "M":
            if found and found[-1][1] == code - 1:
                found[-1][1] = code
            else:
                found.append([code, code])
    return [f"{chr(first)}-{chr(last)}" for first, last in found]


def settled(text: str) -> str:
    """A text with one form of each character: composed, full width as half, plain apostrophes, nothing unseen."""
    for sign, plain_sign in _PRINTED.items():
        text = text.replace(sign, plain_sign)
    if text.isascii():
        return text
    text = _UNSEEN.sub("", text)
    if len(text) > SHORT:
        text = classes().too_many.sub(r"\1", text)
    return unicodedata.normalize("NFKC", text)


def plain(word: str) -> str:
    """A word without accents, its other marks and its case kept."""
    if word.isascii():
        return word
    apart = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", _ACCENTS.sub("", apart)).translate(_LETTERS)


def folded(word: str) -> str:
    """A word in small letters without accents."""
    return word.lower() if word.isascii() else plain(plain(word).casefold())
