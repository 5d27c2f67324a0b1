"""What is built of the rules of statements and their clauses."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, get_args

from vmstore.vmql.syntax import nodes as s
from vmstore.vmql.syntax.build_expr import MAKERS, Maker, makes, spelled
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.nodes import Span, Value

__all__ = ["MAKERS", "gathered"]


class Clause(NamedTuple):
    """One clause of a statement: the field it fills, its value, how it is called, where it stands.

    A clause that fills several has no field, and a dict for its value.
    """

    field: str
    value: Any
    name: str
    span: Span


TAIL: Final = frozenset(s.Tail.__struct_fields__)


def gathered(clauses: tuple[Clause, ...]) -> dict[str, Any]:
    """The fields the clauses of a statement fill, those of its tail under `tail`."""
    fields: dict[str, Any] = {}
    tail: dict[str, Any] = {}
    by: dict[str, str] = {}
    spans: list[Span] = []
    for clause in clauses:
        given = {clause.field: clause.value} if clause.field else clause.value
        into = tail if TAIL.issuperset(given) else fields
        if not by.keys().isdisjoint(given):
            raise _twice(clause, next(by[field] for field in given if field in by))
        by |= dict.fromkeys(given, clause.name)
        into.update(given)
        if into is tail:
            spans.append(clause.span)
    if tail:
        fields["tail"] = s.Tail(**tail, span=Span(spans[0].start, spans[-1].end))
    return fields


def _twice(clause: Clause, before: str) -> QueryError:
    hint = "join conditions with AND" if clause.field == "where" else "keep one of them"
    message = f"{before} and {clause.name} cannot stand together" if before != clause.name else f"{before} stands twice"
    return QueryError(message, code="clause-twice", span=clause.span, hint=hint)


# ---- statements


@makes("start")
def _start(span: Span, statement: s.Statement) -> s.Statement:
    return statement


@makes("explain")
def _explain(span: Span, statement: s.Statement) -> s.Explain:
    return s.Explain(statement=statement, span=span)


@makes("explain_analyze")
def _explain_analyze(span: Span, statement: s.Statement) -> s.Explain:
    return s.Explain(statement=statement, analyze=True, span=span)


@makes("relation_name", "comparison")
def _keyword(span: Span, text: str) -> str:
    return text.upper()


@makes("relation")
def _relation(span: Span, name: str, *parts: Any) -> s.Relation:
    columns, clauses = _shown(parts)
    return s.Relation(name=name, columns=columns, span=span, **gathered(clauses))


@makes("context")
def _context(span: Span, *parts: Any) -> s.ContextAt:
    columns, clauses = _shown(parts)
    return s.ContextAt(columns=columns, span=span, **gathered(clauses))


@makes("watch")
def _watch(span: Span, *parts: Any) -> s.Watch:
    columns, clauses = _shown(parts)
    return s.Watch(columns=columns, span=span, **gathered(clauses))


@makes("search")
def _search(span: Span, query: Value | s.Param, *parts: Any) -> s.Search:
    columns, clauses = _shown(parts)
    return s.Search(query=query, columns=columns, span=span, **gathered(clauses))


@makes("diff_context")
def _diff_context(span: Span, before: s.Moment, after: s.Moment, *clauses: Clause) -> s.DiffContext:
    return s.DiffContext(before=before, after=after, span=span, **gathered(clauses))


@makes("diff_session")
def _diff_session(span: Span, before: Any, after: Any, *clauses: Clause) -> s.DiffSession:
    return s.DiffSession(before=before, after=after, span=span, **gathered(clauses))


@makes("history")
def _history(span: Span, page: s.PageName, *clauses: Clause) -> s.OfPage:
    return s.OfPage(what="history", page=page, span=span, **gathered(clauses))


@makes("residencies")
def _residencies(span: Span, page: s.PageName, *clauses: Clause) -> s.OfPage:
    return s.OfPage(what="residencies", page=page, span=span, **gathered(clauses))


@makes("versions")
def _versions(span: Span, page: s.PageName, *clauses: Clause) -> s.OfPage:
    return s.OfPage(what="versions", page=page, span=span, **gathered(clauses))


@makes("sources")
def _sources(span: Span, page: s.PageName, *clauses: Clause) -> s.Lineage:
    return s.Lineage(up=True, page=page, span=span, **gathered(clauses))


@makes("derived")
def _derived(span: Span, page: s.PageName, *clauses: Clause) -> s.Lineage:
    return s.Lineage(up=False, page=page, span=span, **gathered(clauses))


@makes("why")
def _why(span: Span, page: s.PageName, *clauses: Clause, negated: bool = False) -> s.Why:
    fields = gathered(clauses)
    tail = fields.pop("tail", s.Tail())
    return s.Why(page=page, negated=negated, scope=tail.scope, span=span, **fields)


@makes("why_not")
def _why_not(span: Span, page: s.PageName, *clauses: Clause) -> s.Why:
    return _why(span, page, *clauses, negated=True)


@makes("verify")
def _verify(span: Span, session: Any = None) -> s.Verify:
    return s.Verify(session=session, span=span)


@makes("fork")
def _fork(span: Span, *parts: Any) -> s.Fork:
    *clauses, name = parts
    fields = {"session": None, "moment": None} | gathered(tuple(clauses))
    return s.Fork(name=name, span=span, **fields)


@makes("replay")
def _replay(span: Span, *clauses: Clause) -> s.Replay:
    fields = {"session": None} | gathered(clauses)
    return s.Replay(span=span, **fields)


@makes("given")
def _given(span: Span, name: s.Word, value: Value | s.Param | s.Word) -> s.Given:
    return s.Given(name=spelled(name).lower(), value=value, span=span)


@makes("set")
def _set(span: Span, name: s.Word, value: Any) -> s.Set:
    return s.Set(name=spelled(name).lower(), value=value, span=span)


@makes("show")
def _show(span: Span, what: s.Word) -> s.Show:
    return s.Show(what=spelled(what).lower(), span=span)


@makes("describe")
def _describe(span: Span, relation: s.Word) -> s.Describe:
    return s.Describe(relation=spelled(relation).upper(), span=span)


def _shown(parts: tuple[Any, ...]) -> tuple[tuple[s.Column, ...], tuple[Any, ...]]:
    """The columns, where the first of the parts are some, and the clauses."""
    if parts and not isinstance(parts[0], Clause):
        return parts[0], parts[1:]
    return (), parts


# ---- clauses


def _clause(field: str, name: str) -> Maker:
    """The maker of a clause that is a field and its one value."""

    def make(span: Span, value: Any) -> Clause:
        return Clause(field, value, name, span)

    return make


for rule, filled, called in (
    ("as_of", "as_of", "AS OF"),
    ("since", "since", "SINCE"),
    ("until", "until", "UNTIL"),
    ("where", "where", "WHERE"),
    ("at", "moment", "AT"),
    ("depth", "depth", "DEPTH"),
    ("fork_from", "session", "SESSION"),
    ("replay_from", "session", "SESSION"),
    ("watch_from", "cursor", "FROM"),
):
    MAKERS[rule] = _clause(filled, called)


@makes("between_moments")
def _between_moments(span: Span, since: s.Moment, until: s.Moment) -> Clause:
    return Clause("", {"since": since, "until": until, "between": True}, "BETWEEN", span)


@makes("by")
def _by(span: Span, *words: s.Word) -> Clause:
    return Clause("by", words, "BY", span)


@makes("via")
def _via(span: Span, *kinds: s.Word | Value) -> Clause:
    return Clause("kinds", kinds, "VIA", span)


@makes("replay_with")
def _replay_with(span: Span, *given: s.Given) -> Clause:
    return Clause("given", given, "WITH", span)


@makes("order_by")
def _order_by(span: Span, *keys: s.Order) -> Clause:
    return Clause("order", keys, "ORDER BY", span)


@makes("limit")
def _limit(span: Span, limit: Any, after: Any = None) -> Clause:
    given = {"limit": limit} if after is None else {"limit": limit, "after": after}
    return Clause("", given, "LIMIT", span)


@makes("in_session")
def _in_session(span: Span, name: Any) -> Clause:
    return Clause("scope", s.InSession(name=name, span=span), "IN SESSION", span)


@makes("across_sessions")
def _across_sessions(span: Span, user: Any = None) -> Clause:
    return Clause("scope", s.AcrossSessions(user=user, span=span), "ACROSS SESSIONS", span)


@makes("render")
def _render(span: Span) -> Clause:
    return Clause("form", "render", "RENDER", span)


@makes("messages")
def _messages(span: Span) -> Clause:
    return Clause("form", "messages", "MESSAGES", span)


def _moment(unit: s.Unit) -> Maker:
    def make(span: Span, value: Value | s.Param | None = None) -> s.Moment:
        return s.Moment(unit=unit, value=value, span=span)

    return make


MAKERS.update({unit: _moment(unit) for unit in get_args(s.Unit)})


@makes("columns")
def _columns(span: Span, *columns: s.Column) -> tuple[s.Column, ...]:
    return columns


@makes("column")
def _column(span: Span, expr: s.Expr, name: s.Word | Value | None = None) -> s.Column:
    given = None if name is None else spelled(name) if isinstance(name, s.Word) else str(name.value)
    return s.Column(expr=expr, name=given, span=span)


@makes("ascending")
def _ascending(span: Span, expr: s.Expr) -> s.Order:
    return s.Order(expr=expr, span=span)


@makes("descending")
def _descending(span: Span, expr: s.Expr) -> s.Order:
    return s.Order(expr=expr, descending=True, span=span)
