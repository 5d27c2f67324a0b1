"""What is built of the rules of statements and their clauses."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, get_args

from vmstore.vmql.syntax import nodes as s
from vmstore.vmql.syntax.build_expr import MAKERS, Maker, makes, spelled
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.nodes import SourceSpan, Value

__all__ = ["MAKERS", "gathered"]


class Clause(NamedTuple):
    """One clause of a statement: the field it fills, its value, how it is called, where it stands.

    A clause that fills several has no field, and a dict for its value.
    """

    field: str
    value: Any
    name: str
    span: SourceSpan


TAIL: Final = frozenset(s.Tail.__struct_fields__)


def gathered(clauses: tuple[Clause, ...]) -> dict[str, Any]:
    """The fields the clauses of a statement fill, those of its tail under `tail`."""
    fields: dict[str, Any] = {}
    tail: dict[str, Any] = {}
    by: dict[str, str] = {}
    spans: list[SourceSpan] = []
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
        fields["tail"] = s.Tail(**tail, span=SourceSpan(spans[0].start, spans[-1].end))
    return fields


def _twice(clause: Clause, before: str) -> QueryError:
    hint = "join conditions with AND" if clause.field == "where" else "keep one of them"
    message = f"{before} and {clause.name} cannot stand together" if before != clause.name else f"{before} stands twice"
    return QueryError(message, code="clause-twice", span=clause.span, hint=hint)


# ---- statements


@makes("start")
def _start(span: SourceSpan, statement: s.Statement) -> s.Statement:
    return statement


@makes("explain")
def _explain(span: SourceSpan, statement: s.Statement) -> s.Explain:
    return s.Explain(statement=statement, span=span)


@makes("explain_analyze")
def _explain_analyze(span: SourceSpan, statement: s.Statement) -> s.Explain:
    return s.Explain(statement=statement, analyze=True, span=span)


@makes("relation_name", "comparison")
def _keyword(span: SourceSpan, text: str) -> str:
    return text.upper()


@makes("relation")
def _relation(span: SourceSpan, name: str, *parts: Any) -> s.RelationQuery:
    columns, clauses = _shown(parts)
    return s.RelationQuery(name=name, columns=columns, span=span, **gathered(clauses))


@makes("context")
def _context(span: SourceSpan, *parts: Any) -> s.ContextAt:
    columns, clauses = _shown(parts)
    return s.ContextAt(columns=columns, span=span, **gathered(clauses))


@makes("watch")
def _watch(span: SourceSpan, *parts: Any) -> s.Watch:
    columns, clauses = _shown(parts)
    return s.Watch(columns=columns, span=span, **gathered(clauses))


@makes("search")
def _search(span: SourceSpan, query: Value | s.Param, *parts: Any) -> s.SearchQuery:
    columns, clauses = _shown(parts)
    return s.SearchQuery(query=query, columns=columns, span=span, **gathered(clauses))


@makes("diff_context")
def _diff_context(span: SourceSpan, before: s.MomentNode, after: s.MomentNode, *clauses: Clause) -> s.DiffContext:
    return s.DiffContext(before=before, after=after, span=span, **gathered(clauses))


@makes("diff_session")
def _diff_session(span: SourceSpan, before: Any, after: Any, *clauses: Clause) -> s.DiffSession:
    return s.DiffSession(before=before, after=after, span=span, **gathered(clauses))


@makes("history")
def _history(span: SourceSpan, page: s.PageName, *clauses: Clause) -> s.OfPage:
    return s.OfPage(what="history", page=page, span=span, **gathered(clauses))


@makes("residencies")
def _residencies(span: SourceSpan, page: s.PageName, *clauses: Clause) -> s.OfPage:
    return s.OfPage(what="residencies", page=page, span=span, **gathered(clauses))


@makes("versions")
def _versions(span: SourceSpan, page: s.PageName, *clauses: Clause) -> s.OfPage:
    return s.OfPage(what="versions", page=page, span=span, **gathered(clauses))


@makes("sources")
def _sources(span: SourceSpan, page: s.PageName, *clauses: Clause) -> s.LineageQuery:
    return s.LineageQuery(up=True, page=page, span=span, **gathered(clauses))


@makes("derived")
def _derived(span: SourceSpan, page: s.PageName, *clauses: Clause) -> s.LineageQuery:
    return s.LineageQuery(up=False, page=page, span=span, **gathered(clauses))


@makes("path")
def _path(span: SourceSpan, source: s.PageName, target: s.PageName, *clauses: Clause) -> s.PathQuery:
    return s.PathQuery(source=source, target=target, span=span, **gathered(clauses))


@makes("why")
def _why(span: SourceSpan, page: s.PageName, *clauses: Clause, negated: bool = False) -> s.WhyQuery:
    fields = gathered(clauses)
    tail = fields.pop("tail", s.Tail())
    return s.WhyQuery(page=page, negated=negated, scope=tail.scope, span=span, **fields)


@makes("why_not")
def _why_not(span: SourceSpan, page: s.PageName, *clauses: Clause) -> s.WhyQuery:
    return _why(span, page, *clauses, negated=True)


@makes("verify")
def _verify(span: SourceSpan, session: Any = None) -> s.Verify:
    return s.Verify(session=session, span=span)


@makes("fork")
def _fork(span: SourceSpan, *parts: Any) -> s.Fork:
    *clauses, name = parts
    fields = {"session": None, "moment": None} | gathered(tuple(clauses))
    return s.Fork(name=name, span=span, **fields)


@makes("replay")
def _replay(span: SourceSpan, *clauses: Clause) -> s.Replay:
    fields = {"session": None} | gathered(clauses)
    return s.Replay(span=span, **fields)


@makes("given")
def _given(span: SourceSpan, name: s.Word, value: Value | s.Param | s.Word) -> s.ReplaySetting:
    return s.ReplaySetting(name=spelled(name).lower(), value=value, span=span)


@makes("set")
def _set(span: SourceSpan, name: s.Word, value: Any) -> s.Set:
    return s.Set(name=spelled(name).lower(), value=value, span=span)


@makes("show")
def _show(span: SourceSpan, what: s.Word) -> s.Show:
    return s.Show(what=spelled(what).lower(), span=span)


@makes("describe")
def _describe(span: SourceSpan, relation: s.Word) -> s.Describe:
    return s.Describe(relation=spelled(relation).upper(), span=span)


def _shown(parts: tuple[Any, ...]) -> tuple[tuple[s.SelectItem, ...], tuple[Any, ...]]:
    """The columns, where the first of the parts are some, and the clauses."""
    if parts and not isinstance(parts[0], Clause):
        return parts[0], parts[1:]
    return (), parts


# ---- clauses


def _clause(field: str, name: str) -> Maker:
    """The maker of a clause that is a field and its one value."""

    def make(span: SourceSpan, value: Any) -> Clause:
        return Clause(field, value, name, span)

    return make


for rule, filled, called in (
    ("as_of", "as_of", "AS OF"),
    ("since", "since", "SINCE"),
    ("until", "until", "UNTIL"),
    ("valid_at", "valid_at", "VALID AT"),
    ("where", "where", "WHERE"),
    ("at", "moment", "AT"),
    ("depth", "depth", "DEPTH"),
    ("room", "within", "WITHIN"),
    ("fork_from", "session", "SESSION"),
    ("replay_from", "session", "SESSION"),
    ("watch_from", "cursor", "FROM"),
):
    MAKERS[rule] = _clause(filled, called)


@makes("between_moments")
def _between_moments(span: SourceSpan, since: s.MomentNode, until: s.MomentNode) -> Clause:
    return Clause("", {"since": since, "until": until, "between": True}, "BETWEEN", span)


@makes("ever")
def _ever(span: SourceSpan) -> Clause:
    return Clause("ever", True, "ALL", span)


@makes("by")
def _by(span: SourceSpan, *keys: s.Expr) -> Clause:
    return Clause("by", keys, "BY", span)


@makes("per_turn")
def _per_turn(span: SourceSpan) -> Clause:
    return Clause("per", "turn", "PER", span)


@makes("per_call")
def _per_call(span: SourceSpan) -> Clause:
    return Clause("per", "call", "PER", span)


@makes("having")
def _having(span: SourceSpan, condition: s.Expr) -> Clause:
    return Clause("having", condition, "HAVING", span)


@makes("via")
def _via(span: SourceSpan, *kinds: s.Word | Value) -> Clause:
    return Clause("kinds", kinds, "VIA", span)


@makes("replay_with")
def _replay_with(span: SourceSpan, *given: s.ReplaySetting) -> Clause:
    return Clause("given", given, "WITH", span)


@makes("order_by")
def _order_by(span: SourceSpan, *keys: s.Order) -> Clause:
    return Clause("order", keys, "ORDER BY", span)


@makes("limit")
def _limit(span: SourceSpan, limit: Any, after: Any = None) -> Clause:
    given = {"limit": limit} if after is None else {"limit": limit, "after": after}
    return Clause("", given, "LIMIT", span)


@makes("in_session")
def _in_session(span: SourceSpan, name: Any) -> Clause:
    return Clause("scope", s.InSession(name=name, span=span), "IN SESSION", span)


@makes("across_sessions")
def _across_sessions(span: SourceSpan, user: Any = None) -> Clause:
    return Clause("scope", s.AcrossSessions(user=user, span=span), "ACROSS SESSIONS", span)


@makes("render")
def _render(span: SourceSpan) -> Clause:
    return Clause("form", "render", "RENDER", span)


@makes("messages")
def _messages(span: SourceSpan) -> Clause:
    return Clause("form", "messages", "MESSAGES", span)


def _moment(unit: s.Unit) -> Maker:
    def make(span: SourceSpan, value: Value | s.Param | None = None) -> s.MomentNode:
        return s.MomentNode(unit=unit, value=value, span=span)

    return make


MAKERS.update({unit: _moment(unit) for unit in get_args(s.Unit)})


@makes("every")
def _every(span: SourceSpan) -> Clause:
    return Clause("every", True, "*", span)


@makes("columns")
def _columns(span: SourceSpan, *columns: s.SelectItem) -> tuple[s.SelectItem, ...]:
    return columns


@makes("column")
def _column(span: SourceSpan, expr: s.Expr, name: s.Word | Value | None = None) -> s.SelectItem:
    given = None if name is None else spelled(name) if isinstance(name, s.Word) else str(name.value)
    return s.SelectItem(expr=expr, name=given, span=span)


@makes("ascending")
def _ascending(span: SourceSpan, expr: s.Expr) -> s.Order:
    return s.Order(expr=expr, span=span)


@makes("descending")
def _descending(span: SourceSpan, expr: s.Expr) -> s.Order:
    return s.Order(expr=expr, descending=True, span=span)
