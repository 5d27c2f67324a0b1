"""`vmstore learn` and `vmstore plans`: what calls teach, and what is planned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.shell.conftest import Run

FAILED = ("shell", "Error: no rule to make target 'test'")


def called(store: vmstore.Store, name: str, calls_made: list[tuple[str, str]], **owner: Any) -> None:
    """A recorded session in which tools are called with the same arguments and answer so."""
    store.session(name, create=True, **owner)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Run it."}]
    for n, (tool, answer) in enumerate(calls_made):
        function = {"name": tool, "arguments": '{"command": "make test"}'}
        calls = [{"id": f"c{n}", "type": "function", "function": function}]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": answer})
    store.record(name, {"model": "m", "messages": messages})


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A store in which a tool failed three times over two sessions of Ann's, and a plan of hers."""
    place = tmp_path / "a.vms"
    with vmstore.open(place) as store:
        called(store, "mon", [FAILED] * 2, user="ann")
        called(store, "tue", [FAILED], user="ann")
        live = store.live_session("wed", user="ann", l0_tokens_max=4_000)
        live.work.plans.create("tests", steps=["write them", {"text": "run them", "after": ["write them"]}])
    return str(place)


def test_failures_and_plans_are_shown_and_written_when_asked(run: Run, path: str) -> None:
    """What a user's sessions failed at together is shown, as a table and as JSON, and logged once with --write."""
    done = run("learn", path)
    assert done.code == 0 and "failures to avoid: 1" in done.out and "has failed 3 times" in done.out
    assert "skills: none" in done.out and "write them" in done.out
    answer = run("learn", path, "--user", "ann", "--json").json
    assert (answer["guards"][0]["session"], answer["guards"][0]["count"]) == ("tue", 3)
    assert answer["totals"] == {"guards": 1, "skills": 0, "plans": 1} and answer["written"] is None
    assert run("learn", path, "mon", "--json").json["guards"] == [], "two failures are no pattern"
    assert run("learn", path, "--write", "--json").json["written"]["guards"][0]["type"] == "failure"
    assert run("learn", path, "--write", "--json").json["written"] == {"guards": [], "skills": []}
    with vmstore.open(path) as store:
        assert list(store.query("GUARDS count(*) ACROSS SESSIONS")) == [(1,)] and store.verify().ok


def test_skills_have_their_evidence_and_the_number_that_makes_one(run: Run, tmp_path: Path) -> None:
    """A sequence that succeeds is shown with its calls; sessions of nobody count together only where that is asked."""
    path = str(tmp_path / "b.vms")
    with vmstore.open(path) as store:
        for n in range(3):
            called(store, f"s{n}", [("build", "ok"), ("test", "ok")])
    assert run("learn", path, "--json").json["skills"] == []
    (skill,) = run("learn", path, "--together", "--least", "3", "--json").json["skills"]
    assert skill["tools"] == ["build", "test"] and skill["arguments"]["build"] == {"command": "make test"}
    assert "build → test" in run("learn", path, "--together", "--least", "3").out
    assert "leave the session out" in run("learn", path, "s1", "--together").err
    for command in ("learn", "plans"):
        assert "no session is of user 'nobody'" in run(command, path, "--user", "nobody").err


def test_plans_are_listed_as_of_a_moment(run: Run, path: str) -> None:
    """Plans of all sessions, or of one at a moment, with their steps where that is asked."""
    with vmstore.open(path) as store:
        before = store.session("wed").info().position
        store.session("wed").work.plans.done("tests", "write them")
    assert "50%" in run("plans", path).out
    steps = run("plans", path, "wed", "--steps").out
    assert "✓" in steps and "run them" in steps
    assert run("plans", path, "wed", "--position", str(before), "--json").json["plans"][0]["progress"] == 0.0
    assert "no plan is completed" in run("plans", path, "--status", "completed").err
    assert run("plans", path, "--user", "ann", "--json").json["plans"][0]["title"] == "tests"


def test_observations_are_listed_in_steps_and_opened(run: Run, path: str) -> None:
    """A line each, the session in steps with their costs, and one observation with the answer it had."""
    assert "shell" in run("observations", path, "mon").out or "make test" in run("observations", path, "mon").out
    document = run("observations", path, "mon", "--json").json
    assert len(document["observations"]) == 2 and document["savings"]["observations"] == 2
    steps = run("observations", path, "mon", "--step", "0").out
    assert "step 0, Summary" in steps and "tokens more" in steps
    page = document["observations"][0]["page"]
    assert "no rule to make target" in run("observations", path, "mon", "--expand", page).out
    assert run("observations", path, "mon", "--expand", page, "--json").json["output"].startswith("Error: no rule")
    assert "is no observation" in run("observations", path, "mon", "--expand", "p9999").err
    together = run("observations", path, "mon", "--together", "--json").json
    assert sum(len(form["pages"]) for form in together["aggregates"]) == 2
    assert together["savings"]["original_tokens"] == document["savings"]["original_tokens"]
    shown = run("observations", path, "mon", "--together")
    assert "2 observations of" in shown.err and "make test" in shown.out
    assert run("observations", path, "wed").err.strip() == "no tool was called"
