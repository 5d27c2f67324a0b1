"""What leaves the store for others holds no secret, unless somebody says so; backups and exact bundles hold all."""

from __future__ import annotations

import base64
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.redact.test_door import ASK, CALL, KEY, MAIL, PASSWORD, RESULT, VALUES, answer
from tests.refusals import refused
from vmstore.core.clock import ManualClock
from vmstore.errors import InputError

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(200))).decode()
PICTURE = {
    "role": "user",
    "content": [
        {"type": "text", "text": f"{PASSWORD} stands in it"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PNG}},
    ],
}


def filled(path: Path) -> vmstore.Store:
    """A store that was told secrets in every place, a fork, and an image."""
    store = vmstore.open(path)
    request: dict[str, Any] = {"model": "m", "messages": [PICTURE], "metadata": {"user": MAIL}}
    store.record(f"of {MAIL}", request, answer(CALL), request_id="one")
    request["messages"] = [PICTURE, CALL, RESULT, ASK]
    store.record(f"of {MAIL}", request, ValueError(f"refused: password={PASSWORD}"))
    session = store.session(f"of {MAIL}")
    session.annotate(session.pages()[0].page, tags=[f"by {MAIL}"], anchors={MAIL: KEY})
    session.fork("later", call=1)
    store.record("later", {**request, "messages": [PICTURE, CALL, {**RESULT, "content": f"again {KEY}"}]})
    return store


def within(out: Path) -> bytes:
    """All that can be read in an export: its bytes, and the rows of tables."""
    files = [out] if out.is_file() else sorted(out.rglob("*"))
    text = b"\n".join(file.read_bytes() for file in files)
    for file in files:
        if file.suffix == ".parquet":
            import duckdb

            text += repr(duckdb.sql(f"SELECT * FROM '{file}'").fetchall()).encode()
    return text


@pytest.mark.parametrize("format", ["jsonl", "parquet", "sqlite"])
def test_no_value_leaves_unless_told(tmp_path: Path, format: str) -> None:
    """No export holds a value, names and ids included, what was masked is counted; told not to, it holds them all."""
    with filled(tmp_path / "a.vms") as store:
        report = store.export(tmp_path / "masked", format=format)
        plain = store.export(tmp_path / "plain", format=format, redact=False)
        assert not any(value.encode() in within(tmp_path / "masked") for value in VALUES)
        assert all(value.encode() in within(tmp_path / "plain") for value in VALUES)
    assert report.redacted and set(report.masked) == {"password", "api_key", "email"} and report.unseen == 1
    assert report.values == 3
    assert not plain.redacted and plain.masked == {}
    assert (report.mutations, report.commits) == (plain.mutations, plain.commits)


def test_a_masked_bundle_is_a_bundle(tmp_path: Path) -> None:
    """A masked bundle is taken in, verifies and answers as the store did; the image is left out and says so."""
    with filled(tmp_path / "a.vms") as store:
        store.export(tmp_path / "b.jsonl")
        store.export(tmp_path / "e.jsonl", exact=True)
        hashes = {commit.hash for commit in store.admin.log.tail(0, 99)}
    other = vmstore.memory_store()
    other.import_file(tmp_path / "b.jsonl")
    assert other.verify().ok
    assert [info.session for info in other.sessions()] == ["later", "of [EMAIL 1]"]
    session = other.session("later")
    contents = [session.content(page.page) for page in session.pages()]
    assert b"[PASSWORD 1] stands in it" in contents and b"again [API_KEY 1]" in contents
    assert any(b"left out of a redacted export" in content for content in contents)
    assert session.context(call=2).messages()[0]["content"][0]["text"] == "[PASSWORD 1] stands in it"
    assert not hashes & {commit.hash for commit in other.admin.log.tail(0, 99)}
    exact = vmstore.memory_store()
    exact.import_file(tmp_path / "e.jsonl", exact=True)
    assert hashes == {commit.hash for commit in exact.admin.log.tail(0, 99)}


def test_ids_still_join(tmp_path: Path) -> None:
    """In masked tables every id that names another row has one."""
    with filled(tmp_path / "a.vms") as store:
        store.export(tmp_path / "t.db", format="sqlite")
    db = sqlite3.connect(tmp_path / "t.db")
    assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    assert db.execute("SELECT count(*) FROM versions JOIN pages ON pages.id = versions.page").fetchone()[0] > 4
    db.close()


def test_a_backup_holds_all(tmp_path: Path) -> None:
    """A backup is the store as it is, never masked."""
    with filled(tmp_path / "a.vms") as store:
        store.backup(tmp_path / "b")
    with vmstore.open(tmp_path / "b") as kept:
        text = json.dumps([kept.session("later").context(call=1).messages()])
    assert PASSWORD in text


def test_only_a_bundle_is_exact(tmp_path: Path) -> None:
    """Tables have no hashes, so none can be asked for exactly."""
    with filled(tmp_path / "a.vms") as store, refused("not-a-bundle", InputError):
        store.export(tmp_path / "x", format="sqlite", exact=True)


def test_an_approval_lifts_redaction_and_is_withdrawn(tmp_path: Path) -> None:
    """Approved by somebody an artifact leaves as it is and says so, others stay masked; withdrawn or over, all do."""
    clock = ManualClock(1_700_000_000_000_000)
    store = vmstore.memory_store(clock=clock)
    store.record("s", {"model": "m", "messages": [ASK]})

    def shown(format: str) -> tuple[bool, list[str]]:
        report = store.export(tmp_path / f"{store.admin.log.ordinal}-{format}-{clock.now()}", format=format)
        return report.redacted, report.approved

    assert shown("sqlite") == (True, [])
    (approval,) = vmstore.approve(store, "sqlite", "s", who="Ada", until_us=clock.now() + 3_600_000_000)
    assert (approval.artifact, approval.granted, approval.who, approval.in_force) == ("sqlite", True, "Ada", True)
    assert (shown("sqlite"), shown("parquet")) == ((False, ["Ada"]), (True, []))
    store.session("s").fork("t")
    assert shown("sqlite") == (True, []), "a fork needs a word of its own"
    vmstore.approve(store, "all", ["s", "t"], who="Bob")
    assert (shown("sqlite"), shown("jsonl")) == ((False, ["Bob"]), (False, ["Bob"]))
    vmstore.approve(store, ["all"], who="Bob", granted=False)
    assert (shown("sqlite"), shown("jsonl")) == ((True, []), (True, []))
    assert [approval.granted for approval in vmstore.approvals(store) if approval.session == "s"] == [True, True, False]
    vmstore.approve(store, "jsonl", who="Eve", until_us=clock.now() + 1_000_000)
    assert shown("jsonl") == (False, ["Eve"])
    clock.advance(2_000_000)
    assert shown("jsonl") == (True, [])
    assert [entry.kind for entry in store.tail()].count("approve") == 7
    assert store.verify().ok


def test_an_approval_needs_somebody(tmp_path: Path) -> None:
    """Nobody lifts redaction without a name, for what nobody knows, or until a time that is over."""
    store = filled(tmp_path / "a.vms")
    with refused("not-a-text", InputError):
        vmstore.approve(store, "sqlite", who="")
    with refused("no-artifact", vmstore.UnknownError, "'xml'"):
        vmstore.approve(store, "xml", who="Ada")
    with refused("over-already", InputError):
        vmstore.approve(store, "sqlite", who="Ada", until_us=1_700_000_000_000_000)
    assert vmstore.approvals(store) == []
    store.close()
