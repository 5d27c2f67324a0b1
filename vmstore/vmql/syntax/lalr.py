"""The LALR parser: driven by the tables, with a lexer that asks it which words are keywords here."""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple

from vmstore.vmql.syntax.build import MAKERS
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.grammar_tables import load
from vmstore.vmql.syntax.nodes import SourceSpan, Statement

NESTING_MAX: Final = 64  # parentheses in parentheses; what walks over nodes may then call itself


class Token(NamedTuple):
    """A word or sign of the text: its terminal, its text, where it stands."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> SourceSpan:
        """Where it stands."""
        return SourceSpan(self.start, self.end)


class ParseFailure(Exception):  # noqa: N818  a turn in the parser, not an error to show
    """The parser cannot take a token: the token, where the one before stands, the states and values on its stack."""

    def __init__(self, token: Token, before: SourceSpan, states: list[int], values: list[Any]) -> None:
        super().__init__(token)
        self.token = token
        self.before = before
        self.states = states
        self.values = values


class Automaton(NamedTuple):
    """What the loop below turns on: the tables, with the makers of their rules found."""

    match: Any
    fixed: dict[str, str]
    states: list[dict[str, int]]
    rules: list[tuple[str, int, Any, tuple[int, ...]]]
    end: int


@functools.cache
def automaton() -> Automaton:
    """The automaton of the grammar; made once a process."""
    tables = load()
    makers = {"": None, "[": list, **MAKERS}
    rules = [(rule.name, rule.size, makers[rule.built], rule.parts) for rule in tables.rules]
    return Automaton(tables.scanner().match, tables.fixed, tables.states, rules, tables.end)


def run(text: str, place: int = 0, until: int | None = None) -> tuple[Statement, int, int]:
    """The statement from a place on, where it ends, and where the `;` after it ends.

    With `until` the parser stops before the token that begins there: Stuck then says where it stands.
    """
    match, fixed, table, rules, accept = automaton()
    states = [0]
    values: list[Any] = []
    starts: list[int] = []
    before, end, depth = -1, place, 0
    while True:
        found = match(text, end)
        kind = found.lastgroup
        start, stop = found.span(kind)
        word = text[start:stop]
        actions = table[states[-1]]
        if kind == "NAME":
            keyword = fixed.get(word.upper())
            if keyword is not None and (keyword in actions or "NAME" not in actions):
                kind = keyword
        elif kind[0] == "_" and kind not in actions and "NAME" in actions:
            kind, word = "NAME", word.split()[0]
            stop = start + len(word)
        elif kind == "SYMBOL":
            kind = fixed[word]
            depth += (kind == "LPAR") - (kind == "RPAR")
            if depth > NESTING_MAX:
                message = f"parentheses stand in parentheses {NESTING_MAX} deep at most; write the condition flatter"
                raise QueryError(message, code="too-deep", span=SourceSpan(start, stop))
        elif kind == "STOP" or kind == "END":
            kind = "$END"
        if until is not None and start >= until:
            kind = "HERE"
        action = actions.get(kind)
        while action is not None and action < 0:
            _reduce(rules[~action], states, values, starts, end)
            action = table[states[-1]][rules[~action][0]]
            if action == accept:
                statement: Statement = values[0]
                return statement, end, stop
            states.append(action)
            action = table[action].get(kind)
        if action is None:
            raise ParseFailure(Token(kind, word, start, stop), SourceSpan(before, end), states, values)
        states.append(action)
        values.append(word)
        starts.append(start)
        before, end = start, stop


def _reduce(
    rule: tuple[str, int, Any, tuple[int, ...]], states: list[int], values: list[Any], starts: list[int], end: int
) -> None:
    """Replaces the parts of a rule by what is made of them; what follows them does not end later than `end`."""
    _, size, make, parts = rule
    del states[-size:]
    if make is None and size == 1:
        return
    taken = values[-size:]
    start = starts[-size]
    del values[-size:], starts[-size:]
    if make is None:
        made = taken[parts[0]]
    elif make is list:
        # A list grows in place: a copy for every member would cost the square of its length.
        made = taken[0] if parts[0] < 0 else []
        made += [taken[part] for part in parts if part >= 0]
    else:
        given: list[Any] = []
        for part in parts:
            if part >= 0:
                given.append(taken[part])
            else:
                given += taken[~part]
        made = make(SourceSpan(start, end), *given)
    values.append(made)
    starts.append(start)
