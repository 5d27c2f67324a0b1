"""Backups: whole or not there, verified, a prefix of what is written meanwhile, and they come back."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.disasters.child import joined, kill, start
from tests.disasters.mounts import small_disk
from tests.engine.stories import answer, chat
from tests.refusals import refused
from tests.transfer.moved import chains, filled
from vmstore.errors import CorruptError, StoreError
from vmstore.store.store import Store

BACKUPS = 8


def recorder(path: Path, number: int) -> None:
    """Records calls until it is killed, with a byte on a pipe for each."""
    with vmstore.open(path) as store:
        call = 0
        while True:
            call += 1
            store.record(f"s{call % 3}", chat(f"question {call}", seed=call), answer(f"answer {call}"))
            os.write(number, b".")


def hashes(store: Store) -> list[bytes]:
    """The hashes of a log, in its order."""
    return [commit.hash for commit in store.admin.log.tail(0, 1 << 30)]


def restored(backup: Path, path: Path) -> list[bytes]:
    """Restores a backup; the hashes of the store, which verifies."""
    vmstore.restore(backup, path)
    with vmstore.open(path) as store:
        assert store.verify().ok
        return hashes(store)


def test_a_store_comes_back_from_its_backup(store_path: Path, tmp_path: Path) -> None:
    """Backed up while open and restored, a store has the same commits, cells and answers, and goes on."""
    with vmstore.open(store_path) as store:
        filled(store)
        backup = vmstore.backup(store_path, tmp_path / "b")
        assert backup.namespaces[0].sessions == 4 and backup.namespaces[0].commits == store.admin.log.ordinal
        vmstore.restore(tmp_path / "b", tmp_path / "again.vms")
        with vmstore.open(tmp_path / "again.vms") as again:
            assert chains(again) == chains(store)
            assert list(again.tail()) == list(store.tail()), "cursors stay good"
            assert again.sessions() == store.sessions()
            assert again.record("s", chat("more")).call == store.session("s").info().calls + 1
    assert sorted(file.name for file in (tmp_path / "b").rglob("*")) == ["backup.json", "default", "log.sqlite"]


def test_backups_beside_a_writer_hold_a_prefix(store_path: Path, tmp_path: Path) -> None:
    """While another process records, every backup verifies, is a prefix of the log, and none is before the last."""
    vmstore.open(store_path).close()
    reader, writer = os.pipe()
    pid = start(lambda: recorder(store_path, writer))
    acknowledged = 0
    try:
        for number in range(BACKUPS):
            acknowledged += len(os.read(reader, 1 << 16))
            backup = vmstore.backup(store_path, tmp_path / f"b{number}")
            assert backup.namespaces[0].commits >= 2 * acknowledged, "what was acknowledged before is in the backup"
    finally:
        kill(pid)
    contents = [restored(tmp_path / f"b{number}", tmp_path / f"r{number}.vms") for number in range(BACKUPS)]
    with vmstore.open(store_path) as store:
        whole = hashes(store)
    assert all(whole[: len(some)] == some for some in contents)
    assert [len(some) for some in contents] == sorted(len(some) for some in contents)
    assert len(set(map(len, contents))) > 2, "the writer wrote between the backups"


def test_a_killed_backup_is_none(store_path: Path, tmp_path: Path) -> None:
    """SIGKILL at growing delays leaves no backup or a whole one, and nothing of that name by half."""
    with vmstore.open(store_path) as store:
        for name in range(40):
            store.record(f"s{name}", chat("x" * 30_000, seed=name))
        whole = hashes(store)
    killed = 0
    for number in range(14):
        target = tmp_path / f"b{number}"
        pid = start(lambda target=target: vmstore.backup(store_path, target))  # type: ignore[misc]
        time.sleep(0.006 * number)
        killed += not os.waitpid(pid, os.WNOHANG)[0] and _killed(pid)
        if target.exists():
            assert restored(target, tmp_path / f"r{number}.vms") == whole
        else:
            with refused("not-a-backup", StoreError):
                vmstore.restore(target, tmp_path / "r.vms")
    assert killed, "no backup was killed before its end: the delays are too long"
    for left in tmp_path.glob(".b*"):
        with refused("not-a-backup", StoreError):
            vmstore.restore(left, tmp_path / "r.vms")


def _killed(pid: int) -> bool:
    kill(pid)
    return True


def test_a_backup_never_overwrites(store_path: Path, tmp_path: Path) -> None:
    """Neither a backup nor a restore takes the place of anything, not even of an empty folder."""
    vmstore.open(store_path).close()
    vmstore.backup(store_path, tmp_path / "b")
    (tmp_path / "empty").mkdir()
    for taken in (store_path, tmp_path / "b", tmp_path / "empty"):
        with refused("path-taken", StoreError):
            vmstore.backup(store_path, taken)
        with refused("path-taken", StoreError):
            vmstore.restore(tmp_path / "b", taken)
    with refused("no-store", StoreError):
        vmstore.backup(tmp_path / "gone.vms", tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_no_backup_lies_within_its_store(store_path: Path, tmp_path: Path) -> None:
    """A copy within the store is none apart, and an erasure would leave it there: refused, by whatever way to it."""
    filled(vmstore.open(store_path))
    (tmp_path / "way").symlink_to(store_path)
    for place in (store_path / "b", store_path / "default" / "b", tmp_path / "way" / "b"):
        with refused("within-the-store", vmstore.StoreError):
            vmstore.backup(store_path, place)
    assert sorted(file.name for file in store_path.iterdir()) == ["default"]


@pytest.mark.parametrize("name", ["default/log.sqlite", "backup.json"])
def test_a_damaged_backup_is_not_restored(store_path: Path, tmp_path: Path, name: str) -> None:
    """A flipped bit anywhere in a backup's files is refused, and no store appears."""
    with vmstore.open(store_path) as store:
        filled(store)
    vmstore.backup(store_path, tmp_path / "b")
    whole = (tmp_path / "b" / name).read_bytes()
    for at in range(0, len(whole) - 1, max(1, len(whole) // 40)):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << (at * 3 % 8)
        (tmp_path / "b" / name).write_bytes(bytes(flipped))
        with pytest.raises((CorruptError, StoreError)):
            vmstore.restore(tmp_path / "b", tmp_path / "r.vms")
        assert not (tmp_path / "r.vms").exists()
    (tmp_path / "b" / name).write_bytes(whole)
    assert restored(tmp_path / "b", tmp_path / "r.vms")


def test_a_backup_that_points_outside_is_refused(store_path: Path, tmp_path: Path) -> None:
    """A listing with a path out of the backup writes nothing."""
    vmstore.open(store_path).close()
    vmstore.backup(store_path, tmp_path / "b")
    listing: dict[str, Any] = json.loads((tmp_path / "b" / "backup.json").read_text())
    for path in ("../evil", "/tmp/evil", "default/../../evil"):
        listing["files"][0]["path"] = path
        (tmp_path / "b" / "backup.json").write_text(json.dumps(listing))
        with refused("backup-damaged", CorruptError):
            vmstore.restore(tmp_path / "b", tmp_path / "r.vms")


def test_a_damaged_store_is_not_backed_up(store_path: Path, tmp_path: Path) -> None:
    """A log with a changed byte is named, and no backup of it appears."""
    with vmstore.open(store_path) as store:
        store.record("s", chat("a secret of some length"), answer("fine"))
    log = store_path / "default" / "log.sqlite"
    log.write_bytes(log.read_bytes().replace(b"a secret of some", b"another of some "))
    with refused("not-sound", CorruptError):
        vmstore.backup(store_path, tmp_path / "b")
    assert sorted(tmp_path.iterdir()) == [store_path]


def test_every_namespace_is_backed_up(store_path: Path, tmp_path: Path) -> None:
    """A backup holds all namespaces, or the one that is named."""
    for name in ("default", "other"):
        with vmstore.open(store_path, namespace=name) as store:
            store.record(name, chat("hello"))
    vmstore.backup(store_path, tmp_path / "all")
    vmstore.restore(tmp_path / "all", tmp_path / "all.vms")
    for name in ("default", "other"):
        with vmstore.open(tmp_path / "all.vms", "r", namespace=name) as store:
            assert [info.session for info in store.sessions()] == [name]
    backup = vmstore.backup(store_path, tmp_path / "one", namespace="other")
    assert [part.namespace for part in backup.namespaces] == ["other"]
    with refused("no-namespace", StoreError, "'third'"):
        vmstore.backup(store_path, tmp_path / "none", namespace="third")


def test_blobs_are_backed_up(store_path: Path, tmp_path: Path) -> None:
    """Files of long contents come along and are compared on the way back; those still being written do not."""
    with vmstore.open(store_path) as store:
        store.record("s", chat("hello"))
    blob = store_path / "default" / "blobs" / "ab" / "abcd"
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(b"long")
    blob.with_name("abcd.1.2.new").write_bytes(b"lo")
    vmstore.backup(store_path, tmp_path / "b")
    vmstore.restore(tmp_path / "b", tmp_path / "r.vms")
    back = tmp_path / "r.vms" / "default" / "blobs" / "ab"
    assert [file.name for file in back.iterdir()] == ["abcd"] and (back / "abcd").read_bytes() == b"long"
    (tmp_path / "b" / "default" / "blobs" / "ab" / "abcd").write_bytes(b"lost")
    with refused("backup-damaged", CorruptError):
        vmstore.restore(tmp_path / "b", tmp_path / "again.vms")


def test_a_full_disk_leaves_no_backup(store_path: Path, tmp_path: Path) -> None:
    """Where a backup does not fit, the error names the disk and nothing is left there."""
    with vmstore.open(store_path) as store:
        for name in range(20):
            store.record(f"s{name}", chat("x" * 30_000, seed=name))
    with small_disk(tmp_path / "disk", "400k") as folder:
        with refused("not-written", StoreError):
            vmstore.backup(store_path, folder / "b")
        assert list(folder.iterdir()) == []


def test_a_restore_can_be_joined(store_path: Path, tmp_path: Path) -> None:
    """Of two restores to one place one makes the store, and the other is refused."""
    with vmstore.open(store_path) as store:
        filled(store)
    vmstore.backup(store_path, tmp_path / "b")

    def work() -> None:
        try:
            vmstore.restore(tmp_path / "b", tmp_path / "r.vms")
        except StoreError:
            os._exit(7)

    assert sorted(joined(pid) for pid in [start(work) for _ in range(3)]) == [0, 7, 7]
    with vmstore.open(tmp_path / "r.vms") as store:
        assert store.verify().ok
