"""What the parser can take at a place: keywords, kinds of names, kinds of values."""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple

from vmstore.vmql.syntax.build import spelled
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.grammar_tables import Tables, load
from vmstore.vmql.syntax.lalr import ParseFailure, run
from vmstore.vmql.syntax.nodes import Word

# By the rule that takes a name: what kind of name it is.
KINDS: Final = {
    "word": "column",
    "function": "function",
    "page_name": "page",
    "session_name": "session",
    "new_name": "new session",
    "user_name": "user",
    "column_name": "column name",
    "kind_name": "kind of link",
    "setting": "setting",
    "choice": "choice",
    "subject": "subject",
    "described": "relation",
}
SPOKEN: Final = {  # tokens that stand for words: _AS_OF for AS OF
    **{name: name[1:].replace("_", " ") for name, _ in load().patterns if name[0] == "_"},
    "_BETWEEN_MOMENTS": "BETWEEN",
    "_MINUS": "-",
}
VALUES: Final = {"INT": "number", "STRING": "text", "PARAM": "parameter"}
END: Final = "$END"


class Continuations(NamedTuple):
    """What can stand at a place: keywords and signs, kinds of names, kinds of values; whether it can end there."""

    keywords: tuple[str, ...]
    signs: tuple[str, ...]
    names: tuple[str, ...]
    values: tuple[str, ...]
    ends: bool

    @property
    def words(self) -> tuple[str, ...]:
        """All of it in English: names and values, then keywords and signs as they are written."""
        named = [PHRASED[kind] for kind in (*self.names, *self.values)]
        return (*named, *self.keywords, *self.signs, *(["the end"] if self.ends else []))

    @property
    def said(self) -> tuple[str, ...]:
        """The same for a message, which has room for few: words that come together go by one name."""
        left = dict.fromkeys(self.words)
        found = []
        for name, group in groups().items():
            if group <= left.keys():
                found.append(name)
                left = {word: None for word in left if word not in group and word != "BETWEEN"}
        named = [word for word in left if word in PHRASED.values()]
        # After any word a ( would make it a function, and a sign go on: true, and no help.
        unsaid = ("the end", "(", *OPERATORS) if self.ends else OPERATORS
        plain = [word for word in left if word not in named and word not in unsaid]
        return (*named, *found, *plain, *(["the end"] if self.ends else []))


OPERATORS: Final = ("+", "-", "*", "/")


@functools.cache
def relations() -> frozenset[str]:
    """The words that are relations: of those a statement can begin with, what the grammar calls their name."""
    tables = load()
    return frozenset(word for word, name in tables.fixed.items() if "relation_name" in _reduced_by(tables, [0], name))


@functools.cache
def groups() -> dict[str, frozenset[str]]:
    """Words that come together, by the one name that a message has for them."""
    return {
        "a statement": frozenset(following("", 0, 0).keywords) - {"EXPLAIN"},
        "a relation": relations() | {"SEARCH"},
        "a value": frozenset(("a number", "a text in quotes", "$name", "TRUE", "FALSE", "NULL")),
        "a comparison": COMPARING | {"IN", "IS", "NOT", "ENTERS", "LEAVES"},
        "a clause such as WHERE or LIMIT": frozenset(following("PAGES * ", 0, 8).keywords) - {"BETWEEN"},
        "a moment such as TURN 3": frozenset(following("PAGES SINCE ", 0, 12).keywords),
    }


COMPARING: Final = frozenset(("=", "!=", "<", "<=", ">", ">=", "LIKE", "MATCHES", "BETWEEN"))
PHRASES: Final = {  # of kinds that are more than `a page`
    "value": "a word",
    "new session": "a name for the new session",
    "column name": "a name for the column",
    "choice": "a setting of the session",
    "subject": "what to show",
    "text": "a text in quotes",
    "parameter": "$name",
}
PHRASED: Final = {kind: PHRASES.get(kind, f"a {kind}") for kind in ("value", *KINDS.values(), *VALUES.values())}


NOTHING: Final = Continuations((), (), (), (), False)


def following(text: str, place: int, until: int) -> Continuations:
    """What can stand at `until` of the statement that begins at a place; nothing where it is refused before."""
    try:
        run(text, place, until)
    except ParseFailure as stuck:
        return at(stuck.states, stuck.values) if stuck.token.kind == "HERE" else NOTHING
    except QueryError:
        return NOTHING
    raise AssertionError("a parser that is asked to stop does so")


def at(states: list[int], values: list[Any]) -> Continuations:
    """What can follow a stack of states and values."""
    tables = load()
    signs_by_name = {name: text for text, name in tables.fixed.items()}
    taken = [symbol for symbol in tables.states[states[-1]] if symbol.isupper() and takes(tables, states, symbol)]
    # A keyword that is here no more than a name spelled so is not offered.
    taken = [symbol for symbol in taken if _reduced_by(tables, states, symbol) != {"relation_word"}]
    fixed = [SPOKEN.get(symbol) or signs_by_name.get(symbol) for symbol in taken]
    texts = [text for text in fixed if text is not None]
    takers = _reduced_by(tables, states, "NAME") if "NAME" in taken else set()
    names = tuple(kind for rule, kind in KINDS.items() if rule in takers)
    if column_before(values) is not None:
        names = tuple("value" if name == "column" else name for name in names if name != "function")
    return Continuations(
        keywords=tuple(sorted({text for text in texts if text[0].isalpha()})),
        signs=tuple(text for text in texts if not text[0].isalpha()),
        names=names,
        values=tuple(kind for symbol, kind in VALUES.items() if symbol in taken),
        ends=END in taken,
    )


def takes(tables: Tables, states: list[int], symbol: str) -> bool:
    """Whether a symbol can be the next: whether it is shifted once the reductions it calls for are done."""
    return _shifted(tables, states, symbol) is not None


def _shifted(tables: Tables, states: list[int], symbol: str) -> int | None:
    """The state after a symbol is shifted, once the reductions it calls for are done; None where it cannot be."""
    stack = list(states)
    while (action := tables.states[stack[-1]].get(symbol)) is not None and action < 0:
        rule = tables.rules[~action]
        del stack[-rule.size :]
        stack.append(tables.states[stack[-1]][rule.name])
        if stack[-1] == tables.end:
            return tables.end
    return action


def _reduced_by(tables: Tables, states: list[int], symbol: str) -> set[str]:
    """The rules that would take a symbol next, "" among them where it can be more than the end of one."""
    after = _shifted(tables, states, symbol)
    actions = set() if after is None else set(tables.states[after].values())
    return {tables.rules[~action].name if action < 0 else "" for action in actions}


def column_before(values: list[Any]) -> str | None:
    """The column, or the setting, a value at this place would be compared with; None where it would not be."""
    spelled = [value.upper() if isinstance(value, str) else value for value in values]
    last = len(spelled) - 1
    if last >= 0 and isinstance(spelled[last], str) and spelled[last] in COMPARING:
        return _spelled(spelled, last - 1)
    if last >= 0 and spelled[last] in ("ENTERS", "LEAVES"):
        return "tier_after"
    if last >= 2 and spelled[last] == "AND" and spelled[last - 2] == "BETWEEN":
        return _spelled(spelled, last - 3)
    if last >= 0 and isinstance(spelled[last], str) and spelled[last] in ("(", ","):
        opened = next(
            (place for place in range(last, -1, -1) if isinstance(spelled[place], str) and spelled[place] == "("), 0
        )
        if opened and isinstance(spelled[opened - 1], str) and spelled[opened - 1] == "IN":
            return _spelled(spelled, opened - 2)
    return None


def _spelled(values: list[Any], place: int) -> str | None:
    if place > 0 and isinstance(values[place], str) and values[place] == "NOT":
        place -= 1
    return spelled(values[place]) if place >= 0 and isinstance(values[place], Word) else None


def asked(values: list[Any]) -> str | None:
    """The word a statement begins with, past EXPLAIN: PAGES, CONTEXT, HISTORY; None before there is one."""
    words = [value.upper() for value in values[:3] if isinstance(value, str)]
    return next((word for word in words if word not in ("EXPLAIN", "ANALYZE")), None)
