"""What lies beside a log, and what its bodies say of a content, gives nothing away of what was erased."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.engine.stories import answer, chat
from tests.erasure.found import found_in
from tests.log.test_upgrade import golden, old_log
from tests.store.secretive import everything
from vmstore.erasure.erase import erase
from vmstore.log.frame import FILE_BYTES_MIN
from vmstore.maintenance.upgrade import upgrade

SAID = b"How far is it?"
PIN = "My PIN is 4711"


def upgraded(path: Path) -> Path:
    """A store that was of format 0, the old log kept beside the new one."""
    old_log(path / "default" / "log.sqlite", golden())
    kept = upgrade(path, "default").kept
    assert kept is not None and SAID in Path(kept).read_bytes()
    return path


def test_the_log_that_an_upgrade_kept_goes(tmp_path: Path) -> None:
    """The old log beside an upgraded one holds every content in the clear: an erasure takes it."""
    with vmstore.open(upgraded(tmp_path / "a.vms")) as store:
        page = next(page for page, text in store.query("PAGES page, text IN SESSION golden") if text == SAID.decode())
        erase(store, page=page, in_session="golden")
        assert found_in(tmp_path, [SAID]) == {} and SAID not in everything(tmp_path)
        assert store.verify().ok


def test_encrypting_leaves_no_old_log(tmp_path: Path) -> None:
    """An encrypted store keeps neither the log of before its upgrade, nor half of one, nor a stray archive."""
    key = vmstore.new_store_key(tmp_path / "store.key")
    folder = upgraded(tmp_path / "a.vms") / "default"
    (folder / "log.sqlite.new").write_bytes(SAID)
    (folder / "archive").mkdir()
    (folder / "archive" / f".{'0' * 32}.archive.x.new").write_bytes(SAID)
    vmstore.encrypt(tmp_path / "a.vms", key)
    assert SAID not in everything(tmp_path / "a.vms")


def test_fresh_strays_go(tmp_path: Path) -> None:
    """What a writer left that was killed a moment ago is swept with what it held, however new it is."""
    long = b"long violet words, many of them; " * FILE_BYTES_MIN
    with vmstore.open(tmp_path / "a.vms") as store:
        store.record("s", chat(long.decode()), answer("Noted."))
        folder = store.folder / "blobs" / "00"
        archive = store.folder / "archive"
        for made in (folder, archive):
            made.mkdir(exist_ok=True)
        strays = [folder / ("00" * 32), folder / f"{'00' * 32}.{os.getpid()}.1.new"]
        strays.append(archive / f".{'0' * 32}.archive.x.new")
        for stray in strays:
            stray.write_bytes(long)
        erase(store, session="s")
        assert not any(stray.exists() for stray in strays)
        assert found_in(tmp_path, [long[:200]]) == {} and store.verify().ok


def test_a_file_swept_while_it_is_written_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer whose half-written file an erasure sweeps loses nothing by it."""
    rename, swept = os.rename, []

    def once(beside: Any, path: Any) -> None:
        if not swept and "blobs" in str(path):
            swept.append(Path(beside).unlink())
        rename(beside, path)

    with vmstore.open(tmp_path / "a.vms") as store:
        monkeypatch.setattr(os, "rename", once)
        store.record("s", chat("words " * FILE_BYTES_MIN), answer("Noted."))
        assert swept and store.verify().ok


def guessed(store: vmstore.Store, value: list[Any]) -> bool:
    """Whether what the log holds of request ids confirms a guess of a call."""
    digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32].encode()
    return any(
        digest in cell.content for cell in store.admin.log.cells(range(1, store.admin.log.last_cell + 1)).values()
    )


def test_no_request_id_confirms_a_guess(tmp_path: Path) -> None:
    """The digest beside a request id covers what was sent: the ids of calls that were told any of it go with it."""
    with vmstore.open(tmp_path / "a.vms") as store:
        calls = [[chat("Hello."), answer("Hi.")], [chat("Hello.", "Hi.", PIN), answer("Noted.")]]
        calls += [[chat("Hello.", "Hi.", PIN, "Noted.", "And?"), answer("So.")], [chat("Begin again."), answer("Yes.")]]
        for number, call in enumerate(calls):
            store.record("s", *call, request_id=f"r-{number}")
        store.session("s").fork("f", call=2)
        forked = [chat("Hello.", "Hi.", PIN, "Noted.", "Or?"), answer("Or so.")]
        store.record("f", *forked, request_id="r-f")
        assert all(guessed(store, call) for call in [*calls, forked])
        (page,) = [row[0] for row in store.query(f"PAGES page IN SESSION s WHERE text = '{PIN}'")]
        erase(store, page=str(page), in_session="s")
        assert [guessed(store, call) for call in [*calls, forked]] == [True, False, False, True, False]
        assert store.verify().ok
        assert store.record("s", *calls[0], request_id="r-0").call == 1
        assert store.record("s", *calls[3], request_id="r-3").call == 4


def test_no_fork_confirms_a_guess(tmp_path: Path) -> None:
    """Nor do those of a fork that stays, whose calls were told what it inherits of a session that goes."""
    with vmstore.open(tmp_path / "a.vms") as store:
        store.record("s", chat(PIN), answer("Noted."), request_id="r-0")
        store.session("s").fork("f", call=1)
        forked = [chat(PIN, "Noted.", "Or?"), answer("Or so.")]
        store.record("f", *forked, request_id="r-f")
        assert guessed(store, forked)
        erase(store, session="s")
        assert not guessed(store, forked) and store.verify().ok
