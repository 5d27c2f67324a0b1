"""Holds the store against its model and its laws over many lives of agents that hypothesis makes up.

    python tools/hold.py --sessions 2000 --seed 1 --totals totals.json

A life is one agent's session with its forks, restarts, retries and failures. Lives come in
batches, each with a seed of its own. The first failure is shrunk and shown, and the command that
repeats its batch is the last line. Exit code 1 when a law was broken.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import laws  # noqa: E402  (the checkout is not installed)
from vmstore.testing.strategies import Life, lives  # noqa: E402

BATCH = 100  # lives to a seed: few enough to repeat in a minute
MEMORY = Path("/dev/shm")  # a store that need not survive flushes a hundred times faster there
COUNTED = ("sessions", "calls", "mutations")


def main(arguments: Sequence[str]) -> int:
    """Holds batch after batch until there are enough, the time is up, or a law is broken."""
    input_arguments = parsed(arguments)
    started, counts = time.monotonic(), Counter[str]()
    code, seed = 0, input_arguments.seed
    while counts["lives"] < input_arguments.sessions and (
        not input_arguments.minutes or time.monotonic() - started < 60 * input_arguments.minutes
    ):
        count = min(BATCH, input_arguments.sessions - counts["lives"])
        try:
            counts += batch(seed, count)
        except Exception:
            traceback.print_exc()
            print(f"\na law is broken; repeat it with: python tools/hold.py --sessions {count} --seed {seed}")
            counts["failures"] += 1
            code = 1
            break
        seed += 1
        print(line(counts, input_arguments.sessions, time.monotonic() - started), flush=True)
    counts["seconds"] = round(time.monotonic() - started)
    if input_arguments.totals:
        add(input_arguments.totals, counts)
    return code


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="hold.py", description=about)
    parser.add_argument("--sessions", type=int, default=200, metavar="N", help="how many lives (default 200)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="seed of the first batch (default 1)")
    parser.add_argument("--minutes", type=float, metavar="M", help="stop after the batch that ends past M minutes")
    parser.add_argument("--totals", type=Path, metavar="FILE", help="add what was held to the sums in a JSON file")
    return parser.parse_args(arguments)


def batch(seed: int, count: int, hold: Callable[[Life, Path], Counter[str]] = laws.hold) -> Counter[str]:
    """Holds some lives against every law; what they had. Raises what a broken law raises, shrunk."""
    counts: Counter[str] = Counter()

    def play_life(life: Life) -> None:
        with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
            actual_counts = hold(life, Path(folder))
        counts.update({"lives": 1, **{name: actual_counts[name] for name in COUNTED}})

    trying = settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    seeded(seed)(trying(given(lives())(play_life)))()
    return counts


def line(counts: Counter[str], wanted: int, seconds: float) -> str:
    """How far it has come."""
    sums = ", ".join(f"{counts[name]:,} {name}" for name in COUNTED)
    return f"{counts['lives']:,} of {wanted:,} lives held: {sums}, {seconds:,.0f} s"


def add(path: Path, counts: Counter[str]) -> None:
    """Adds a run to the sums in a file, which is replaced whole."""
    sums = Counter(json.loads(path.read_text()) if path.exists() else {})
    sums.update({"runs": 1, "failures": 0})
    sums.update(counts)
    beside = path.with_name(path.name + ".new")
    beside.write_text(json.dumps(sums, indent=2, sort_keys=True) + "\n")
    os.replace(beside, path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
