"""VMQL: reading a statement, against a reader of SQL written in Python; the `vmql` command, whole processes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from benches.parts.rounds import LOWER, Bench, Goal, MissingError, Row, ratios, row
from vmstore.shell.demo import SHIPPED
from vmstore.store.store import open_store
from vmstore.vmql.parse import parse, statements

READ = Goal("parse of 130 characters, with spans, against pure-Python sqlglot", 0.9, LOWER)
AGAIN = Goal("the same text again, against pure-Python sqlglot", 0.02, LOWER)
FIRST = Goal("`vmql STORE -c`, whole process, CPU, against `python -c pass`", 11, LOWER)
HELP = Goal("`vmql --help`, whole process, CPU, against `python -c pass`", 5, LOWER)
GOALS = (READ, AGAIN, FIRST, HELP)

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
PROCESSES = 21
CHECKOUT = Path(__file__).resolve().parents[2]
ASKED = "PAGES page, tokens WHERE type = claim ORDER BY tokens DESC LIMIT 5"
COMMAND = "import sys; from vmstore.shell.vmql.main import run; sys.exit(run())"  # what the installed script does


def measure(bench: Bench) -> Iterator[Row]:
    """Reading: a text seen for the first time, and one seen before; then the command as people run it."""
    yield from _read(bench)
    yield from _processes(bench)


def _read(bench: Bench) -> Iterator[Row]:
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


def _processes(bench: Bench) -> Iterator[Row]:
    store = bench.folder / "demo.vms"
    with open_store(store) as made:
        made.import_file(SHIPPED)
    first = ("-c", COMMAND, str(store), "-c", ASKED)
    acts = {"python": ("-c", "pass"), "vmql": first, "vmql-help": ("-c", COMMAND, "--help")}
    taken = bench.race(
        {name: lambda words=words: _cpu_of(words) for name, words in acts.items()}, bench.size(PROCESSES, 2)
    )
    yield row(FIRST, ratios(taken["vmql"], taken["python"]))
    yield row(HELP, ratios(taken["vmql-help"], taken["python"]))


def _cpu_of(words: tuple[str, ...]) -> float:
    """The CPU a Python of its own takes, with compiled modules kept as they are where it is installed."""
    around = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *words],
        env={**around, "PYTHONPATH": str(CHECKOUT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


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
