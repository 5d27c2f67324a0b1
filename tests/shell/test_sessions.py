"""Commands about sessions as a whole: which there are, what they cost, compactions, a search, two side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.shell.conftest import Run
from tests.store.test_session_diff import run_of


@pytest.fixture
def two_runs(tmp_path: Path) -> Path:
    """A store with two runs of one task, of which the second says something else at the end."""
    path = tmp_path / "a.vms"
    with vmstore.open(path) as store:
        run_of(store, "first", "There are two.")
        run_of(store, "second", "Two trains.")
    return path


def test_the_command_says_how_far_two_runs_are_the_same(run: Run, two_runs: Path) -> None:
    """`diff STORE A B` tells both sessions, where they part, and what each says then; moments go with one alone."""
    told = run("diff", two_runs, "fir", "sec")
    assert "the same up to message 4, then:" in told.out
    assert "There are two." in told.out and "Two trains." in told.out and "trains to Kyoto" not in told.out
    assert "trains to Kyoto" in run("diff", two_runs, "first", "second", "--all").out
    assert run("diff", two_runs, "first", "second", "--json").json["same_messages"] == 4
    assert run("diff", two_runs, "first").code == 2 == run("diff", two_runs, "a", "b", "--calls", "1", "2").code
    assert "the same in every message" in run("diff", two_runs, "first", "first").out


def test_costs_are_drawn_by_their_parts(run: Run, two_runs: Path) -> None:
    """`cost` gives each part's cost with a bar and the sum so far, and the total under it."""
    lines = run("cost", two_runs, "first", "--by", "call").out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["1", "2"] and "█" in lines[2]
    assert lines[-1] == "2 calls, 1 of no known cost, $0.5000"
    told = run("cost", two_runs, "first", "--by", "model", "--json").json
    assert told["by"] == "model" and told["costs"][0]["cost"] == 0.5 and told["prices_dated"]


def test_a_search_goes_through_all_sessions(run: Run, two_runs: Path) -> None:
    """`search` finds a page in whichever session it is, and in one alone where that is named."""
    assert {hit["session"] for hit in run("search", two_runs, "kyoto", "--json").json["hits"]} == {"first", "second"}
    assert "There are two." in run("search", two_runs, "there", "are", "two", "--session", "fir").out
    assert "no page has" in run("search", two_runs, "zebra").err


def test_a_session_without_compactions_says_so(run: Run, two_runs: Path) -> None:
    """`compactions` of a session that has none says that no summary replaced a page."""
    assert "no summary replaced pages in first" in run("compactions", two_runs, "first").err


def test_which_session_is_asked_with_the_newest_named(run: Run, two_runs: Path) -> None:
    """Where a session is to be named the refusal lists the newest, and `-` is the newest."""
    refusal = run("calls", two_runs)
    assert refusal.code == 1 and "which session?" in refusal.err and "second" in refusal.err
    assert run("calls", two_runs, "-", "--json").json["session"] == "second"
