"""Contents left to a cold tier: the store answers as before, fetches what is asked for, and gets all of it back."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import vmstore
from tests.cold.conftest import TierSite
from tests.engine.stories import answer, chat
from tests.refusals import refused
from tests.store.archives import LONG, everything
from vmstore.errors import CorruptError
from vmstore.maintenance.archive import archive, archived_sessions, unarchive
from vmstore.maintenance.publish import publish

ALL = ["long", "other", "plan", "plan-b", "plan-c"]


def chains(store: vmstore.Store) -> list[tuple[int, bytes]]:
    """Every commit with its hash."""
    return [(commit.ordinal, commit.hash) for commit in store.admin.log.tail(0, 9_999)]


def holds(path: Path, text: str) -> bool:
    """Whether a file of a store holds a text as it is."""
    return any(text.encode() in file.read_bytes() for file in path.rglob("*") if file.is_file())


def test_what_is_left_there_is_answered_and_comes_back(path: Path, site: TierSite, home: Path) -> None:
    """Every answer stays when all contents lie in the tier alone, and all of it comes back as it was."""
    with vmstore.open(path) as store:
        there = range(1, store.admin.log.last_cell + 1)
        before, cells = everything(store), store.admin.log.cells(there)
        hashes = chains(store)
        report = archive(store, ALL, grace_s=0, to=site.address)
        assert len(report.sessions) == 5 and report.left_to == site.objects.address
        assert not list(path.rglob("*.archive")) and not list(path.glob("default/blobs/*/*"))
        assert set(archived_sessions(store).values()) == {site.address}
        assert not holds(path / "default" / "archive", "story") and not holds(path / "default" / "archive", LONG)
        assert not list(home.rglob("*.archive")), "nothing is fetched before something is asked"
        assert (everything(store), store.admin.log.cells(there)) == (before, cells)
        assert store.verify().ok
    with vmstore.open(path) as store:
        assert everything(store) == before
        unarchive(store, ALL)
        assert list((path / "default" / "archive").iterdir()) == []
        shutil.rmtree(home / ".cache")
        assert (everything(store), store.admin.log.cells(there)) == (before, cells)
        assert chains(store)[: len(hashes)] == hashes
        assert store.verify().ok


def test_an_erased_page_stays_erased(path: Path, site: TierSite) -> None:
    """A page erased while its session lies in the tier is erased there, and comes back as erased."""
    with vmstore.open(path) as store:
        archive(store, ["other", "plan"], grace_s=0, to=site.address)
        vmstore.erase(store, page="p4", in_session="other")
        before = store.session("other").context().messages()
        assert "erased" in str(before) and store.verify().ok
        unarchive(store, ["other", "plan"])
        assert store.session("other").context().messages() == before and store.verify().ok


def test_a_session_that_grows_is_left_again(path: Path, site: TierSite) -> None:
    """What is written after its contents left lies here, is left with the rest when asked, and all is answered."""
    with vmstore.open(path) as store:
        archive(store, "other", grace_s=0, to=site.address)
        store.record("other", chat("One more thing"), answer("Yes."))
        before = everything(store)
        archive(store, "other", grace_s=0, to=site.address)
        assert everything(store) == before and not list(path.rglob("*.archive"))
        assert store.verify().ok
        store.admin.collect_garbage(grace_s=0)
        assert everything(store) == before


def test_a_backup_of_it_is_proven_and_restored(path: Path, site: TierSite, tmp_path: Path) -> None:
    """A backup takes along where contents lie, and what is restored from it answers all."""
    with vmstore.open(path) as store:
        archive(store, ALL, grace_s=0, to=site.address)
        before = everything(store)
        store.backup(tmp_path / "b")
    vmstore.restore(tmp_path / "b", tmp_path / "again.vms", agreed=True)
    with vmstore.open(tmp_path / "again.vms") as store:
        assert everything(store) == before and store.verify().ok
    assert vmstore.doctor(path, full=True).ok


def test_a_tier_that_lost_it_is_named(path: Path, site: TierSite, home: Path) -> None:
    """Where an archive is gone from the tier a question about it names the object, and every other is answered."""
    with vmstore.open(path) as store:
        archive(store, ["other", "long"], grace_s=0, to=site.address)
        newest = site.tier.newest()
        assert newest is not None
        uid = store.admin.views.execute("SELECT lower(hex(uid)) FROM sessions WHERE name = 'other'").get
        gone = next(session.archive.name for session in newest.manifest.sessions if session.uid == uid)
        site.objects.delete(gone)
        with refused("cold-missing", CorruptError, gone):
            store.session("other").context().messages()
        assert store.session("long").context().messages()
        assert not store.verify().ok


def test_a_tier_is_merged_back(path: Path, site: TierSite, tmp_path: Path) -> None:
    """Merged from a tier into an empty folder every session has the head, the hashes and the answers it had."""
    with vmstore.open(path) as store:
        publish(store, site.address, ALL)
        before = everything(store)
        heads = dict(store.admin.views.execute("SELECT name, position FROM sessions WHERE hidden = 0"))
        hashes = {digest for _, digest in chains(store)}
    empty = tmp_path / "new.vms"
    with vmstore.open(empty):
        pass
    from vmstore.transfer.merge import merge

    report = merge(empty, site.address)
    assert report.conflicts == 0 and len(report.sessions) == 5
    with vmstore.open(empty) as store:
        assert everything(store) == before
        assert dict(store.admin.views.execute("SELECT name, position FROM sessions WHERE hidden = 0")) == heads
        assert {digest for _, digest in chains(store)} <= hashes
        assert store.verify().ok


def test_an_encrypted_store_needs_its_key_there(tmp_path: Path, site: TierSite) -> None:
    """What an encrypted store publishes is readable with its key alone: no object holds a word, a name neither."""
    pytest.importorskip("cryptography")
    from vmstore.errors import StoreError
    from vmstore.namespace.storekey import new_store_key

    key, other = new_store_key(tmp_path / "store.key"), new_store_key(tmp_path / "other.key")
    with vmstore.open(tmp_path / "e.vms", key=key) as store:
        store.session("trip-4711", create=True, user="anna")
        store.record("trip-4711", chat("My number is 4711."), answer("Good day."))
        before = everything(store)
        publish(store, site.address)
    assert not holds(site.copied_to(tmp_path / "objects"), "4711")
    assert not holds(site.copied_to(tmp_path / "objects"), "anna")
    with vmstore.open(site.address, "r", key=key) as cold:
        assert cold.session("trip-4711").context().messages() and everything(cold) == before and cold.verify().ok
    with refused("not-encrypted", StoreError):
        vmstore.open(site.address, "r")
    with pytest.raises(StoreError):
        vmstore.open(site.address, "r", key=other).sessions()
