"""Measures vmstore beside its floors and its peers: `python3 tools/bench.py NAME [--json]`.

Without a name it lists the benches; `all` runs every one. A figure is a ratio to a contender of
the same run wherever it can be: contenders take turns, the figure is the median over the rounds,
low and high are the extremes. CPU is counted where the disk is not the subject; a durable figure
stands beside the raw append and flush measured before and after it.

    python3 tools/bench.py append                 a table of goals and figures
    python3 tools/bench.py context --json         one JSON object on one line
    python3 tools/bench.py all --json             one line a bench
    python3 tools/bench.py rebuild --quick        small sizes: to see it work, not to quote
    python3 tools/bench.py memory --held-out      another set of wordings
    python3 tools/bench.py recall --coding FILE   recalls of coding sessions that lie elsewhere
    python3 tools/bench.py recall --embedder MODULE:FUNCTION   with vectors by a function of yours
    python3 tools/bench.py memory --wordings FILE  a story in somebody else's words
    python3 tools/bench.py assembly --topics FILE  dated sessions and their questions that lie elsewhere
    python3 tools/bench.py all --stores /tmp/s    keeps the stores it built for the next run
    python3 tools/bench.py append --quick --slow vmstore=0.01   10 ms onto each act: figures must move

Exit code 0 when it measured, whatever was missed; 1 when it could not, with the reason.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Iterator, Sequence  # noqa: UP035  Python 3.8 has no others

from bootstrap import ROOT, RefusedError, entry, ready, say

NAMES = (
    "append",
    "rebuild",
    "verify",
    "reopen",
    "follow",
    "context",
    "lineage",
    "storage",
    "many",
    "cold",
    "record",
    "wrap",
    "proxy",
    "vmql",
    "evict",
    "whatif",
    "fleet",
    "kernel",
    "memory",
    "trust",
    "debug",
    "redact",
    "page",
    "recall",
    "search",
    "adversarial",
    "assembly",
    "guards",
    "digests",
    "langgraph",
    "scale",
)
MEMORY = Path("/dev/shm")
MEMORY_BYTES_MIN = 8 << 30
PEERS = {
    "eventsourcing": "eventsourcing>=9.5",
    "pydantic": "pydantic>=2.11",
    "sqlglot": "sqlglot>=30",
    "httpx2": "openai>=3",
    "aiohttp": "aiohttp>=3.11",
}


def main(arguments: Sequence[str]) -> int:
    """Runs the benches asked for and prints what they found."""
    asked = parsed(arguments)
    if asked.name is None:
        print("\n".join(f"{name:9} {about(name)}" for name in NAMES))
        return 0
    if not all(map(is_there, ("apsw", "msgspec"))):  # what vmstore stands on; it is in the checkout itself
        python = ready("dev") / "python"
        try:
            os.execv(python, [str(python), __file__, *arguments])
        except OSError as error:
            raise RefusedError(f"cannot start {python}: {error.strerror}; remove .venv and try again") from None
    check_peers(may_install=not asked.quick)
    names = NAMES if asked.name == "all" else (asked.name,)
    with tempfile.TemporaryDirectory(prefix="vmstore-bench-") as disk, memory(asked.quick) as fast:
        for name in names:
            run(name, asked, Path(disk), Path(fast or disk))
    return 0


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="bench.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?", choices=(*NAMES, "all"), metavar="NAME", help=", ".join((*NAMES, "all")))
    parser.add_argument("--json", action="store_true", help="print one JSON object a bench")
    parser.add_argument("--quick", action="store_true", help="small sizes; the figures are not for quoting")
    parser.add_argument(
        "--held-out", action="store_true", help="memory: decisions in words that nobody looked at while tuning"
    )
    parser.add_argument(
        "--coding", type=Path, metavar="FILE", help="recall: only these recalls over the coding sessions"
    )
    parser.add_argument(
        "--wordings", type=Path, metavar="FILE", help="memory: only this story, in the words of somebody else"
    )
    parser.add_argument(
        "--topics", type=Path, metavar="FILE", help="assembly: only these dated sessions and their questions"
    )
    parser.add_argument(
        "--embedder", metavar="MODULE:FUNCTION", help="recall: only with this function, which gives texts their vectors"
    )
    parser.add_argument("--stores", type=Path, metavar="FOLDER", help="keep built stores there for later runs")
    parser.add_argument(
        "--slow", action="append", default=[], metavar="CONTENDER=SECONDS", help="slow a contender, to see figures move"
    )
    return parser.parse_args(arguments)


def about(name: str) -> str:
    """The first line of a bench's docstring, without loading what it measures."""
    text = (ROOT / "tools" / "benches" / f"{name}.py").read_text()
    return text[3 : text.index("\n")].rstrip('."')


def check_peers(may_install: bool) -> None:
    """Refuses where a peer is missing that figures are taken against.

    One peer is not among the developers' packages, because what it depends on is large and not
    needed here: into the checkout's own environment it is installed alone.
    """
    missing = [line for package, line in PEERS.items() if not is_there(package)]
    if missing:
        lines = " ".join(f"'{line}'" for line in missing)
        raise RefusedError(f"peers are missing; run: {sys.executable} -m pip install {lines}")
    ours = may_install and Path(sys.prefix) == ROOT / ".venv"
    if ours and not is_there("chuk_ai_session_manager"):
        say("Installing chuk-ai-session-manager, whose log in memory is a contender")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "chuk-ai-session-manager"]
        subprocess.run(pip, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def is_there(package: str) -> bool:
    """Whether a package could be imported."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def memory(quick: bool) -> Any:
    """A folder where a flush costs nothing, or nothing where memory is short."""
    enough = (64 << 20) if quick else MEMORY_BYTES_MIN
    if MEMORY.is_dir():
        free = os.statvfs(MEMORY)
        if free.f_bavail * free.f_frsize >= enough:
            return tempfile.TemporaryDirectory(prefix="vmstore-bench-", dir=MEMORY)
    say("no memory folder is large enough: CPU figures are taken on the disk")
    return tempfile.TemporaryDirectory(prefix="vmstore-bench-fast-")


def run(name: str, asked: argparse.Namespace, disk: Path, fast: Path) -> None:
    """Runs one bench and prints its rows."""
    from benches.parts.rounds import Bench, MissingError, Row

    module = importlib.import_module(f"benches.{name}")
    place, quicker = disk / name, fast / name
    place.mkdir()
    quicker.mkdir()
    stores = asked.stores or disk / "stores"
    stores.mkdir(parents=True, exist_ok=True)
    bench = Bench(
        place, quicker, stores, quick=asked.quick, held_out=asked.held_out, coding=asked.coding,
        wordings=asked.wordings, topics=asked.topics, embedder=asked.embedder, burdens=burdens(asked.slow), say=say,
    )  # fmt: skip
    started = time.monotonic()
    rows: list[Row] = []
    try:
        for row in module.measure(bench):
            rows.append(row)
            say(f"  {line(row)}")
    except MissingError as missing:
        raise RefusedError(f"{name} could not be measured: {missing}") from None
    fields = {
        **machine(asked.quick),
        "flushes": f"flushes {bench.regime}",
        "took": f"took {time.monotonic() - started:.0f} s",
    }
    if asked.json:
        print(json.dumps({"bench": name, "machine": fields, "rows": [row._asdict() for row in rows]}), flush=True)
    else:
        print("\n".join(table(name, rows, fields)), flush=True)


def burdens(texts: Sequence[str]) -> dict[str, float]:
    """What each contender is slowed by, in seconds."""
    fields = {}
    for text in texts:
        name, _, seconds = text.partition("=")
        try:
            fields[name] = float(seconds)
        except ValueError:
            raise RefusedError(f"--slow {text!r} is no CONTENDER=SECONDS") from None
    return fields


def table(name: str, rows: Sequence[Any], fields: dict[str, str]) -> Iterator[str]:
    """The rows for a reader."""
    width = max([len(row.name) for row in rows] + [len(name)])
    yield f"\n{name:{width}}  {'figure':>10}  {'low':>10}  {'high':>10}  goal"
    for row in rows:
        yield line(row, width)
    yield "; ".join(fields.values())


def line(row: Any, width: int = 0) -> str:
    """One row: figure, spread, goal, and whether it holds."""
    goal = promised(row)
    text = "" if row.goal == "" else "  held" if row.ok else "  MISSED"
    figures = "  ".join(f"{short(value):>10}" for value in (row.figure, row.low, row.high))
    return f"{row.name:{width}}  {figures}  {goal}{text}"


def promised(goal: Any) -> str:
    """What must hold, in words."""
    if isinstance(goal.goal, str):
        return goal.goal
    return f"{'at least' if goal.better == 'higher' else 'at most'} {goal.goal:,}"


def goals() -> dict[tuple[str, str], str]:
    """Every figure by bench and name, and what must hold of it; specs/performance.md lists the same."""
    modules = {name: importlib.import_module(f"benches.{name}") for name in NAMES}
    return {(name, goal.name): promised(goal) for name, module in modules.items() for goal in module.GOALS}


def short(value: float) -> str:
    """A number as people read it."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def machine(quick: bool) -> dict[str, str]:
    """What the figures were measured on, and how busy it was."""
    import apsw

    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").is_file():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), model)
    fields = {
        "cpu": f"{os.cpu_count()} x {model}",
        "system": f"{platform.system()} {platform.release()}",
        "python": f"Python {platform.python_version()}",
        "sqlite": f"SQLite {apsw.sqlite_lib_version()}",
        "load": f"load {os.getloadavg()[0]:.2f}",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    return {"sizes": "QUICK: small sizes, not for quoting", **fields} if quick else fields


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))  # the checkout's own vmstore, wherever this Python has another
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was built in memory is cleared away
    entry(main)
