"""The functions of VMQL: sums over a group, and those of one row's values, as lengths, days and patterns."""

from __future__ import annotations

from typing import Any, NamedTuple

import apsw

from vmstore.vmql.column_types import ANY, BOOLEAN, INTEGER, REAL, TEXT, ColumnType

NUMBERS = ("integer", "real")
SUMMED = (*NUMBERS, "boolean")


class Function(NamedTuple):
    """A function: how it is written, what it gives, its SQL and the types that each argument may have.

    Of a text the SQL of a row's function has what is shown, of other types what is kept. `gives` is None for the
    type of the first, or of that at `typed_by`. One that `sums` is over the rows of a group, in their `{order}`.
    """

    written: str
    meaning: str
    gives: ColumnType | None
    sql: str
    takes: tuple[tuple[str, ...], ...] = ((),)
    needed: int = 1  # arguments that must be given
    of_list: str = ""  # the SQL where the first is a list
    sums: bool = False
    typed_by: int = 0  # the argument whose type it gives, and the first of those that are of one type

    @property
    def type(self) -> str:
        """What it gives, in a word."""
        return "as x" if self.gives is None else self.gives.type

    @property
    def name(self) -> str:
        """Its name."""
        return self.written.partition("(")[0]

    @property
    def arguments(self) -> str:
        """How many it takes, in words."""
        count = len(self.takes)
        return str(count) if self.needed == count else f"{self.needed} to {count}"


def _sum(written: str, meaning: str, gives: ColumnType | None, sql: str, *takes: tuple[str, ...]) -> Function:
    return Function(written, meaning, gives, sql, takes or ((),), len(takes) or 1, sums=True)


_MOMENT = "({0}) / 1000000 - (({0}) % 1000000 < 0), 'unixepoch'"  # whole seconds, also before 1970


def _time(written: str, meaning: str, gives: ColumnType, sql: str) -> Function:
    return Function(written, meaning, gives, sql.format(moment=_MOMENT), (("time",),))


_LISTED = (
    _sum("count(x)", "rows where x is not null; count(*) is all rows", INTEGER, "count({0})"),
    _sum("sum(x)", "the sum; of a condition the rows for which it holds; null of no rows", None, "sum({0})", SUMMED),
    _sum("min(x)", "the least", None, "min({0})"),
    _sum("max(x)", "the greatest", None, "max({0})"),
    _sum("avg(x)", "the mean; of a condition the share of rows for which it holds", REAL, "avg({0})", SUMMED),
    _sum(
        "quantile(x, q)",
        "the value below which a share q of the rows lie, from 0 to 1, between two rows in proportion",
        REAL,
        "vm_quantile({0}, {1})",
        NUMBERS,
        NUMBERS,
    ),
    _sum("first(x)", "x in the first row, in the relation's order", None, "vm_first({0} ORDER BY {order})"),
    _sum("last(x)", "x in the last row", None, "vm_last({0} ORDER BY {order})"),
    _sum("running(x)", "of a series, as PER TURN: the sum of x, a sum itself, so far", None, "{0}", NUMBERS),
    Function(
        "length(x)",
        "characters of a text, members of a list",
        INTEGER,
        "length({0})",
        (("text", "list"),),
        of_list="json_array_length({0})",
    ),
    Function("lower(x)", "a text in small letters", TEXT, "vm_lower({0})", (("text",),)),
    Function("upper(x)", "a text in capitals", TEXT, "vm_upper({0})", (("text",),)),
    Function("abs(x)", "a number without its sign", None, "abs({0})", (NUMBERS,)),
    Function(
        "round(x, digits)",
        "a number rounded, to so many digits where they are given",
        REAL,
        "round({0}, {1})",
        (NUMBERS, ("integer",)),
    ),
    Function("coalesce(x, y)", "x, or y where x is null", None, "coalesce({0}, {1})", ((), ()), 2),
    Function(
        "iif(condition, x, y)",
        "x where a condition holds, else y",
        None,
        "iif({0}, {1}, {2})",
        (("boolean",), (), ()),
        3,
        typed_by=1,
    ),
    _time("day(at)", "the day of a time, as 2026-03-04, UTC", TEXT, "strftime('%Y-%m-%d', {moment})"),
    _time("month(at)", "its month, as 2026-03", TEXT, "strftime('%Y-%m', {moment})"),
    _time("hour(at)", "its hour, 0 to 23", INTEGER, "CAST(strftime('%H', {moment}) AS INTEGER)"),
    _time(
        "weekday(at)", "its day of the week, 1 for Monday to 7", INTEGER, "CAST(strftime('%u', {moment}) AS INTEGER)"
    ),
    Function(
        "regexp(x, pattern)",
        "whether a regular expression is found in a text",
        BOOLEAN,
        "regexp({1}, {0})",
        (("text",), ("text",)),
        2,
    ),
)
FUNCTIONS: dict[str, Function] = {function.name: function for function in _LISTED}
"""Each by its name, those that sum first."""


def fits(type_: str, takes: tuple[str, ...]) -> bool:
    """Whether a value of a type may stand where some types are taken; none is any, and of JSON nobody knows."""
    return not takes or type_ in takes or type_ == ANY.type


def _lower(*values: Any) -> str | None:
    return None if values[0] is None else str(values[0]).lower()


def _upper(*values: Any) -> str | None:
    return None if values[0] is None else str(values[0]).upper()


def register(db: apsw.Connection) -> None:
    """Has a connection know those that SQLite has not, but for regular expressions, which `learn` brings."""
    db.create_scalar_function("vm_lower", _lower, 1, deterministic=True)
    db.create_scalar_function("vm_upper", _upper, 1, deterministic=True)


def learn(db: apsw.Connection) -> None:
    """Has a connection know regular expressions, which take each sign once; finding where they lie takes a while."""
    import apsw.sqlite_extra

    apsw.sqlite_extra.load(db, "regexp")
