"""Traits: what a text is like beside its words, as bits of one number.

They are what a question can want of its answer: an amount where it asks how many, a name where it asks who, a
time where it asks when; and what kind of text it is: one that asks, an error, code. An index keeps the number with
the text, so that no text is read again to be scored. The words are English; signs and capitals are of any language.
"""

from __future__ import annotations

import re
from enum import IntFlag
from typing import Final

VERSION: Final = 1
CHARS_MAX: Final = 4_096  # of a text that are looked at: what stands further down says little about its kind


class Trait(IntFlag):
    """What a text may be like."""

    QUESTION = 1  # it ends with a question mark, a caption after it set aside
    ASKS = 2  # it has one
    NUMBER = 4
    NAME = 8  # a capital in the middle of a sentence
    TITLE = 16  # something in quotes
    TIME = 32
    ERROR = 64
    CODE = 128
    SELF = 256  # its speaker speaks of themself


MARKS: Final = "?？؟\u037e"  # the last one is Greek
_MARKS: Final = tuple(MARKS)
_NUMBERS: Final = (
    "one two three four five six seven eight nine ten eleven twelve dozen once twice thrice couple few several "
    "hundred hundreds thousand thousands million"
)
_TIMES: Final = (
    "yesterday today tonight tomorrow ago recently lately since morning evening night weekend week weeks month months "
    "year years day days monday tuesday wednesday thursday friday saturday sunday january february march april june "
    "july august september october november december summer winter spring autumn last next"
)
_SELF: Final = "i me my mine we us our ours i'm i've i'd i'll we're we've we'd we'll"
_ERRORS: Final = "error errors exception traceback failed failure fatal panic enoent eacces denied refused timeout"
_BITS: Final[dict[str, int]] = {}
"""By word the traits of a text that has it."""
for _trait, _some in ((Trait.NUMBER, _NUMBERS), (Trait.TIME, _TIMES), (Trait.SELF, _SELF), (Trait.ERROR, _ERRORS)):
    for _word in _some.split():
        _BITS[_word] = _BITS.get(_word, 0) | int(_trait)
_KNOWN: Final = frozenset(_BITS)
_WORDS: Final = re.compile(r"[a-z]+(?:'[a-z]+)?")
_DIGIT: Final = re.compile(r"\d")
_NAME: Final = re.compile(r" [^\W\d_a-z](?<=[^\W\d_A-Z] .|[,;:] .)[^\W\d_A-Z]")
_TITLE: Final = re.compile('["“][^"”\n]{2,60}["”]')
_CODE_SIGNS: Final = ("=>", "->", "==", "::")
_CALL: Final = re.compile(r"\w\(\)")
_JOINED: Final = re.compile(r"\w_\w")
_NAMED_ERROR: Final = re.compile(r"[a-z](?:Error|Exception)\b")
# As plain numbers, which are added up for each text that is indexed.
_QUESTION, _ASKS, _NUMBER, _NAMED = int(Trait.QUESTION), int(Trait.ASKS), int(Trait.NUMBER), int(Trait.NAME)
_TITLED, _ERROR, _CODE = int(Trait.TITLE), int(Trait.ERROR), int(Trait.CODE)


def traits(text: str) -> int:
    """The traits of a text as the bits of a number."""
    if len(text) > CHARS_MAX:
        end, text = text[-256:], text[:CHARS_MAX]
    else:
        end = text
    found = text_traits(text) & ~_QUESTION | run_traits(text)
    return found | _QUESTION if _ends(end).endswith(_MARKS) else found


def text_traits(text: str) -> int:
    """Those traits of a short text that are not the traits of its runs without white space."""
    found = 0
    if "?" in text or "？" in text or "؟" in text:
        found |= _ASKS
    if _ends(text).endswith(_MARKS):
        found |= _QUESTION
    if _NAME.search(text):
        found |= _NAMED
    if ('"' in text or "“" in text) and _TITLE.search(text):
        found |= _TITLED
    if "\n" in text and ("{\n" in text or "}\n" in text or ";\n" in text):
        found |= _CODE
    return found


def run_traits(text: str) -> int:
    """Those traits that a text has where a run of it without white space has them."""
    found = 0
    if text.isascii() and text.isalpha():
        found = _BITS.get(text.lower(), 0)
        return found | _ERROR if _NAMED_ERROR.search(text) else found
    if _DIGIT.search(text):
        found |= _NUMBER
    if _has_code(text):
        found |= _CODE
    if ("Error" in text or "Exception" in text) and _NAMED_ERROR.search(text):
        found |= _ERROR
    for word in _KNOWN.intersection(_WORDS.findall(text.lower().replace("’", "'"))):
        found |= _BITS[word]
    return found


def _has_code(text: str) -> bool:
    """Whether a text has what only code has; what is quickly seen not to be there is not looked for."""
    if "_" in text and _JOINED.search(text):
        return True
    return any(sign in text for sign in _CODE_SIGNS) or ("()" in text and _CALL.search(text) is not None)


def _ends(text: str) -> str:
    """A text without what follows its last words: room, and a caption in brackets on a line of its own."""
    text = text.rstrip()
    return text[: text.rindex("\n[")].rstrip() if text.endswith("]") and "\n[" in text else text
