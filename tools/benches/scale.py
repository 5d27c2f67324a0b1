"""Scale: a store in PostgreSQL, beside the raw append and flush of its disk and a store in a folder.

The server is one from pip, on this machine, with its flushes on; contenders take turns in a process of the environment
of `tools/postgres.py`. A figure against the floor is of raw appends measured before and after it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

from bootstrap import ROOT, ready

from benches.parts.rounds import HIGHER, LOWER, Bench, Goal, MissingError, Row, row

ONE = Goal("PostgreSQL: durable commits of 1 by one writer, against raw append+fdatasync", 0.5, HIGHER)
THREADS = Goal("PostgreSQL: calls recorded by 16 threads of one process, against raw append+fdatasync", 4, HIGHER)
TAIL = Goal("the slowest hundredth of those calls, against their median", 4, LOWER)
SHARDS = Goal("PostgreSQL: calls recorded by 16 processes in 16 namespaces, against raw append+fdatasync", 2, HIGHER)
HUNDRED = Goal("PostgreSQL: mutations a second at 100 a commit, against commits of 1", 15, HIGHER)
HEARD = Goal("until another host has read what was acknowledged, in ms, asking again at once", 25, LOWER)
POLLED = Goal("until a follower on another host has what was acknowledged, looking each 20 ms, in ms", 25, LOWER)
WOKEN = Goal("until a follower on another host has it, woken by a notification, in ms", 5, LOWER)
CONTEXT = Goal("the context of a call where the log is in PostgreSQL, against a store in a folder", 1.1, LOWER)
PUT = Goal("a content of 1 MB appended, as an object of moto beside PostgreSQL, against a row there", 3, LOWER)
GOT = Goal("the same content read, against a row", 3, LOWER)
GOALS = (ONE, THREADS, TAIL, SHARDS, HUNDRED, HEARD, POLLED, WOKEN, CONTEXT, PUT, GOT)
NAMES = ("one", "threads", "tail", "shards", "hundred", "heard", "polled", "woken", "context", "put", "got")


def measure(bench: Bench) -> Iterator[Row]:
    """All rows, from the process that has a server."""
    python = ready("postgres-tests", venv=".venv-postgres") / "python"
    script = ROOT / "tools" / "benches" / "parts" / "postgres_store.py"
    asked = {
        "folder": str(bench.folder),
        "rounds": bench.size(9, 2),
        "block": bench.size(25, 4),
        "calls": bench.size(12, 2),
        "heard": bench.size(200, 10),
        "processes": bench.size(16, 2),
        "burden": bench.burden("vmstore"),
    }
    done = subprocess.run(
        [str(python), str(script), json.dumps(asked)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise MissingError(f"the process of the store in PostgreSQL failed: {done.stderr[-500:]}")
    figures = json.loads(done.stdout.splitlines()[-1])
    bench.flushes(figures["floor"])
    bench.say(f"  {figures['said']}")
    for goal, name in zip(GOALS, NAMES, strict=True):
        yield row(goal, figures[name])
