"""The command that decides sessions again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import vmstore
from tests.inner import inner_batch
from tests.replay.lives import live
from tests.shell.conftest import Run
from vmstore.core.mutation import Evict


@pytest.fixture
def lives(store_path: Path) -> Path:
    """A store with two live sessions and one that was recorded."""
    with vmstore.open(store_path) as store:
        for nth in (1, 2):
            live(store, f"s{nth}", seed=nth, turns=6, policy="lru")
        store.record("plain", {"model": "m", "messages": [{"role": "user", "content": "hi"}]})
    return store_path


def test_every_policy_with_every_budget(run: Run, lives: Path) -> None:
    """The table has the recorded run and one for each policy and budget; `--json` has their numbers."""
    words = ("replay", lives, "s1", "--policy", "lru", "--policy", "s3fifo", "--budget", "5000,20000")
    done = run(*words)
    assert done.code == 0
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines[1:6]] == ["recorded", "what", "what", "what", "what"]
    document = run(*words, "--json").json
    assert list(document) == ["session", "runs", "recorded"] and document["session"] == "s1"
    asked = [("lru@1", 5000), ("lru@1", 20000), ("s3fifo@1", 5000), ("s3fifo@1", 20000)]
    assert [(run["policy"], run["budget"]) for run in document["runs"]] == asked
    with vmstore.open(lives) as store:
        right = store.session("s1").debug.replay(policy="s3fifo", budget=5_000)
    assert document["runs"][2]["faults"] == right.measures.faults
    assert document["runs"][2]["prefix_voided"] == right.measures.prefix_voided
    assert right.divergence is not None and document["runs"][2]["divergence"]["position"] == right.divergence.position
    assert document["recorded"]["recorded"] and document["recorded"]["prefix_cost"] is None
    priced = run(*words, "--json", "--price", "2.5").json["recorded"]
    assert priced["prefix_cost"] == pytest.approx(priced["prefix_voided"] * 2.5e-6)


def test_a_check_leaves_with_one_and_names_the_difference(run: Run, lives: Path) -> None:
    """A session that is decided as it was leaves with 0; one with a decision nobody took with 1, which is named."""
    done = run("replay", lives, "s1", "--check")
    assert done.code == 0 and done.out.startswith("ok: s1, ")
    assert run("replay", lives, "s1", "--check", "--quiet") == (0, "", "")
    with vmstore.open(lives) as store:
        page = store.session("s1").context().page_ids[-1]
        with inner_batch(store.session("s1")) as batch:
            position = batch.add(Evict(page, 0, 1))
    done = run("replay", lives, "s1", "--check")
    assert done.code == 1
    assert done.out.startswith(f"differs: session 's1', position {position} (turn 6, after call ")
    other_done = run("replay", lives, "--all", "--check", "--json")
    assert other_done.code == 1
    assert [(session["session"], session["ok"]) for session in other_done.json["sessions"]] == [
        ("s1", False),
        ("s2", True),
    ]
    assert other_done.json["sessions"][0]["difference"]["found"] == "nothing"


def test_a_kept_what_if_is_said_to_cost(run: Run, lives: Path) -> None:
    """`--keep` stores the one what-if as a session, says what was written, and does not do it twice."""
    done = run("replay", lives, "s1", "--budget", "5000", "--keep", "s1-small")
    assert done.code == 0
    assert "s1-small is a session now; it took " in done.out and "as long as s1" in done.out
    assert run("replay", lives, "s1-small", "--check").code == 0
    assert run("verify", lives).code == 0
    again = run("replay", lives, "s1", "--budget", "5000", "--keep", "s1-small")
    assert again.code == 1 and "keep it under another name" in again.err
    many = run("replay", lives, "s1", "--budget", "5000,6000", "--keep", "x")
    assert many.code == 1 and "one what-if of one session" in many.err


def test_a_sweep_goes_on_from_its_file(run: Run, lives: Path, tmp_path: Path) -> None:
    """`--all` answers for every live session, and what its file holds is not computed again."""
    results = tmp_path / "sweep.jsonl"
    words = ("replay", lives, "--all", "--budget", "5000", "--results", results, "--json")
    first = run(*words)
    assert [session["session"] for session in first.json["sessions"]] == ["s1", "s2"]
    lines = results.read_text("utf-8").splitlines()
    assert len(lines) == 4
    changed = json.loads(lines[1])
    changed["run"]["measures"]["faults"] = 4711
    results.write_text("\n".join([lines[0], json.dumps(changed), *lines[2:]]) + "\n", "utf-8")
    assert run(*words).json["sessions"][0]["runs"][0]["faults"] == 4711, "it was taken from the file"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("plain",), "never had a budget, so there is nothing to decide again; import it with --vm budget=TOKENS"),
        (("s1", "--policy", "lur"), "there is no policy 'lur'"),
        (("s1", "--budget", "300"), "a budget of 300 tokens cannot hold p"),
        (("s1", "--check", "--budget", "300"), "--check decides under the recorded settings"),
        (("s1", "--all"), "--all is every session, and 's1' is one"),
        (("s3",), "there is no session 's3'"),
    ],
)
def test_what_cannot_be_replayed_is_refused(run: Run, lives: Path, words: tuple[str, ...], text: str) -> None:
    """Each wrong wish is refused in one line that names the remedy."""
    done = run("replay", lives, *words)
    assert done.code == 1 and done.out == "" and text in done.err


def test_a_list_of_budgets_is_numbers(run: Run, lives: Path) -> None:
    """Budgets that are no numbers are a wrong command line."""
    done = run("replay", lives, "s1", "--budget", "8k")
    assert done.code == 2 and "'8k' is no list of tokens like 8000,32000" in done.err
