"""The rules of a language: patterns over one clause, read from a file of its own."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from vmstore.core.facts import FactType
from vmstore.core.page import Standing
from vmstore.facts.grammar import Grammar, grammar_of

LANGUAGES = ("en", "de", "fr")
DEFAULT = "en"


class FactRule(NamedTuple):
    """A pattern over a clause and what a match states; `verb`, `subject`, `attribute` and `ends` may quote its groups.

    `ends` is what is no more by it.
    """

    name: str
    pattern: re.Pattern[str]
    type: FactType
    status: Standing
    verb: str
    subject: str
    attribute: str
    one: bool
    strength: int  # in parts per thousand
    ends: str


class RuleSet(NamedTuple):
    """The rules of a language, in order, with their version; and its grammar, for the clauses that no rule fits."""

    language: str
    version: int
    rules: tuple[FactRule, ...]
    guards: dict[str, re.Pattern[str]]
    grammar: Grammar | None = None

    @property
    def method(self) -> str:
        """What found a fact by these rules."""
        return f"patterns-{self.language}@{self.version}"


@lru_cache(maxsize=len(LANGUAGES))
def rules_of(language: str) -> RuleSet:
    """The rules of a language."""
    assert language in LANGUAGES, f"patterns there are of {LANGUAGES}"
    text = Path(__file__).parent.joinpath("patterns", f"{language}.toml").read_text(encoding="utf-8")
    written = tomllib.loads(text)
    words: dict[str, str] = written["words"]
    guards = {name: _pattern(pattern, words) for name, pattern in written["guards"].items()}
    rules = tuple(_rule(one, words) for one in written["rule"])
    grammar = grammar_of(written["grammar"]) if "grammar" in written else None
    return RuleSet(written["language"], written["version"], rules, guards, grammar)


def _rule(written: dict[str, Any], words: dict[str, str]) -> FactRule:
    return FactRule(
        written["name"],
        _pattern(written["pattern"], words),
        FactType[written["type"].upper()],
        Standing[written.get("status", "active").upper()],
        written.get("verb", "{verb}"),
        written.get("subject", "{self}"),
        written.get("attribute", ""),
        written.get("one", False),
        written.get("strength", 0),
        written.get("ends", ""),
    )


def _pattern(pattern: str, words: dict[str, str]) -> re.Pattern[str]:
    for name, alternatives in words.items():
        pattern = pattern.replace(f"{{{name}}}", alternatives)
    return re.compile(pattern, re.IGNORECASE)
