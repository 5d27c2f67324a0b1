"""A store is encrypted in place and its key changed: whole, or to be gone on with, wherever that is killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

import vmstore
from tests.engine.stories import chat
from tests.refusals import refused
from tests.store.secretive import asked, found_in, made
from vmstore.cells.subject_keys import Keyring
from vmstore.core.clock import SeededIds
from vmstore.errors import CorruptError, StoreError
from vmstore.log.encrypt_in_place import encrypt as encrypt_log
from vmstore.log.file import ENCRYPTED_FORMAT, FORMAT, HALF_ENCRYPTED_FORMAT, format_of
from vmstore.log.frame_encryption import FrameEncryption
from vmstore.log.sqlite import SqliteLog
from vmstore.namespace.encryption import subject_of
from vmstore.namespace.storekey import new_store_key, read_store_key
from vmstore.store.encrypt import encrypt, rekey
from vmstore.testing.log_contract import CommitSpec, chain


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A store key."""
    return new_store_key(tmp_path / "store.key")


def test_a_plain_store_is_encrypted_in_place(tmp_path: Path, key: Path) -> None:
    """Encrypted, it answers as before, each user's sessions under one key, and no file holds a word."""
    with made(tmp_path / "a.vms") as store:
        for number in range(40):
            store.record("many", chat(f"zanzibar {number} " * 50))
        store.admin.compact()
        expected = asked(store)
        store.admin.column_segments()
    assert found_in(tmp_path / "a.vms")
    other_encrypt = encrypt(tmp_path / "a.vms", key)
    assert other_encrypt.subjects == 4 and format_of(tmp_path / "a.vms" / "default" / "log.sqlite") == ENCRYPTED_FORMAT
    assert found_in(tmp_path / "a.vms") == set()
    with vmstore.open(tmp_path / "a.vms", key=key) as store:
        assert asked(store)[:-1] == expected[:-1] and store.verify().ok
        store.record("zebra-session", {"model": "m", "messages": [{"role": "user", "content": "more"}]})
        assert store.verify().ok
    with refused("encrypted-already", StoreError):
        encrypt(tmp_path / "a.vms", key)


def test_a_store_that_is_open_is_not_encrypted(tmp_path: Path, key: Path) -> None:
    """While a handle has it open it is refused, and stays as it was for everybody."""
    with made(tmp_path / "a.vms") as store:
        with refused("open-elsewhere", StoreError):
            encrypt(tmp_path / "a.vms", key)
        assert store.verify().ok
    with vmstore.open(tmp_path / "a.vms") as store:
        assert store.verify().ok
    encrypt(tmp_path / "a.vms", key)


def test_a_handle_that_let_go_of_its_file_meets_the_encrypted_one(tmp_path: Path, key: Path) -> None:
    """A handle that opens the file again, as after a failed flush, writes nothing plain into what is encrypted."""
    made(tmp_path / "a.vms").close()
    log = SqliteLog(tmp_path / "a.vms" / "default" / "log.sqlite")
    log.file.poison()
    encrypt(tmp_path / "a.vms", key)
    with refused("encrypted-meanwhile", StoreError):
        log.append(chain([CommitSpec(contents=(b"plain",))]), 0, 0)
    log.close()


def test_a_damaged_store_is_not_encrypted(tmp_path: Path, key: Path) -> None:
    """What cannot be read is named before anything is written."""
    made(tmp_path / "a.vms").close()
    db = apsw.Connection(str(tmp_path / "a.vms" / "default" / "log.sqlite"))
    db.execute("UPDATE frames SET content = zeroblob(length(content)) WHERE first = 1")
    db.close()
    with refused("not-sound", CorruptError, "cell 1"):
        encrypt(tmp_path / "a.vms", key)
    assert not (tmp_path / "a.vms" / "default" / "keys.sqlite").exists()


def test_what_it_cannot_encrypt_is_refused_before_it_begins(tmp_path: Path, key: Path) -> None:
    """A row of a form that it does not know, as of a session that lies elsewhere, is named, and all stays plain."""
    made(tmp_path / "a.vms").close()
    path = tmp_path / "a.vms" / "default" / "log.sqlite"
    db = apsw.Connection(str(path))
    db.execute("UPDATE frames SET form = 3 WHERE first = 1")
    db.close()
    ids, keys = SeededIds(1), path.with_name("keys.sqlite")
    Keyring.create(keys, read_store_key(key, ids), ids)
    with refused("not-encryptable", StoreError, "form 3"):
        encrypt_log(path, FrameEncryption(Keyring(keys, read_store_key(key, ids), ids), ids, subject_of), lambda: None)
    assert format_of(path) == FORMAT


KILLED = """
import os, sys
import apsw
from vmstore.log import encrypt_in_place as room
from vmstore.store.encrypt import encrypt, rekey
from vmstore.cells.subject_keys import Keyring
steps = int(sys.argv[4])
room.STEP_FRAMES = 2
def trace(cursor, sql, bindings):
    global steps
    if sql.startswith(("COMMIT", "VACUUM", "PRAGMA user", "PRAGMA secure", "DELETE", "UPDATE keys")):
        steps -= 1
        if steps < 0:
            os._exit(9)
    return True
def hook(db):
    if db.filename.endswith(("log.sqlite", "keys.sqlite")):
        db.set_exec_trace(trace)
apsw.connection_hooks.append(hook)
if sys.argv[3] == "encrypt":
    encrypt(sys.argv[1], sys.argv[2])
else:
    rekey(sys.argv[1], sys.argv[2], sys.argv[3])
"""


def killed(path: Path, *words: object) -> bool:
    """Runs a piece of work that is killed at a step; whether it was."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), *map(str, words)], env={**os.environ}, check=False)
    assert done.returncode in (0, 9)
    return done.returncode == 9


def test_encrypting_goes_on_where_it_was_killed(tmp_path: Path, key: Path) -> None:
    """Killed at any step, a store is plain and whole, or refused until the same command has gone on and ended."""
    with made(tmp_path / "a.vms") as store:
        expected = asked(store)
    shutil.copytree(tmp_path / "a.vms", tmp_path / "kept")
    half, step = 0, 0
    while True:
        shutil.rmtree(tmp_path / "a.vms")
        shutil.copytree(tmp_path / "kept", tmp_path / "a.vms")
        if not killed(tmp_path / "a.vms", key, "encrypt", step):
            break
        form = format_of(tmp_path / "a.vms" / "default" / "log.sqlite")
        if form == HALF_ENCRYPTED_FORMAT:
            half += 1
            for case in (None, key):
                with refused("half-encrypted", StoreError):
                    vmstore.open(tmp_path / "a.vms", key=case)
        if form != ENCRYPTED_FORMAT:
            encrypt(tmp_path / "a.vms", key)
        assert found_in(tmp_path / "a.vms") == set()
        with vmstore.open(tmp_path / "a.vms", key=key) as store:
            assert asked(store)[:-1] == expected[:-1] and store.verify().ok
        step += 1 + step // 3
    assert half >= 3, "it was killed while it wrote, or this shows nothing"


def test_a_new_store_key_opens_it_and_the_old_one_no_more(tmp_path: Path, key: Path) -> None:
    """Contents stay as they lie; a handle that was open says what happened."""
    new = new_store_key(tmp_path / "new.key")
    with made(tmp_path / "a.vms", key) as store:
        log = (tmp_path / "a.vms" / "default" / "log.sqlite").read_bytes()
        assert rekey(tmp_path / "a.vms", key, new).subjects == 3
        with refused("other-store-key", StoreError):
            store.record("zebra-session", {"model": "m", "messages": [{"role": "user", "content": "more"}]})
        assert (tmp_path / "a.vms" / "default" / "log.sqlite").read_bytes() == log
    with refused("other-store-key", StoreError):
        vmstore.open(tmp_path / "a.vms", key=key)
    with vmstore.open(tmp_path / "a.vms", key=new) as store:
        assert store.verify().ok
    with refused("not-encrypted", StoreError):
        made(tmp_path / "plain.vms").close()
        rekey(tmp_path / "plain.vms", key, new)


@pytest.fixture
def killed_rekeying(tmp_path: Path, key: Path) -> Iterator[tuple[Path, Path]]:
    """A store whose new key was set, killed at each step in turn: the store and the new key."""
    new = new_store_key(tmp_path / "new.key")
    made(tmp_path / "kept.vms", key).close()
    yield tmp_path / "kept.vms", new


def test_a_killed_change_of_keys_leaves_the_old_one_or_the_new(
    tmp_path: Path, key: Path, killed_rekeying: tuple[Path, Path]
) -> None:
    """Killed at any step, every key is wrapped by the old store key, or every one by the new."""
    kept, new = killed_rekeying
    opened = []
    for step in range(20):
        path = tmp_path / f"{step}.vms"
        shutil.copytree(kept, path)
        ended = not killed(path, key, new, step)
        fits = [case for case in (key, new) if _opens(path, case)]
        assert len(fits) == 1
        opened.append(fits[0])
        if ended:
            break
    assert set(opened) == {key, new} and opened[-1] == new


def _opens(path: Path, key: Path) -> bool:
    try:
        with vmstore.open(path, key=key) as store:
            return store.verify().ok
    except StoreError:
        return False
