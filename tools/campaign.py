"""Breaks stores on purpose, as often as it is told, and checks what is left.

    python tools/campaign.py power --seed 1 --minutes 10 --totals totals.json

Campaigns: sweep (each operation of a script fails or is the last), power (random power cuts), kill
(SIGKILL of writers), stop (SIGSTOP of writers), forks (processes forked with a store open), live
(SIGKILL of a session that manages its memory), full (full and failing disks), flips (changed bytes),
writers (many processes on one store), tamper (forged histories, seals and proofs), chores (seals,
backups and the like, broken at every step), asking (VMQL while others write), gate (batches by hand,
many of them wrong), soak (hours of mixed load), outside (hostile copies and files, by every door), loop
(an agent's 300 turns against a provider that keeps what it was sent). A
campaign is made of batches, each with a seed of its own.
The first invariant that breaks ends it, and the command that repeats the batch is the last line.
Exit code 1 then, and where a kind of fault that must come never came.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MEMORY = Path("/dev/shm")  # a store that need not outlive the machine flushes a hundred times faster there
CAMPAIGNS = (
    "sweep",
    "power",
    "kill",
    "stop",
    "forks",
    "live",
    "full",
    "flips",
    "writers",
    "tamper",
    "chores",
    "asking",
    "outside",
    "gate",
    "soak",
    "loop",
)
TIMED = ("writers", "asking", "soak")  # what takes as long as it is told
PLANTS = {"soak": ("leak", "wal", "slow"), "forks": ("shared",)}
OURS = (Path(__file__).parent, ROOT)


def main(arguments: Sequence[str]) -> int:
    """Runs batch after batch until the time is up, there are enough, or an invariant breaks."""
    input_arguments = parsed(arguments)
    sys.path[:0] = [str(place) for place in OURS if str(place) not in sys.path]
    campaign = import_module(f"campaigns.{input_arguments.name}")
    started = time.monotonic()
    counts: Counter[str] = Counter()
    seed, problem = input_arguments.seed, None
    while problem is None and not enough(input_arguments, counts["batches"], time.monotonic() - started):
        counts["batches"] += 1
        problem = run_batch(campaign, input_arguments, seed, counts)
        seed += 1
        if not input_arguments.json:
            print(line(input_arguments.name, counts, time.monotonic() - started), flush=True)
    if problem is None:
        problem = deaf(campaign, counts)
    counts["seconds"] = round(time.monotonic() - started)
    if input_arguments.totals:
        add(input_arguments.totals, input_arguments.name, counts, range(input_arguments.seed, seed))
    close(input_arguments, counts, range(input_arguments.seed, seed), problem)
    return 0 if problem is None else 1


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="campaign.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=CAMPAIGNS, metavar="NAME", help=", ".join(CAMPAIGNS))
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the first batch (default 1)")
    parser.add_argument("--minutes", type=float, metavar="M", help="stop after the batch that ends past M minutes")
    parser.add_argument("--batches", type=int, metavar="B", help="stop after B batches (default 1 without --minutes)")
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="how long writers (20), asking (6) or a soak (10) works"
    )
    parser.add_argument("--totals", type=Path, metavar="FILE", help="add what was done to the sums in a JSON file")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where stores are made (default: in memory)")
    parser.add_argument(
        "--plant", metavar="FAULT", help="a fault that must be seen: " + "; ".join(map(_planted, PLANTS.items()))
    )
    parser.add_argument("--keep", action="store_true", help="leave the stores where they are")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end and nothing else")
    input_arguments = parser.parse_args(arguments)
    if input_arguments.seconds is not None and input_arguments.name not in TIMED:
        parser.error(f"--seconds is for {' and '.join(TIMED)}: the batches of the others end by themselves")
    if input_arguments.plant is not None and input_arguments.plant not in PLANTS.get(input_arguments.name, ()):
        parser.error(f"--plant is for {'; '.join(map(_planted, PLANTS.items()))}: other faults are planted by tests")
    return input_arguments


def _planted(row: tuple[str, tuple[str, ...]]) -> str:
    return f"{', '.join(row[1])} in {row[0]}"


def enough(arguments: argparse.Namespace, batches: int, seconds: float) -> bool:
    """Whether the run is over."""
    if arguments.minutes is not None and seconds >= 60 * arguments.minutes and batches:
        return True
    most = arguments.batches if arguments.batches is not None else None if arguments.minutes is not None else 1
    return most is not None and batches >= most


def run_batch(campaign: Any, arguments: argparse.Namespace, seed: int, counts: Counter[str]) -> str | None:
    """One batch, added to what was found; the command that repeats it where an invariant broke."""
    try:
        with room(arguments) as place:
            gather(counts, campaign.batch(seed, place, **batch_options(arguments)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # what is broken must pass every `except Exception` of the store
        traceback.print_exc()
        gather(counts, getattr(error, "found", {}))
        counts["failures"] += 1
        counts[getattr(error, "kind", "crashed")] += 1
        return f"seed {seed} broke an invariant; repeat it with: {repeat(arguments, seed)}"
    return None


def gather(counts: Counter[str], more: Mapping[str, int]) -> None:
    """Adds what was done to what was; of the worst of something it keeps the worst."""
    for what, count in more.items():
        counts[what] = max(counts[what], count) if what.startswith("worst") else counts[what] + count


@contextmanager
def room(arguments: argparse.Namespace) -> Iterator[Path]:
    """A folder for a batch's stores, gone afterwards unless it is to be kept."""
    where = arguments.folder or (MEMORY if MEMORY.is_dir() else None)
    if arguments.keep:
        yield Path(mkdtemp(dir=where, prefix=f"{arguments.name}-"))
        return
    with TemporaryDirectory(dir=where) as place:
        yield Path(place)


def batch_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """What a batch is told beside its seed and its folder."""
    values = {
        name: value for name, value in (("seconds", arguments.seconds), ("plant", arguments.plant)) if value is not None
    }
    if arguments.name == "soak" and not arguments.json:
        values["tell"] = partial(print, flush=True)
    return values


def repeat(arguments: argparse.Namespace, seed: int) -> str:
    """The command that repeats a batch."""
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    commit = done.stdout.strip() or "unknown"
    long = "" if arguments.seconds is None else f" --seconds {arguments.seconds:g}"
    planted = "" if arguments.plant is None else f" --plant {arguments.plant}"
    run = f"python tools/campaign.py {arguments.name} --seed {seed} --batches 1{long}{planted}"
    return f"git checkout {commit.removesuffix('-dirty')} && {run}"


def deaf(campaign: Any, counts: Counter[str]) -> str | None:
    """What a campaign says that did not meet all it is there for: its silence proves nothing."""
    missing = sorted(kind for kind in campaign.NEEDED if not counts[kind] and not counts[f"skipped {kind}"])
    return f"this run proves nothing: it never met {', '.join(missing)}; run it longer" if missing else None


def line(name: str, counts: Counter[str], seconds: float) -> str:
    """How far it has come."""
    text = ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()) if what != "batches")
    return f"{name}: {counts['batches']:,} batches in {seconds:,.0f} s: {text}"


def close(arguments: argparse.Namespace, counts: Counter[str], seeds: range, problem: str | None) -> None:
    """The last word of a run."""
    if arguments.json:
        fields = {
            "campaign": arguments.name,
            "seeds": [seeds.start, seeds.stop - 1],
            "found": counts,
            "problem": problem,
        }
        print(json.dumps(fields))
    elif problem is not None:
        print(f"\n{problem}")


def add(path: Path, name: str, counts: Counter[str], seeds: range) -> None:
    """Adds a run to the sums in a file, which is replaced whole; two runs may end at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(path.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        document = json.loads(path.read_text()) if path.exists() else {}
        sums = Counter(document.get(name, {}).get("sums", {}))
        sums.update({"runs": 1, "failures": 0})
        gather(sums, counts)
        runs = [*document.get(name, {}).get("seeds", []), [seeds.start, seeds.stop - 1]]
        document[name] = {"sums": dict(sorted(sums.items())), "seeds": runs}
        beside = path.with_name(path.name + ".new")
        beside.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n")
        os.replace(beside, path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
