"""`vmstore publish`, and what other commands do with the address of a cold tier."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.store.archives import told_at
from vmstore.shell.main import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def printed(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    """What a command prints; its exit code is checked."""
    assert main([str(word) for word in words]) == code
    output = capsys.readouterr()
    return output.out or output.err


def test_sessions_are_published_asked_and_swept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says what went and where it stands, the address is asked by other commands, and swept."""
    path, tier = told_at(tmp_path / "a.vms"), tmp_path / "cold"
    address = f"cold://{tier}"
    assert "would publish: other, new" in printed(capsys, "publish", path, tier, "other", "--dry-run")
    assert not tier.exists()
    text = printed(capsys, "publish", path, tier, "other")
    assert "published: other, new" in text and "stands at manifest 1" in text
    assert "left alone: 1 session" in printed(capsys, "publish", path, tier, "other")
    report = json.loads(printed(capsys, "publish", path, address, "other", "plan", "--json"))
    assert [part["session"] for part in report["sessions"]] == ["plan"] and report["manifest"] == 2
    sessions = json.loads(printed(capsys, "sessions", address, "--json"))["sessions"]
    assert sorted(session["session"] for session in sessions) == ["other", "plan"]
    swept = json.loads(printed(capsys, "sweep", address, "--grace", "0", "--json"))
    assert swept["deleted"] and any("manifests" in name for name in swept["files"])
    assert "only read" in printed(capsys, "compact", address, code=1)


def test_contents_are_left_to_a_tier_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`archive --to` says where the contents lie, `--list` names the address, and `unarchive` brings them back."""
    path, tier = told_at(tmp_path / "a.vms"), tmp_path / "cold"
    assert str(tier) in printed(capsys, "archive", path, "other", "--grace", "0", "--to", tier)
    assert f"cold://{tier}" in printed(capsys, "archive", path, "--list")
    assert "brought back" in printed(capsys, "unarchive", path, "other")
    assert "no session is archived" in printed(capsys, "archive", path, "--list")


def test_names_and_ages_exclude_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sessions by name and by age at once is a usage error."""
    printed(capsys, "publish", tmp_path / "a.vms", tmp_path / "cold", "s", "--older-than", "9d", code=2)
