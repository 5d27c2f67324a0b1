"""Where a namespace keeps its text index, whether this process can read one, and by which rules texts are read."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec

from vmstore.relevance.words import Analyzer
from vmstore.search.mixture import Mixture
from vmstore.views.reads.system_entries import DEFAULT, Languages

TEXT = "text"
MARK = "at.json"
_MADE: list[Analyzer] = []


@cache
def analyzer(language: str = DEFAULT) -> Analyzer:
    """The rules by which this process takes texts and queries of a language apart; it remembers words it met."""
    rules = Analyzer(language)
    _MADE.append(rules)
    return rules


@cache
def mixed(languages: tuple[str, ...]) -> Analyzer:
    """The rules by which texts of some languages are asked together; the first of them stands for the store."""
    if len(languages) == 1:
        return analyzer(languages[0])
    return Mixture([analyzer(language) for language in languages])


def rules_of(languages: Languages, sessions: Iterable[int]) -> Analyzer:
    """The rules by which the texts of some sessions are asked together."""
    if not languages.sessions:
        return analyzer(languages.default)
    spoken = {languages.of(session) for session in sessions} or {languages.default}
    return mixed(tuple(sorted(spoken, key=lambda language: (language != languages.default, language))))


def version_of(languages: Languages) -> str:
    """Names the rules of all texts; an index made by others is made again."""
    others = "".join(f"; {name} by {analyzer(language).version}" for name, language in languages.stated)
    return analyzer(languages.default).version + others


def forget_words() -> None:
    """Forgets the words that were met in any language: something that was said was erased."""
    for rules in _MADE:
        rules.forget()


def installed() -> bool:
    """Whether the extra `search` is."""
    return find_spec("numpy") is not None
