"""The command for rules of how long contents are kept: stated, listed, removed, applied."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.shell.conftest import Run


def test_rules_are_stated_listed_and_removed(run: Run, recorded: Path) -> None:
    """Each call answers with the rules that hold then."""
    assert "all are kept" in run("retain", recorded).out
    output = run("retain", recorded, "--keep", "90d").out
    assert "default" in output and "90d" in output and "whole sessions" in output
    stated = run("retain", recorded, "--keep", "4w", "--where", "role = tool", "--name", "tools", "--json").json
    assert [rule["name"] for rule in stated["rules"]] == ["default", "tools"]
    assert [rule["name"] for rule in run("retain", recorded, "--remove", "default", "--json").json["rules"]] == [
        "tools"
    ]


def test_what_is_due_is_erased_where_told_yes(run: Run, recorded: Path) -> None:
    """A dry run says what is due, without --yes it refuses in a pipe, with it it erases and names the certificate."""
    with vmstore.open(recorded) as store:
        request = {"model": "m", "messages": [{"role": "user", "content": "Long ago."}]}
        store.record("old", request, at_us=1_000_000)
    run("retain", recorded, "--keep", "1y", "--where", "role = user", "--name", "said")
    dry = run("retain", recorded, "--apply", "--dry-run")
    assert dry.code == 0 and dry.out == "due: 1 page: old/p4\n"
    refused = run("retain", recorded, "--apply")
    assert refused.code == 1 and "--yes" in refused.err
    done = run("retain", recorded, "--apply", "--yes")
    assert done.code == 0 and "erased: " in done.out and "certificate: " in done.out
    assert "gone already" in run("retain", recorded, "--apply", "--yes").out
    assert run("verify", recorded).code == 0


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (["--keep", "soon"], "like 90d"),
        (["--keep", "1d", "--apply"], "one after the other"),
        (["--where", "role = tool"], "--keep"),
        (["--dry-run"], "--apply"),
        (["--remove", "nothing"], "there is none yet"),
        (["--apply"], "--keep 90d"),
    ],
)
def test_what_does_not_go_together_is_named(run: Run, recorded: Path, words: list[str], remedy: str) -> None:
    """What cannot be done is refused with what can."""
    refused = run("retain", recorded, *words)
    assert refused.code == 1 and remedy in refused.err
