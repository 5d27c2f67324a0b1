"""Texts drawn from the patterns of the tables, with a seed: what each row is there for."""

from __future__ import annotations

import random
import re
import string
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

WORD = string.ascii_letters + string.digits
CATEGORIES = {
    code.CATEGORY_DIGIT: string.digits,
    code.CATEGORY_WORD: WORD,
    code.CATEGORY_SPACE: " ",
    code.CATEGORY_NOT_SPACE: WORD,
}
NAMED = WORD + "-_.:/ "  # characters of which one is drawn where a pattern says which it is not
TRIES = 400


def draw(pattern: str, rng: random.Random) -> str:
    """A text that a pattern may match: what looks ahead or behind is not obeyed, so it must be tried."""
    return "".join(_each(parser.parse(pattern), rng))


def drawn(pattern: str, seed: str) -> re.Match[str]:
    """A text that a pattern matches whole, the same each time."""
    rng, shape = random.Random(seed), re.compile(pattern)
    for _ in range(TRIES):
        match = shape.fullmatch(draw(pattern, rng))
        if match is not None:
            return match
    raise AssertionError(f"nothing was drawn for {pattern}")


def _each(parsed: Any, rng: random.Random) -> list[str]:
    return [_character(kind, item, rng) for kind, item in parsed]


def _character(kind: Any, row: Any, rng: random.Random) -> str:
    if kind is code.LITERAL:
        return chr(row)
    if kind is code.NOT_LITERAL:
        return rng.choice([item for item in WORD if ord(item) != row])
    if kind is code.ANY:
        return rng.choice(WORD)
    if kind is code.IN:
        return _of_class(row, rng)
    if kind is code.BRANCH:
        return "".join(_each(rng.choice(row[1]), rng))
    if kind is code.SUBPATTERN:
        return "".join(_each(row[-1], rng))
    if kind in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
        least, most, inner = row
        few = least if kind is code.MIN_REPEAT else rng.randint(least, min(most, least + 4))
        return "".join("".join(_each(inner, rng)) for _ in range(few))
    return ""  # a look ahead or behind, a boundary, a group that is named again


def _of_class(value: Any, rng: random.Random) -> str:
    chars: set[str] = set()
    not_these = any(kind is code.NEGATE for kind, _ in value)
    for kind, what in value:
        if kind is code.LITERAL:
            chars.add(chr(what))
        elif kind is code.RANGE:
            chars |= {chr(number) for number in range(what[0], min(what[1], 0x7E) + 1)}
        elif kind is code.CATEGORY:
            chars |= set(CATEGORIES[what])
    return rng.choice(sorted(set(NAMED) - chars - {" "} if not_these else chars))
