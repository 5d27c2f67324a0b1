"""The command that erases: what it answers a program, and what it refuses rather than leave out in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shell.conftest import Run


def test_a_program_gets_json_or_an_error(run: Run, recorded: Path) -> None:
    """With --json the answer is one object, or nothing and an error: no plan in words stands before it."""
    refused = run("erase", recorded, "--session", "s1", "--json")
    assert (refused.code, refused.out) == (1, "") and "--yes" in refused.err
    assert run("erase", recorded, "--session", "s1", "--dry-run", "--json").json["cells"] > 0
    done = run("erase", recorded, "--session", "s1", "--yes", "--json").json
    assert done["plan"]["cells"] > 0 and done["certificate"]
    again = run("erase", recorded, "--session", done["plan"]["sessions"][0]["uid"], "--json")
    assert (again.code, again.json["cells"]) == (0, 0)


@pytest.mark.parametrize(
    "texts", [["--page", "p4", "--in-session", "s1"], ["--session", "s1"], ["--user", "u"], ["--dry-run"]]
)
def test_finishing_takes_nothing_else(run: Run, recorded: Path, texts: list[str]) -> None:
    """Who asks to finish and names something more hears that it was not erased."""
    refused = run("erase", recorded, "--finish", "--yes", *texts)
    assert refused.code == 1 and "takes nothing else" in refused.err
    assert run("erase", recorded, "--session", "s1", "--dry-run", "--json").json["cells"] > 0
    assert run("erase", recorded, "--finish").code == 0
