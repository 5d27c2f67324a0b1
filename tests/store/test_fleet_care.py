"""Replay, verify, rebuild and learn over many sessions give the same by one worker, by two and by a cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import vmstore
from tests.refusals import refused
from tests.replay.lives import live
from vmstore.errors import InputError
from vmstore.namespace.backends.address import backend_of
from vmstore.store.fleet.care import NamespacePart, rebuild_all, verify_all
from vmstore.store.replay_sweep import live_sessions, replays, what_ifs
from vmstore.workers import executor
from vmstore.workers.choice import chosen
from vmstore.workers.executor import Workers

NAMES = ("a", "b")
CHANGES = what_ifs(["lru"], [4_000, 9_000])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two namespaces with a few live sessions each, whose tools fail the same way again and again."""
    folder = tmp_path_factory.mktemp("care") / "agents.vms"
    for name in NAMES:
        with vmstore.open(folder, namespace=name) as store:
            for nth in range(3):
                session = live(store, f"s{nth}", seed=nth + len(name), turns=3 + nth, user="ada")
                for tries in range(4):
                    session.user("Again.")
                    session.pack()
                    tool = {"id": f"t{tries}", "type": "function", "function": {"name": "run", "arguments": "{}"}}
                    session.assistant({"role": "assistant", "content": None, "tool_calls": [tool]})
                    session.tool(f"t{tries}", "Error: no such table")
                    session.pack()
                    session.assistant("It failed.")
    return folder


@pytest.fixture(params=["1", "2", "ray"], scope="module")
def workers(request: pytest.FixtureRequest) -> Iterator[Workers | None]:
    """This process, two processes, and a Ray cluster of this machine where Ray is installed."""
    if request.param == "ray":
        pytest.importorskip("ray", reason="Ray is not installed: pip install 'vmstore[ray]'")
    with chosen(request.param) as answer:
        yield answer


@pytest.fixture(autouse=True)
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units of a few mutations, so that a small store has several."""
    monkeypatch.setattr(executor.grouped, "__defaults__", (200,))


def parts(path: Path) -> list[NamespacePart]:
    """Both namespaces."""
    return [NamespacePart(backend_of(path), name, None) for name in NAMES]


def test_what_ifs_are_the_same_by_whomever(path: Path, workers: Workers | None) -> None:
    """Every run of every session is byte for byte what one process gives."""
    with vmstore.open(path, namespace="a") as store:
        names = live_sessions(store)
        alone = replays(store, names, CHANGES, workers=1)
        answer = replays(store, names, CHANGES, workers=workers or 1)
    assert msgspec.json.encode(answer) == msgspec.json.encode(alone) and len(names) == 3


def test_what_is_learned_is_the_same_by_whomever(path: Path, workers: Workers | None, tmp_path: Path) -> None:
    """Alarms and skills come of the same calls, also where some were read by a run before."""
    with vmstore.open(path, namespace="a") as store:
        results = tmp_path / "calls.jsonl"
        alone = store.work.alarms(user="ada"), store.work.found_skills(least=2)
        work = store.work.read_by(workers or 1, results=results)
        assert (work.alarms(user="ada"), work.found_skills(least=2)) == alone and alone[0]
        lines = results.read_bytes().splitlines(keepends=True)
        assert len(lines) == 3
        results.write_bytes(b"".join(lines[:2]) + lines[2][:-20])
        work = store.work.read_by(workers or 1, results=results)
        assert (work.alarms(user="ada"), work.found_skills(least=2)) == alone
        assert sorted(results.read_bytes().splitlines(keepends=True)) == sorted(lines)


def test_verify_says_what_one_process_says(path: Path, workers: Workers | None, tmp_path: Path) -> None:
    """Sound namespaces are sound, and a fault of one is answer where it is, in the log and in the views alike."""
    answer = verify_all(parts(path), workers=workers or 1)
    for name in NAMES:
        with vmstore.open(path, "r", namespace=name) as store:
            assert answer[name] == store.verify() and answer[name].ok
    import shutil

    for file, statement in (
        ("log.sqlite", "UPDATE commits SET body = zeroblob(length(body)) WHERE ordinal = 9"),
        ("views", "UPDATE pages SET tokens = tokens + 1 WHERE page = 4"),
    ):
        broken = tmp_path / file / "agents.vms"
        shutil.copytree(path, broken)
        (target,) = [each for each in (broken / "b").glob(f"{file}*") if each.suffix == ".sqlite"]
        import apsw

        db = apsw.Connection(str(target))
        db.execute(statement)
        db.close()
        verdicts = verify_all(parts(broken), workers=workers or 1)
        with vmstore.open(broken, "r", namespace="b") as store:
            assert verdicts["b"] == store.verify() and not verdicts["b"].ok
        assert verdicts["a"] == answer["a"]


def test_rebuilt_by_whomever(path: Path, workers: Workers | None) -> None:
    """Views that were folded again by workers are those that they were."""
    answer = rebuild_all(parts(path), workers=workers or 1)
    for name in NAMES:
        with vmstore.open(path, "r", namespace=name) as store:
            assert store.verify().ok
            assert answer[name]["pages"] == store.admin.log.ordinal


def test_what_was_sound_is_not_checked_again(path: Path, tmp_path: Path) -> None:
    """A results file holds what was sound, and it alone: a fault is looked at again, and so is what went on."""
    results, seen = tmp_path / "verified.jsonl", list[tuple[int, int]]()

    def progress(done: int, total: int) -> None:
        seen.append((done, total))

    first = verify_all(parts(path), workers=1, results=results, progress=progress)
    assert len(seen) == 4 and seen[-1][0] == seen[-1][1]
    seen.clear()
    assert verify_all(parts(path), workers=1, results=results, progress=progress) == first and seen == []
    with vmstore.open(path, namespace="b") as store:
        store.record("new", {"messages": [{"role": "user", "content": "hi"}]}, None)
    again = verify_all(parts(path), workers=1, results=results, progress=progress)
    assert len(seen) == 2 and again["b"].sessions == first["b"].sessions + 1
    with refused("not-a-result", InputError):
        other = tmp_path / "other.jsonl"
        other.write_text('{"unit": 7}\n')
        verify_all(parts(path), workers=1, results=other)


def test_a_killed_run_goes_on(path: Path, tmp_path: Path) -> None:
    """A command that was killed is run again, computes what is missing, and answers as one that was not killed."""
    results = tmp_path / "runs.jsonl"
    command = [sys.executable, "-m", "vmstore", "replay", str(path), "--namespace", "a", "--all", "--json", "--quiet"]
    command += ["--policy", "lru", "--budget", ",".join(str(2_000 + 100 * nth) for nth in range(40))]
    many = [*command, "--workers", "2", "--results", str(results)]
    killed = subprocess.Popen(many, stdout=subprocess.DEVNULL, start_new_session=True)
    until = time.monotonic() + 60
    while not (results.exists() and results.read_bytes().count(b"\n") >= 3) and time.monotonic() < until:
        time.sleep(0.005)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    before = results.read_bytes()
    assert 3 <= before.count(b"\n") < 123
    went_on = subprocess.run(many, capture_output=True, check=True)
    alone = subprocess.run([*command, "--workers", "1"], capture_output=True, check=True)
    assert json.loads(went_on.stdout) == json.loads(alone.stdout)
    after = results.read_bytes()
    assert after.startswith(before[: before.rfind(b"\n") + 1]) and after.count(b"\n") == 123


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["verify", "--namespaces", "*", "--workers", "2"], {"ok": True}),
        (["rebuild", "--namespaces", "b,a", "--workers", "1"], {}),
        (["learn", "--namespace", "a", "--workers", "2", "--limit", "1"], {}),
    ],
)
def test_commands_take_workers(path: Path, arguments: list[str], expected: dict[str, Any]) -> None:
    """Each command answers one object, with every namespace that was asked for."""
    command = [sys.executable, "-m", "vmstore", arguments[0], str(path), *arguments[1:], "--json"]
    ran = subprocess.run(command, capture_output=True, check=True)
    answer = json.loads(ran.stdout)
    assert answer.items() >= expected.items()
    if "--namespaces" in arguments:
        assert sorted(answer["namespaces"]) == list(NAMES)
    else:
        assert answer["totals"]["guards"] > 0
