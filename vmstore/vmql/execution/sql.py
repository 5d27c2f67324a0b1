"""SQL over the relations at a moment: it reads them and nothing else, within a time, a room and a number of rows.

A statement runs in a database of its own, in memory, which holds no table but those of
`sql_tables`: there is no file to attach and nothing to write to, and what the tables hand out is
what VMQL answers. An authorizer refuses every other act by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple, Protocol

import apsw

from vmstore.core.asof import AsOf
from vmstore.vmql.execution import sql_functions, sql_tables
from vmstore.vmql.execution.executor import Runner
from vmstore.vmql.execution.query import Query
from vmstore.vmql.execution.query_limits import LimitedQuery, QueryLimits
from vmstore.vmql.execution.result import Cancellation, Column, Result, unlike
from vmstore.vmql.execution.sql_tables import HERE, TABLES, Filters, Moment, Row, Source, kept
from vmstore.vmql.execution.statements import context
from vmstore.vmql.execution.streams import maker
from vmstore.vmql.planner.scope import LISTED, UNITS, ManySessions, OneSession, Params, Scope, moment_of, scope_of
from vmstore.vmql.relations.python_rows import CONTEXT
from vmstore.vmql.relations.relation import Relation
from vmstore.vmql.syntax.errors import QueryError, fault, near, unknown
from vmstore.vmql.syntax.nodes import (
    NOWHERE,
    And,
    Compare,
    ContextAt,
    InSession,
    MomentNode,
    Param,
    RelationQuery,
    SelectItem,
    SourceSpan,
    Tail,
    Value,
    Word,
    columns_named,
)

STEPS = 1_000  # of SQLite's machine between two looks at its limits
VALUE_MAX = 16 << 20  # bytes of one value
TEXT_MAX = 200_000  # bytes of a statement
COUNTED = 1_000  # rows between two looks while a relation is read
LET = frozenset([apsw.SQLITE_SELECT, apsw.SQLITE_RECURSIVE])
READABLE = frozenset([*TABLES, "json_each", "json_tree"])
ACTS: dict[int, str] = {
    number: name.removeprefix("SQLITE_").replace("_", " ")
    for name, number in apsw.mapping_authorizer_function.items()
    if isinstance(name, str) and isinstance(number, int)
}


class SqlConnection(NamedTuple):
    """A database without a file, and what its tables read."""

    db: apsw.Connection
    source: Source
    refused: list[str]  # what the authorizer did not let


class TableReader(Protocol):
    """What the tables of a statement read, and the moment it holds for."""

    basis: dict[str, Any]

    def read(self, relation: Relation, columns: tuple[str, ...], moment: Moment, filters: Filters) -> list[Row]:
        """Columns of a relation's rows at a moment; those of other values may be left out, not those of these."""
        ...


class SqlDoor:
    """Answers SQL over relations, each a table."""

    def __init__(self, ticks: Callable[[], int], tables: Mapping[str, Relation] = TABLES) -> None:
        self._ticks, self._tables = ticks, tables
        self._spare: list[SqlConnection] = []

    def answer(
        self,
        text: str,
        reader: TableReader,
        params: Mapping[str, Any],
        limits: QueryLimits,
        watch: LimitedQuery,
        began: int,
    ) -> Result:
        """The rows of the one statement of a text, all of them."""
        prepared = self._spare.pop() if self._spare else self._fresh()
        prepared.source.begin(reader.read)
        prepared.refused.clear()
        prepared.db.set_progress_handler(lambda: watch.stopped, STEPS)
        try:
            columns, rows = _taken(prepared.db, text, _given(params, text), limits, watch)
        except QueryError as error:
            error.text = error.text or text
            raise (watch.error() if watch.passed else error) from None
        except KeyError as error:
            name = str(error.args[0])
            span = _span(text, max(text.find(name), 0))
            hint = f"hand it in: params={{'{name}': …}}"
            message = f"there is no parameter :{name}"
            raise QueryError(message, code="unknown-parameter", text=text, span=span, hint=hint) from None
        except apsw.Error as error:
            raise (watch.error() if watch.passed else _refusal(error, text, prepared.refused)) from error
        finally:
            prepared.db.set_progress_handler(None)
            prepared.source.begin(None)
            self._spare.append(prepared)
        types = [_type(row[at] for row in rows) for at in range(len(columns))]
        named = [Column(*column) for column in zip(unlike(columns), types, strict=True)]
        return Result("table", reader.basis, named, iter(rows), watch=Cancellation(), ticks=self._ticks, began=began)

    def _fresh(self) -> SqlConnection:
        db = apsw.Connection(":memory:")
        source, refused = sql_tables.register(db, self._tables), list[str]()
        sql_functions.register(db)
        db.execute("PRAGMA temp_store = MEMORY")
        modules = {name for (name,) in db.execute("SELECT name FROM pragma_module_list")}
        db.limit(apsw.SQLITE_LIMIT_LENGTH, VALUE_MAX)
        db.limit(apsw.SQLITE_LIMIT_SQL_LENGTH, TEXT_MAX)
        db.limit(apsw.SQLITE_LIMIT_ATTACHED, 0)

        def authorize(act: int, first: str | None, second: str | None, base: str | None, _: str | None) -> int:
            name = str(first).lower()  # what a statement makes itself is in no base, nor are names without one
            named = name in READABLE or (base is None and name not in modules and not name.startswith("sqlite_"))
            if act in LET or (act == apsw.SQLITE_READ and named):
                return apsw.SQLITE_OK
            if act == apsw.SQLITE_FUNCTION and second != "load_extension":
                return apsw.SQLITE_OK
            refused.append(" ".join([ACTS.get(act, str(act)), *(f"{word!r}" for word in (first, second) if word)]))
            return apsw.SQLITE_DENY

        db.authorizer = authorize
        return SqlConnection(db, source, refused)


def _taken(
    db: apsw.Connection, text: str, params: Any, limits: QueryLimits, watch: LimitedQuery
) -> tuple[list[str], list[Row]]:
    """The names of the columns and the rows."""
    cursor, names = db.cursor(), list[list[str]]()

    def begun(_: apsw.Cursor, sql: str, __: Any) -> bool:
        if names and cursor.get_description():
            raise fault("one statement at a time", "not-one", _span(text, text.rfind(sql.strip())))
        names.append([column[0] for column in cursor.get_description()])
        return True

    cursor.exec_trace = begun
    rows: list[Row] = []
    for row in cursor.execute(text, params):
        if limits.rows is not None and len(rows) >= limits.rows:
            raise limits.more(text)
        shown = tuple(_shown(value, text) for value in row)
        watch.took(shown)
        if len(rows) % COUNTED == 0:
            watch.check()
        rows.append(shown)
    if not names or not names[0]:
        raise fault("there is no statement", "empty", hint="SELECT page, tokens FROM pages")
    return names[0], rows


def _shown(value: Any, text: str) -> Any:
    """A value as an answer has it: bytes in hexadecimal; no number that JSON could not say."""
    if isinstance(value, float) and not isfinite(value):
        hint = "a sum or a quotient became too large: divide by nullif(…, 0), or leave such rows out"
        raise fault("a value of the answer is infinite", "not-finite", SourceSpan(0, len(text)), hint=hint)
    return value.hex() if isinstance(value, bytes) else value


def _type(values: Iterator[Any]) -> str:
    """The type of a column by its values."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {int}:
        return "integer"
    return "real" if kinds <= {int, float} else "text"


def _given(params: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Parameters as SQLite takes them; lists and objects as JSON."""
    given = {name: kept(list(value) if isinstance(value, tuple | set) else value) for name, value in params.items()}
    for name, value in given.items():
        fault = None
        if isinstance(value, float) and not isfinite(value):
            fault = f"{value} is no number that a store could hold"
        elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            fault = f"{value} is larger than anything a store can hold"
        elif not isinstance(value, int | float | str | bytes | None):
            fault = f"{value!r} is no single value"
        if fault is not None:
            found = re.search(rf"[:$@]{re.escape(name)}\b", text)
            span = SourceSpan(*found.span()) if found else NOWHERE
            raise QueryError(f"${name}: {fault}", code="wrong-type", text=text, span=span)
    return given


# ---- what the tables read


class MomentReader:
    """Reads relations for one statement: every session as it stood when the statement was asked."""

    def __init__(
        self, runner: Runner, at: AsOf, session: str | None, text: str, watch: LimitedQuery, *, many: bool = False
    ) -> None:
        self._runner, self._session, self._text, self._watch = runner, session, text, watch
        self._many = many  # whether all sessions are asked, however many there are
        self._scopes: dict[tuple[Moment, bool], Scope] = {}
        self._at = moment_of(at)
        with runner.world.asking():
            self.basis = dict(self._scope(HERE, wide=False).basis)
            self._scope(HERE, wide=True)

    def read(self, relation: Relation, columns: tuple[str, ...], moment: Moment, filters: Filters) -> list[Row]:
        """Columns of a relation's rows at a moment; those of other values may be left out, not those of these."""
        self._watch.check()
        try:
            return self._rows(relation, columns, moment, filters)
        except QueryError as error:
            if error.code == "cancelled" or (not filters and moment == HERE):
                raise
            if filters:  # values that VMQL has another word for
                return self.read(relation, columns, moment, ())
            found = re.search(rf"\b{relation.name}(_at)?\s*\(", self._text, re.IGNORECASE)
            error.span, error.text = SourceSpan(*found.span()) if found else NOWHERE, self._text
            raise

    def _rows(self, relation: Relation, columns: tuple[str, ...], moment: Moment, filters: Filters) -> list[Row]:
        params: Params = {f"c{at}": value for at, (_, value) in enumerate(filters)}
        parts = [
            Compare(op="=", left=Word(path=(name,)), right=Param(name=f"c{at}")) for at, (name, _) in enumerate(filters)
        ]
        tail = Tail(where=And(parts=tuple(parts)) if len(parts) > 1 else parts[0] if parts else None)
        items = columns_named(*columns)
        key = f"SQL {relation.name} {' '.join(columns)} WHERE {' '.join(name for name, _ in filters)}"
        statement = RelationQuery(name=relation.name, columns=items, tail=tail)
        query = Query(self._runner, statement, self._session, params, key)
        query.watch = self._watch
        with query.asking():
            if relation is CONTEXT:
                result = context(query, self._context(items, moment, tail))
            else:
                scope = self._scope(moment, wide=relation.wide)
                make = maker(query, relation, scope, tail) if relation.made else None
                result = query.select(relation, items, tail, scope, make=make, ready=relation.name == "MUTATIONS")
        mixed = {at for at, column in enumerate(result.columns) if column.type in ("list", "json")}
        found = []
        for row in result:
            kept_row = tuple(kept(value) for value in row) if mixed else row
            self._watch.took(kept_row)
            found.append(kept_row)
        return found

    def _context(self, items: tuple[SelectItem, ...], moment: Moment, tail: Tail) -> ContextAt:
        """The context of the call at a moment."""
        scope = self._scope(moment, wide=False)
        if not isinstance(scope, OneSession):
            hint = "name one: context_at('call', 20, 'session'), or ask with session="
            raise fault("a context is of one session", "which-session", hint=hint)
        position = MomentNode(unit="position", value=Value(value=scope.at.position))
        where = Tail(where=tail.where, scope=InSession(name=Value(value=scope.name)))
        return ContextAt(columns=items, moment=position, tail=where)

    def _scope(self, moment: Moment, *, wide: bool) -> Scope:
        """What a table sees: settled once, so that what is written meanwhile changes nothing."""
        found = self._scopes.get((moment, wide))
        if found is None:
            found = self._scopes[moment, wide] = settled(self._opened(moment, wide=wide))
        return found

    def _opened(self, moment: Moment, *, wide: bool) -> Scope:
        unit, number, name = moment
        at = self._at if unit is None else _moment_node(unit, number)
        session, names = self._session if name is None else str(name), self._names()
        if session is None and len(names) == 1 and not self._many:
            session = names[0]
        many = session is None
        tail = Tail(as_of=at, scope=None if session is None else InSession(name=Value(value=session)))
        if many and at.unit in UNITS:
            sessions = ", ".join(f"'{one}'" for one in names[:3])
            hint = f"name one with session=, or as the third argument of a table: {sessions} …"
            raise fault(f"a {at.unit} is of one session", "moment-of-one-session", hint=hint)
        if many:
            return ManySessions(self._runner.world, tail, {}, ("1", {}))
        return scope_of(self._runner.world, tail, {}, session, wide=wide)

    def _names(self) -> list[str]:
        rows = self._runner.world.views.execute("SELECT name FROM sessions WHERE hidden = 0 ORDER BY name LIMIT 4")
        return [name for (name,) in rows]


def _moment_node(unit: Any, number: Any) -> MomentNode:
    """A moment by the arguments of a table."""
    word = str(unit).lower()
    if word == "head" and number is None:
        return MomentNode(unit="head")
    if word not in (*UNITS, "time", "logged_time"):
        known = (*UNITS, "time", "logged_time", "head")
        message, otherwise = f"{unit!r} is no unit of a moment", f"there are {', '.join(known)}"
        raise unknown(message, "no-such-moment", NOWHERE, word, known, otherwise, "did you mean '{}'?")
    if word in UNITS and not isinstance(number, int):
        raise fault(f"{word} {number!r} is no moment", "no-such-moment", hint=f"write pages_at('{word}', 40)")
    return MomentNode(unit=word, value=Value(value=number))  # type: ignore[arg-type]


def settled(scope: Scope) -> Scope:
    """A scope of many sessions as they stand now."""
    if isinstance(scope, ManySessions):
        rows = scope.world.views.execute(f"WITH {scope.lane_sql} SELECT * FROM lane", scope.values).fetchall()
        scope.values["lane"] = json.dumps(rows)
        scope.lane_sql, scope.whole = LISTED, False
    return scope


# ---- what is said of what cannot be answered


def _refusal(error: apsw.Error, text: str, refused: Sequence[str]) -> QueryError:
    """What to say of an error of SQLite."""
    message = str(error)
    if isinstance(error, apsw.InterruptError):
        return QueryError("the query was cancelled", code="cancelled", text=text)
    if refused:
        word = refused[0].split("'")[1] if "'" in refused[0] else refused[0].split()[0]
        at = text.lower().find(word.lower())
        remedy = "SELECT from the relations; SHOW RELATIONS lists them"
        said = f"a statement only reads the relations: {refused[0]} is refused"
        return QueryError(said, code="refused", text=text, span=_span(text, at if at >= 0 else 0), hint=remedy)
    code = "refused" if "may not be modified" in message else "not-sql"
    hint: str | None = None
    span = _span(text, _offset(error, text))
    if isinstance(error, apsw.TooBigError | apsw.NoMemError | apsw.FullError) or "too " in message:
        code, hint = "too-large", "write it shorter, or in parts"
    missing = re.match(r"no such (table|column|function|table-valued function): (?:\w+\.)?(\S+)", message)
    if missing:
        kind, word = missing[1], missing[2]
        known = TABLES if "table" in kind else {name for one in TABLES.values() for name in one.fields}
        meant = near(word, known) if kind != "function" else None
        code = {"table": "unknown-relation", "column": "unknown-column"}.get(kind, "not-sql")
        hint = f"did you mean {meant}?" if meant else "SHOW RELATIONS and DESCRIBE pages list what there is"
        at = text.lower().find(word.lower())
        span = _span(text, at) if at >= 0 else span
    return QueryError(f"this is no SQL that can be answered: {message}", code=code, text=text, span=span, hint=hint)


def _offset(error: apsw.Error, text: str) -> int:
    """Where in a text SQLite found its error, in characters."""
    at = getattr(error, "error_offset", -1)
    return len(text.encode()[:at].decode("utf-8", "ignore")) if at >= 0 else 0


def _span(text: str, at: int) -> SourceSpan:
    """The word at a place of a text."""
    found = re.compile(r"\w+|\S").search(text, max(at, 0))
    return SourceSpan(*found.span()) if found else SourceSpan(0, min(1, len(text)))
