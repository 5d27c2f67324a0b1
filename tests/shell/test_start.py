"""A command starts with what its question needs: neither the fold nor the gate nor rooms it does not enter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import vmstore
from vmstore.shell.demo.demo import SHIPPED

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    "capture", "columns", "debug", "embedders", "engine", "facts", "live", "providers", "relevance", "replay",
    "search", "tags", "transfer", "vm", "vmql", "work",
)  # fmt: skip
FOLDING = ("core.mutation", "log.archive.file", "views.dispatch", "views.fold", "namespace.storekey")
FOREIGN = (
    "asyncio", "dateparser", "difflib", "duckdb", "importlib.metadata", "importlib.resources", "logging", "numpy",
    "prompt_toolkit", "random", "rich", "snowballstemmer", "sqlite3", "tempfile", "zipfile", "zoneinfo",
)  # fmt: skip
MODULES_MAX = 150  # of vmstore's own

ASK = """
import sys
from vmstore.shell.main import run
try:
    code = run()
finally:
    print(*sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store on disk with the session that ships, its views folded and its words indexed."""
    path = str(tmp_path_factory.mktemp("start") / "agent.vms")
    with vmstore.open(path) as store:
        store.import_file(SHIPPED)
        store.search("storage")
    return path


def loaded(path: str, command: str, *words: str) -> set[str]:
    """The modules that a fresh `vmstore COMMAND PATH …` has imported when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, command, path, *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout) > 100
    return set(done.stderr.splitlines()[-1].split())


def own(modules: set[str]) -> list[str]:
    """Those of vmstore."""
    return [name for name in modules if name.partition(".")[0] == "vmstore"]


@pytest.mark.parametrize("command", ["sessions", "calls", "context"])
def test_a_command_imports_no_part_it_does_not_use(path: str, command: str) -> None:
    """What reads the views imports no gate, no fold, no kernel, no search, nor a package that other commands need."""
    modules = loaded(path, command)
    assert modules.isdisjoint({*FOREIGN, *(f"vmstore.{part}" for part in (*ROOMS, *FOLDING))})
    assert len(own(modules)) <= MODULES_MAX


def test_a_search_imports_the_ranking_and_no_more(path: str) -> None:
    """SEARCH imports the ranking, so that its absence elsewhere is a finding, and neither fold nor gate."""
    modules = loaded(path, "search", "storage")
    assert {"vmstore.relevance", "vmstore.search"} <= modules
    rooms = {*ROOMS} - {"relevance", "search"}
    assert modules.isdisjoint({"importlib.metadata", *(f"vmstore.{part}" for part in (*rooms, *FOLDING))})
