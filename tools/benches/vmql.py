"""VMQL: reading a statement, against a reader of SQL written in Python."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from benches.parts import asked, beside_duckdb, column_growth, command, sums
from benches.parts.rounds import LOWER, Bench, Goal, MissingError, Row, ratios, row
from vmstore.vmql.parse import parse, statements

READ = Goal("parse of 130 characters, with spans, against pure-Python sqlglot", 0.9, LOWER)
AGAIN = Goal("the same text again, against pure-Python sqlglot", 0.02, LOWER)
GOALS = (READ, AGAIN, *asked.GOALS, *command.GOALS, *sums.GOALS, *beside_duckdb.GOALS, *column_growth.GOALS)

STATEMENT = (
    "PAGES page, tokens, tier IN SESSION a AS OF TURN 412 "
    "WHERE type = claim AND importance >= 0.8 ORDER BY importance DESC, page LIMIT 5"
)
SQL = (
    "SELECT page, tokens, tier FROM pages WHERE session = 'a' AND turn <= 412 "
    "AND type = 'claim' AND importance >= 0.8 ORDER BY importance DESC, page LIMIT 5"
)
TIMES = (400, 40)
ROUNDS = 9


def measure(bench: Bench) -> Iterator[Row]:
    """Both rows: a text seen for the first time, and one seen before."""
    assert 130 <= len(STATEMENT) <= 135, "the goal is of 130 characters"
    sqlglot = peer()
    times = range(bench.size(*TIMES))

    def theirs() -> None:
        for _ in times:
            sqlglot.parse_one(SQL)

    def ours() -> None:
        for _ in times:
            next(statements(STATEMENT))

    def again() -> None:
        for _ in times:
            parse(STATEMENT)

    for warm in (theirs, ours, again):
        warm()
    taken = bench.race({"sqlglot": theirs, "vmstore": ours, "vmstore-again": again}, bench.size(ROUNDS, 3))
    yield row(READ, ratios(taken["vmstore"], taken["sqlglot"]))
    yield row(AGAIN, ratios(taken["vmstore-again"], taken["sqlglot"]))
    yield from asked.measure(bench)
    yield from command.measure(bench)
    yield from sums.measure(bench)
    yield from beside_duckdb.measure(bench)
    yield from column_growth.measure(bench)


def peer() -> ModuleType:
    """sqlglot, as it is without its compiled parts."""
    try:
        import sqlglot
        from sqlglot import parser
    except ModuleNotFoundError:
        raise MissingError("sqlglot is not installed; run: pip install 'sqlglot>=30'") from None
    if not str(parser.__file__).endswith(".py"):
        raise MissingError("sqlglot is installed compiled; run: pip uninstall sqlglotc")
    return sqlglot
