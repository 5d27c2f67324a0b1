"""`vmstore replay --until`: what it prints, and how it leaves."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from vmstore.shell.main import main


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The shipped session, recorded as it was."""
    path = str(tmp_path_factory.mktemp("until") / "a b.vms")
    assert main(["import", path, str(Path("vmstore/shell/demo.jsonl").resolve()), "--quiet"]) == 0
    return path


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    """What was printed since."""
    return capsys.readouterr().out


def test_the_command_goes_on(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What a stop says to go on with is a command that stops later, until there is no more, and then leaves with 1."""
    capsys.readouterr()
    command = ["replay", store, "--until", "page ENTERS L0 AND tokens > 800", "--json"]
    places = []
    while main(command) == 0:
        document = json.loads(printed(capsys))
        assert document["found"] and document["context"]["basis"]["call"] == document["call"]
        places.append(document["position"])
        program, *command = shlex.split(document["again"])
        assert program == "vmstore"
        command.append("--json")
    assert json.loads(printed(capsys)) == {"session": "planning-220", "found": False}
    assert len(places) > 2 and places == sorted(set(places))


def test_a_stop_shows_what_is_there(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A stop shows where it is, what happened, the context there and how to go on."""
    capsys.readouterr()
    assert main(["replay", store, "--until", "claim_storage_4 LEAVES L0"]) == 0
    out = printed(capsys)
    assert out.startswith("stopped: position 4136, turn 149, call 366\np359 leaves L0\n")
    assert "<summary> The conversation so far" in out
    assert out.rstrip().endswith(f"vmstore replay {shlex.quote(store)} planning-220 --until "
                                 "'claim_storage_4 LEAVES L0' --after 4136")  # fmt: skip


def test_before_the_first_call_nothing_is_there(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A stop before the first call says that nothing is in the prompt."""
    capsys.readouterr()
    assert main(["replay", store, "--until", "kind = message"]) == 0
    assert "no call was made yet" in printed(capsys)


def test_a_what_if_is_stopped_and_not_kept(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With a budget a recorded session is said again in memory: pages give way, and the store stays as it is."""
    capsys.readouterr()
    main(["sessions", store, "--json"])
    before = printed(capsys)
    asked = ["replay", store, "--until", "kind = evict", "--json"]
    assert main(asked) == 1
    capsys.readouterr()
    assert main([*asked, "--budget", "6000", "--policy", "lru"]) == 0
    document = json.loads(printed(capsys))
    assert document["row"]["kind"] == "evict"
    assert "--policy lru --budget 6000 --until" in document["again"]
    assert document["context"]["tokens"] <= 6000
    main(["sessions", store, "--json"])
    assert printed(capsys) == before


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--until", "tokenz > 1"], "did you mean tokens?\nline 1: tokenz > 1\n        ^^^^^^\n"),
        (["--after", "3"], "--after says where --until resumes"),
        (["--until", "call = 1", "--check"], "--until stops one replay, and --check is of whole ones"),
        (["--until", "call = 1", "--keep", "x"], "--until stops one replay, and --keep"),
        (["--until", "call = 1", "--budget", "1000,2000"], "one policy and one budget at most"),
        (["--until", "call = 1", "--policy", "lru"], "give one, like"),
        (["--until", "call = 1", "--after", "-4"], "has no position -4"),
    ],
)
def test_what_cannot_be(store: str, capsys: pytest.CaptureFixture[str], more: list[str], says: str) -> None:
    """What cannot be stopped at is refused with the reason and the remedy, and a mistake is pointed at."""
    capsys.readouterr()
    assert main(["replay", store, *more]) == 1
    assert says in capsys.readouterr().err
