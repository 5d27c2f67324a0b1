"""From what a text says to what a relation can answer: names found, types checked, values as they are kept.

A bound expression is SQL with named places for values; what stands in a place is read when the
statement is run, because parameters and page names are known only then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from vmstore.core.address import page_position
from vmstore.vmql.column_types import ANY, BOOLEAN, INTEGER, REAL, TEXT, TIME, ColumnType
from vmstore.vmql.planner.values import SHARE, Beside, ValueSlot, a_type, check, no_share, no_word
from vmstore.vmql.relations.catalog import NAMED
from vmstore.vmql.relations.relation import ACROSS, Field, Relation, Shape
from vmstore.vmql.scalars import FUNCTIONS, NUMBERS, Function, fits
from vmstore.vmql.syntax.errors import QueryError, fault, near, unknown
from vmstore.vmql.syntax.nodes import (
    And,
    Apply,
    Arithmetic,
    Between,
    Compare,
    Comparison,
    ContextMatches,
    Expr,
    Has,
    In,
    IsNull,
    Not,
    Or,
    Param,
    SourceSpan,
    Subquery,
    Test,
    Value,
    Word,
)
from vmstore.vmql.syntax.printer import show as written

VALUES_MAX = 32_766  # that SQLite takes in a statement
OPS = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


class Term(NamedTuple):
    """An expression: its SQL, how its values are kept, and whether it sums over a group."""

    sql: str
    form: ColumnType
    name: str
    sums: bool = False
    single: tuple[Term, ...] | None = None  # the values of a row in an expression; None where it is one itself
    running: bool = False  # whether it sums up the rows of a series before it

    @property
    def loose(self) -> tuple[Term, ...]:
        """The values of a row it is made of, which may differ within a group."""
        if self.single is not None:
            return self.single
        return () if self.sums or self.sql.startswith(":") else (self,)

    @property
    def ordered(self) -> str:
        """The SQL it is ordered by and words are looked for in."""
        return self.text if self.form.words is not None else self.sql

    @property
    def text(self) -> str:
        """The SQL of what is shown."""
        return self.form.text.format(self.sql) if self.form.text is not None else self.sql


_READ = re.compile(r"\b(\w+)\.\w")  # the names of tables before a dot


def _operand(sql: str) -> str:
    """The SQL of a column so that whatever stands beside it is applied to all of it."""
    return sql if re.fullmatch(r'[\w."]+', sql) else f"({sql})"


class Binder:
    """Binds the expressions of one statement over a relation."""

    def __init__(self, relation: Relation, shape: Shape) -> None:
        self.relation = relation
        self.shape = shape
        self.order = relation.order if shape != ACROSS else (*relation.across, *relation.order)
        self.needs: dict[str, None] = {}  # joins, in the order they were asked for
        self.places: list[ValueSlot] = []
        self.fixed: dict[tuple[type, object], str] = {}  # values that are part of an expression, and where each stands
        self.named: dict[str, Term] = {}  # where groups are chosen: what is shown of each
        self.keys: frozenset[str] | None = None  # and the SQL of what they are of
        self.patterns: list[tuple[str, Value | Param | Word]] = []  # of CONTEXT MATCHES
        self.conditions: dict[str, Term] = {}  # that are values, by their text
        self.compared: list[Term] | None = None  # within one of them, what it looks at
        self.series = False  # whether groups are those of a series, and only what is shown of them can be asked

    # ---- values of a row

    def term(self, expr: Expr) -> Term:
        """A column, a path into one, or an aggregate; of a group what is shown under that name."""
        if self.named and (shown := self.named.get(written(expr))) is not None:
            return shown
        match expr:
            case Word():
                return self._column(expr)
            case Arithmetic():
                return self._arithmetic(expr)
            case Subquery():
                return Term(self.place(expr, ANY, "the value of a statement"), ANY, written(expr))
            case Apply():
                return self._apply(expr)
            case Value(value=value):
                form = _form_of(value)
                return Term(self.place(expr, form, "a value"), form, str(value))
            case Param():
                return Term(self.place(expr, ANY, "a value"), ANY, f"${expr.name}")
        raise fault(
            "a condition cannot stand here", "not-a-value", expr.span, hint="write it after WHERE, or in a function"
        )

    def field(self, word: Word) -> Field:
        """The column of a name; a QueryError with the nearest where there is none."""
        name = word.path[0]
        found = self.relation.fields.get(name) or self.relation.fields.get(name.lower())
        if found is None:
            raise self.unknown(word)
        return found

    def unknown(self, word: Word) -> QueryError:
        """What to say of a word that is no column."""
        name, names = word.path[0], tuple(self.relation.fields)
        meant = near(name, names)
        hint = f"did you mean {meant}?" if meant else f"DESCRIBE {self.relation.name} lists its columns"
        if name in ("tier_before", "tier_after"):
            hint = "MOVES WHERE p17 LEAVES L0 tells when a page came or went"
        if page_position(name) is not None and "page" in names:
            hint = f"write {self.relation.name} WHERE page = {name}"
        return fault(f"{self.relation.name} has no column {name!r}", "unknown-column", word.span, hint, names)

    def _column(self, word: Word) -> Term:
        field = self.field(word)
        self.need(field.sql)
        if len(word.path) == 1:
            return Term(_operand(field.sql), field.form, field.name)
        if field.form.name in NAMED and len(word.path) == 2:
            return self._beside_page(word, field)
        if field.form.type != "json":
            message = f"{field.name} is {a_type(field.form.type)}, with no {'.'.join(word.path[1:])!r} in it"
            hint = "columns of type json have paths, and those that name a page or a message: page.type"
            raise fault(message, "no-path", word.span, hint)
        path = self.constant("$" + "".join(f'."{step}"' for step in word.path[1:]), TEXT)
        return Term(f"({_operand(field.sql)} ->> {path})", ANY, ".".join(word.path))

    def _beside_page(self, word: Word, field: Field) -> Term:
        """A column of the page, or the message, that a column names: page.type, target.role."""
        relation = NAMED[field.form.name]
        of = relation.fields.get(word.path[1].lower())
        if of is None:
            name, message = word.path[1], f"{relation.name} has no column {word.path[1]!r}"
            otherwise, meant = f"DESCRIBE {relation.name} lists them", f"did you mean {word.path[0]}.{{}}?"
            raise unknown(message, "unknown-column", word.span, name, relation.fields, otherwise, meant)
        key = Beside, (relation.name, of.name)
        if key not in self.fixed:
            self.fixed[key] = self.place(Beside(relation.name, of.name), of.form, of.name)
        writer = self.relation.fields.get("session") if self.shape == ACROSS else None
        if writer is not None:
            self.need(writer.sql)
        sql = f"vm_of({self.fixed[key]}, {'NULL' if writer is None else writer.sql}, {field.sql})"
        return Term(sql, of.form, ".".join(word.path))

    def constant(self, value: Any, form: ColumnType) -> str:
        """The one place of a value within an expression: the same expression is the same SQL in BY and beside it."""
        key = type(value), value
        if key not in self.fixed:
            self.fixed[key] = self.place(Value(value=value), form, "a value")
        return self.fixed[key]

    def need(self, sql: str) -> None:
        """Has the plan join the tables that some SQL reads from, after those that joining them reads from."""
        for name in _READ.findall(sql):
            if name not in self.needs and (join := self.relation.joins.get(name)) is not None:
                self.needs[name] = None  # it reads from itself too
                self.need(join[self.shape])
                self.needs[name] = self.needs.pop(name)  # after those

    def _apply(self, apply: Apply) -> Term:
        name = apply.name.lower()
        known = FUNCTIONS.get(name)
        if known is None:
            message, otherwise = f"there is no function {apply.name!r}", "SHOW FUNCTIONS lists them"
            raise unknown(message, "unknown-function", apply.span, name, FUNCTIONS, otherwise, "did you mean {}(…)?")
        if known.sums and self.series and self.named:
            hint = "show it beside the others; AS gives it a name"
            raise fault(f"{written(apply)} is not shown in the series", "not-grouped", apply.span, hint=hint)
        if apply.star and known.sums:
            if name != "count":
                raise fault(f"{name}(*) counts nothing", "not-a-value", apply.span, hint=f"write {name} of a column")
            return Term("count(*)", INTEGER, "count(*)", sums=True)
        if apply.distinct and name != "count":
            raise fault(f"{name} takes no DISTINCT", "wrong-arguments", apply.span, hint=f"write {known.written}")
        of = self._arguments(apply, known)
        return self._summed(apply, known, of) if known.sums else self._of_row(apply, known, of)

    def _arguments(self, apply: Apply, known: Function) -> list[Term]:
        """What a function is applied to, as many as it takes and of the types that it takes."""
        if apply.star or not known.needed <= len(apply.args) <= len(known.takes):
            message = f"{known.name} takes {known.arguments}, not {'*' if apply.star else len(apply.args)}"
            raise fault(message, "wrong-arguments", apply.span, hint=f"write {known.written}")
        first, *others = apply.args
        of = [self._argument(first), *(self._share(expr) if known.sums else self._side(expr, ANY) for expr in others)]
        for term, types, expr in zip(of, known.takes, apply.args, strict=False):
            if not fits(term.form.type, types):
                wanted = "numbers" if NUMBERS[0] in types else " or ".join(map(a_type, types))
                message = f"{known.name} takes {wanted}, and {term.name} is {a_type(term.form.type)}"
                raise fault(message, "wrong-type", expr.span, hint=f"write {known.written}")
        return of

    def _share(self, expr: Expr) -> Term:
        """The second argument of quantile, which is written out or handed in."""
        if not isinstance(expr, Value | Param):
            raise no_share(expr.span)
        return Term(self.place(expr, SHARE, "quantile"), SHARE, written(expr))

    def _summed(self, apply: Apply, known: Function, of: list[Term]) -> Term:
        """A function over the rows of a group."""
        first, name = of[0], known.name
        if name == "running":
            if not self.series or not first.sums or first.running:
                message = f"running({first.name}) adds up the sums of a series, in a column of its own"
                raise fault(message, "not-grouped", apply.span, hint="CALLS running(sum(cost)) PER TURN")
            return first._replace(name=f"running({first.name})", running=True)
        if first.sums:
            raise fault("an aggregate cannot stand in another", "not-a-value", apply.span)
        if name == "count" and isinstance(apply.args[0], Test | Not | And | Or):
            hint = f"sum({first.name}) counts the rows for which it holds"
            raise fault(
                f"count({first.name}) counts those for which it does not hold, too", "not-a-value", apply.span, hint
            )
        if apply.distinct:
            return Term(f"count(DISTINCT {first.sql})", INTEGER, f"count(DISTINCT {first.name})", sums=True)
        sql, form = _numeric(first) if known.takes[0] else first.sql, known.gives or first.form
        if name in ("min", "max") and form.text is not None and form.words is not None:
            sql, form = first.text, TEXT  # the least word, not the least number
        form = INTEGER if form is BOOLEAN and name == "sum" else form
        sql = known.sql.format(sql, *(term.sql for term in of[1:]), order=self.in_order())
        return Term(sql, form, f"{name}({', '.join(term.name for term in of)})", sums=True)

    def _of_row(self, apply: Apply, known: Function, of: list[Term]) -> Term:
        """A function of the values of a row."""
        gives, (typed, *others) = known.gives, of[known.typed_by :]
        if gives is None and not all(_comparable(typed.form, term.form) for term in others):
            if any(term.form.type != "text" for term in (typed, *others)):
                message = (
                    f"{typed.name} is {a_type(typed.form.type)} and {others[0].name} {a_type(others[0].form.type)}"
                )
                raise fault(message, "wrong-type", apply.span, hint="write values of one type")
            gives = TEXT  # names or words of two kinds: what is shown of each
        sql, count = known.of_list if known.of_list and of[0].form.type == "list" else known.sql, len(known.takes)
        if len(of) < count:
            sql = sql.replace(f", {{{count - 1}}}", "")
        shown = [term.text if term.form.type == "text" and gives else term.sql for term in of]
        name = f"{known.name}({', '.join(term.name for term in of)})"
        loose = tuple(part for term in of for part in term.loose)
        return Term(sql.format(*shown), gives or typed.form, name, any(term.sums for term in of), loose)

    def _arithmetic(self, expr: Arithmetic) -> Term:
        left, right = self._sides(expr)
        kinds, op = {left.form.type, right.form.type}, expr.op
        sums, loose = left.sums or right.sums, (*left.loose, *right.loose)
        if kinds == {"time"} and op == "-":
            return Term(f"(({left.sql} - {right.sql}) / 1000000.0)", REAL, written(expr), sums, loose)
        for of, side in ((left, expr.left), (right, expr.right)):
            if of.form.type not in (*NUMBERS, ANY.type):
                hint = "of two times - gives the seconds between them" if of.form.type == "time" else None
                message = f"{op} takes numbers, and {of.name} is {a_type(of.form.type)}"
                raise fault(message, "wrong-type", side.span, hint=hint)
        sql = " ".join((_numeric(left), op, _numeric(right)))
        form = INTEGER if kinds == {INTEGER.type} and op != "/" else REAL
        return Term(f"(1.0 * {sql})" if op == "/" else f"({sql})", form, written(expr), sums, loose)

    def _sides(self, expr: Arithmetic) -> tuple[Term, Term]:
        """Both sides of an operation, each bound once: what is handed in beside a time is read as one."""
        sides = (expr.left, expr.right)
        bound = {at: self._argument(side) for at, side in enumerate(sides) if not isinstance(side, _HANDED)}
        form = TIME if any(term.form.type == "time" for term in bound.values()) else REAL
        left, right = (bound.get(at) or self._side(side, form) for at, side in enumerate(sides))
        return left, right

    def _side(self, expr: Expr, form: ColumnType) -> Term:
        """One side of an operation that is handed in, in the form that is wanted."""
        if isinstance(expr, Param | Subquery) or (isinstance(expr, Value) and form is TIME):
            return Term(self.place(expr, form, a_type(form.type)), form, written(expr))
        return self._argument(expr)

    def _argument(self, expr: Expr) -> Term:
        """A value that an expression is made of."""
        if isinstance(expr, Value) and expr.value is not None:
            form = _form_of(expr.value)
            return Term(self.constant(expr.value, form), form, str(expr.value))
        of = self._holds(expr) if isinstance(expr, Test | Not | And | Or) else self.term(expr)
        if of.running:
            raise fault(f"{of.name} stands in a column of its own", "not-a-value", expr.span)
        return of

    def _holds(self, expr: Expr) -> Term:
        """A condition as a value, the same wherever it is written so."""
        name, before = written(expr), self.compared
        if name not in self.conditions:
            self.compared = []
            sql, parts, self.compared = self.condition(expr), self.compared, before
            loose = tuple(part for of in parts for part in of.loose)
            self.conditions[name] = Term(sql, BOOLEAN, name, any(of.sums for of in parts), loose)
        return self.conditions[name]

    def in_order(self) -> str:
        """The order of the relation, for first and last."""
        for key in self.order:
            self.need(key)
        return ", ".join(self.order)

    # ---- conditions

    def condition(self, expr: Expr) -> str:
        """The SQL of a condition; unknown where a null decides, as in SQL."""
        match expr:
            case And(parts=parts):
                return "(" + " AND ".join(map(self.condition, parts)) + ")"
            case Or(parts=parts):
                return "(" + " OR ".join(map(self.condition, parts)) + ")"
            case Not(operand=operand):
                return f"NOT {self.condition(operand)}"
            case Compare():
                return self._compare(expr)
            case In(operand=operand, items=items, negated=negated):
                if len(items) > VALUES_MAX:
                    message, hint = "so many values cannot be written into a statement", "write column IN $values"
                    raise fault(message, "too-large", expr.span, hint=hint)
                of = self._plain(operand)
                listed = ", ".join(self._against(item, of) for item in items)
                if len(items) == 1 and isinstance(items[0], Param | Subquery):  # one value, or a list of them
                    self.places[-1] = self.places[-1]._replace(many=True)
                    listed = f"SELECT value FROM json_each({listed})"
                return f"({of.sql} {'NOT ' if negated else ''}IN ({listed}))"
            case Between(operand=operand, low=low, high=high, negated=negated):
                of = self._plain(operand)
                bounds = f"{self._against(low, of)} AND {self._against(high, of)}"
                return f"({_sorted(of)} {'NOT ' if negated else ''}BETWEEN {bounds})"
            case IsNull(operand=operand, negated=negated):
                of = self._plain(operand)
                return f"({of.sql} IS {'NOT ' if negated else ''}NULL)"
            case Has(item=item, among=among, negated=negated):
                return self._has(item, among, negated)
            case ContextMatches(pattern=pattern):
                return self._in_context(expr, pattern)
            case Word() | Apply():
                return self._truth(expr)
            case Value(value=bool(value)):
                return "1" if value else "0"
            case Param():
                return self.place(expr, BOOLEAN, "a condition")
        raise fault("this is no condition", "not-a-condition", expr.span, hint="compare it with something")

    def _truth(self, word: Word | Apply) -> str:
        of = self._plain(word)
        if of.form.type not in ("boolean", "json"):
            message, hint = f"{of.name} is {a_type(of.form.type)}, no condition", f"compare it: {of.name} = …"
            raise fault(message, "not-a-condition", word.span, hint)
        return f"({of.sql})"

    def _plain(self, expr: Expr) -> Term:
        """A value of a row, not of a group."""
        of = self.term(expr)
        if self.compared is not None:
            self.compared.append(of)
        elif self.keys is not None:
            differs = next((part for part in of.loose if part.sql not in self.keys), None)
            if differs is not None and of.sql not in self.keys:
                message, hint = f"{differs.name} differs within a group", f"write for example max({differs.name})"
                raise fault(message, "not-grouped", expr.span, hint=hint)
        elif of.sums:
            hint = "write HAVING after BY"
            raise fault("WHERE chooses rows before they are summed", "not-a-value", expr.span, hint=hint)
        return of

    def having(self, expr: Expr, named: dict[str, Term], keys: Iterable[Term]) -> str:
        """The SQL of a condition of groups, which may name what is shown of each."""
        before = self.named, self.keys
        self.named, self.keys = {**before[0], **named}, frozenset(key.sql for key in keys)
        try:
            return self.condition(expr)
        finally:
            self.named, self.keys = before

    def _compare(self, expr: Compare) -> str:
        left, right = expr.left, expr.right
        if isinstance(left, Value | Param | Subquery) and not isinstance(right, Value | Param) and expr.op in _FLIPPED:
            flipped = _FLIPPED[expr.op]
            return self._compare(Compare(op=flipped, left=right, right=left, span=expr.span))
        of = self._plain(left)
        if expr.op in ("LIKE", "MATCHES"):
            return self._words(expr.op, of, right)
        against = self._against(right, of)
        if expr.op in ("=", "!="):
            return f"({of.sql} {OPS[expr.op]} {against})"
        if of.form.type == "boolean":
            raise fault(f"{of.name} is a boolean, which has no order", "wrong-type", expr.span)
        if of.form.words is not None and of.form.text is not None:
            raise fault(
                f"the words of {of.name} have no order", "wrong-type", expr.span, hint=f"write {of.name} IN (…)"
            )
        return f"({of.sql} {OPS[expr.op]} {against})"

    def _words(self, op: str, of: Term, right: Expr) -> str:
        if of.form.type not in ("text", "json"):
            raise fault(f"{op} takes text, and {of.name} is {a_type(of.form.type)}", "wrong-type", right.span)
        if not isinstance(right, Value | Param | Word):
            raise fault(f"{op} takes a text", "not-a-value", right.span)
        pattern = self.place(right, TEXT, op)
        return f"({of.text} LIKE {pattern})" if op == "LIKE" else f"vm_matches({of.text}, {pattern})"

    def _has(self, item: Expr, among: Word, negated: bool) -> str:
        of = self._column(among)
        if of.form.type not in ("list", "json"):
            raise fault(
                f"{of.name} is {a_type(of.form.type)}, no list", "wrong-type", among.span, hint=f"write {of.name} = …"
            )
        if not isinstance(item, Value | Param | Word):
            raise fault("a member of a list is a value", "not-a-value", item.span)
        member = self.place(item, TEXT if isinstance(item, Word) else ANY, "a member")
        return f"({'NOT ' if negated else ''}EXISTS (SELECT 1 FROM json_each({of.sql}) e WHERE e.value = {member}))"

    def _in_context(self, expr: ContextMatches, pattern: Expr) -> str:
        if self.relation.name != "CALLS":
            hint = "CALLS WHERE CONTEXT MATCHES '…'"
            raise fault("CONTEXT MATCHES is asked of calls", "not-a-condition", expr.span, hint=hint)
        if not isinstance(pattern, Value | Param | Word):
            raise fault("CONTEXT MATCHES takes a text", "not-a-value", pattern.span)
        name = f"showed{len(self.patterns)}"
        self.patterns.append((name, pattern))
        return f"(c.session || '.' || c.call IN (SELECT value FROM json_each(:{name})))"

    # ---- values from the text

    def _against(self, expr: Expr, of: Term) -> str:
        """What a value is compared with: another column, or a value in the form it has."""
        if of.form.type == "list":
            raise fault(f"{of.name} is a list", "wrong-type", expr.span, hint=f"write 'one' IN {of.name}")
        if isinstance(expr, Word) and not self._is_word_of(expr, of.form):
            if expr.path[0].lower() in self.relation.fields or expr.path[0] in self.named:
                return self._beside(self._plain(expr), of, expr)
            if of.form.words is not None:
                raise no_word(".".join(expr.path), of.form.words, of.name, expr.span)
            if of.form.type != "text":
                raise self.unknown(expr)
        if isinstance(expr, Apply | Arithmetic):
            return self._beside(self._plain(expr), of, expr)
        if isinstance(expr, Value | Param | Word | Subquery):
            if isinstance(expr, Value):  # a value that is wrong by itself is refused before anything is looked up
                check(expr.value, of.form, of.name, expr.span)
            return self.place(expr, of.form, of.name)
        raise fault(f"{of.name} is compared with a value", "not-a-value", expr.span)

    @staticmethod
    def _beside(other: Term, of: Term, expr: Expr) -> str:
        """What one value of a row is compared with: another, of a type like it."""
        if not _comparable(of.form, other.form):
            message = f"{of.name} is {a_type(of.form.type)} and {other.name} {a_type(other.form.type)}"
            raise fault(message, "wrong-type", expr.span)
        return other.sql

    @staticmethod
    def _is_word_of(word: Word, form: ColumnType) -> bool:
        return form.words is not None and len(word.path) == 1 and form.words.of(word.path[0]) is not None

    def place(self, node: Value | Param | Word | Subquery | Beside, form: ColumnType, what: str) -> str:
        """A named place for a value."""
        name = f"v{len(self.places)}"
        self.places.append(ValueSlot(name, node, form, what))
        return f":{name}"


def _numeric(of: Term) -> str:
    """The SQL of a number; of JSON that is none, null."""
    return f"iif(typeof({of.sql}) IN ('integer', 'real'), {of.sql}, NULL)" if of.form.type == ANY.type else of.sql


def _comparable(left: ColumnType, other: ColumnType) -> bool:
    if "json" in (left.type, other.type):
        return True
    if left.words is not other.words or left.name != other.name:
        return False
    return left.type == other.type or (left.type in NUMBERS and other.type in NUMBERS)


def _sorted(of: Term) -> str:
    if of.form.words is not None and of.form.text is not None:
        raise fault(
            f"the words of {of.name} have no order", "wrong-type", SourceSpan(0, 0), hint=f"write {of.name} IN (…)"
        )
    return of.sql


def _form_of(value: object) -> ColumnType:
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return INTEGER
    if isinstance(value, float):
        return REAL
    return ANY if value is None else TEXT


_HANDED = Value | Param | Subquery
_FLIPPED: dict[str, Comparison] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
