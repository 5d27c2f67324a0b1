"""The commands that archive and bring back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shell.conftest import Run


def test_archive_shape(run: Run, recorded: Path) -> None:
    """`archive` and `unarchive` say what they moved, `--list` what is archived, and every answer stays."""
    before = run("context", recorded, "s1", "--render").out
    assert run("archive", recorded, "--list").out == "no session is archived\n"
    dry = run("archive", recorded, "s1", "--grace", "0", "--dry-run", "--json").json
    assert not dry["done"] and dry["sessions"][0]["cells"] > 5 and dry["bytes_before"] == dry["bytes_after"]
    document = run("archive", recorded, "s1", "--grace", "0", "--json").json
    (moved,) = document["sessions"]
    assert document["done"] and Path(moved["file"]).stat().st_size == moved["file_bytes"]
    assert run("context", recorded, "s1", "--render").out == before
    assert run("archive", recorded, "--list", "--json").json["archived"][0]["session"] == "s1"
    assert "left alone: s1, all of it is archived" in run("archive", recorded, "s1", "--grace", "0").out
    back = run("unarchive", recorded, "s1").out
    assert back.startswith("brought back: ") and " cells of s1; " in back
    assert not Path(moved["file"]).exists() and run("context", recorded, "s1", "--render").out == before


def test_an_archive_is_asked_alone(run: Run, recorded: Path, tmp_path: Path) -> None:
    """Commands that ask take an archive in place of a store; those that change it are refused."""
    file = Path(run("archive", recorded, "s1", "--grace", "0", "--json").json["sessions"][0]["file"])
    asked = run("context", recorded, "s1", "--render").out
    assert run("sessions", file).code == 0 and run("context", file, "s1", "--render").out == asked
    assert run("verify", file).code == 0
    refused = run("compact", file)
    assert refused.code == 1 and "only read" in refused.err


@pytest.mark.parametrize("words", [(), ("s1", "--older-than", "3d"), ("--list", "s1"), ("--older-than", "soon")])
def test_what_does_not_go_together(run: Run, recorded: Path, words: tuple[str, ...]) -> None:
    """Neither names nor an age, both, or an age that is none, leaves with 2."""
    assert run("archive", recorded, *words).code == 2


def test_an_open_session_is_refused(run: Run, recorded: Path) -> None:
    """A session written to just now is refused by name and left alone by age."""
    refused = run("archive", recorded, "s1")
    assert refused.code == 1 and "was written to" in refused.err
    assert "left alone" in run("archive", recorded, "--older-than", "0h").out


def test_an_encrypted_archive_takes_the_key_of_its_store(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands read an encrypted archive alone with `--store-key` or the environment's key, and name both without."""
    key, store = tmp_path / "key", tmp_path / "a.vms"
    run("key", "--new", key)
    talk = tmp_path / "talk.jsonl"
    talk.write_text('{"role":"user","content":"Where?"}\n{"role":"assistant","content":"Here."}\n')
    run("import", store, talk, "--session", "s", "--store-key", key)
    sessions = run("archive", store, "s", "--grace", "0", "--store-key", key, "--json").json["sessions"]
    file = sessions[0]["file"]
    assert b"Where?" not in Path(file).read_bytes()
    refused = run("verify", file)
    assert refused.code == 1 and "--store-key or in VMSTORE_KEY_FILE" in refused.err
    assert run("verify", file, "--store-key", key).code == 0
    monkeypatch.setenv("VMSTORE_KEY_FILE", str(key))
    assert "Where?" in run("context", file, "s", "--render").out
