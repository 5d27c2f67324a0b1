"""A statement that neither searches nor names a time starts without what those need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import vmstore
from vmstore.shell.demo.demo import SHIPPED

ROOT = Path(__file__).resolve().parents[3]
UNASKED = ("capture", "embedders", "engine", "facts", "live", "providers", "relevance", "search", "tags", "vm", "work")
FOREIGN = ("asyncio", "dateparser", "duckdb", "prompt_toolkit", "rich", "snowballstemmer", "sqlite3", "zoneinfo")
FOLDING = ("core.mutation", "log.archive.file", "views.fold", "vmql.execution.streams", "vmql.execution.why")
MODULES_MAX = 202  # of vmstore's own

ASK = """
import sys
from vmstore.shell.vmql.main import run
try:
    run()
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store on disk with the session that ships, its views folded."""
    path = str(tmp_path_factory.mktemp("start") / "agent.vms")
    with vmstore.open(path) as store:
        store.import_file(SHIPPED)
        store.sessions()
    return path


def loaded(path: str, statement: str) -> set[str]:
    """The modules that a fresh `vmql PATH -c STATEMENT` has imported when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, path, "-c", statement],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert "planning-220" in done.stdout or statement.startswith("SEARCH")
    return set(done.stderr.split())


def test_a_plain_statement_imports_no_part_it_does_not_use(path: str) -> None:
    """SESSIONS imports neither gate, kernel, search nor recorders, nor a package that other statements need."""
    modules = loaded(path, "SESSIONS session")
    assert modules.isdisjoint({*FOREIGN, *(f"vmstore.{part}" for part in (*UNASKED, *FOLDING))})
    assert len([name for name in modules if name.partition(".")[0] == "vmstore"]) <= MODULES_MAX


def test_a_search_imports_what_it_ranks_with(path: str) -> None:
    """SEARCH does import the ranking, so that its absence elsewhere is a finding and not a wrong name."""
    assert "vmstore.relevance" in loaded(path, "SEARCH 'storage' page LIMIT 1")
