"""The commands that keep house: fork, verify, rebuild."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest

from tests.log.test_upgrade import golden, old_log
from tests.shell.conftest import Run, log_bytes, requests


def flip(file: Path, sql: str, column: str) -> None:
    """Changes one bit of a blob in a database file."""
    db = apsw.Connection(str(file))
    table = sql.split()[3]
    row = db.execute(sql).get
    blob = db.blob_open("main", table, column, row, True)
    content = blob.read()
    blob.seek(len(content) // 2)
    blob.write(bytes([content[len(content) // 2] ^ 1]))
    blob.close()
    db.close()


def test_verify_shape(run: Run, two: Path) -> None:
    """`verify --json` counts what was checked and has no problem in a sound store."""
    done = run("verify", two, "--json")
    assert done.code == 0 and list(done.json) == ["ok", "commits", "mutations", "sessions", "problems"]
    info = run("info", two, "--json").json
    assert done.json == {
        **{key: info[key] for key in ("commits", "mutations", "sessions")},
        "ok": True,
        "problems": [],
    }
    text = run("verify", two)
    assert text.out.startswith("ok: 2 sessions, ") and text.err == ""
    assert run("verify", two, "--quiet") == (0, "", "")


@pytest.mark.parametrize(
    ("sql", "column", "kind"),
    [
        ("SELECT first FROM frames ORDER BY length(content) DESC LIMIT 1", "content", "cell"),
        ("SELECT first FROM frames ORDER BY length(content) DESC LIMIT 1", "salts", "cell"),
        ("SELECT ordinal FROM commits ORDER BY length(body) DESC LIMIT 1", "body", "hash"),
        ("SELECT ordinal FROM commits ORDER BY ordinal DESC LIMIT 1", "hash", "hash"),
    ],
)
def test_a_flipped_bit_is_named(run: Run, recorded: Path, sql: str, column: str, kind: str) -> None:
    """One flipped bit makes verify leave with 1, name the commit, and say what to do, as JSON and as text."""
    flip(recorded / "default" / "log.sqlite", sql, column)
    done = run("verify", recorded, "--json")
    assert done.code == 1 and done.json["ok"] is False
    assert all(list(problem) == ["kind", "where", "what"] for problem in done.json["problems"])
    assert kind in {problem["kind"] for problem in done.json["problems"]}
    assert any("commit " in problem["where"] for problem in done.json["problems"])
    text = run("verify", recorded, "--quiet")
    assert text.code == 1 and done.json["problems"][0]["where"] in text.out
    assert "put back a backup" in text.out and "Traceback" not in text.err


def test_a_log_that_cannot_be_opened_is_a_problem(run: Run, recorded: Path) -> None:
    """A log too damaged to be opened is a problem verify names, in JSON as well."""
    log = recorded / "default" / "log.sqlite"
    log.write_bytes(log.read_bytes()[:4096] + b"\xff" * 8192)
    done = run("verify", recorded, "--json")
    assert done.code == 1 and done.json["ok"] is False and done.json["problems"][0]["kind"] == "log"


def test_a_tampered_view_is_named_and_rebuilt(run: Run, recorded: Path) -> None:
    """A row changed in a view is named with the command that mends it, and that command mends it."""
    (views,) = (path for path in recorded.rglob("views-*.sqlite"))
    db = apsw.Connection(str(views))
    db.execute("UPDATE pages SET importance = importance + 1")
    db.close()
    before = log_bytes(recorded)
    done = run("verify", recorded)
    assert done.code == 1 and f"`vmstore rebuild {recorded}`" in done.out
    assert run("verify", recorded, "--json").json["problems"][0]["where"] == "pages"
    assert run("rebuild", recorded, "--view", "pages").out.startswith("rebuilt: pages; at commit ")
    assert run("verify", recorded).code == 0 and log_bytes(recorded) == before


def test_rebuild_shape(run: Run, recorded: Path) -> None:
    """`rebuild --json` gives every view's position, which is the end of the log."""
    document = run("rebuild", recorded, "--json").json
    assert document == {"positions": run("info", recorded, "--json").json["positions"]}
    assert run("rebuild", recorded, "--quiet") == (0, "", "")


def test_deleted_views_come_back(run: Run, recorded: Path) -> None:
    """Deleting every views file changes no answer."""
    asked = ["context", recorded, "--call", "4", "--messages", "--json"]
    before = run(*asked)
    for path in recorded.rglob("views-*"):
        path.unlink()
    assert run(*asked) == before and run("verify", recorded).code == 0


@pytest.mark.parametrize("moment", [["--at-turn", "1"], ["--at-call", "2"]])
def test_fork(run: Run, recorded: Path, moment: list[str]) -> None:
    """A fork shares the past up to its moment: the same context there, and nothing after."""
    call = {"--at-turn": 1, "--at-call": 2}[moment[0]]
    document = run("fork", recorded, "s1", *moment, "--as", "try-b", "--json").json
    assert (document["session"], document["parent"], document["origin"], document["calls"]) == (
        "try-b",
        "s1",
        "fork",
        call,
    )
    messages = run("context", recorded, "try-b", "--messages", "--json").json["messages"]
    assert messages == requests()[call - 1]
    past = run("context", recorded, "try-b", "--call", call + 1)
    assert past.code == 1 and f"the nearest is call {call}" in past.err
    assert run("verify", recorded).code == 0


def test_fork_as_text(run: Run, recorded: Path) -> None:
    """As text a fork says where it stands; the session's name may be left out."""
    position = json.loads(run("context", recorded, "--call", "1", "--json").out)["basis"]["position"]
    done = run("fork", recorded, "--at-position", position, "--as", "b")
    assert done.out == f"b shares the past of s1 up to turn 1, call 1, position {position}\n"
    assert run("fork", recorded, "s1", "--at-call", "1", "--as", "c", "--quiet") == (0, "", "")


def test_compact_shape(run: Run, recorded: Path) -> None:
    """`compact --json` says what it did in rows and bytes, and packing again finds nothing to do."""
    document = run("compact", recorded, "--json").json
    assert list(document) == ["frames_before", "frames_after", "bytes_before", "bytes_after", "segments", "columns"]
    assert document["frames_after"] < document["frames_before"]
    again, rows = run("compact", recorded), document["frames_after"]
    assert again.out.startswith(f"packed: {rows} rows of cells became {rows}; the log took")
    assert run("compact", recorded, "--quiet") == (0, "", "")
    assert run("verify", recorded).code == 0


def test_sweep_shape(run: Run, recorded: Path) -> None:
    """`sweep` names and deletes what no commit names, `--dry-run` only names it, and young files are spared."""
    stray = recorded / "default" / "blobs" / "ab" / ("ab" * 32)
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"left behind")
    assert run("sweep", recorded).out == "deleted 0 files of 0 bytes that no commit names\n"
    dry = run("sweep", recorded, "--grace", "0", "--dry-run", "--json")
    assert dry.json == {"deleted": False, "files": [str(stray)], "bytes": 11} and stray.exists()
    done = run("sweep", recorded, "--grace", "0")
    assert done.out == f"deleted 1 file of 11 bytes that no commit names\n{stray}\n" and not stray.exists()
    assert run("sweep", recorded, "--quiet") == (0, "", "")


def test_upgrade_shape(run: Run, tmp_path: Path) -> None:
    """`upgrade` brings a store of format 0 up to date and says where the old log is; then there is nothing to do."""
    log = tmp_path / "old.vms" / "default" / "log.sqlite"
    old_log(log, golden())
    refused = run("info", tmp_path / "old.vms")
    assert refused.code == 1 and "run `vmstore upgrade`" in refused.err
    tried = run("upgrade", tmp_path / "old.vms", "--rehearse")
    assert tried.code == 0 and "rehearsed from format 0 to 1: 8 commits" in tried.out
    assert run("upgrade", tmp_path / "old.vms", "--rehearse", "--json").json["ready"]
    text = f"upgraded from format 0 to 1: 8 commits; the old log is {log}.format-0\n"
    assert run("upgrade", tmp_path / "old.vms").out == text
    document = run("upgrade", tmp_path / "old.vms", "--json").json
    assert document == {"format_before": 1, "format": 1, "commits": 0, "kept": None}
    assert run("upgrade", tmp_path / "old.vms").out.endswith("has format 1 already\n")
    assert run("verify", tmp_path / "old.vms").code == 0
