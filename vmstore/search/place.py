"""Where a namespace keeps its text index, whether this process can read one, and by which rules texts are read."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from vmstore.relevance.words import Analyzer

TEXT = "text"
MARK = "at.json"
_MADE: list[Analyzer] = []


@cache
def analyzer(language: str = "en") -> Analyzer:
    """The rules by which this process takes texts and queries of a language apart; it remembers words it met."""
    rules = Analyzer(language)
    _MADE.append(rules)
    return rules


def forget_words() -> None:
    """Forgets the words that were met in any language: something that was said was erased."""
    for rules in _MADE:
        rules.forget()


def installed() -> bool:
    """Whether the extra `search` is."""
    return find_spec("numpy") is not None
