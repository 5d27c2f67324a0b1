"""Commands of an encrypted store: which key they take, and what they say where it does not fit."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

import vmstore
from vmstore.shell.main import main
from vmstore.shell.open_store import KEY_FILE
from vmstore.shell.vmql.main import main as vmql

REQUEST = {"model": "m-1", "messages": [{"role": "user", "content": "Where is zanzibar?"}]}


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str, str]:
    """An encrypted store, its key, and a plain store."""
    monkeypatch.delenv(KEY_FILE, raising=False)
    key = str(vmstore.new_store_key(tmp_path / "k"))
    for name, item in (("a.vms", key), ("plain.vms", None)):
        with vmstore.open(tmp_path / name, key=item) as store:
            store.record("s", REQUEST, None)
    return str(tmp_path / "a.vms"), key, str(tmp_path / "plain.vms")


def test_a_key_is_told_or_named_by_the_environment(
    stores: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the command, after it or in the environment; what is told counts more, and without one it is refused."""
    store, key, _ = stores
    assert main(["info", store]) == 1
    assert "is encrypted; name the file of its key with --store-key" in capsys.readouterr().err
    assert main(["info", store, "--store-key", key]) == main(["--store-key", key, "--json", "info", store]) == 0
    assert vmql([store, "--store-key", key, "-c", "SESSIONS session"]) == 0
    assert capsys.readouterr().out.endswith("session\ns\n")
    monkeypatch.setenv(KEY_FILE, key)
    assert main(["pages", store]) == vmql([store, "--read-only", "-c", "SESSIONS"]) == 0
    assert main(["info", store, "--store-key", "/nowhere"]) == 1
    assert "/nowhere cannot be read" in capsys.readouterr().err


def test_a_plain_store_needs_no_key(
    stores: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The environment's key is left aside where a store is plain, and one that is told is refused."""
    _, key, plain = stores
    monkeypatch.setenv(KEY_FILE, key)
    assert main(["info", plain]) == 0
    assert main(["info", plain, "--store-key", key]) == 1
    assert "is not encrypted; leave the key out" in capsys.readouterr().err


def test_backups_take_the_key(stores: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A store is backed up and restored with its key, in one command each; without it the store is named."""
    store, key, _ = stores
    assert main(["backup", store, str(tmp_path / "b")]) == 1
    assert f"{store}/default is encrypted" in capsys.readouterr().err
    assert main(["backup", store, str(tmp_path / "b"), "--store-key", key]) == 0
    assert main(["restore", str(tmp_path / "b"), str(tmp_path / "c.vms"), "--store-key", key]) == 0
    assert main(["verify", str(tmp_path / "c.vms"), "--store-key", key]) == 0


def test_a_store_is_encrypted_and_its_key_changed(
    stores: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Key, encrypt and rekey do what they say, in words and in JSON; encrypting needs a key to be named."""
    *_, plain = stores
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    assert main(["key", "--new", old]) == main(["key", "--new", new, "--quiet"]) == 0
    assert stat.S_IMODE(Path(old).stat().st_mode) == 0o600
    assert main(["key", "--new", old]) == 1
    assert main(["encrypt", plain]) == 1
    assert "name the file of the store key" in capsys.readouterr().err
    assert main(["encrypt", plain, "--store-key", old, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": f"{plain}/default", "cells": 4, "subjects": 1}
    assert main(["rekey", plain, "--store-key", old, "--new-store-key", new]) == 0
    assert main(["verify", plain, "--store-key", old]) == 1
    assert main(["verify", plain, "--store-key", new]) == 0


def test_completion_opens_an_encrypted_store(stores: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """With the key on the line sessions are completed; without it nothing is, and nothing is said."""
    store, key, _ = stores
    capsys.readouterr()
    fields = {}
    for words in (
        ["pages", "--store-key", key, store, ""],
        ["--store-key", key, "pages", store, ""],
        ["pages", store, ""],
    ):
        main(["_complete", str(len(words)), "vmstore", *words])
        fields[tuple(words)] = capsys.readouterr().out.split()
    assert list(fields.values()) == [["s"], ["s"], []]
