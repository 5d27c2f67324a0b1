"""The `vmql` command as people run it: a process of its own, from its start to its end."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benches.parts.rounds import LOWER, Bench, Goal, Row, ratios, row
from vmstore.shell.demo.demo import SHIPPED
from vmstore.store.store import open_store

FIRST = Goal("`vmql STORE -c`, whole process, CPU, against `python -c pass`", 11, LOWER)
HELP = Goal("`vmql --help`, whole process, CPU, against `python -c pass`", 5, LOWER)
GOALS = (FIRST, HELP)

ROUNDS = (21, 2)
CHECKOUT = Path(__file__).resolve().parents[3]
ASKED = "PAGES page, tokens WHERE type = claim ORDER BY tokens DESC LIMIT 5"
COMMAND = "import sys; from vmstore.shell.vmql.main import run; sys.exit(run())"  # what the installed script does


def measure(bench: Bench) -> Iterator[Row]:
    """Both rows: a question and its answer, and the help, which loads nothing."""
    store = bench.folder / "demo.vms"
    with open_store(store) as made:
        made.import_file(SHIPPED)
    question = ("-c", COMMAND, str(store), "-c", ASKED)
    acts = {"python": ("-c", "pass"), "vmql": question, "vmql-help": ("-c", COMMAND, "--help")}
    taken = bench.race({name: lambda words=words: cpu_of(words) for name, words in acts.items()}, bench.size(*ROUNDS))
    yield row(FIRST, ratios(taken["vmql"], taken["python"]))
    yield row(HELP, ratios(taken["vmql-help"], taken["python"]))


def cpu_of(words: tuple[str, ...]) -> float:
    """The CPU a Python of its own takes; it may keep what it compiles, as where it is installed."""
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
