"""The canonical text of a statement: one way to write each, which parses to the same nodes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, Final

from vmstore.vmql.syntax.build import REFERENCE_SIGNS, spelled
from vmstore.vmql.syntax.grammar_tables import load
from vmstore.vmql.syntax.nodes import Node, Param, SelectItem, Subquery, Tail, Value, Word
from vmstore.vmql.syntax.rule import ANYTHING, CLAUSES, RULES, RulePart, SyntaxRule, pieces


def show(node: Node, within: int = ANYTHING) -> str:
    """A node as text on one line, in parentheses where it binds no more than `within`.

    Of a statement, `parse(show(statement)) == statement`.
    """
    if (plain := PLAIN.get(type(node))) is not None:
        return plain(node)
    rule = _rule(node)
    text = _text(rule, node)
    return f"({text})" if rule.rank <= within else text


def _rule(node: Node) -> SyntaxRule:
    """The rule that makes a node: that of its class whose constants the node has."""
    for rule in _rules(type(node)):
        for field, value in rule.constants.items():
            if getattr(node, field) != value:
                break
        else:
            return rule
    raise AssertionError(node)


@functools.cache
def _rules(kind: type) -> list[SyntaxRule]:
    rules = (rule for rule in (*RULES, *CLAUSES) if rule.node is kind)
    return sorted(rules, key=lambda rule: -len(rule.constants))


def _text(rule: SyntaxRule, node: Node) -> str:
    texts: list[str] = []
    for stretch, spare in _pieces(rule.text):
        if spare and _empty(getattr(node, spare)):
            continue
        for piece in stretch:
            texts.append(piece if isinstance(piece, str) else _part(piece, node, rule.within))
    return "".join(texts)


@functools.cache
def _pieces(text: str) -> list[tuple[list[str | RulePart], str]]:
    """The text of a rule in stretches, each with the field without which it is left out, or ""."""
    stretches = [pieces(stretch) for stretch in text.replace("…", "{…}").replace("]", "[").split("[")]
    return [
        (stretch, next(part.field for part in stretch if isinstance(part, RulePart)) if number % 2 else "")
        for number, stretch in enumerate(stretches)
    ]


def _part(part: RulePart, node: Node, within: int) -> str:
    if part.field == "…":
        return _clauses(node)
    value = getattr(node, part.field)
    if part.joint:
        text = part.joint.join([show(each, within) for each in value])
        # A statement in parentheses is a list by itself.
        return f"({text})" if part.form == "p" and [*map(type, value)] != [Subquery] else text
    if isinstance(value, str):
        return alias(value) if part.form == "a" else value
    return show(value, within - (part.form == "s"))


def _empty(value: object) -> bool:
    return value is None or (isinstance(value, tuple) and not value)


# ---- clauses


def _clauses(node: Any) -> str:
    """The clauses of a statement, each after a blank, in the order in which they are declared."""
    texts: dict[str, str] = {}
    kind: type[Node] = type(node)
    for rule, fields, inner in _clauses_of(kind):
        holder = node.tail if inner else node
        if fields[0] not in texts and _has(holder, rule, fields):
            text = _text(rule, holder) if rule.node is None else show(getattr(holder, rule.fills))
            texts |= dict.fromkeys(fields, "")
            texts[fields[0]] = f" {text}"
    if "by" in texts and _ends_in_order(node):
        texts["by"] = texts.pop("by")
    return "".join(texts.values())


@functools.cache
def _clauses_of(kind: type[Node]) -> list[tuple[SyntaxRule, list[str], bool]]:
    """The clauses a statement of a kind can have, the fields of each, and whether they are its tail's."""
    own = kind.__struct_fields__
    tail = Tail.__struct_fields__ if "tail" in own else ()
    filled = ((rule, [rule.fills] if rule.node else [part.field for part in rule.parts()]) for rule in CLAUSES)
    named = [(rule, fields or [*rule.constants]) for rule, fields in filled]
    return [(rule, fields, fields[0] not in own) for rule, fields in named if fields[0] in own or fields[0] in tail]


def _has(holder: Node, rule: SyntaxRule, fields: list[str]) -> bool:
    """Whether a statement or its tail says what a clause says."""
    value = getattr(holder, fields[0])
    if _empty(value):
        return False
    if rule.node is not None:
        return type(value) is rule.node
    return all(getattr(holder, field) == constant for field, constant in rule.constants.items())


def _ends_in_order(node: Node) -> bool:
    """Whether what groups must come last, since ORDER BY would be read after a column `order`."""
    columns: tuple[SelectItem, ...] = getattr(node, "columns", ())
    return bool(columns) and f" {show(columns[-1])}".lower().endswith(" order")


# ---- values and names


def _value(node: Value) -> str:
    value = node.value
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).upper()
    if isinstance(value, str):
        return quoted(value)
    text = repr(value)
    # A number with an exponent and no point would be a name.
    return text.replace("e", ".0e", 1) if "e" in text and "." not in text else text


def _param(node: Param) -> str:
    return f"${node.name}"


PLAIN: Final[dict[type, Callable[[Any], str]]] = {Value: _value, Param: _param, Word: spelled}


def quoted(text: str) -> str:
    """A text in quotes, as a statement holds it."""
    return "'" + text.replace("'", "''") + "'"


def alias(name: str) -> str:
    """The name of a column as a statement gives it."""
    return name if _pattern("NAME").fullmatch(name) and name.upper() != "OF" else quoted(name)


def named(name: str) -> str:
    """A page, session or user as a statement names it: bare where that is the same, else in quotes."""
    reference = not REFERENCE_SIGNS.isdisjoint(name) and _pattern("REFERENCE").fullmatch(name)
    return name if _pattern("NAME").fullmatch(name) or reference else quoted(name)


@functools.cache
def _pattern(token: str) -> re.Pattern[str]:
    return re.compile(dict(load().patterns)[token], re.IGNORECASE)
