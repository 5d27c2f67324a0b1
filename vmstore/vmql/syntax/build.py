"""What is built of the rules: a node as its rule declares it, and by a function where there is more to say."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from vmstore.vmql.syntax import nodes as s
from vmstore.vmql.syntax.errors import QueryError, fault
from vmstore.vmql.syntax.nodes import Expr, SourceSpan, Value, Word
from vmstore.vmql.syntax.rule import CLAUSES, RULES, SyntaxRule

INTEGER_MAX: Final = 2**63 - 1
INTEGER_DIGITS_MAX: Final = len(str(INTEGER_MAX))
OPERATIONS_MAX: Final = 100  # one in another: each costs the stack of who reads it
REFERENCE_SIGNS: Final = frozenset("/@#%")

Maker: TypeAlias = Callable[..., Any]
AnyMaker = TypeVar("AnyMaker", bound=Maker)

MAKERS: Final[dict[str, Maker]] = {}  # of each rule, `maker(span, *parts)`


class Clause(NamedTuple):
    """One clause of a statement: the fields it fills, how it is called, where it stands."""

    fields: dict[str, Any]
    name: str
    span: SourceSpan


# ---- as declared


def spelled(name: Word | Value | str) -> str:
    """A name as it was written."""
    return ".".join(name.path) if isinstance(name, Word) else str(name.value) if isinstance(name, Value) else name


FORMS: Final[dict[str, Callable[[Any], str]]] = {
    "a": spelled,
    "l": lambda name: spelled(name).lower(),
    "u": lambda name: spelled(name).upper(),
}


class RuleShape(msgspec.Struct, frozen=True):
    """How the parts of a rule become the fields of its node."""

    fields: list[str]
    names: list[tuple[str, Callable[[Any], str]]]  # fields that are texts, and what makes them of a name
    list_at: int  # which field takes all parts that are left
    gathers: bool  # whether clauses are among the parts
    called: str  # what a clause is called


@functools.cache
def _shape(rule: SyntaxRule) -> RuleShape:
    parts = rule.parts()
    names = [(part.field, FORMS[part.form]) for part in parts if part.form in FORMS]
    list_at = len(parts) - bool(parts and parts[-1].joint)
    called = rule.text.partition("{")[0].partition("[")[0].strip()
    return RuleShape([part.field for part in parts], names, list_at, "…" in rule.text, called)


def _made(rule: SyntaxRule, span: SourceSpan, *given: Any) -> Any:
    """The node of a rule, or the clause, of its parts in the order of its text."""
    shape = _shape(rule)
    clauses: list[Clause] = []
    if shape.gathers:
        clauses = [part for part in given if type(part) is Clause]
        given = tuple(part for part in given if type(part) is not Clause)
    if len(given) > shape.list_at and type(given[shape.list_at]) is not tuple:
        given = (*given[: shape.list_at], given[shape.list_at :])
    values = dict(zip(shape.fields, given, strict=False), **rule.constants)
    for field, spell in shape.names:
        if field in values:
            values[field] = spell(values[field])
    if rule.node is not None:
        made = rule.node(span=span, **values, **(gathered(rule.node, clauses) if clauses else {}))
        if not rule.fills:
            return made
        values = {rule.fills: made}
    return Clause(values, shape.called, span)


def gathered(node: Any, clauses: Iterable[Clause]) -> dict[str, Any]:
    """The fields the clauses of a statement fill, those it has not itself under `tail`."""
    fields: dict[str, Any] = {}
    tail: dict[str, Any] = {}
    names: dict[str, str] = {}
    spans: list[SourceSpan] = []
    for clause in clauses:
        if twice := names.keys() & clause.fields.keys():
            raise _twice(clause, names[twice.pop()])
        names |= dict.fromkeys(clause.fields, clause.name)
        if next(iter(clause.fields)) in node.__struct_fields__:
            fields |= clause.fields
        else:
            tail |= clause.fields
            spans.append(clause.span)
    if tail:
        fields["tail"] = s.Tail(**tail, span=SourceSpan(spans[0].start, spans[-1].end))
    return fields


def _twice(clause: Clause, before: str) -> QueryError:
    hint = "join conditions with AND" if "where" in clause.fields else "keep one of them"
    message = f"{before} and {clause.name} cannot stand together" if before != clause.name else f"{before} stands twice"
    return fault(message, "clause-twice", clause.span, hint=hint)


MAKERS.update({name: functools.partial(_made, rule) for rule in (*RULES, *CLAUSES) for name in rule.names.split()})


# ---- by a function


def makes(*names: str) -> Callable[[AnyMaker], AnyMaker]:
    """Enters a function as the maker of some rules."""

    def enter(maker: AnyMaker) -> AnyMaker:
        MAKERS.update(dict.fromkeys(names, maker))
        return maker

    return enter


MAKERS["start"] = lambda span, statement: statement
MAKERS["columns"] = MAKERS["items"] = lambda span, *parts: parts
MAKERS["items_of"] = lambda span, statement: (s.Subquery(statement=statement, span=span),)
MAKERS["relation_name"] = MAKERS["comparison"] = lambda span, text: text.upper()
MAKERS["relation_word"] = lambda span, text: Word(path=(text.lower(),), span=span)
MAKERS["parameter"] = lambda span, text: s.Param(name=text[1:], span=span)
MAKERS["text"] = lambda span, quoted: Value(value=quoted[1:-1].replace("''", "'"), span=span)
MAKERS["true"] = lambda span: Value(value=True, span=span)
MAKERS["false"] = lambda span: Value(value=False, span=span)
MAKERS["null"] = lambda span: Value(value=None, span=span)


@makes("compare")
def _compare(span: SourceSpan, left: Expr, op: s.Comparison, right: Expr) -> Expr:
    if any(type(side) is Value and side.value is None for side in (left, right)):
        message = f"nothing is {op} NULL, which stands for what is not known"
        raise fault(message, "null-compared", span, hint="write IS NULL or IS NOT NULL")
    return s.Compare(op=op, left=left, right=right, span=span)


def _unlike(op: s.Comparison) -> Maker:
    """`text NOT LIKE 'a%'` is the opposite of `text LIKE 'a%'`."""

    def make(span: SourceSpan, left: Expr, right: Expr) -> Expr:
        return s.Not(operand=s.Compare(op=op, left=left, right=right, span=span), span=span)

    return make


MAKERS["not_like"], MAKERS["not_matches"] = _unlike("LIKE"), _unlike("MATCHES")


def _operation(name: str) -> Maker:
    made = MAKERS[name]

    def make(span: SourceSpan, left: Expr, right: Expr) -> Expr:
        deep, inner = 0, left
        while isinstance(inner, s.Arithmetic):
            deep, inner = deep + 1, inner.left
        if deep >= OPERATIONS_MAX:
            message = f"operations stand in operations {OPERATIONS_MAX} deep at most"
            raise fault(message, "too-deep", span, hint="write it in parts, in columns of their own")
        operation: Expr = made(span, left, right)
        return operation

    return make


MAKERS.update({name: _operation(name) for name in ("plus", "minus", "times", "over")})


def _moving(before: s.Comparison, after: s.Comparison) -> Maker:
    """`p17 LEAVES L0`: what happens to a page, by where it was before and is after."""

    def make(span: SourceSpan, page: Expr, tier: Word) -> Expr:
        tests: tuple[tuple[str, s.Comparison, Expr], ...] = (
            ("page", "=", page),
            ("tier_before", before, tier),
            ("tier_after", after, tier),
        )
        parts = (s.Compare(op=op, left=Word(path=(name,), span=span), right=to, span=span) for name, op, to in tests)
        return s.And(parts=tuple(parts), span=span)

    return make


MAKERS["enters"], MAKERS["leaves"] = _moving("!=", "="), _moving("=", "!=")


@makes("integer")
def _integer(span: SourceSpan, text: str) -> Value:
    # int() refuses thousands of digits with an error of its own, and is slow before that.
    value = int(text) if len(text.lstrip("-0")) <= INTEGER_DIGITS_MAX else INTEGER_MAX + 1
    if not -INTEGER_MAX <= value <= INTEGER_MAX:
        message = f"a whole number goes from -{INTEGER_MAX} to {INTEGER_MAX}; this one has no place in a store"
        raise fault(message, "number-too-large", span)
    return Value(value=value, span=span)


@makes("real")
def _real(span: SourceSpan, text: str) -> Value:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        message = "this number is larger than any that can be stored; the largest is about 1.8e308"
        raise fault(message, "number-too-large", span)
    return Value(value=value, span=span)


@makes(
    *("word", "page_name", "session_name", "new_name", "user_name", "column_name", "kind_name"),
    *("function", "setting", "choice", "subject", "described"),
)
def _word(span: SourceSpan, text: str) -> Word:
    path = (text,) if not REFERENCE_SIGNS.isdisjoint(text) else tuple(text.split("."))
    return Word(path=path, span=span)
