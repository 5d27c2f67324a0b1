"""Erasing in an encrypted store destroys cells as in a plain one, and the key with the last cell under it."""

from __future__ import annotations

import shutil
from pathlib import Path

import vmstore
from tests.store.secretive import everything, live
from vmstore.core.clock import SystemIds
from vmstore.erasure.erase import erase
from vmstore.log.sqlite import SqliteLog
from vmstore.namespace.encryption import store_key_of, vault_of
from vmstore.namespace.storekey import new_store_key

THEIRS = (b"zanzibar", b"zebra-session", b"zoe-user", b"ztag", b"zagent", b"ztitle")


def test_an_erased_users_key_goes_too(tmp_path: Path) -> None:
    """Erased, a user is in no file, verify is clean, and a copy of the log made before cannot be read under them."""
    key = new_store_key(tmp_path / "key")
    with vmstore.open(tmp_path / "a.vms", key=key) as store:
        live(store)
        store.backup(tmp_path / "backup")
        keyring = store.admin.log.vault.keyring  # type: ignore[attr-defined]
        assert keyring.count() == 3
        report = erase(store, user="zoe-user")
        assert report.plan.cells and keyring.count() == 1
        assert store.verify().ok
        assert store.session("other").wire.request(call=1)["messages"][0]["content"] == "zquery"
        assert "zoe-user" not in repr(store.sessions()) and store.search("zanzibar") == []
    value = everything(tmp_path / "a.vms")
    assert not any(word in value for word in THEIRS)
    with vmstore.open(tmp_path / "a.vms", key=key) as store:
        assert store.verify().ok

    folder = tmp_path / "a.vms" / "default"
    shutil.copy(tmp_path / "backup" / "default" / "log.sqlite", folder / "log.sqlite")
    ids = SystemIds()
    log = SqliteLog(folder / "log.sqlite", readonly=True, vault=vault_of(folder, store_key_of(key, ids), ids))
    contents = [cell.content for cell in log.cells(range(1, log.last_cell + 1)).values()]
    assert b"zquery" in contents and not any(word in content for word in THEIRS for content in contents)
    log.close()


def test_a_restored_backup_loses_the_key_again(tmp_path: Path) -> None:
    """An older backup brings cells and key back, and the ledger takes both away before the store is there."""
    key = new_store_key(tmp_path / "key")
    with vmstore.open(tmp_path / "a.vms", key=key) as store:
        live(store)
        store.backup(tmp_path / "backup")
        erase(store, user="zoe-user")
    shutil.rmtree(tmp_path / "a.vms")
    report = vmstore.restore(tmp_path / "backup", tmp_path / "a.vms", key=key, agreed=True)
    assert report.erased
    with vmstore.open(tmp_path / "a.vms", key=key) as store:
        assert store.verify().ok and store.search("zanzibar") == []
        assert store.admin.log.vault.keyring.count() == 1  # type: ignore[attr-defined]
