"""`vmql --timeout` ends a statement that takes longer, and refuses what is no time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import vmstore

MAIN = "import sys; from vmstore.shell.vmql.main import main; sys.exit(main())"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A store on disk with a call."""
    path = tmp_path / "agent.vms"
    with vmstore.open(path) as made:
        made.record("s", {"messages": [{"role": "user", "content": "Where is Kyoto?"}]}, None)
    return path


@pytest.mark.parametrize("asked", [["-c", "PAGES page"], ["--sql", "-c", "SELECT page FROM pages"]])
@pytest.mark.parametrize(
    ("seconds", "code", "text"), [("60", 0, "p4"), ("0.000001", 1, "longer than it may"), ("soon", 2, "no number")]
)
def test_a_statement_ends_at_the_time_it_was_given(
    place: Path, asked: list[str], seconds: str, code: int, text: str
) -> None:
    """Within its time a statement is answered; past it the command fails and says so; what is no time is refused."""
    command = [sys.executable, "-c", MAIN, str(place), "--timeout", seconds, *asked]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran.stderr
    assert text in (ran.stdout if code == 0 else ran.stderr)
