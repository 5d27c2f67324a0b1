"""What is built of the rules of conditions, values and names: one maker a rule, `maker(span, *parts)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

from vmstore.vmql.syntax import nodes as s
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.nodes import Expr, Param, SourceSpan, Value, Word

INTEGER_MAX: Final = 2**63 - 1
INTEGER_DIGITS_MAX: Final = len(str(INTEGER_MAX))
REFERENCE_SIGNS: Final = frozenset("/@#%")

Maker: TypeAlias = Callable[..., Any]
AnyMaker = TypeVar("AnyMaker", bound=Maker)

MAKERS: Final[dict[str, Maker]] = {}


def makes(*names: str) -> Callable[[AnyMaker], AnyMaker]:
    """Enters a function as the maker of some rules."""

    def enter(maker: AnyMaker) -> AnyMaker:
        MAKERS.update(dict.fromkeys(names, maker))
        return maker

    return enter


def spelled(word: Word) -> str:
    """A word as it was written."""
    return ".".join(word.path)


# ---- conditions


@makes("any_of")
def _any_of(span: SourceSpan, *parts: Expr) -> Expr:
    return s.Or(parts=parts, span=span)


@makes("all_of")
def _all_of(span: SourceSpan, *parts: Expr) -> Expr:
    return s.And(parts=parts, span=span)


@makes("negated")
def _negated(span: SourceSpan, operand: Expr) -> Expr:
    return s.Not(operand=operand, span=span)


@makes("compare")
def _compare(span: SourceSpan, left: Expr, op: s.Comparison, right: Expr) -> Expr:
    if _is_null_value(left) or _is_null_value(right):
        message = f"nothing is {op} NULL, which stands for what is not known"
        raise QueryError(message, code="null-compared", span=span, hint="write IS NULL or IS NOT NULL")
    return s.Compare(op=op, left=left, right=right, span=span)


def _is_null_value(node: Expr) -> bool:
    return type(node) is Value and node.value is None


def _matching(op: s.Comparison, negated: bool) -> Maker:
    def make(span: SourceSpan, left: Expr, right: Expr) -> Expr:
        found = s.Compare(op=op, left=left, right=right, span=span)
        return s.Not(operand=found, span=span) if negated else found

    return make


MAKERS["like"] = _matching("LIKE", False)
MAKERS["not_like"] = _matching("LIKE", True)
MAKERS["matches"] = _matching("MATCHES", False)
MAKERS["not_matches"] = _matching("MATCHES", True)


@makes("items")
def _items(span: SourceSpan, *items: Expr) -> tuple[Expr, ...]:
    return items


@makes("items_of")
def _items_of(span: SourceSpan, statement: s.RelationQuery | s.SearchQuery) -> tuple[Expr, ...]:
    return (s.Subquery(statement=statement, span=span),)


@makes("within")
def _within(span: SourceSpan, operand: Expr, items: tuple[Expr, ...]) -> Expr:
    return s.In(operand=operand, items=items, span=span)


@makes("not_within")
def _not_within(span: SourceSpan, operand: Expr, items: tuple[Expr, ...]) -> Expr:
    return s.In(operand=operand, items=items, negated=True, span=span)


@makes("has")
def _has(span: SourceSpan, item: Expr, among: Word) -> Expr:
    return s.Has(item=item, among=among, span=span)


@makes("has_not")
def _has_not(span: SourceSpan, item: Expr, among: Word) -> Expr:
    return s.Has(item=item, among=among, negated=True, span=span)


@makes("between")
def _between(span: SourceSpan, operand: Expr, low: Expr, high: Expr) -> Expr:
    return s.Between(operand=operand, low=low, high=high, span=span)


@makes("not_between")
def _not_between(span: SourceSpan, operand: Expr, low: Expr, high: Expr) -> Expr:
    return s.Between(operand=operand, low=low, high=high, negated=True, span=span)


@makes("is_null")
def _is_null(span: SourceSpan, operand: Expr) -> Expr:
    return s.IsNull(operand=operand, span=span)


@makes("is_not_null")
def _is_not_null(span: SourceSpan, operand: Expr) -> Expr:
    return s.IsNull(operand=operand, negated=True, span=span)


def _moving(before: s.Comparison, after: s.Comparison) -> Maker:
    """`p17 LEAVES L0`: what happens to a page, by where it was before and is after."""

    def make(span: SourceSpan, page: Expr, tier: Word) -> Expr:
        was, now = (Word(path=(f"tier_{when}",), span=span) for when in ("before", "after"))
        return s.And(
            parts=(
                s.Compare(op="=", left=Word(path=("page",), span=span), right=page, span=span),
                s.Compare(op=before, left=was, right=tier, span=span),
                s.Compare(op=after, left=now, right=tier, span=span),
            ),
            span=span,
        )

    return make


MAKERS["enters"] = _moving("!=", "=")
MAKERS["leaves"] = _moving("=", "!=")


@makes("context_matches")
def _context_matches(span: SourceSpan, pattern: Expr) -> Expr:
    return s.ContextMatches(pattern=pattern, span=span)


@makes("apply")
def _apply(span: SourceSpan, function: Word, *args: Expr) -> Expr:
    return s.Apply(name=spelled(function).lower(), args=args, span=span)


@makes("apply_distinct")
def _apply_distinct(span: SourceSpan, function: Word, of: Expr) -> Expr:
    return s.Apply(name=spelled(function).lower(), args=(of,), distinct=True, span=span)


def _arithmetic(op: Any) -> Maker:
    def make(span: SourceSpan, left: Expr, right: Expr) -> Expr:
        return s.Arithmetic(op=op, left=left, right=right, span=span)

    return make


MAKERS.update({"plus": _arithmetic("+"), "minus": _arithmetic("-")})
MAKERS.update({"times": _arithmetic("*"), "over": _arithmetic("/")})


@makes("subquery")
def _subquery(span: SourceSpan, statement: s.RelationQuery | s.SearchQuery) -> Expr:
    return s.Subquery(statement=statement, span=span)


@makes("relation_word")
def _relation_word(span: SourceSpan, name: str) -> Word:
    return Word(path=(name.lower(),), span=span)


@makes("apply_star")
def _apply_star(span: SourceSpan, function: Word) -> Expr:
    return s.Apply(name=spelled(function).lower(), star=True, span=span)


# ---- values


@makes("integer")
def _integer(span: SourceSpan, text: str) -> Value:
    # int() refuses thousands of digits with an error of its own, and is slow before that.
    value = int(text) if len(text.lstrip("-0")) <= INTEGER_DIGITS_MAX else INTEGER_MAX + 1
    if not -INTEGER_MAX <= value <= INTEGER_MAX:
        message = f"a whole number goes from -{INTEGER_MAX} to {INTEGER_MAX}; this one has no place in a store"
        raise QueryError(message, code="number-too-large", span=span)
    return Value(value=value, span=span)


@makes("real")
def _real(span: SourceSpan, text: str) -> Value:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        message = "this number is larger than any that can be stored; the largest is about 1.8e308"
        raise QueryError(message, code="number-too-large", span=span)
    return Value(value=value, span=span)


@makes("text")
def _text(span: SourceSpan, quoted: str) -> Value:
    return Value(value=quoted[1:-1].replace("''", "'"), span=span)


@makes("true")
def _true(span: SourceSpan) -> Value:
    return Value(value=True, span=span)


@makes("false")
def _false(span: SourceSpan) -> Value:
    return Value(value=False, span=span)


@makes("null")
def _null(span: SourceSpan) -> Value:
    return Value(value=None, span=span)


@makes("parameter")
def _parameter(span: SourceSpan, text: str) -> Param:
    return Param(name=text[1:], span=span)


# ---- names


@makes(
    "word",
    "page_name",
    "session_name",
    "new_name",
    "user_name",
    "column_name",
    "kind_name",
    "function",
    "setting",
    "choice",
    "subject",
    "described",
)
def _word(span: SourceSpan, text: str) -> Word:
    path = (text,) if not REFERENCE_SIGNS.isdisjoint(text) else tuple(text.split("."))
    return Word(path=path, span=span)
