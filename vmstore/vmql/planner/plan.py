"""From a statement over a relation to one statement of SQL: which way to the rows, which joins, in which order."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from vmstore.core.page import Level, PageType, Tier, WordEnum
from vmstore.vmql.column_types import ColumnType
from vmstore.vmql.planner.bind import Binder, Term
from vmstore.vmql.planner.clause_checks import check_valid
from vmstore.vmql.planner.scope import Params, given
from vmstore.vmql.planner.series import grouped, series
from vmstore.vmql.planner.values import ValueSlot
from vmstore.vmql.relations.ctes import TABLES
from vmstore.vmql.relations.relation import Path, Relation, Shape
from vmstore.vmql.syntax.errors import fault
from vmstore.vmql.syntax.nodes import Compare, Expr, IsNull, Param, SelectItem, Tail, Value, Word, parts_of


class PlannedColumn(NamedTuple):
    """A column of an answer: its name and how its values are kept."""

    name: str
    form: ColumnType


class SortKey(NamedTuple):
    """What rows are ordered by."""

    sql: str
    descending: bool = False


class Plan(NamedTuple):
    """A statement of SQL with what it takes: the lane goes before `sql`, values into `places`.

    `keys` counts the values at the end of each row that say where it stands in the order: a
    limited answer continues after them. `plain` plans only take rows as they are made.
    """

    relation: Relation
    path: Path
    shape: Shape
    tables: tuple[str, ...]
    joins: tuple[str, ...]
    body: str
    columns: tuple[PlannedColumn, ...]
    places: tuple[ValueSlot, ...]
    patterns: tuple[tuple[str, Value | Param | Word], ...]
    keys: int
    limit: Value | Param | None
    after: Value | Param | None
    wanted: tuple[str, ...]
    plain: tuple[int, ...] | None = None

    def sql(self, lane: str) -> str:
        """The whole statement; what is made reads no lane."""
        if self.relation.made:
            return self.body
        return f"WITH {', '.join([lane, *(TABLES[name][self.shape] for name in self.tables)])}\n{self.body}"

    @property
    def shows(self) -> list[tuple[int, Callable[[Any], Any]]]:
        """The columns whose values are not yet as they are shown, and how they are."""
        numbered = ((at, column.form) for at, column in enumerate(self.columns))
        late = self.plain is not None  # else SQL shows what it can
        return [(at, form.show) for at, form in numbered if form.show is not None and (late or form.text is None)]


def plan(
    relation: Relation,
    columns: Sequence[SelectItem],
    tail: Tail,
    shape: Shape,
    path: str | None = None,
    *,
    shown: bool = True,
) -> Plan:
    """How the rows of a relation are had, in a scope of some shape; QueryError where the text does not fit it.

    Their values are as they are `shown`, as far as SQL can say it, or else as they are kept.
    """
    binder = Binder(relation, shape)
    binder.series = tail.per is not None
    way = relation.paths[path] if path is not None else _way(relation, tail.where)
    tail = grouped(relation, shape, tail)
    keys_by = [binder.term(word) for word in tail.by]
    terms, names = _columns(binder, columns, tail, keys_by)
    summed = bool(tail.by) or any(term.sums for term in terms)
    condition = binder.condition(tail.where) if tail.where is not None else ""
    by, source = ", ".join(term.sql for term in keys_by), ""
    chosen = ["" if tail.ever else relation.now, condition]
    if tail.per is not None:
        terms, keys_by, source = series(binder, tail.per, terms, keys_by, _rows(binder, way, chosen, by))
        binder.named = {**{term.name: term for term in terms}, **dict(zip(names, terms, strict=True))}
    having = _having(binder, tail, dict(zip(names, terms, strict=True)), keys_by, summed=summed)
    keys = _keys(binder, tail, terms, names, keys_by if summed else None)
    _after_keys(binder, tail, keys)
    check_valid(relation, tail)
    limited = tail.limit is not None
    selected = [term.text if shown else term.sql for term in terms] + ([key.sql for key in keys] if limited else [])
    beyond = _beyond(keys) if tail.after is not None else ""
    rows = source or _rows(binder, way, [*chosen, "" if summed else beyond], by)
    sorts = bool(keys) and not (way.sorted and not tail.order and not summed)
    order = f"ORDER BY {', '.join(map(_ordered, keys))}" if sorts else ""
    of_groups = [part for part in (having, beyond if by else "") if part]
    chooses = f"{'WHERE' if source else 'HAVING'} {' AND '.join(of_groups)}" if of_groups else ""
    clauses = [rows, chooses, order, "LIMIT :limit + 1" if limited else ""]
    body = _body(selected, [clause for clause in clauses if clause], late=limited and sorts and not summed)
    plain = _plain(relation, terms, tail, condition) if relation.made and not summed else None
    return Plan(
        relation,
        way,
        shape,
        tables_in(body),
        tuple(_joins(binder, way)),
        body,
        tuple(PlannedColumn(name, term.form) for name, term in zip(names, terms, strict=True)),
        tuple(binder.places),
        tuple(binder.patterns),
        len(keys) if limited else 0,
        tail.limit,
        tail.after,
        tuple(name for name, field in relation.fields.items() if f'"{name}"' in body) if relation.made else (),
        plain,
    )


def _joins(binder: Binder, way: Path) -> list[str]:
    """The tables that are joined to the rows of a way, by name."""
    return [name for name in binder.needs if name not in way.joined]


def _rows(binder: Binder, way: Path, where: Sequence[str], by: str) -> str:
    """FROM, with what is joined, WHERE and GROUP BY of a statement."""
    clauses = [
        way.start[binder.shape],
        *(binder.relation.joins[name][binder.shape] for name in _joins(binder, way)),
    ]
    if parts := [part for part in where if part]:
        clauses.append("WHERE " + " AND ".join(parts if len(parts) == 1 else [f"({part})" for part in parts]))
    return "\n".join([*clauses, *([f"GROUP BY {by}"] if by else [])])


_OPENED = re.compile(r"\bvm_(text|line|snippet|said|said_line|aside|arguments|response)\(")
_COLUMN = re.compile(r"\b([a-z]\w*)\.(\w+)")


def _opens(sql: str) -> bool:
    """Whether a value is read from the log, which takes long; one that a SELECT gives is not put off."""
    return _OPENED.search(sql) is not None and "SELECT" not in sql


def _body(selected: Sequence[str], clauses: Sequence[str], *, late: bool) -> str:
    """The statement without its tables; where contents can be opened `late`, it opens those of the few it shows."""
    if not late or not any(map(_opens, selected)):
        return "\n".join([f"SELECT {', '.join(selected)}", *clauses])
    first, last = _late(selected)
    few = "\n".join([f"SELECT {', '.join(first)}", *clauses])
    return f"SELECT {', '.join(last)} FROM (WITH few AS MATERIALIZED ({few}) SELECT * FROM few)"


def _late(selected: Sequence[str]) -> tuple[list[str], list[str]]:
    """What is selected of the rows that are sorted, and of the few that are shown: there alone contents are opened."""
    first: dict[str, str] = {}  # each by the name it has among the few

    def named(sql: str) -> str:
        return first.setdefault(sql, f"c{len(first)}")

    last = [_COLUMN.sub(lambda of: named(of[0]), sql) if _opens(sql) else named(sql) for sql in selected]
    return [f"{sql} AS {name}" for sql, name in first.items()], last


def _having(binder: Binder, tail: Tail, named: dict[str, Term], by: Sequence[Term], *, summed: bool) -> str:
    if tail.having is None:
        return ""
    if not summed:
        message, hint = "HAVING chooses groups, and there are none", "write BY, or WHERE for rows"
        raise fault(message, "not-grouped", tail.having.span, hint=hint)
    return binder.having(tail.having, named, by)


def tables_in(body: str) -> tuple[str, ...]:
    """The common tables that SQL reads."""
    return tuple(name for name in TABLES if re.search(rf"(FROM|JOIN) {name}\b", body))


def _columns(
    binder: Binder, columns: Sequence[SelectItem], tail: Tail, keys: Sequence[Term]
) -> tuple[list[Term], list[str]]:
    """What is shown: the columns asked for, after the words of BY; all of the relation where none is."""
    if not columns and not tail.by:
        shown = binder.relation.shown
        terms = [binder.term(Word(path=(field.name,))) for field in shown]
        return terms, [field.name for field in shown]
    bound = [(binder.term(column.expr), column) for column in columns]
    names = [column.name or term.name for term, column in bound]
    grouped = {term.sql for term in keys}
    if tail.by or any(term.sums for term, _ in bound):
        for term, column in bound:
            loose = () if term.sql in grouped else term.loose
            differs = next((part for part in loose if part.sql not in grouped), None)
            if differs is not None:
                message = f"{differs.name} differs within a group"
                hint = f"add it to BY, or write first({differs.name})"
                raise fault(message, "not-grouped", column.expr.span, hint)
    listed = {term.sql for term, _ in bound}
    before = [key for key in keys if key.sql not in listed]
    return before + [term for term, _ in bound], [key.name for key in before] + names


def _keys(
    binder: Binder, tail: Tail, terms: Sequence[Term], names: Sequence[str], by: Sequence[Term] | None
) -> list[SortKey]:
    """What rows are ordered by, to the last tie."""
    named = dict(zip(names, terms, strict=True))
    keys: list[SortKey] = []
    for order in tail.order:
        expr = order.expr
        alias = isinstance(expr, Word) and expr.path[0] in named
        term = named[expr.path[0]] if alias else binder.term(expr)  # type: ignore[union-attr]
        if by is None and term.sums:
            message, hint = f"{term.name} is of a group, and there is none", f"write BY, or show {term.name}"
            raise fault(message, "not-grouped", expr.span, hint)
        grouped = {key.sql for key in by or ()}
        differs = next((part for part in term.loose if part.sql not in grouped), None)
        if by is not None and differs is not None and term.sql not in grouped:
            message = f"groups cannot be ordered by {differs.name}, which differs within one"
            hint = "order by a word of BY or by an aggregate"
            raise fault(message, "not-grouped", expr.span, hint)
        keys.append(SortKey(term.ordered, order.descending))
    if by is not None:
        return keys + [SortKey(term.ordered) for term in by]
    relation = binder.relation
    if not tail.order and relation.name == "SEARCH":
        keys += [SortKey("f.place"), SortKey("f.score", True)]
    if tail.limit is not None or tail.order or not _way(relation, tail.where).sorted:
        for end in binder.order:
            binder.need(end)
            keys.append(SortKey(end))
    return keys


def _ordered(key: SortKey) -> str:
    """Nulls come last, whichever way."""
    return f"{key.sql} DESC NULLS LAST" if key.descending else f"{key.sql} NULLS LAST"


def _after_keys(binder: Binder, tail: Tail, keys: Sequence[SortKey]) -> None:
    if tail.after is not None and not keys:
        raise fault("AFTER continues a limited answer where it ended", "no-cursor", tail.after.span)


def _beyond(keys: Sequence[SortKey]) -> str:
    """The condition of the rows that come after the values :k0, :k1, …"""
    ways: list[str] = []
    same: list[str] = []
    for at, key in enumerate(keys):
        further = f"{key.sql} {'<' if key.descending else '>'} :k{at}"
        ways.append(" AND ".join([*same, f"(:k{at} IS NOT NULL AND ({further} OR {key.sql} IS NULL))"]))
        same.append(f"{key.sql} IS :k{at}")
    return "(" + " OR ".join(f"({way})" for way in ways) + ")"


def _way(relation: Relation, where: Expr | None) -> Path:
    """The way to the rows: from the few pages in the prompt, where only those can be meant."""
    paths = relation.paths
    if "prompt" in paths:
        parts = parts_of(where)
        if any(map(_in_prompt, parts)):
            return paths["prompt"]
        if any(map(_of_few, parts)):
            return paths["typed"]
    return next(iter(paths.values()))


def _in_prompt(part: Expr) -> bool:
    """Whether a condition holds of pages in the prompt only."""
    match part:
        case Compare(op="=", left=Word(path=("tier",)), right=right):
            return _number(right, Tier) == 0
        case Compare(op="=" | ">" | ">=" as op, left=Word(path=("level",)), right=right):
            number = _number(right, Level)
            return number is not None and number >= (0 if op == ">" else 1)
        case IsNull(operand=Word(path=("since_position",)), negated=True):
            return True
    return False


def _of_few(part: Expr) -> bool:
    """Whether a condition wants a type that few pages are of: an index holds those."""
    match part:
        case Compare(op="=", left=Word(path=("type",)), right=right):
            number = _number(right, PageType)
            return number is not None and number != PageType.TRANSCRIPT
    return False


def _number(expr: Expr, words: type[WordEnum]) -> int | None:
    word = expr.value if isinstance(expr, Value) else ".".join(expr.path) if isinstance(expr, Word) else None
    if isinstance(word, str):
        return words.of(word)
    return word if isinstance(word, int) else None


def _plain(relation: Relation, terms: Sequence[Term], tail: Tail, condition: str) -> tuple[int, ...] | None:
    """Which values of each row as it is made are the answer, where nothing else is asked of the rows."""
    if condition or tail.order or tail.limit is not None or tail.after is not None:
        return None
    places = {field.sql: at for at, field in enumerate(relation.fields.values())}
    if any(term.sql not in places for term in terms):
        return None
    return tuple(places[term.sql] for term in terms)


# ---- cursors


def cursor(values: Sequence[Any]) -> str:
    """Where a limited answer ended, as text."""
    return base64.urlsafe_b64encode(json.dumps(list(values), separators=(",", ":")).encode()).decode().rstrip("=")


def after(node: Value | Param, params: Params, keys: int) -> list[Any]:
    """The values a cursor stands for."""
    text = given(node, params)
    try:
        data = base64.b64decode(str(text) + "=" * (-len(str(text)) % 4), b"-_", validate=True)
        values = json.loads(data)
    except (binascii.Error, ValueError):
        values = None
    if not isinstance(values, list) or len(values) != keys or not all(map(_single, values)):
        message = f"{str(text)[:40]!r} is no cursor of this statement"
        hint = "pass the `next` of an answer to the same statement"
        raise fault(message, "no-cursor", node.span, hint)
    return values


def _single(value: object) -> bool:
    return value is None or isinstance(value, str | float) or (isinstance(value, int) and abs(value) < 1 << 63)


def limit(node: Value | Param, params: Params) -> int:
    """The number of rows asked for."""
    value = given(node, params)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise fault(f"LIMIT {value!r} is no number of rows", "wrong-type", node.span, expected=("a whole number",))
    return value
