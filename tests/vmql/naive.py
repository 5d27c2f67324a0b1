"""VMQL read naively: conditions as Python over dicts, nothing planned."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from statistics import fmean
from typing import Any

from tests.vmql.facts import Row
from vmstore.core.page import Level, Tier
from vmstore.vmql.relations.catalog import DESCRIBED
from vmstore.vmql.syntax import nodes as s

TIERS = ("tier", "from_tier", "tier_before", "tier_after")
LEVELS = ("level", "level_asked", "level_served", "level_before", "level_after")
ENUMS: dict[str, type[Any]] = {**dict.fromkeys(TIERS, Tier), **dict.fromkeys(LEVELS, Level)}

# ---- statements


def order_key(name: str, value: Any) -> Any:
    """What a value is ordered by: pages and messages by number."""
    if isinstance(value, str) and re.fullmatch(r"[pm]\d+", value) and name in NAMES:
        return int(value[1:])
    if isinstance(value, str) and name in TIMES:
        return value if "." in value else value.replace("Z", ".000000Z")
    return value


TIMES = frozenset(
    name for each in DESCRIBED.values() for name, field in each.fields.items() if field.form.type == "time"
)
NAMES = frozenset(
    name for each in DESCRIBED.values() for name, field in each.fields.items() if field.form.name in ("page", "message")
)


def literal(expr: s.Expr, column: str) -> Any:
    """A value of a text as answers show it."""
    value = expr.value if isinstance(expr, s.Value) else ".".join(expr.path)  # type: ignore[union-attr]
    if column in ENUMS and isinstance(value, str):
        return int(ENUMS[column][value.upper()])
    return value


def holds(expr: s.Expr, row: Row) -> bool | None:
    """Whether a condition holds of a row; None where a null decides."""
    match expr:
        case s.And(parts=parts):
            other_holds = [holds(part, row) for part in parts]
            return False if False in other_holds else None if None in other_holds else True
        case s.Or(parts=parts):
            other_holds = [holds(part, row) for part in parts]
            return True if True in other_holds else None if None in other_holds else False
        case s.Not(operand=operand):
            actual_holds = holds(operand, row)
            return None if actual_holds is None else not actual_holds
        case s.IsNull(operand=s.Word(path=(name,)), negated=negated):
            return (row[name] is None) != negated
        case s.Compare(op=op, left=s.Word(path=(name,)), right=right):
            return _compared(op, name, row[name], literal(right, name))
        case s.In(operand=s.Word(path=(name,)), items=items, negated=negated):
            other_holds = [_compared("=", name, row[name], literal(item, name)) for item in items]
            actual_holds = True if True in other_holds else None if None in other_holds else False
            return None if actual_holds is None else actual_holds != negated
        case s.Between(operand=s.Word(path=(name,)), low=low, high=high, negated=negated):
            above = _compared(">=", name, row[name], literal(low, name))
            below = _compared("<=", name, row[name], literal(high, name))
            actual_holds = False if False in (above, below) else None if None in (above, below) else True
            return None if actual_holds is None else actual_holds != negated
        case s.Has(item=s.Value(value=item), among=s.Word(path=(name,)), negated=negated):
            return (item in row[name]) != negated
        case s.Word(path=(name,)):
            actual_holds = row[name]
            return actual_holds if actual_holds is None else bool(actual_holds)
    raise AssertionError(expr)


def _compared(op: str, name: str, first: Any, other: Any) -> bool | None:
    if first is None or other is None:
        return None
    if op == "LIKE":
        pattern = re.escape(str(other)).replace("%", ".*").replace("_", ".")
        return re.fullmatch(pattern, str(first), re.IGNORECASE | re.DOTALL) is not None
    first, other = order_key(name, first), order_key(name, other)
    return {
        "=": first == other,
        "!=": first != other,
        "<": first < other,
        "<=": first <= other,
        ">": first > other,
        ">=": first >= other,
    }[op]


def aggregate(apply: s.Apply, rows: list[Row]) -> Any:
    """An aggregate over the rows of a group."""
    if apply.star:
        return len(rows)
    of = apply.args[0]
    listed = [row[of.path[0]] if isinstance(of, s.Word) else holds(of, row) for row in rows]
    values = [value for value in listed if value is not None]
    if apply.name in ("first", "last"):
        return (listed[0] if apply.name == "first" else listed[-1]) if listed else None
    if apply.name == "count":
        return len(values)
    if not values:
        return None
    if apply.name in ("min", "max"):
        name = of.path[0]  # type: ignore[union-attr]
        return (min if apply.name == "min" else max)(values, key=lambda value: order_key(name, value))
    if apply.name == "sum":
        return sum(values)
    if apply.name == "avg":
        return fmean(values)
    share = apply.args[1].value  # type: ignore[union-attr]
    values.sort()
    place = share * (len(values) - 1)
    low = int(place)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (place - low)


def answer(rows: Iterable[Row], columns: tuple[s.SelectItem, ...], tail: s.Tail) -> list[tuple[Any, ...]]:
    """What a statement gives of rows that are in their relation's order."""
    kept = [row for row in rows if tail.where is None or holds(tail.where, row) is True]
    summed = tail.by or any(isinstance(column.expr, s.Apply) for column in columns)
    by = [word.path[0] for word in tail.by]
    if not summed:
        for order in reversed(tail.order):
            name = order.expr.path[0]  # type: ignore[union-attr]
            kept = _sorted(kept, lambda row, name=name: order_key(name, row[name]), order.descending)
        shown = [tuple(row[column.expr.path[0]] for column in columns) for row in kept]  # type: ignore[union-attr]
    else:
        groups: dict[tuple[Any, ...], list[Row]] = {} if by else {(): []}
        for row in kept:
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
        listed = list(groups.items())
        for at in range(len(by) - 1, -1, -1):
            listed = _sorted(listed, lambda row, at=at: order_key(by[at], row[0][at]), False)
        for order in reversed(tail.order):
            listed = _sorted(listed, lambda value, order=order: _key(order.expr, value, by), order.descending)
        before = [name for name in by if name not in [getattr(c.expr, "path", ("",))[0] for c in columns]]
        shown = [
            (*(key[by.index(name)] for name in before), *(_value(column.expr, (key, group), by) for column in columns))
            for key, group in listed
        ]
    return shown if tail.limit is None else shown[: tail.limit.value]  # type: ignore[union-attr,misc]


def _value(expr: s.Expr, group: tuple[tuple[Any, ...], list[Row]], by: list[str]) -> Any:
    if isinstance(expr, s.Apply):
        return aggregate(expr, group[1])
    return group[0][by.index(expr.path[0])]  # type: ignore[union-attr]


def _key(expr: s.Expr, group: tuple[tuple[Any, ...], list[Row]], by: list[str]) -> Any:
    word = expr.args[0] if isinstance(expr, s.Apply) and expr.args else expr
    return order_key(getattr(word, "path", ("",))[0], _value(expr, group, by))


def _sorted(listed: list[Any], key: Callable[[Any], Any], descending: bool) -> list[Any]:
    """In order, nulls last whichever way, ties as they were."""
    known = sorted((entry for entry in listed if key(entry) is not None), key=key, reverse=False)
    if descending:
        known = [item for group in reversed(_grouped(known, key)) for item in group]
    return known + [entry for entry in listed if key(entry) is None]


def _grouped(listed: list[Any], key: Callable[[Any], Any]) -> list[list[Any]]:
    groups: list[list[Any]] = []
    for entry in listed:
        if groups and key(groups[-1][0]) == key(entry):
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups
