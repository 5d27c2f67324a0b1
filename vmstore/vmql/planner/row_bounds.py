"""What a statement says of rows that Python makes, before any is made: their positions, their page, their way."""

from __future__ import annotations

from vmstore.core.page import Tier
from vmstore.views.projectors.residency import MoveWay
from vmstore.vmql.planner.plan import limit
from vmstore.vmql.planner.scope import EVERYWHERE, Bounds, OneSession, Params, Scope, given
from vmstore.vmql.planner.values import word_of
from vmstore.vmql.relations.python_rows import MUTATIONS
from vmstore.vmql.syntax.nodes import (
    Between,
    Compare,
    Expr,
    In,
    Param,
    RelationQuery,
    Statement,
    Tail,
    Value,
    Word,
    parts_of,
)


def bounds_of(statement: Statement, tail: Tail, scope: Scope, params: Params) -> Bounds:
    """The positions that the rows of an answer of one session can have: by its conditions, its order and its LIMIT."""
    assert isinstance(scope, OneSession), "positions are of one session"
    low, high, exact = scope.since, scope.until, True
    for part in parts_of(tail.where):
        bounds, whole = _left(part, params)
        low, high, exact = max(low, bounds.low), min(high, bounds.high), exact and whole
    if exact and tail.limit is not None and tail.after is None and _as_made(statement, tail):
        most = limit(tail.limit, params) + 1
        if tail.order and tail.order[0].descending:
            return Bounds(max(low, high - most), high)
        return Bounds(low, min(high, max(low, 0) + most))
    return Bounds(low, high)


def page_of(where: Expr | None, scope: Scope, params: Params) -> int | None:
    """The page that all rows of an answer are about, by its position; None where they may be of any."""
    for part in parts_of(where):
        match part:
            case Compare(op="=", left=Word(path=("page",)), right=Value() | Param() | Word() as named):
                if isinstance(named, Word) and named.path[0].lower() in MUTATIONS.fields:
                    continue  # another column
                page = given(named, params)
                if isinstance(page, str):
                    return scope.position_of(page, named.span)
                if isinstance(page, int) and 0 < page < 1 << 63:
                    return page
    return None


_WAYS = {
    ("tier_before", Tier.L0): {MoveWay.LEFT, MoveWay.STAYED},
    ("tier_before", Tier.L2): {MoveWay.CAME},
    ("tier_after", Tier.L0): {MoveWay.CAME, MoveWay.STAYED},
    ("tier_after", Tier.L2): {MoveWay.LEFT},
}


def ways_of(where: Expr | None, params: Params) -> set[MoveWay]:
    """The ways that moves can go, by the tiers that are asked for."""
    found = set(MoveWay)
    for part in parts_of(where):
        match part:
            case Compare(
                op="=", left=Word(path=("tier_before" | "tier_after" as side,)), right=Value() | Param() | Word() as to
            ):
                tier = word_of(given(to, params), Tier)
                found &= found if tier is None else _WAYS.get((side, Tier(tier)), set())
    return found


def _left(part: Expr, params: Params) -> tuple[Bounds, bool]:
    """The positions that a condition leaves, and whether it leaves all of those."""
    low, high = EVERYWHERE
    match part:
        case Compare(op="=" | "<" | "<=" | ">" | ">=" as op, left=Word(path=("position",)), right=right):
            if (number := _number(right, params)) is not None:
                low = number - (op != ">") if op in ("=", ">", ">=") else low
                high = number - (op == "<") if op in ("=", "<", "<=") else high
                return Bounds(low, high), True
        case Between(operand=Word(path=("position",)), low=first, high=last, negated=False):
            begin, end = _number(first, params), _number(last, params)
            if begin is not None and end is not None:
                return Bounds(begin - 1, end), True
        case In(operand=Word(path=("position",)), items=items, negated=False):
            numbers = [number for item in items if (number := _number(item, params)) is not None]
            if numbers and len(numbers) == len(items):
                return Bounds(min(numbers) - 1, max(numbers)), False
    return EVERYWHERE, False


def _number(expr: Expr, params: Params) -> int | None:
    """A whole number that is written or handed in."""
    number = given(expr, params) if isinstance(expr, Value | Param) else None
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _as_made(statement: Statement, tail: Tail) -> bool:
    """Whether each row is shown as it is made, and they are ordered by nothing but their positions."""
    columns = statement.columns if isinstance(statement, RelationQuery) else None
    if (
        columns is None
        or tail.by
        or tail.having
        or tail.per
        or not all(isinstance(each.expr, Word) for each in columns)
    ):
        return False
    if not tail.order:
        return True
    (first, *more), renamed = tail.order, any(each.name == "position" for each in columns)
    return not (more or renamed) and isinstance(first.expr, Word) and first.expr.path == ("position",)
