"""The import command: what it reports, what it refuses, what it leaves behind, how it follows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

import pytest

import vmstore
from tests.shell.conftest import ROOT, Run, log_bytes

SHAPE = ["session", "format", "fidelity", "turns", "calls", "messages", "pages", "mutations", "raw", "position"]


def message(role: str, text: str) -> str:
    """One line of a chat file."""
    return json.dumps({"role": role, "content": text}) + "\n"


def test_import_shape(run: Run, store_path: Path, chat: Path) -> None:
    """`import --json` is one list of sessions with their totals, and the same when nothing changes."""
    done = run("import", store_path, chat, "--json")
    assert done.code == 0 and list(done.json) == ["sessions"]
    (session,) = done.json["sessions"]
    assert list(session) == SHAPE
    named = {key: session[key] for key in ("session", "format", "fidelity", "turns", "calls", "messages", "raw")}
    assert named == {
        "session": "plan",
        "format": "chat-completions",
        "fidelity": "derived",
        "turns": 2,
        "calls": 2,
        "messages": 4,
        "raw": 0,
    }
    before = log_bytes(store_path)
    again = run("import", store_path, chat, "--json")
    assert again.code == 0 and again.json == done.json and log_bytes(store_path) == before


def test_import_as_text(run: Run, store_path: Path, chat: Path) -> None:
    """As text the totals are a table on stdout, and how much was new is a remark on stderr."""
    done = run("import", store_path, chat)
    assert done.out.splitlines()[1].split()[:5] == ["plan", "chat-completions", "derived", "2", "2"]
    assert done.err == "imported 5 records\n"
    again = run("import", store_path, chat)
    assert again.out == done.out and again.err == "nothing new: every record was there already\n"
    assert run("import", store_path, chat, "--quiet")[1:] == ("", "")


def test_a_grown_file_adds_its_new_part(run: Run, store_path: Path, chat: Path) -> None:
    """A file that grew adds only what is new, under the same session."""
    run("import", store_path, chat)
    with chat.open("a") as file:
        file.write(message("user", "Which version?") + message("assistant", "18."))
    done = run("import", store_path, chat, "--json")
    assert [(session["session"], session["calls"]) for session in done.json["sessions"]] == [("plan", 3)]
    assert done.err == "imported 2 records\n"


def test_unreadable_lines_are_named(run: Run, store_path: Path, tmp_path: Path) -> None:
    """Each line that cannot be read is named with file and line and counted; a torn last line is left."""
    path = tmp_path / "odd.jsonl"
    path.write_text(message("user", "hi") + "{broken}\n" + message("assistant", "yo") + '{"role": "us')
    done = run("import", store_path, path, "--json")
    assert done.code == 0 and done.json["sessions"][0]["raw"] == 1
    lines = done.err.splitlines()
    assert lines[0].startswith(f"vmstore: {path}:2: not JSON") and lines[0].endswith("; kept as is")
    assert lines[1] == f"vmstore: {path}:4: the last line is torn; it is left for the next import"
    with path.open("a") as file:
        file.write('er", "content": "more"}\n')
    assert run("import", store_path, path).err == "imported 1 record\n"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b"hello there\n", "no known format recognised"),
        (b'{"a": 1}', "no known format recognised; seen: an object with the keys a"),
        (b"\x00\x01\x02binary", "is binary"),
        (b"\xff\xfe\xfa\xf0 sixteen", "is UTF-16"),
        (b"\xfa\xfe\xf0 latin", "is not UTF-8 text"),
    ],
)
def test_a_refused_file_leaves_no_store(run: Run, store_path: Path, tmp_path: Path, content: bytes, text: str) -> None:
    """A file nobody can read is refused with the reason, and no store is made for it."""
    path = tmp_path / "bad.bin"
    path.write_bytes(content)
    done = run("import", store_path, path, "--json")
    assert done.code == 1 and done.out == "" and done.err.count("\n") == 1
    assert done.err.startswith(f"vmstore: {path} ") or done.err.startswith(f"vmstore: {path}: ")
    assert text in done.err and sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--session", ""], "a session needs a name"),
        (["--session", "a\nb"], "cannot name a session"),
        (["--format", "csv"], "unknown format 'csv'; the formats are pi, claude-code"),
        (["--format", "pi"], "is a chat-completions file, not pi"),
    ],
)
def test_a_refused_option_leaves_no_store(run: Run, store_path: Path, chat: Path, words: list[str], text: str) -> None:
    """A name or format that cannot be is refused before a store is made."""
    done = run("import", store_path, chat, *words)
    assert done.code == 1 and text in done.err and not store_path.exists()


def test_a_file_that_is_not_there(run: Run, store_path: Path, tmp_path: Path) -> None:
    """A missing file and a folder without sessions are named with the reason, in an existing store as well."""
    gone, empty = tmp_path / "gone.jsonl", tmp_path / "empty"
    empty.mkdir()
    assert f"{gone} cannot be read" in run("import", store_path, gone).err
    assert f"{empty} holds no session file" in run("import", store_path, empty).err
    vmstore.open(store_path).close()
    before = log_bytes(store_path)
    assert run("import", store_path, tmp_path / "gone.jsonl").code == 1 and log_bytes(store_path) == before


def test_one_refused_file_does_not_stop_the_others(run: Run, store_path: Path, chat: Path, tmp_path: Path) -> None:
    """Of several files the readable ones are taken in, the other is named, and the exit code is 1."""
    bad, more = tmp_path / "bad.txt", tmp_path / "more.jsonl"
    bad.write_text("hello\n")
    more.write_text(message("user", "hi") + message("assistant", "yo"))
    for _ in ("a new store", "the store that is there now"):
        done = run("import", store_path, chat, bad, more, "--json")
        assert done.code == 1 and f"vmstore: {bad}: no known format" in done.err
        assert [session["session"] for session in done.json["sessions"]] == ["plan", "more"]


def test_names_and_namespaces(run: Run, store_path: Path, chat: Path) -> None:
    """`--session` names the session, `--namespace` keeps it apart, and a taken name gets a suffix."""
    assert run("import", store_path, chat, "--session", "mine", "--json").json["sessions"][0]["session"] == "mine"
    other = run("import", store_path, chat, "--namespace", "two", "--json")
    assert other.json["sessions"][0]["session"] == "plan"
    assert run("info", store_path, "--namespace", "two", "--json").json["sessions"] == 1
    copy = chat.with_name("copy.jsonl")
    copy.write_text(message("user", "something else"))
    taken = run("import", store_path, copy, "--session", "mine", "--json")
    assert taken.json["sessions"][0]["session"] == "mine-2"


class Follower:
    """`vmstore import --follow` as a process of its own."""

    def __init__(self, *words: object) -> None:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "vmstore", "import", *map(str, words), "--follow"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)

    def line(self) -> str:
        """The next line of its answer."""
        stream: IO[str] | None = self.process.stdout
        assert stream is not None
        return stream.readline()

    def interrupt(self) -> tuple[int, str, str]:
        """Presses Ctrl-C; the exit code and the rest of its output."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


def test_follow_takes_in_what_is_added(store_path: Path, tmp_path: Path) -> None:
    """A followed file is imported again as it grows, a line for each addition, until Ctrl-C leaves with 0."""
    path = tmp_path / "live.jsonl"
    path.write_text(message("user", "hi"))
    follower = Follower(store_path, path)
    assert follower.line().startswith("session") and follower.line().startswith("live")
    with path.open("a") as file:
        file.write(message("assistant", "yo") + '{"role": "user", "con')
    assert follower.line().startswith("live: 1 record more; now at turn 1, call 1, ")
    with path.open("a") as file:
        file.write('tent": "and then?"}\n')
    assert follower.line().startswith("live: 1 record more; now at turn 2, call 1, ")
    code, out, err = follower.interrupt()
    assert (code, out) == (0, "") and "Traceback" not in err and "torn" not in err
    with vmstore.open(store_path, "r") as store:
        assert store.session("live").info().messages == 3


def test_follow_survives_a_file_that_breaks(store_path: Path, tmp_path: Path) -> None:
    """While following, a file that cannot be read for a while is named and does not end the command."""
    path = tmp_path / "live.jsonl"
    path.write_text(message("user", "hi"))
    follower = Follower(store_path, path, "--json")
    first: dict[str, Any] = json.loads(follower.line())
    path.write_text("")
    time.sleep(1.5)
    path.write_text(message("user", "hi") + message("assistant", "yo"))
    second = json.loads(follower.line())
    code, _, err = follower.interrupt()
    assert code == 0 and f"vmstore: {path} is empty" in err
    assert [case["sessions"][0]["calls"] for case in (first, second)] == [0, 1]


@pytest.mark.parametrize("folder", ["pi", "swe-agent", "tau-bench", "claude-code"])
def test_real_sessions(run: Run, data: Path, store_path: Path, folder: str) -> None:
    """Every real session file of a format goes in by one command, and verify finds nothing wrong."""
    files = [path for path in sorted((data / folder).iterdir()) if path.name != "LICENSE"]
    done = run("import", store_path, *files, "--json")
    assert done.code == 0 and {session["format"] for session in done.json["sessions"]} == {folder}
    assert run("verify", store_path, "--json").json["ok"] is True
    again = run("import", store_path, *files, "--json")
    assert again.json["sessions"] == done.json["sessions"] and "nothing new" in again.err
