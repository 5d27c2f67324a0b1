"""An encrypted store answers as a plain one does, keeps nothing readable on disk, and names a key that does not fit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import apsw
import pytest

import vmstore
from tests.refusals import refused
from tests.store.secretive import SECRETS, asked, everything, found_in, live, made
from vmstore.debug.whatif import WhatIfs
from vmstore.errors import CorruptError, InputError, StoreError
from vmstore.namespace.storekey import new_store_key
from vmstore.store.encrypt import encrypt


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A store key."""
    return new_store_key(tmp_path / "store.key")


# ---- what it answers, and what lies on the disk


def test_an_encrypted_store_answers_as_a_plain_one(tmp_path: Path, key: Path) -> None:
    """Open, opened again and for reading alone, every view says of the same life what that of a plain store does."""
    with made(tmp_path / "plain.vms") as plain:
        expected = asked(plain)
    made(tmp_path / "a.vms", key).close()
    for mode in ("rw", "r"):
        with vmstore.open(tmp_path / "a.vms", mode, key=key) as store:
            value = asked(store)
            assert store.verify().ok
            for first, other in zip(value, expected, strict=True):
                assert _timeless(first) == _timeless(other)


BYTES = r"""b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*\""""
TIMES = r"\b(?:at|opened_at|logged_at|cursor)=[^,)]*|'20\d\d-[^']*'"


def _timeless(answer: Any) -> str:
    """An answer without times, and without the ids and hashes that nonces, drawn from the same ids, move on."""
    return re.sub(f"{BYTES}|{TIMES}", "", repr(answer))


def test_nothing_readable_lies_on_the_disk(tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is open, asked, packed and closed, no file of an encrypted store or beside it holds a word."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for variable in ("TMPDIR", "SQLITE_TMPDIR"):
        monkeypatch.setenv(variable, str(temporary))
    home = tmp_path / "secret"
    home.mkdir()
    with made(home / "a.vms", key) as store:
        assert found_in(home) == set()
        asked(store)
        store.admin.compact()
        assert store.verify().ok
        store.admin.rebuild()
        store.admin.rebuild("sessions")
        WhatIfs(store).chosen("managed", "lru", None)
        store.session("managed").debug.replay(policy="lru")
        store.backup(home / "backup")
        assert found_in(home) == set() == found_in(temporary)
        # An index holds words in pieces, which no search for whole ones finds: there is to be none.
        lying = {
            str(file.relative_to(home / "a.vms" / "default")) for file in (home / "a.vms").rglob("*") if file.is_file()
        }
        assert {name for name in lying if not name.endswith(".aes")} == {
            "archive.lock", "archive.queue", "keys.sqlite", "log.lock", "log.queue", "log.sqlite", "log.sqlite-shm",
            "log.sqlite-wal",
        }  # fmt: skip
    assert found_in(home) == set()
    with vmstore.open(home / "a.vms", key=key) as store:
        asked(store)
        assert found_in(home) == set()


def test_the_same_words_lie_in_a_plain_store(tmp_path: Path) -> None:
    """The grep is not deaf: of a plain store it finds every word that was put there, but for the query of nobody."""
    with made(tmp_path / "a.vms") as store:
        asked(store)
        assert found_in(tmp_path) == set(SECRETS)


def test_a_backup_is_as_encrypted_as_the_store(tmp_path: Path, key: Path) -> None:
    """A backup holds no word, is verified with the key and restored with it; without it neither is done."""
    with made(tmp_path / "a.vms", key) as store:
        expected = asked(store)
        store.backup(tmp_path / "backup")
    assert found_in(tmp_path / "backup") == set()
    for attempt in (
        lambda: vmstore.backup(tmp_path / "a.vms", tmp_path / "other"),
        lambda: vmstore.restore(tmp_path / "backup", tmp_path / "other"),
    ):
        with refused("encrypted", StoreError):
            attempt()
        assert not (tmp_path / "other").exists()
    vmstore.restore(tmp_path / "backup", tmp_path / "b.vms", key=key)
    with vmstore.open(tmp_path / "b.vms", key=key) as store:
        assert asked(store)[:-1] == expected[:-1] and store.verify().ok


def test_a_bundle_leaves_plain_and_comes_in_encrypted(
    tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An export is plain; taken in exactly, its sessions lie under keys with the hashes they had, and nowhere else."""
    with made(tmp_path / "plain.vms") as plain:
        plain.export(tmp_path / "out.jsonl", exact=True)
        hashes = plain.admin.views.execute("SELECT uid, hash FROM sessions ORDER BY uid").fetchall()
    (tmp_path / "home").mkdir()
    monkeypatch.delattr("tempfile.TemporaryDirectory")
    with vmstore.open(tmp_path / "home" / "a.vms", key=key) as store:
        store.import_file(tmp_path / "out.jsonl", exact=True)
        assert store.admin.views.execute("SELECT uid, hash FROM sessions ORDER BY uid").fetchall() == hashes
        store.export(tmp_path / "again.jsonl", exact=True)
    assert found_in(tmp_path / "home") == set()
    assert "zanzibar" in (tmp_path / "again.jsonl").read_text()


def test_proofs_and_seals_are_as_before(tmp_path: Path, key: Path) -> None:
    """What was sealed before a store was encrypted is there after, and a page with its content is proven."""
    with made(tmp_path / "a.vms") as store:
        vmstore.seal(store, vmstore.new_key(tmp_path / "seal.key"), tmp_path / "a.seal")
    encrypt(tmp_path / "a.vms", key)
    with vmstore.open(tmp_path / "a.vms", key=key) as store:
        sealed = vmstore.read_seal(tmp_path / "a.seal")
        assert store.verify(seals=[sealed]).ok
        proof = store.trust.prove("zebra-session", "p4", call=1, seal=sealed)
        assert proof.content is not None and b"zanzibar" in proof.content


# ---- keys


class Vendor:
    """A key service: it hides a key by turning its bits, counts, and can be down."""

    def __init__(self) -> None:
        self.wrapped = self.unwrapped = 0
        self.down = False

    def wrap(self, key: bytes) -> bytes:
        """The key with its bits turned."""
        self.wrapped += 1
        return self._turned(key)

    def unwrap(self, wrapped: bytes) -> bytes:
        """The key as it was."""
        self.unwrapped += 1
        return self._turned(wrapped)

    def _turned(self, content: bytes) -> bytes:
        if self.down:
            raise ConnectionError("the service is down")
        return bytes(item ^ 255 for item in content)


def test_a_key_service_is_asked(tmp_path: Path) -> None:
    """An object that wraps and unwraps stands for a key file; it is asked once for each data subject and handle."""
    vendor = Vendor()
    with vmstore.open(tmp_path / "a.vms", key=vendor) as store:
        live(store)
    assert vendor.wrapped == 1 + 3, "the file's own secret, one user, two sessions without one"
    vendor.unwrapped = 0
    with vmstore.open(tmp_path / "a.vms", key=vendor) as store:
        assert store.verify().ok
    assert vendor.unwrapped == 1 + 3
    vendor.down = True
    with refused("other-store-key", StoreError):
        vmstore.open(tmp_path / "a.vms", key=vendor)


def test_a_key_that_does_not_fit_is_refused_and_nothing_is_written(tmp_path: Path, key: Path) -> None:
    """No key, another key, a missing file, one that others may read, one that holds no key: named, with the remedy."""
    made(tmp_path / "a.vms", key).close()
    before = everything(tmp_path / "a.vms")
    other = new_store_key(tmp_path / "other.key")
    loose = new_store_key(tmp_path / "loose.key")
    loose.chmod(0o640)
    empty = tmp_path / "empty.key"
    empty.touch(0o600)
    for item, kind, words in (
        (None, StoreError, "is encrypted; name the file of its key"),
        (other, StoreError, "is not opened by this store key"),
        (tmp_path / "none.key", InputError, "cannot be read .* `vmstore key --new"),
        (loose, InputError, "others than you may read or change .*`chmod 600"),
        (empty, InputError, "holds no store key"),
        (7, InputError, "is no store key"),
    ):
        for mode in ("r", "rw"):
            with pytest.raises(kind, match=words):
                vmstore.open(tmp_path / "a.vms", mode, key=item)  # type: ignore[arg-type]
    assert everything(tmp_path / "a.vms") == before


def test_a_plain_store_takes_no_key(tmp_path: Path, key: Path) -> None:
    """A key for a store that is not encrypted is refused, so that nobody believes it was."""
    made(tmp_path / "a.vms").close()
    with refused("not-encrypted", StoreError):
        vmstore.open(tmp_path / "a.vms", key=key)


def test_a_store_whose_keys_are_gone_says_so(tmp_path: Path, key: Path) -> None:
    """Without its file of keys an encrypted store is named as such, and none is made in its place."""
    made(tmp_path / "a.vms", key).close()
    (tmp_path / "a.vms" / "default" / "keys.sqlite").unlink()
    for mode in ("r", "rw"):
        with refused("keys-missing", StoreError):
            vmstore.open(tmp_path / "a.vms", mode, key=key)
    assert not (tmp_path / "a.vms" / "default" / "keys.sqlite").exists()


def test_a_read_only_folder_is_read(tmp_path: Path, key: Path) -> None:
    """An encrypted store in a folder that may only be read answers."""
    made(tmp_path / "a.vms", key).close()
    folder = tmp_path / "a.vms" / "default"
    folder.chmod(0o555)
    try:
        with vmstore.open(tmp_path / "a.vms", "r", key=key) as store:
            assert store.search("zanzibar")
    finally:
        folder.chmod(0o755)


# ---- a subject forgotten


def test_a_dropped_subject_is_unreadable_and_named_until_it_is_recorded(tmp_path: Path, key: Path) -> None:
    """With a user's key all that their sessions hold is destroyed, and named as long as no erasure is recorded."""
    with made(tmp_path / "a.vms", key) as store:
        store.admin.follow()
        keyring = store.admin.log.vault.keyring  # type: ignore[attr-defined]
        assert keyring.drop(keyring.name(b"user\0zoe-user")) and not keyring.drop(keyring.name(b"user\0nobody"))
        assert store.session("other").wire.request(call=1)["messages"][0]["content"] == "zquery"
        verdict = store.verify(views=False)
        assert {problem.what.partition(": ")[2] for problem in verdict.problems} == {
            "its bytes were destroyed, and no erasure is recorded"
        }
        with refused("destroyed-unrecorded", CorruptError):
            store.session("zebra-session").wire.request(call=1)


# ---- damage


def test_a_flipped_byte_of_an_encrypted_frame_is_named(tmp_path: Path, key: Path) -> None:
    """Verify names the cells of a frame that does not decrypt, and the frame after it is as it was."""
    made(tmp_path / "a.vms", key).close()
    db = apsw.Connection(str(tmp_path / "a.vms" / "default" / "log.sqlite"))
    count, content = db.execute("SELECT count, content FROM frames WHERE first = 1").get
    db.execute("UPDATE frames SET content = ? WHERE first = 1", (bytes([content[0] ^ 1]) + content[1:],))
    db.close()
    with vmstore.open(tmp_path / "a.vms", key=key) as store:
        problems = store.verify(views=False).problems
        assert [problem.where for problem in problems] == [f"cell {n} of commit 1" for n in range(1, count + 1)]


def test_any_byte_of_the_file_of_keys_may_break(tmp_path: Path, key: Path) -> None:
    """With a byte of it changed the store answers in full, or is refused, or names the damage: never a traceback."""
    made(tmp_path / "a.vms", key).close()
    path = tmp_path / "a.vms" / "default" / "keys.sqlite"
    sound, named = path.read_bytes(), 0
    for at in (*range(0, 112, 3), *range(112, len(sound), 151)):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 255]) + sound[at + 1 :])
        try:
            with vmstore.open(tmp_path / "a.vms", "r", key=key) as store:
                named += not store.verify(views=False).ok
        except (StoreError, CorruptError):
            named += 1
    assert named > 10


def test_a_damaged_key_is_named(tmp_path: Path, key: Path) -> None:
    """A subject's wrapped key with a byte changed: what lies under it cannot be read, and verify says where it is."""
    made(tmp_path / "a.vms", key).close()
    db = apsw.Connection(str(tmp_path / "a.vms" / "default" / "keys.sqlite"))
    db.execute("UPDATE keys SET wrapped = zeroblob(length(wrapped)) WHERE id != zeroblob(16)")
    db.close()
    with vmstore.open(tmp_path / "a.vms", key=key) as store:
        (problem,) = store.verify(views=False).problems
        assert "keys.sqlite gives no key" in problem.what and "backup" in problem.what


def test_the_doctor_and_regions_take_the_key(tmp_path: Path, key: Path) -> None:
    """Without the key a doctor says so and calls nothing damaged; with it the store is sound, its grants told."""
    with made(tmp_path / "a.vms", key) as store:
        vmstore.share(store, "user:ann")
    with refused("encrypted", StoreError):
        vmstore.doctor(tmp_path / "a.vms")
    assert vmstore.doctor(tmp_path / "a.vms", key=key).ok
    with refused("encrypted", StoreError):
        vmstore.regions(tmp_path / "a.vms")
    assert [region.region for region in vmstore.regions(tmp_path / "a.vms", key=key)] == ["default"]


def test_no_plain_namespace_is_made_beside_an_encrypted_one(tmp_path: Path, key: Path) -> None:
    """Without the key a new namespace of an encrypted store is refused, nothing made; with it, it is encrypted."""
    made(tmp_path / "a.vms", key).close()
    with refused("plain-beside-encrypted", StoreError, "'default'"):
        vmstore.open(tmp_path / "a.vms", namespace="two")
    assert not (tmp_path / "a.vms" / "two").exists()
    vmstore.open(tmp_path / "a.vms", namespace="two", key=key).close()
    with refused("encrypted", StoreError):
        vmstore.open(tmp_path / "a.vms", "r", namespace="two")


def test_no_key_is_made_under_a_store_key_that_was_changed(tmp_path: Path) -> None:
    """A handle opened before `rekey` writes nothing of a new subject: nobody could read it with the new key."""
    for name in ("old", "new"):
        vmstore.new_store_key(tmp_path / name)
    request = {"messages": [{"role": "user", "content": "text"}]}
    with vmstore.open(tmp_path / "a.vms", key=tmp_path / "old") as store:
        store.record("one", request, None)
        vmstore.rekey(tmp_path / "a.vms", tmp_path / "old", tmp_path / "new")
        with refused("other-store-key", StoreError):
            store.record("two", request, None)
    with vmstore.open(tmp_path / "a.vms", key=tmp_path / "new") as store:
        assert store.verify().ok and [info.session for info in store.sessions()] == ["one"]
