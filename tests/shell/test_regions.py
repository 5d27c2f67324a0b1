"""The commands that share: what they say, what they refuse, and what a second process is let do by them."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.engine.stories import chat
from tests.shell.conftest import Process, Run


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A store with a namespace that is to be shared, and two others."""
    path = tmp_path / "agent.vms"
    for name in ("lessons", "team-a", "team-b"):
        with vmstore.open(path, namespace=name) as store:
            store.record("s", chat("a lesson"), None)
    return path


def test_share_list_and_take_back(run: Run, shared: Path) -> None:
    """A grant is said, listed and taken back, and what is left is said; the list of the past still has it."""
    assert run("regions", shared).out == f"nothing of {shared} was shared\n"
    document = run("share", shared, "lessons", "--to", "user:ann", "--may", "read,write", "--json").json
    assert (document["region"], document["to"], document["may"]) == ("lessons", "user:ann", ["read", "write"])
    assert run("share", shared, "lessons", "--to", "global").out == "shared: global may read in lessons\n"
    listed = run("regions", shared, "--json").json["regions"]
    assert [(record["region"], record["scope"], len(record["grants"])) for record in listed] == [
        ("lessons", "global", 2)
    ]
    left = run("revoke", shared, "lessons", "--from", "user:ann")
    assert "user:ann has no grant in lessons" in left.out and "everybody may still read there" in left.out
    assert run("revoke", shared, "lessons", "--from", "global", "--json").json["left"] == []
    assert run("regions", shared, "--json").json == {"regions": []}
    then = run("regions", shared, "--of", "user:ann", "--time", _iso(document["at"]), "--json").json["regions"]
    assert [grant["to"] for grant in then[0]["grants"]] == ["user:ann"]


def _iso(at: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at / 1e6, UTC).isoformat()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["share", "{store}", "nothing", "--to", "user:ann"], "has no namespace 'nothing'; name one"),
        (["share", "{store}", "lessons", "--to", "usr:ann"], "'usr:ann' names nobody; write user:NAME"),
        (["share", "{store}", "lessons", "--to", "user:ann", "--may", "own"], "no verb 'own'; there are read"),
        (["share", "{store}", "lessons", "--to", "user:ann", "--namespace", "team-b"], "region_is_shared"),
        (["share", "{store}", "lessons", "--to", "user:ann", "--namespace", "team-a"], "write_is_granted"),
        (["revoke", "{store}", "lessons", "--from", "user:bob"], "user:bob has no such grant in 'lessons'; those who"),
        (["regions", "{store}x"], "there is no store"),
        (["regions", "{store}", "--time", "soon"], "soon"),
    ],
)
def test_what_is_wrong_is_named(run: Run, shared: Path, words: list[str], text: str) -> None:
    """Each mistake is one line with the thing, the reason and what to do, and exit code 1."""
    run("share", shared, "lessons", "--to", "sandbox:team-a")
    done = run(*[word.format(store=shared) for word in words])
    assert done.code == 1 and text in done.err and done.err.count("\n") == 1


def test_another_process_uses_what_was_shared(run: Run, process: Process, shared: Path) -> None:
    """What one process grants, another passes on in its own name, and the list says who granted it."""
    run("share", shared, "lessons", "--to", "team-a", "--may", "grant")
    passed = process("share", shared, "lessons", "--to", "session:team-b/s", "--namespace", "team-a")
    assert passed.returncode == 0, passed.stderr
    grants = run("regions", shared, "--json").json["regions"][0]["grants"]
    assert [(grant["to"], grant["by"]) for grant in grants] == [
        ("sandbox:team-a", None),
        ("session:team-b/s", "sandbox:team-a"),
    ]
