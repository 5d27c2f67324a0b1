"""Commands about sessions as a whole: which there are, what they cost, compactions, a search, two side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.shell.conftest import Run
from tests.store.test_session_diff import run_of
from vmstore.shell.vmql import main as vmql


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
    done = run("diff", two_runs, "fir", "sec")
    assert "the same up to message 4, then:" in done.out
    assert "There are two." in done.out and "Two trains." in done.out and "trains to Kyoto" not in done.out
    assert "trains to Kyoto" in run("diff", two_runs, "first", "second", "--all").out
    assert run("diff", two_runs, "first", "second", "--json").json["same_messages"] == 4
    assert run("diff", two_runs, "first").code == 2 == run("diff", two_runs, "a", "b", "--calls", "1", "2").code
    assert "the same in every message" in run("diff", two_runs, "first", "first").out


def test_costs_are_drawn_by_their_parts(run: Run, two_runs: Path) -> None:
    """`cost` gives each part's cost with a bar and the sum so far, and the total under it."""
    lines = run("cost", two_runs, "first", "--by", "call").out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["1", "2"] and "█" in lines[2]
    assert lines[-1] == "2 calls, 1 of no known cost, $0.5000"
    document = run("cost", two_runs, "first", "--by", "model", "--json").json
    assert document["by"] == "model" and document["costs"][0]["cost"] == 0.5 and document["prices_dated"]


def test_other_prices_are_named_wherever_costs_are_shown(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`calls`, `cost`, `sessions` and `vmql` estimate by a file that is named; one that is none is refused by each."""
    store, prices = str(tmp_path / "a.vms"), tmp_path / "prices.json"
    prices.write_text('{"models": [{"model": "m-*", "input": 2, "output": 8}]}')
    answer = {"choices": [], "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 0}}
    with vmstore.open(store) as opened:
        opened.record("s", {"model": "m-1", "messages": [{"role": "user", "content": "Hi."}]}, answer)
    assert run("calls", store, "--json").json["calls"][0]["cost_estimated"] is None
    for command, answers in (("calls", "calls"), ("cost", "costs"), ("sessions", "sessions")):
        assert run(command, store, "--prices", prices, "--json").json[answers][0]["cost_estimated"] == 2.0
        assert run(command, store, "--prices", tmp_path / "none.json").code == 1
    asked = [store, "-c", "CALLS cost_estimated", "--csv", "--prices"]
    assert vmql.main([*asked, str(prices)]) == 0 and "2" in capsys.readouterr().out.splitlines()[1]
    assert vmql.main([*asked, "none.json"]) == 1


def test_a_search_goes_through_all_sessions(run: Run, two_runs: Path) -> None:
    """`search` finds a page in whichever session it is, and in one alone where that is named."""
    assert {hit["session"] for hit in run("search", two_runs, "kyoto", "--json").json["hits"]} == {"first", "second"}
    assert "There are two." in run("search", two_runs, "there", "are", "two", "--session", "fir").out
    assert "no page has" in run("search", two_runs, "zebra").err


def test_a_session_among_the_words_of_a_search_is_noted(run: Run, two_runs: Path) -> None:
    """The name of a session before words is looked for as a word, and how to ask that session alone is said."""
    done = run("search", two_runs, "first", "there")
    assert done.code == 0 and "--session first" in done.err
    assert any("--session first" in note for note in run("search", two_runs, "first", "there", "--json").json["notes"])
    for words in (("first",), ("there", "first"), ("there", "first", "--session", "first")):
        assert "--session" not in run("search", two_runs, *words).err


def test_a_session_without_compactions_says_so(run: Run, two_runs: Path) -> None:
    """`compactions` of a session that has none says that no summary replaced a page."""
    assert "no summary replaced pages in first" in run("compactions", two_runs, "first").err


def test_which_session_is_asked_with_the_newest_named(run: Run, two_runs: Path) -> None:
    """Where a session is to be named the refusal lists the newest, and `-` is the newest."""
    refusal = run("calls", two_runs)
    assert refusal.code == 1 and "which session?" in refusal.err and "second" in refusal.err
    assert run("calls", two_runs, "-", "--json").json["session"] == "second"
