"""The demo session in a store, a desk at it, and the shell driven as a reader drives it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import vmstore
from tests.shell.conftest import ROOT
from vmstore.shell.demo.demo import SHIPPED
from vmstore.shell.open_store import opened_to_ask
from vmstore.shell.vmql.output.targets import Outputs
from vmstore.shell.vmql.repl import Repl
from vmstore.shell.vmql.settings import ShellSettings

Shot = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def planning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that holds the session that ships; nobody may change it."""
    path = tmp_path_factory.mktemp("planning") / "demo.vms"
    with vmstore.open(path) as store:
        store.import_file(SHIPPED)
    return path


@pytest.fixture
def planning_copy(planning: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    return Path(shutil.copytree(planning, tmp_path / "demo.vms"))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own for the files of the shell."""
    home = tmp_path / "home"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def desk(planning: Path) -> Iterator[Repl]:
    """A desk at the demo store whose answers go to stdout."""
    repl = Repl(lambda place: opened_to_ask(place, "default"), str(planning), ShellSettings(), Outputs())
    yield repl
    repl.close()


@pytest.fixture
def shot(home: Path) -> Shot:
    """Runs `vmql` as a process of its own, in a pipe."""

    def shot(*words: object, text: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "vmstore.shell.vmql", *map(str, words)]
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **environment}
        return subprocess.run(
            command, input=text, capture_output=True, text=True, encoding="utf-8", timeout=120, env=env, check=False
        )

    return shot
