"""LangGraph: a checkpoint put and got, beside LangGraph's own SQLite saver.

A talk grows by one message a checkpoint. The savers take turns in a process of the environment of the integrations
(`tools/integrations.py`), which holds LangGraph; each contender's seconds are of one checkpoint.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

from bootstrap import ROOT, ready

from benches.parts.rounds import LOWER, Bench, Goal, MissingError, Row, ratios, row

SIZES = (100, 10_000)
LIMITS = {100: 1.5, 10_000: 1}
CLOCKS = ("CPU", "wall")
ACTS = {"put": "a checkpoint put", "get": "the newest checkpoint got"}
FIGURES = {
    (size, act, clock): Goal(f"{words} at {size:,} checkpoints against SqliteSaver, {clock}", LIMITS[size], LOWER)
    for size in SIZES
    for act, words in ACTS.items()
    for clock in CLOCKS
}
BYTES = Goal("bytes of the last checkpoint of a talk of 10,000 messages against SqliteSaver", 0.1, LOWER)
GOALS = (*FIGURES.values(), BYTES)


def measure(bench: Bench) -> Iterator[Row]:
    """All rows, from the process that has LangGraph."""
    python = ready("integrations", venv=".venv-integrations") / "python"
    script = ROOT / "tools" / "benches" / "parts" / "langgraph_savers.py"
    asked = {
        "disk": str(bench.folder),
        "memory": str(bench.memory),
        "sizes": [bench.size(100, 20), bench.size(10_000, 200)],
        "rounds": bench.size(5, 2),
        "burdens": {"vmstore": bench.burden("vmstore"), "sqlite": bench.burden("sqlite")},
    }
    done = subprocess.run(
        [str(python), str(script), json.dumps(asked)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise MissingError(f"the process of the savers failed: {done.stderr[-500:]}")
    seconds = json.loads(done.stdout)
    for (size, act, clock), goal in FIGURES.items():
        times = seconds["times"][SIZES.index(size)]
        ours, theirs = times["vmstore"][f"{act} {clock}"], times["sqlite"][f"{act} {clock}"]
        bench.say(f"  {act} {clock} at {size:,}: vmstore {1e3 * min(ours):.3f} ms, sqlite {1e3 * min(theirs):.3f} ms")
        yield row(goal, ratios(ours, theirs))
    yield row(BYTES, [seconds["bytes"]["vmstore"] / seconds["bytes"]["sqlite"]])
