"""What each namespace can do of a statement by itself: sums in parts that add up, and the first rows of an order.

Of a mean each gives sum and count, of a count a count, and only of whole numbers, whose sums are the same in
whatever order they are added. What cannot be put together from parts is asked for row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from vmstore.vmql.fleet.relation import PLACES, MergedQuery, item, of_place, rewritten
from vmstore.vmql.planner.plan import Plan, plan
from vmstore.vmql.relations.relation import ACROSS, Field, Relation
from vmstore.vmql.scalars import FUNCTIONS
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.nodes import (
    Apply,
    Arithmetic,
    Compare,
    Expr,
    Node,
    Order,
    Param,
    RelationQuery,
    SelectItem,
    Tail,
    Value,
    Word,
    names_of,
)

ALL_ROWS = Value(value=1 << 61)
TIE = "tie {}"
ADDED = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
"""What puts the parts of an aggregate together."""


class PartedQuery(NamedTuple):
    """What each namespace is asked for, and the plan over what they give."""

    columns: tuple[SelectItem, ...]
    own: Tail
    plan: Plan
    ties: int = 0  # values at the end of each row that tell where it stands in its namespace

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of what they give."""
        named = (column.name or ".".join(column.expr.path) for column in self.columns)  # type: ignore[union-attr]
        return (*named, *map(TIE.format, range(self.ties)))

    def given(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """The part of a row that is put together with those of others."""
        return row[: len(self.columns)] + (row[len(row) - self.ties :] if self.ties else ())


class _RowByRow(Exception):  # noqa: N818  it is no error
    """A statement whose parts do not add up."""


def parted(relation: Relation, statement: RelationQuery, asked: MergedQuery, planned: Plan) -> PartedQuery:
    """How a statement over many namespaces is divided between each and all of them."""
    wanted = [name for name in planned.wanted if name not in PLACES] or [next(iter(relation.fields))]
    rows = PartedQuery(tuple(map(item, wanted)), asked.own, planned)
    tail = statement.tail
    if not (tail.by or _sums(statement.columns)):
        return rows if tail.limit is None else _limited(relation, statement, asked, rows)
    if tail.after is not None:
        return rows
    try:
        return _Parts(relation, statement, asked, planned).query()
    except (_RowByRow, QueryError):
        return rows


def _sums(columns: Sequence[SelectItem]) -> bool:
    return any(_aggregates(column.expr) for column in columns)


def _aggregates(node: Node) -> list[Apply]:
    found: list[Apply] = []

    def look(each: Any) -> Any:
        if isinstance(each, Apply) and _is_sum(each):
            found.append(each)
        return each

    rewritten(node, look)
    return found


def _is_sum(node: Apply) -> bool:
    known = FUNCTIONS.get(node.name.lower())
    return known is not None and known.sums


def _of_rows(relation: Relation, statement: RelationQuery) -> bool:
    """Whether an order is of columns of the relation alone, which each namespace can keep by itself."""
    named = {column.name for column in statement.columns if column.name is not None}
    words = set().union(*(names_of(order.expr) for order in statement.tail.order))
    return words <= relation.fields.keys() and words.isdisjoint(named)


def _limited(relation: Relation, statement: RelationQuery, asked: MergedQuery, rows: PartedQuery) -> PartedQuery:
    """Rows of a limited answer, each with where it stands in its namespace, so that a cursor means the same later.

    Each namespace gives its first rows alone, where it can keep the order by itself.
    """
    tail = statement.tail
    order: tuple[Order, ...] = ()
    limit: Value | Param | None = ALL_ROWS
    if tail.after is None and _of_rows(relation, statement):
        order, limit = tail.order, tail.limit
    own = replace(rows.own, order=order, limit=limit)
    ties = _own_plan(relation, rows.columns, own).keys - len(order)
    places = asked.relation.order[:-1]
    whole = asked.relation._replace(order=(*places, *(f'g."{TIE.format(nth)}"' for nth in range(ties))))
    planned = plan(whole, asked.columns, asked.tail, ACROSS)._replace(plain=None)
    return PartedQuery(rows.columns, own, planned, ties)


def _own_plan(relation: Relation, columns: tuple[SelectItem, ...], own: Tail) -> Plan:
    """The plan of a namespace, whichever it is."""
    return plan(relation, columns, of_place(own, dict.fromkeys(PLACES, "")), ACROSS, shown=False)


class _Parts:
    """A statement of groups as each namespace is asked it, and as the parts are put together."""

    def __init__(self, relation: Relation, statement: RelationQuery, asked: MergedQuery, planned: Plan) -> None:
        self._relation, self._statement, self._asked, self._planned = relation, statement, asked, planned
        self._keys = statement.tail.by
        self._named = {column.name for column in statement.columns if column.name is not None}
        self._taken: list[Expr] = []

    def query(self) -> PartedQuery:
        """The statement in parts; raises _RowByRow where they do not add up."""
        statement, tail = self._statement, self._statement.tail
        shown = [column.name for column in self._planned.columns]
        listed = [column.expr for column in statement.columns]
        before = [key for key in self._keys if key not in listed]
        if len(shown) != len(before) + len(listed):
            raise _RowByRow
        columns = tuple(
            SelectItem(expr=self._turned(expr), name=name) for expr, name in zip((*before, *listed), shown, strict=True)
        )
        of_all = Tail(
            by=tuple(map(self._turned, self._keys)),
            having=None if tail.having is None else self._turned(tail.having),
            order=tuple(replace(order, expr=self._turned(order.expr)) for order in tail.order),
            limit=tail.limit,
        )
        items = tuple(SelectItem(expr=expr, name=f"c{nth}") for nth, expr in enumerate(self._taken))
        keys = tuple(key for key in self._keys if key in self._taken)
        own = replace(self._asked.own, by=keys)
        if self._keys and not keys:  # a namespace without rows has no group
            own = replace(own, having=Compare(op=">", left=Apply(name="count", star=True), right=Value(value=0)))
        given = _own_plan(self._relation, items, own)
        fields = {name: field for name, field in self._asked.relation.fields.items() if name in PLACES}
        for expr, column in zip(self._taken, given.columns, strict=True):
            if isinstance(expr, Apply) and expr.name.lower() == "sum" and column.form.type != "integer":
                raise _RowByRow
            fields[column.name] = Field(column.name, column.form, "", f'g."{column.name}"')
        whole = self._asked.relation._replace(fields=fields)
        return PartedQuery(items, own, plan(whole, columns, of_all, ACROSS)._replace(plain=None))

    def _turned(self, expr: Any) -> Any:
        """An expression of the statement as one over the parts."""
        return rewritten(expr, self._turn)

    def _turn(self, node: Any) -> Any:
        if isinstance(node, Word) and len(node.path) == 1 and node.path[0].lower() in PLACES:
            return node
        if node in self._keys:
            return self._take(node)
        if isinstance(node, Apply) and _is_sum(node):
            return self._put_together(node)
        if isinstance(node, Word) and node.path[0] not in self._named:
            raise _RowByRow
        return node

    def _put_together(self, node: Apply) -> Expr:
        name = node.name.lower()
        if node.distinct:
            raise _RowByRow
        if name == "avg":
            total, count = (Apply(name=part, args=node.args) for part in ("sum", "count"))
            return Arithmetic(op="/", left=self._put_together(total), right=self._put_together(count))
        if name not in ADDED:
            raise _RowByRow
        return Apply(name=ADDED[name], args=(self._take(node),))

    def _take(self, node: Expr) -> Word:
        """The column in which each namespace gives a part."""
        if not names_of(node).isdisjoint(PLACES):
            raise _RowByRow
        if node not in self._taken:
            self._taken.append(node)
        return Word(path=(f"c{self._taken.index(node)}",))
