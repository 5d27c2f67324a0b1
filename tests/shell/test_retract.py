"""The command that retracts: what it shows, asks, does and refuses."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

import vmstore
from tests.shell.conftest import Run


class Terminal(io.StringIO):
    """A stream somebody sits at."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def test_a_dry_run_shows_and_writes_nothing(run: Run, recorded: Path) -> None:
    """A dry run lists the pages with why they fall, and the log stays as it was."""
    with vmstore.open(recorded) as store:
        before = store.admin.log.ordinal
    done = run("retract", recorded, "--tool", "list_files", "--dry-run")
    assert done.code == 0 and "itself" in done.out and "would be marked superseded" in done.out
    document = run("retract", recorded, "--tool", "list_files", "--dry-run", "--json").json
    assert document["done"] is False and document["sessions"][0]["pages"][0]["because"] == "itself"
    with vmstore.open(recorded) as store:
        assert store.admin.log.ordinal == before


def test_told_yes_it_marks(run: Run, recorded: Path) -> None:
    """With --yes it marks and says what; the pages are found by their status, and a second time nothing is left."""
    done = run("retract", recorded, "--tool", "list_files", "--reason", "poisoned results", "--yes")
    assert done.code == 0 and "marked superseded" in done.out and "would" not in done.out
    with vmstore.open(recorded) as store:
        (session,) = store.sessions()
        marked = [page.page for page in store.session(session.session).pages() if page.status == "superseded"]
    assert marked
    history = run("history", recorded, marked[0]).out
    assert "superseded" in history and "poisoned results" in history and "tool list_files" in history
    again = run("retract", recorded, "--tool", "list_files", "--yes")
    assert again.code == 0 and "nothing to mark" in again.out
    assert run("retract", recorded, "--tool", "list_files", "--yes", "--quiet").out == ""


def test_where_nobody_can_be_asked_it_needs_yes(run: Run, recorded: Path) -> None:
    """In a pipe it refuses to go on without --yes, after it showed what it would do."""
    refused = run("retract", recorded, "--tool", "list_files")
    assert refused.code == 1 and "--yes" in refused.err and "itself" in refused.out
    assert run("retract", recorded, "--tool", "list_files", "--json").code == 1


@pytest.mark.parametrize(("answer", "code", "words"), [("n\n", 1, "nothing was marked"), ("y\n", 0, "marked")])
def test_it_asks_and_takes_the_answer(
    run: Run, recorded: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, words: str
) -> None:
    """Somebody at a terminal is shown the plan and asked; only a yes marks."""
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    done = run("retract", recorded, "--tool", "list_files")
    assert done.code == code and "superseded? [y/N]" in done.err and words in done.out + done.err
    with vmstore.open(recorded) as store:
        pages = store.pages()
    assert any(page.status == "superseded" for page in pages) is (code == 0)


@pytest.mark.parametrize(
    ("words", "code", "remedy"),
    [
        ([], 2, "one of the arguments"),
        (["--page", "p4", "--tool", "x"], 2, "not allowed with"),
        (["--tool", "nothing"], 1, "list_files"),
        (["--page", "p999"], 1, "p999"),
        (["--session", "nobody"], 1, "nobody"),
    ],
)
def test_what_is_no_cause_is_named(run: Run, recorded: Path, words: list[str], code: int, remedy: str) -> None:
    """A cause that is none leaves with the reason and what there is instead."""
    refused = run("retract", recorded, *words, "--yes")
    assert refused.code == code and remedy in refused.err
