"""`watch`: stores that keep up with agents while they write, whatever happens in between."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.capture.imports import claude, codex, in_lines, pi
from tests.shell.conftest import Run
from tests.shell.test_discover import HOMES, put

DEADLINE_S = 60.0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home where nothing is yet, and no variable that names another."""
    for name in HOMES:
        monkeypatch.delenv(name, raising=False)
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    return place


class Watching:
    """`vmstore watch` as a process of its own."""

    def __init__(self, *words: object) -> None:
        command = [sys.executable, "-m", "vmstore", "watch", *map(str, words), "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def line(self) -> Any:
        """The next addition."""
        assert self.process.stdout is not None, "it was asked for"
        return json.loads(self.process.stdout.readline())

    def end(self, number: int) -> int:
        """Ends it by a signal; its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(DEADLINE_S)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None, "it was asked for"
            stream.close()
        return code


def contents(path: Path) -> dict[str, list[Any]]:
    """What each session of a store says: its pages' texts and its calls."""
    with vmstore.open(path, "r") as store:
        sessions = {info.session: store.session(info.session) for info in store.sessions()}
        return {
            name: [(p.type, p.role, p.bytes, p.tokens) for p in s.pages()]
            + [(c.call, c.turn, c.status) for c in s.calls()]
            for name, s in sessions.items()
        }


def test_sessions_are_taken_in_as_they_are_written(home: Path, tmp_path: Path) -> None:
    """Files that grow, torn amid lines, under a watcher that is killed again and again, end as if imported whole."""
    store = tmp_path / "a.vms"
    day = home / ".codex/sessions/2026/01/02"
    files = {
        home / ".claude/projects/-w/s-1.jsonl": in_lines(claude(3)).encode(),
        day / "rollout-2026-01-02T00-00-00-x.jsonl": in_lines(codex(3)).encode(),
        home / ".pi/agent/sessions/--w--/a.jsonl": in_lines(pi(3)).encode(),
    }
    for path in files:
        path.parent.mkdir(parents=True)
    steps = 6
    for step in range(1, steps + 1):
        watcher = Watching(store, "--discover")
        for path, whole in files.items():
            with path.open("ab") as file:
                file.write(whole[len(whole) * (step - 1) // steps : len(whole) * step // steps])
        if step % 2:
            watcher.line()
        watcher.end(signal.SIGKILL)
    watcher = Watching(store, "--discover")
    whole_store = tmp_path / "whole.vms"
    with vmstore.open(whole_store) as whole_one:
        for path in files:
            whole_one.import_file(path)
    until(lambda: contents(store) == contents(whole_store))
    assert watcher.end(signal.SIGINT) == 0


def until(look: Any) -> None:
    """Waits until `look` is true."""
    deadline = time.monotonic() + DEADLINE_S
    while not look():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.1)


def test_a_session_that_begins_later_is_found(home: Path, tmp_path: Path) -> None:
    """A file that is not there yet is taken in once it is, each addition a line with its file and session."""
    watcher = Watching(tmp_path / "a.vms", "--discover")
    path = home / ".claude/projects/-w/s-1.jsonl"
    lines = in_lines(claude(2)).splitlines(keepends=True)
    until(lambda: (tmp_path / "a.vms").exists())
    put(path, "".join(lines[:2]), int(time.time()))
    first = watcher.line()
    assert (first["file"], first["new"]) == (str(path), 2)
    with path.open("a") as file:
        file.write("".join(lines[2:]))
    second = watcher.line()
    assert second["sessions"][0]["session"] == first["sessions"][0]["session"]
    assert second["new"] == len(lines) - 2
    assert watcher.end(signal.SIGINT) == 0


def test_old_sessions_wait_until_they_go_on(home: Path, tmp_path: Path, run: Run) -> None:
    """What changed long ago is left out, unless it is asked for or goes on."""
    old = put(home / ".claude/projects/-w/s-1.jsonl", in_lines(claude(1)), 1_000)
    put(home / ".pi/agent/sessions/--w--/a.jsonl", in_lines(pi(1)), int(time.time()))
    done = run("watch", tmp_path / "a.vms", "--discover", "--once", "--json")
    assert done.code == 0
    assert [Path(json.loads(line)["file"]).name for line in done.out.splitlines()] == ["a.jsonl"]
    watcher = Watching(tmp_path / "b.vms", "--discover", "--format", "claude-code")
    until(lambda: (tmp_path / "b.vms").exists())
    time.sleep(1)
    os.utime(old)
    assert watcher.line()["file"] == str(old)
    watcher.end(signal.SIGINT)
    everything = run("watch", tmp_path / "c.vms", "--discover", "--all", "--once", "--json")
    assert len(everything.out.splitlines()) == 2


def test_a_folder_is_watched(tmp_path: Path, run: Run) -> None:
    """The files of a folder that is named are taken in; the same again adds nothing."""
    put(tmp_path / "logs/one/a.jsonl", in_lines(pi(1)), 1_000)
    put(tmp_path / "logs/two/b.jsonl", in_lines(claude(1)), 1_000)
    first = run("watch", tmp_path / "a.vms", tmp_path / "logs", "--once")
    assert first.code == 0
    assert "more; now at turn 1, call" in first.out and len(first.out.splitlines()) == 2
    assert run("watch", tmp_path / "a.vms", tmp_path / "logs", "--once").out == ""


def test_a_file_that_only_begins_waits_in_silence(tmp_path: Path, run: Run) -> None:
    """An empty file and a first line that is not whole are nothing to complain of yet."""
    put(tmp_path / "logs/empty.jsonl", "", 1_000)
    put(tmp_path / "logs/torn.jsonl", in_lines(claude(1))[:40], 1_000)
    done = run("watch", tmp_path / "a.vms", tmp_path / "logs", "--once")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_a_file_that_is_not_there_is_named(tmp_path: Path, run: Run) -> None:
    """A look that is not repeated refuses it; one that is says that it waits for it."""
    refusal = run("watch", tmp_path / "a.vms", tmp_path / "later.jsonl", "--once")
    assert refusal.code != 0 and "there is no file" in refusal.err and "later.jsonl" in refusal.err
    watching = Watching(tmp_path / "a.vms", tmp_path / "later.jsonl")
    assert watching.process.stderr is not None, "it was asked for"
    assert "later.jsonl is not there yet" in watching.process.stderr.readline()
    (tmp_path / "later.jsonl").write_text(in_lines(pi(1)))
    assert watching.line()["file"].endswith("later.jsonl")
    assert watching.end(signal.SIGINT) == 0


def test_a_refused_file_is_named_once_and_the_others_go_on(tmp_path: Path, run: Run) -> None:
    """What cannot be taken in is said with its reason, and the exit code of a single look is 1."""
    put(tmp_path / "logs/a.jsonl", b"\xff\xfe\x00binary", 1_000)
    put(tmp_path / "logs/b.jsonl", in_lines(pi(1)), 1_000)
    done = run("watch", tmp_path / "a.vms", tmp_path / "logs", "--once")
    assert done.code == 1
    assert done.err.count("\n") == 1 and "a.jsonl" in done.err
    assert len(done.out.splitlines()) == 1


def test_a_locked_store_is_tried_again(tmp_path: Path) -> None:
    """While somebody else holds the writers' lock the file waits, and is taken in afterwards."""
    path = put(tmp_path / "a.jsonl", in_lines(pi(1)), 1_000)
    with vmstore.open(tmp_path / "a.vms") as other:
        other.record("other", {"messages": [{"role": "user", "content": "hello"}]})
        with other._ns.engine.log.alone():
            watcher = Watching(tmp_path / "a.vms", path, "--wait", "0.2")
            assert watcher.process.stderr is not None, "it was asked for"
            until(lambda: "a.vms" in watcher.process.stderr.readline())
        assert watcher.line()["new"] > 0
    assert watcher.end(signal.SIGINT) == 0


def test_the_hooks_that_are_printed_work(home: Path, tmp_path: Path, run: Run) -> None:
    """The settings of Claude Code and Codex, run as these agents run them, take their sessions in."""
    store = tmp_path / "a b.vms"
    hooks = run("watch", store, "--hooks", "--json").json["hooks"]
    settings = {hook["agent"]: hook["text"] for hook in hooks}
    assert shlex.split(settings["pi"]) == ["vmstore", "watch", str(store), "--discover"]
    claude_hooks = json.loads(settings["claude-code"])["hooks"]
    assert set(claude_hooks) == {"Stop", "SessionEnd", "PreCompact"}
    transcript = put(home / ".claude/projects/-w/s-1.jsonl", in_lines(claude(1)), 1_000)
    rollout = put(home / ".codex/sessions/2026/01/02/rollout-1-019a.jsonl", in_lines(codex(1)), 1_000)
    words = "exec " + claude_hooks["Stop"][0]["hooks"][0]["command"].replace(
        "vmstore", f"{sys.executable} -m vmstore", 1
    )
    event = json.dumps({"hook_event_name": "Stop", "session_id": "s-1", "transcript_path": str(transcript)})
    subprocess.run(["sh", "-c", words], input=event, text=True, check=True)
    notify = json.loads(settings["codex"].partition("=")[2])
    event = json.dumps({"type": "agent-turn-complete", "thread-id": "019a", "turn-id": "1"})
    subprocess.run([sys.executable, "-m", *notify, event], stdin=subprocess.DEVNULL, check=True)
    with vmstore.open(store, "r") as made:
        assert len(made.sessions()) == 2
    assert rollout.exists()


@pytest.mark.parametrize("event", ["", "{half", "[]", "{}", '{"thread-id": "none"}', '{"transcript_path": 3}'])
def test_an_event_that_tells_of_no_session_is_refused(home: Path, tmp_path: Path, run: Run, event: str) -> None:
    """The reason is said, the exit code is one that stops no agent, and no store is made."""
    done = run("watch", tmp_path / "a.vms", "--hook", event)
    assert done.code == 1
    assert done.err.startswith("vmstore: ")
    assert not (tmp_path / "a.vms").exists()


@pytest.mark.parametrize("words", [(), ("--hooks", "--discover"), ("--discover", "--since", "x")])
def test_arguments_that_contradict_each_other_are_refused(tmp_path: Path, run: Run, words: tuple[str, ...]) -> None:
    """What is missing or too much is said, with exit code 2."""
    assert run("watch", tmp_path / "a.vms", *words).code == 2
