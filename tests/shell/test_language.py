"""The command that says in which language the texts are."""

from __future__ import annotations

from pathlib import Path

from tests.shell.conftest import Run


def test_a_language_is_stated_and_told(run: Run, recorded: Path) -> None:
    """The command answers with the language that holds then, and refuses one it has no rules for."""
    assert run("language", recorded).out == "en\n"
    assert run("language", recorded, "de").out == "de\n"
    assert run("language", recorded, "--json").json == {"language": "de", "sessions": {}}
    refused = run("language", recorded, "tlh")
    assert refused.code == 1 and "choose one of" in refused.err
    assert run("verify", recorded).code == 0
