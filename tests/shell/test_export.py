"""Handing on: what export writes and where, and what it refuses at the door."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import vmstore
from tests.proxy.running import until
from tests.shell.conftest import ROOT, Process, Run, log_bytes
from tests.store.test_spans import collecting


def test_a_store_moves_by_its_bundle(run: Run, two: Path, tmp_path: Path) -> None:
    """Exported and imported exactly into a new store, the sessions are the same and verify."""
    out = tmp_path / "all.jsonl"
    document = run("export", two, "--out", out, "--json").json
    assert (
        document["sessions"] == ["s1", "s2"] and document["bytes"] == out.stat().st_size and document["out"] == str(out)
    )
    done = run("import", tmp_path / "other.vms", out, "--exact", "--json")
    assert done.code == 0 and {session["session"] for session in done.json["sessions"]} == {"s1", "s2"}
    for question in ("sessions", "info"):
        mine, other = (run(question, store, "--json").json for store in (two, tmp_path / "other.vms"))
        for sizes in ("bytes_log", "bytes_views"):
            mine.pop(sizes, None), other.pop(sizes, None)
        assert mine == other
    assert run("verify", tmp_path / "other.vms").code == 0


def test_a_bundle_goes_through_a_pipe(run: Run, process: Process, recorded: Path, tmp_path: Path) -> None:
    """Without --out the bundle itself is on stdout, the remark on stderr, and the bytes are those of the file."""
    run("export", recorded, "s1", "--call", "2", "--exact", "--out", tmp_path / "one.jsonl")
    done = process("export", recorded, "s1", "--call", "2", "--exact")
    assert (done.returncode, done.stdout) == (0, (tmp_path / "one.jsonl").read_bytes())
    assert b"exported s1 to stdout" in done.stderr
    quiet = process("export", recorded, "s1", "--call", "2", "--exact", "--quiet")
    assert (quiet.stdout, quiet.stderr) == (done.stdout, b"")


def test_exporting_never_writes_to_the_store(run: Run, recorded: Path, tmp_path: Path) -> None:
    """An export leaves the log as it is, also where the store may only be read."""
    before = log_bytes(recorded)
    assert run("export", recorded, "--out", tmp_path / "x.jsonl").code == 0
    assert log_bytes(recorded) == before


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--json"], "stdout cannot hold both"),
        (
            ["--out", "{here}/x.docx"],
            "no format has the ending .docx; end the path with .chat.jsonl, .otlp.jsonl, .jsonl, .md, ",
        ),
        (["--format", "jsonl", "--out", "{here}/x.chat.jsonl"], "--format jsonl and the ending of "),
        (["--format", "sqlite"], "sqlite is no stream; name the path it shall have with --out"),
        (["s3"], "there is no session 's3'; the nearest is 's1'"),
        (["--call", "99"], "call 99 does not exist: the nearest is call 4"),
        (["--position", "3"], "position 3 of 's1' is no commit end; the next one is"),
        (["--out", "{here}"], "is there already; name another path"),
        (["--out", "{here}/no/x.jsonl"], "is no folder, so x.jsonl cannot be made in it"),
        (["--out", "/dev/full"], "/dev/full could not be written (No space left on device)"),
    ],
)
def test_what_cannot_be_exported_is_one_line(
    run: Run, recorded: Path, tmp_path: Path, words: list[str], text: str
) -> None:
    """Each refusal is one line with the remedy and leaves nothing behind."""
    before = sorted(tmp_path.rglob("*"))
    done = run("export", recorded, *(word.format(here=tmp_path) for word in words))
    assert (done.code, done.out) == (1, "") and text in done.err and done.err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_full_stdout_is_one_line(recorded: Path) -> None:
    """A pipe into a full device is named on stderr and leaves with 1."""
    command = [sys.executable, "-m", "vmstore", "export", str(recorded)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60, env=env, check=False)
    assert done.returncode == 1 and b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_damaged_bundle_makes_no_store(run: Run, recorded: Path, tmp_path: Path) -> None:
    """A bundle that was cut is refused before a store is made for it."""
    out = tmp_path / "x.jsonl"
    run("export", recorded, "--out", out)
    out.write_bytes(out.read_bytes()[:-9])
    done = run("import", tmp_path / "new.vms", out, "--exact")
    assert done.code == 1 and "is damaged: it is cut short" in done.err
    assert not (tmp_path / "new.vms").exists()


def test_export_completes_sessions(run: Run, two: Path) -> None:
    """Tab offers the sessions not named yet, and the formats."""
    words = ("export", two, "s1", "")
    assert run("_complete", len(words), "vmstore", *words).out.split() == ["s2"]
    words = ("export", two, "--format", "")
    assert run("_complete", len(words), "vmstore", *words).out.split() == [
        "jsonl",
        "parquet",
        "sqlite",
        "markdown",
        "chat",
        "otlp",
        "notes",
    ]


@pytest.mark.parametrize("format", ["sqlite", "parquet"])
def test_tables_are_exported(run: Run, two: Path, tmp_path: Path, format: str) -> None:
    """The command writes tables where it is told and says what it wrote."""
    out = tmp_path / "out"
    document = run("export", two, "s2", "--format", format, "--out", out, "--json").json
    assert (document["format"], document["sessions"]) == (format, ["s2"]) and out.exists() and document["bytes"] > 0


def test_conversations_are_exported_by_their_ending(run: Run, process: Process, two: Path, tmp_path: Path) -> None:
    """A path that ends so gets Markdown or chat messages, which can also go through a pipe."""
    for ending, format in ((".md", "markdown"), (".chat.jsonl", "chat")):
        out = tmp_path / f"out{ending}"
        answer = run("export", two, "--out", out, "--json").json
        assert (answer["format"], answer["bytes"]) == (format, out.stat().st_size)
        assert process("export", two, "--format", format).stdout == out.read_bytes()


def test_a_store_is_backed_up_and_restored(run: Run, two: Path, tmp_path: Path) -> None:
    """Backup and restore say what they hold, as text and as JSON, and the restored store verifies."""
    done = run("backup", two, tmp_path / "b", "--json")
    parts = done.json["namespaces"]
    assert [(part["namespace"], part["sessions"]) for part in parts] == [("default", 2)]
    again = run("restore", tmp_path / "b", tmp_path / "again.vms")
    assert again.out.startswith("restored and verified: 2 sessions, ")
    assert run("tail", two, "--json").out == run("tail", tmp_path / "again.vms", "--json").out
    assert run("verify", tmp_path / "again.vms").code == 0
    assert run("backup", two, tmp_path / "c", "--quiet") == (0, "", "")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["backup", "{here}/gone", "{here}/b"], "there is no store at"),
        (["backup", "{store}", "{here}"], "is there already"),
        (["backup", "{store}", "{here}/b", "--namespace", "x"], "has no namespace 'x'; name one"),
        (["backup", "{store}", "{here}/no/b"], "is no folder, so b cannot be made in it"),
        (["restore", "{store}", "{here}/b"], "is no finished backup"),
        (["restore", "{here}/gone", "{here}/b"], "is no finished backup"),
    ],
)
def test_what_cannot_be_backed_up_is_one_line(
    run: Run, recorded: Path, tmp_path: Path, words: list[str], text: str
) -> None:
    """Each refusal of backup and restore is one line with the remedy and leaves nothing behind."""
    before = sorted(tmp_path.rglob("*"))
    done = run(*(word.format(here=tmp_path, store=recorded) for word in words))
    assert (done.code, done.out) == (1, "") and text in done.err and done.err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_du_says_where_the_bytes_are(run: Run, two: Path) -> None:
    """The table lists tables and contents, its JSON adds up, and asking changes nothing of the log."""
    before = log_bytes(two)
    document = run("du", two, "--json").json
    assert document["bytes"] == sum(file["bytes"] for file in document["files"])
    assert {session["what"] for session in document["sessions"]} == {"s1", "s2"}
    done = run("du", two)
    assert " on disk\n" in done.out and " of contents, as they were accepted\n" in done.out
    assert "transcript" in done.out and "s2" in done.out and log_bytes(two) == before


def test_calls_are_posted_to_a_collector(run: Run, recorded: Path) -> None:
    """The command posts what ended and says how much, and a collector that fails is an error with its status."""
    with collecting() as collector:
        to = ("export", recorded, "--spans-to", collector.url)
        assert run(*to, "--header", "x-team=memory", "--json").json["calls"] == len(collector.calls) > 0
        assert collector.headers[0]["x-team"] == "memory"
        collector.status = 503
        failed = run(*to)
        assert failed.code != 0 and "503" in failed.err


def test_calls_are_posted_as_they_end(recorded: Path) -> None:
    """Followed, what another handle records is posted too, and Ctrl-C ends it well."""
    with collecting() as collector, vmstore.open(recorded) as store:
        command = [sys.executable, "-m", "vmstore", "export", str(recorded), "--spans-to", collector.url, "--follow"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as following:
            until(lambda: collector.calls)
            before = len(collector.calls)
            store.record(
                "another", {"model": "m", "messages": [{"role": "user", "content": "Where?"}]}, ValueError("no")
            )
            until(lambda: len(collector.calls) == before + 1)
            following.send_signal(signal.SIGINT)
            assert following.wait(60) == 0


@pytest.mark.parametrize(
    "words", [["--follow"], ["--no-content"], ["--spans-to", "nowhere"], ["--spans-to", "http://h", "--out", "x"],
              ["--spans-to", "http://h", "--turn", "1"], ["--spans-to", "http://h", "--header", "nothing"]]
)  # fmt: skip
def test_what_does_not_go_with_a_collector_is_refused(run: Run, recorded: Path, words: list[str]) -> None:
    """The command says so before it posts anything."""
    failed = run("export", recorded, *words)
    assert failed.code != 0 and failed.err and not failed.out
