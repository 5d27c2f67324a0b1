"""The canonical text of a statement: one way to write each, which parses to the same nodes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import msgspec

from vmstore.vmql.syntax import nodes as s
from vmstore.vmql.syntax.build_expr import REFERENCE_SIGNS
from vmstore.vmql.syntax.grammar_tables import load

Name: TypeAlias = s.Value | s.Param | s.Word

WRITTEN: Final[dict[s.Unit, str]] = {"logged_time": "LOGGED TIME"}
OF_PAGE: Final = {"history": "HISTORY", "residencies": "RESIDENCIES", "versions": "VERSIONS"}


def show(statement: s.Statement) -> str:
    """A statement as text on one line; `parse(show(statement)) == statement`."""
    return WRITERS[type(statement)](statement)


def _words(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _relation(node: s.RelationQuery) -> str:
    return _tailed(_words(node.name, "*" if node.every else _columns(node.columns)), node.tail)


def _context(node: s.ContextAt) -> str:
    form = "" if node.form == "pages" else node.form.upper()
    return _tailed(_words("CONTEXT", _columns(node.columns), _at(node.moment), form), node.tail)


def _diff_context(node: s.DiffContext) -> str:
    return _words("DIFF CONTEXT", moment(node.before), "TO", moment(node.after), _tail(node.tail))


def _diff_session(node: s.DiffSession) -> str:
    return _words("DIFF SESSION", term(node.before), "TO", term(node.after), _at(node.moment), _tail(node.tail))


def _of_page(node: s.OfPage) -> str:
    return _words(OF_PAGE[node.what], "OF", term(node.page), _tail(node.tail))


def _lineage(node: s.LineageQuery) -> str:
    head = "SOURCES OF" if node.up else "DERIVED FROM"
    depth = "" if node.depth is None else f"DEPTH {term(node.depth)}"
    kinds = f"VIA {_listed(node.kinds)}" if node.kinds else ""
    return _words(head, term(node.page), depth, kinds, _tail(node.tail))


def _path(node: s.PathQuery) -> str:
    depth = "" if node.depth is None else f"DEPTH {term(node.depth)}"
    kinds = f"VIA {_listed(node.kinds)}" if node.kinds else ""
    return _words("PATH FROM", term(node.source), "TO", term(node.target), depth, kinds, _tail(node.tail))


def _why(node: s.WhyQuery) -> str:
    asked = "WHY NOT" if node.negated else "WHY"
    return _words(asked, term(node.page), "IN CONTEXT", _at(node.moment), _scope(node.scope))


def _search(node: s.SearchQuery) -> str:
    within = "" if node.within is None else f"WITHIN {term(node.within)} TOKENS"
    return _tailed(_words("SEARCH", term(node.query), "*" if node.every else _columns(node.columns), within), node.tail)


def _explain(node: s.Explain) -> str:
    return _words("EXPLAIN", "ANALYZE" if node.analyze else "", show(node.statement))


def _verify(node: s.Verify) -> str:
    return _words("VERIFY", _session(node.session))


def _fork(node: s.Fork) -> str:
    return _words("FORK", _session(node.session), _at(node.moment), "AS", term(node.name))


def _replay(node: s.Replay) -> str:
    settings = ", ".join(f"{given.name} = {term(given.value)}" for given in node.given)
    return _words("REPLAY", _session(node.session), f"WITH {settings}" if settings else "")


def _watch(node: s.Watch) -> str:
    cursor = "" if node.cursor is None else f"FROM {term(node.cursor)}"
    return _words(_tailed(_words("WATCH MUTATIONS", _columns(node.columns)), node.tail), cursor)


def _set(node: s.Set) -> str:
    value = moment(node.value) if isinstance(node.value, s.MomentNode) else term(node.value)
    return f"SET {node.name} = {value}"


def _show(node: s.Show) -> str:
    return f"SHOW {node.what}"


def _describe(node: s.Describe) -> str:
    return f"DESCRIBE {node.relation}"


WRITERS: Final[dict[type, Callable[[Any], str]]] = {
    s.RelationQuery: _relation,
    s.ContextAt: _context,
    s.DiffContext: _diff_context,
    s.DiffSession: _diff_session,
    s.OfPage: _of_page,
    s.LineageQuery: _lineage,
    s.PathQuery: _path,
    s.WhyQuery: _why,
    s.SearchQuery: _search,
    s.Explain: _explain,
    s.Verify: _verify,
    s.Fork: _fork,
    s.Replay: _replay,
    s.Watch: _watch,
    s.Set: _set,
    s.Show: _show,
    s.Describe: _describe,
}

# ---- clauses


def _tailed(head: str, tail: s.Tail) -> str:
    """A statement's head and its clauses; after a column `order` what groups it comes last, not to read ORDER BY."""
    if not head.lower().endswith(" order"):
        return _words(head, _tail(tail))
    return _words(head, _tail(msgspec.structs.replace(tail, by=())), _by(tail))


def _by(tail: s.Tail) -> str:
    return f"BY {_listed(tail.by)}" if tail.by else ""


def _tail(tail: s.Tail) -> str:
    if tail.between:
        assert tail.since is not None and tail.until is not None, "BETWEEN has both ends"
        bounds = f"BETWEEN {moment(tail.since)} AND {moment(tail.until)}"
    else:
        bounds = _words(_after("SINCE", tail.since), _after("UNTIL", tail.until))
    limit = "" if tail.limit is None else f"LIMIT {term(tail.limit)}"
    return _words(
        _scope(tail.scope),
        _after("AS OF", tail.as_of),
        bounds,
        "" if tail.valid_at is None else f"VALID AT {term(tail.valid_at)}",
        "ALL" if tail.ever else "",
        "" if tail.where is None else f"WHERE {condition(tail.where)}",
        _by(tail),
        "" if tail.per is None else f"PER {tail.per.upper()}",
        "" if tail.having is None else f"HAVING {condition(tail.having)}",
        f"ORDER BY {', '.join(map(_order, tail.order))}" if tail.order else "",
        limit,
        "" if tail.after is None else f"AFTER {term(tail.after)}",
    )


def _after(keyword: str, at: s.MomentNode | None) -> str:
    return "" if at is None else f"{keyword} {moment(at)}"


def _at(at: s.MomentNode | None) -> str:
    return _after("AT", at)


def moment(at: s.MomentNode) -> str:
    """A moment as text: `TURN 42`, `LOGGED TIME '2026-11-20'`, `HEAD`."""
    unit = WRITTEN.get(at.unit, at.unit.upper())
    return unit if at.value is None else f"{unit} {term(at.value)}"


def _scope(scope: s.Scope | None) -> str:
    if scope is None:
        return ""
    if isinstance(scope, s.InSession):
        return f"IN SESSION {term(scope.name)}"
    return "ACROSS SESSIONS" if scope.user is None else f"ACROSS SESSIONS OF USER {term(scope.user)}"


def _session(name: Name | None) -> str:
    return "" if name is None else f"SESSION {term(name)}"


def _columns(columns: tuple[s.SelectItem, ...]) -> str:
    return ", ".join(map(_column, columns))


def _column(column: s.SelectItem) -> str:
    return term(column.expr) if column.name is None else f"{term(column.expr)} AS {_alias(column.name)}"


def _alias(name: str) -> str:
    return name if plain().fullmatch(name) and name.upper() != "OF" else quoted(name)


def _order(key: s.Order) -> str:
    return f"{term(key.expr)} DESC" if key.descending else term(key.expr)


# ---- conditions and values


def condition(node: s.Expr) -> str:
    """A condition as text, with parentheses only where it would mean another thing without."""
    if isinstance(node, s.Or):
        return " OR ".join(_inner(part, s.Or) for part in node.parts)
    if isinstance(node, s.And):
        return " AND ".join(_inner(part, s.Or, s.And) for part in node.parts)
    if isinstance(node, s.Not):
        return f"NOT {_inner(node.operand, s.Or, s.And, s.Not)}"
    return _test(node)


def _inner(node: s.Expr, *wider: type) -> str:
    return f"({condition(node)})" if isinstance(node, wider) else condition(node)


def _test(node: s.Expr) -> str:
    match node:
        case s.Compare():
            return f"{term(node.left)} {node.op} {term(node.right)}"
        case s.In():
            return f"{term(node.operand)} {_not(node)}IN {_items(node.items)}"
        case s.Has():
            return f"{term(node.item)} {_not(node)}IN {term(node.among)}"
        case s.Between():
            return f"{term(node.operand)} {_not(node)}BETWEEN {term(node.low)} AND {term(node.high)}"
        case s.IsNull():
            return f"{term(node.operand)} IS {_not(node)}NULL"
        case s.ContextMatches():
            return f"CONTEXT MATCHES {term(node.pattern)}"
        case _:
            return term(node)


def _not(node: s.In | s.Has | s.Between | s.IsNull) -> str:
    return "NOT " if node.negated else ""


def _items(items: tuple[s.Expr, ...]) -> str:
    return term(items[0]) if len(items) == 1 and isinstance(items[0], s.Subquery) else f"({_listed(items)})"


def _listed(items: Iterable[s.Expr]) -> str:
    return ", ".join(map(term, items))


def term(node: s.Expr) -> str:
    """A value, a parameter, a word or an aggregate as text."""
    match node:
        case s.Value():
            return _value(node.value)
        case s.Param():
            return f"${node.name}"
        case s.Word():
            return ".".join(node.path)
        case s.Apply():
            given = "*" if node.star else _listed(node.args)
            return f"{node.name}({'DISTINCT ' if node.distinct else ''}{given})"
        case s.Arithmetic():
            left, right = _factor(node.left, node.op, first=True), _factor(node.right, node.op, first=False)
            return f"{left} {node.op} {right}"
        case s.Subquery():
            return f"({show(node.statement)})"
        case _:
            return f"({condition(node)})"


def _factor(node: s.Expr, op: str, *, first: bool) -> str:
    """One side of an operation, in parentheses where it would be taken apart without them."""
    if not isinstance(node, s.Arithmetic):
        return term(node)
    apart = op in "*/" and (node.op in "+-" or not first)
    return f"({term(node)})" if apart or (op in "+-" and not first and node.op in "+-") else term(node)


def _value(value: float | str | bool | None) -> str:
    if value is None or isinstance(value, bool):
        return "NULL" if value is None else str(value).upper()
    if isinstance(value, str):
        return quoted(value)
    text = repr(value)
    # A number with an exponent and no point would be a name.
    return text.replace("e", ".0e", 1) if "e" in text and "." not in text else text


def quoted(text: str) -> str:
    """A text in quotes, as a statement holds it."""
    return "'" + text.replace("'", "''") + "'"


@functools.cache
def plain() -> re.Pattern[str]:
    """What a name must be to stand without quotes."""
    return re.compile(dict(load().patterns)["NAME"], re.IGNORECASE)


def named(name: str) -> str:
    """A page, session or user as a statement names it: bare where that is the same, else in quotes."""
    bare = plain().fullmatch(name) or (not REFERENCE_SIGNS.isdisjoint(name) and _reference().fullmatch(name))
    return name if bare else quoted(name)


@functools.cache
def _reference() -> re.Pattern[str]:
    return re.compile(dict(load().patterns)["REFERENCE"], re.IGNORECASE)
