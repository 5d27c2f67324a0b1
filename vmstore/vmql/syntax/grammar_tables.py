"""The tables of the grammar, as `tools/grammar.py` made them of grammar/vmql.lark, loaded once."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Final

import msgspec

SYMBOL: Final = "SYMBOL"
OTHER: Final = ("STOP", "END", "BAD")  # a `;`, the end of the text, what is no token


class GrammarRule(msgspec.Struct, frozen=True, array_like=True):
    """What a rule makes, of how many parts, by which function, from which of them.

    `built` is "" where the one part is passed on, and "[" for a list. A part is its place, or ~place
    where it is such a list, whose members are the parts.
    """

    name: str
    size: int
    built: str
    parts: tuple[int, ...]


class Tables(msgspec.Struct, frozen=True):
    """An LALR automaton: `states[state][symbol]` is the state that follows, or ~rule to reduce by."""

    fixed: dict[str, str]
    patterns: list[tuple[str, str]]
    ignored: list[str]
    rules: list[GrammarRule]
    end: int
    states: list[dict[str, int]]

    def scanner(self) -> re.Pattern[str]:
        """The expression that finds the next token; the group that matched says what it is.

        What is skipped is never given back, so a text of blanks costs no more than its length.
        """
        symbols = sorted((text for text in self.fixed if not text[0].isalpha()), key=len, reverse=True)
        groups = [
            *(f"(?P<{name}>{pattern})" for name, pattern in self.patterns),
            f"(?P<{SYMBOL}>{'|'.join(map(re.escape, symbols))})",
            *(f"(?P<{name}>{pattern})" for name, pattern in zip(OTHER, (";", r"\Z", r"[\s\S]"), strict=True)),
        ]
        return re.compile(f"(?:{'|'.join(self.ignored)})*+(?:{'|'.join(groups)})", re.IGNORECASE)


@functools.cache
def load() -> Tables:
    """The tables of this version's grammar."""
    return msgspec.json.decode(Path(__file__).with_name("tables.json").read_bytes(), type=Tables)
