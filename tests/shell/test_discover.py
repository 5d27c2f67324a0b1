"""`import --discover`: the sessions of this machine, found where agents keep them, in a made home."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.capture.imports import claude, codex, in_lines, pi
from tests.shell.conftest import Run
from vmstore.capture.importers.formats import preview as glances

HOMES = ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "PI_CODING_AGENT_DIR")


def put(file: Path, text: str | bytes, at: int) -> Path:
    """Writes a file that changed at a time, in seconds since 1970."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(file, (at, at))
    return file


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home where nothing is yet, and no variable that names another."""
    for name in HOMES:
        monkeypatch.delenv(name, raising=False)
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    return place


@pytest.fixture
def lived_in(home: Path) -> dict[str, Path]:
    """A home with a session of each agent, and what is none."""
    day = home / ".codex" / "sessions" / "2026" / "01" / "02"
    old = in_lines(codex(1)).replace("cx-1", "cx-0")
    fields = {
        "pi": put(home / ".pi/agent/sessions/--w--/a.jsonl", in_lines(pi(1)), 3000),
        "claude": put(home / ".claude/projects/-w/s-1.jsonl", in_lines(claude(1)), 4000),
        "codex": put(day / "rollout-2026-01-02T00-00-00-x.jsonl", in_lines(codex(1)), 2000),
        "old": put(home / ".codex/archived_sessions/rollout-0.jsonl.zst", zstandard.compress(old.encode()), 1000),
    }
    put(home / ".claude/projects/-w/agent-7.jsonl", in_lines(claude(1)), 5000)
    put(home / ".claude/projects/-w/empty.jsonl", "", 5000)
    put(day / "notes.txt", "none", 5000)
    return fields


def test_the_sessions_are_listed_newest_first(run: Run, lived_in: dict[str, Path]) -> None:
    """Each with its format, when it changed, its size, folder, file and first words; other files are left out."""
    done = run("import", "--discover", "--json")
    assert done.code == 0 and list(done.json) == ["sessions", "places"]
    listed = done.json["sessions"]
    assert list(listed[0]) == ["format", "changed_at", "bytes", "folder", "words", "file"]
    assert [record["file"] for record in listed] == [str(lived_in[name]) for name in ("claude", "pi", "codex", "old")]
    assert [record["format"] for record in listed] == ["claude-code", "pi", "codex", "codex"]
    assert [record["changed_at"] for record in listed] == [4_000_000_000, 3_000_000_000, 2_000_000_000, 1_000_000_000]
    assert {record["words"] for record in listed} == {"What is in module 0?"}
    assert [record["folder"] for record in listed] == [None, "/w", "/w", "/w"]
    assert all(record["bytes"] == Path(record["file"]).stat().st_size for record in listed)
    assert [place["sessions"] for place in done.json["places"]] == [2, 1, 1, 1]


def test_the_list_as_text(run: Run, lived_in: dict[str, Path]) -> None:
    """A table on stdout, and on stderr how to take them in."""
    done = run("import", "--discover")
    head, *rows = done.out.splitlines()
    assert head.split() == ["format", "changed", "(UTC)", "size", "folder", "file", "first", "words"]
    assert len(rows) == 4 and str(lived_in["claude"]) in rows[0] and rows[0].startswith("claude-code  1970-01-01 01:06")
    assert done.err.startswith("4 sessions; `vmstore import STORE FILE`")
    assert run("import", "--discover", "--quiet")[1:] == ("", "")


def test_one_format_alone(run: Run, lived_in: dict[str, Path]) -> None:
    """--format looks for the sessions of one agent only."""
    listed = run("import", "--discover", "--format", "pi", "--json").json
    assert [session["file"] for session in listed["sessions"]] == [str(lived_in["pi"])]
    assert [place["format"] for place in listed["places"]] == ["pi"]


def test_nothing_there_names_the_places(run: Run, home: Path) -> None:
    """Where no session is the answer says where it looked, and that is no failure."""
    done = run("import", "--discover")
    assert done.code == 0 and done.out.startswith("no sessions found; looked in ")
    for place in (".claude/projects", ".codex/sessions", ".codex/archived_sessions", ".pi/agent/sessions"):
        assert f"{home}/{place} (" in done.out
    assert run("import", "--discover", "--json").json["sessions"] == []
    assert list(home.iterdir()) == []


def test_homes_named_elsewhere(run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables by which agents are told another folder are followed."""
    for name in HOMES:
        monkeypatch.setenv(name, str(tmp_path / name))
    put(tmp_path / "CODEX_HOME/sessions/rollout-1.jsonl", in_lines(codex(1)), 1)
    put(tmp_path / "CLAUDE_CONFIG_DIR/projects/-w/s.jsonl", in_lines(claude(1)), 2)
    put(tmp_path / "PI_CODING_AGENT_DIR/sessions/w/p.jsonl", in_lines(pi(1)), 3)
    assert [session["format"] for session in run("import", "--discover", "--json").json["sessions"]] == [
        "pi",
        "claude-code",
        "codex",
    ]


def test_all_of_them_are_imported(run: Run, lived_in: dict[str, Path], store_path: Path) -> None:
    """--all takes in what was found, under the names the sessions have; without it a store is not even made."""
    assert run("import", store_path, "--discover").code == 0 and not store_path.exists()
    done = run("import", store_path, "--discover", "--all", "--json")
    assert done.code == 0 and list(done.json) == ["sessions"]
    assert [session["session"] for session in done.json["sessions"]] == ["s-1", "pi-1", "cx-1", "cx-0"]
    assert run("import", store_path, "--discover", "--all").err == "nothing new: every record was there already\n"


def test_only_the_beginning_of_a_file_is_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large session costs what its listing needs, and one whose beginning says nothing a larger piece."""
    records = codex(400)
    file = put(home / "r.jsonl", in_lines(records), 1)
    pieces: list[int] = []
    look = glances._piece

    def watched(path: Path, size: int) -> tuple[bytes, bool]:
        data, whole = look(path, size)
        pieces.append(len(data))
        return data, whole

    monkeypatch.setattr(glances, "_piece", watched)
    assert glances.glance(file, "codex").words == "What is in module 0?"
    assert len(pieces) == 1 and pieces[0] <= 64 << 10 < file.stat().st_size
    pieces.clear()
    records[0]["payload"]["base_instructions"]["text"] = "be brief. " * 30_000
    assert glances.glance(put(file, in_lines(records), 1), "codex").words == "What is in module 0?"
    assert len(pieces) == 2
    assert glances.glance(put(file, zstandard.compress(file.read_bytes()), 1), "codex").folder == "/w"


@pytest.mark.parametrize(
    "content", [b"\0\0\0", b"not json\n", b'{"type": "session_meta"', b"\x28\xb5\x2f\xfdjunk", b"[1]\n"]
)
def test_a_file_that_cannot_be_read_is_listed_without_words(run: Run, home: Path, content: bytes) -> None:
    """Whatever lies where sessions lie, the list is made."""
    put(home / ".codex/sessions/rollout-1.jsonl", content, 1)
    (session,) = run("import", "--discover", "--json").json["sessions"]
    assert (session["folder"], session["words"]) == (None, None)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["import"], "the following arguments are required: STORE, FILE"),
        (["import", "x"], "the following arguments are required: FILE"),
        (["import", "x", "f", "--all"], "--all goes with --discover"),
        (["import", "x", "f", "--discover"], "--discover finds files itself"),
        (["import", "--discover", "--all"], "--all needs a STORE to import into"),
    ],
)
def test_what_does_not_go_together(run: Run, words: list[Any], text: str) -> None:
    """Arguments that make no sense are answered with 2 and the remedy, before anything is done."""
    done = run(*words)
    assert (done.code, done.out) == (2, "") and text in done.err and "--help`" in done.err


def test_a_format_nobody_keeps(run: Run, home: Path) -> None:
    """A format whose sessions have no known place is refused, naming those that have."""
    done = run("import", "--discover", "--format", "locomo")
    assert done.code == 1 and "found are those of claude-code, codex, pi" in done.err


def test_words_are_one_safe_line(run: Run, home: Path) -> None:
    """What a person wrote over many lines with controls is shown on one, escaped, and at most 200 characters."""
    records = json.loads(json.dumps(pi(1)))
    records[1]["message"]["content"][0]["text"] = "first\n\x1b[31mred " + "x" * 500
    put(home / ".pi/agent/sessions/w/p.jsonl", in_lines(records), 1)
    (session,) = run("import", "--discover", "--json").json["sessions"]
    assert session["words"].startswith("first \x1b[31mred xx") and len(session["words"]) == 200
    assert "\x1b" not in run("import", "--discover").out
