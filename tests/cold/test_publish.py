"""Publishing: what a tier lacks goes there, a kill loses nothing, and of two publishers both are in the end."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.cold.conftest import TierSite
from tests.engine.stories import answer, chat
from tests.refusals import refused
from tests.store.archives import everything
from vmstore.cold.tier import ColdTier
from vmstore.errors import InputError, ReadOnlyError, UnknownError
from vmstore.maintenance.publish import publish, sweep_tier
from vmstore.objects.port import Objects

ALL = ["long", "other", "plan", "plan-b", "plan-c"]
LATER = 1 << 61


def test_a_tier_answers_as_the_store_does(path: Path, site: TierSite) -> None:
    """Every answer of what was published is what the store says, it is sound, and nothing of it can be written."""
    with vmstore.open(path) as store:
        before = everything(store)
        done = publish(store, site.address)
        assert sorted(part.session for part in done.sessions) == ALL and done.manifest == 1
        assert store.verify().ok
    with vmstore.open(site.address, "r") as cold:
        assert cold.verify().ok
        assert everything(cold) == before
        with pytest.raises(ReadOnlyError):
            cold.record("plan", chat("More"), answer("No."))
    with refused("archive-is-read", ReadOnlyError):
        vmstore.open(site.address)


def test_what_is_there_is_not_written_again(path: Path, site: TierSite) -> None:
    """Published again nothing is uploaded; of a session that grew a new archive is, and the manifest before stays."""
    with vmstore.open(path) as store:
        publish(store, site.address, ALL)
        before = site.names
        again = publish(store, site.address, ALL)
        assert (again.sessions, again.manifest, site.names) == ([], 1, before)
        store.record("other", chat("One more thing"), answer("Yes."))
        head = store.session("other").info().position
        grown = publish(store, site.address, ALL)
    assert [(part.session, part.why) for part in grown.sessions] == [("other", "grew")]
    assert set(before) < set(site.names)
    for number, position in ((1, None), (2, head)):
        address = f"{site.address}{'&' if '?' in site.address else '?'}manifest={number}"
        with vmstore.open(address, "r") as cold:
            assert (cold.session("other").info().position == head) == (position is not None)


def test_a_fork_brings_what_it_came_from(path: Path, site: TierSite) -> None:
    """Of a fork that is named the sessions it was forked from come along, so that all of its past is there."""
    with vmstore.open(path) as store:
        publish(store, site.address, "plan-c")
        expected = store.session("plan-c").context().messages()
    with vmstore.open(site.address, "r") as cold:
        assert cold.session("plan-c").context().messages() == expected
        assert {info.session for info in cold.sessions()} == {"plan", "plan-b", "plan-c"}
        assert cold.verify().ok


def test_a_dry_run_writes_nothing(path: Path, site: TierSite) -> None:
    """A dry run says what would go, and neither the tier nor the store is changed."""
    with vmstore.open(path) as store:
        ordinal = store.admin.log.ordinal
        report = publish(store, site.address, dry_run=True)
        assert (report.done, len(report.sessions), report.manifest) == (False, 5, 0)
        assert (site.names, store.admin.log.ordinal) == ([], ordinal)


def test_a_kill_anywhere_is_gone_on_from(path: Path, site: TierSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ended before any of its puts, the same call goes on: the tier is whole, and a sweep leaves what is named."""

    class Killed(BaseException):
        pass

    real = ColdTier.put
    puts = 0

    def counted(tier: ColdTier, folder: str, content: bytes) -> Any:
        nonlocal puts
        puts += 1
        if puts % 3 == 0:
            raise Killed
        return real(tier, folder, content)

    monkeypatch.setattr(ColdTier, "put", counted)
    kills = 0
    with vmstore.open(path) as store:
        while True:
            try:
                publish(store, site.address, ALL)
                break
            except Killed:
                kills += 1
                assert site.tier.newest() is None, "nothing counts before a manifest names it"
                monkeypatch.setattr(ColdTier, "put", real if kills > 2 else counted)
        before = everything(store)
    assert kills > 2
    sweep_tier(site.address, "default", LATER, grace_s=0)
    with vmstore.open(site.address, "r") as cold:
        assert everything(cold) == before and cold.verify().ok


def test_a_sweep_spares_what_readers_may_have(path: Path, site: TierSite) -> None:
    """What a newer manifest replaced stays for the grace, and goes after it with the manifest that named it."""
    with vmstore.open(path) as store:
        publish(store, site.address, "other")
        store.record("other", chat("One more thing"), answer("Yes."))
        publish(store, site.address, "other")
        now = store._ns.clock.now()
    assert sweep_tier(site.address, "default", now, dry_run=True).files == []
    report = sweep_tier(site.address, "default", LATER, grace_s=0, dry_run=True)
    assert not report.deleted and len(report.files) == 3, "an archive, a catalogue and a manifest"
    assert sweep_tier(site.address, "default", LATER, grace_s=0).files == report.files
    assert not set(report.files) & set(site.names)
    with vmstore.open(site.address, "r") as cold:
        assert cold.verify().ok


def test_two_that_publish_at_once_are_both_there(path: Path, site: TierSite, tmp_path: Path) -> None:
    """Two copies of a store publish one session each at once: one manifest follows the other and names both."""
    with vmstore.open(path) as store:
        store.backup(tmp_path / "b")
    vmstore.restore(tmp_path / "b", tmp_path / "copy.vms")
    barrier, failed = threading.Barrier(2), list[Exception]()

    def put(place: Path, session: str) -> None:
        try:
            with vmstore.open(place) as store:
                barrier.wait()
                publish(store, site.address, session)
        except Exception as error:
            failed.append(error)

    threads = [
        threading.Thread(target=put, args=(path, "other")),
        threading.Thread(target=put, args=(tmp_path / "copy.vms", "long")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with vmstore.open(site.address, "r") as cold:
        assert {info.session for info in cold.sessions()} == {"other", "long"} and cold.verify().ok
    assert site.tier.numbers() == [1, 2]


def test_who_comes_second_decides_again(path: Path, site: TierSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """A publisher that read the newest manifest before another wrote one loses the put and decides again."""
    real, once = ColdTier.add, []
    with vmstore.open(path) as store:

        def overtaken(tier: ColdTier, manifest: Any) -> Any:
            if not once:
                once.append(True)
                publish(store, site.address, "long")
            return real(tier, manifest)

        monkeypatch.setattr(ColdTier, "add", overtaken)
        assert publish(store, site.address, "other").manifest == 2
    with vmstore.open(site.address, "r") as cold:
        assert {info.session for info in cold.sessions()} == {"other", "long"}


def test_another_store_is_refused(path: Path, site: TierSite, tmp_path: Path) -> None:
    """A store is not published over another one, nor a copy that went on differently over what it parted from."""
    with vmstore.open(path) as store:
        store.backup(tmp_path / "b")
        store.record("other", chat("One more thing"), answer("Yes."))
        publish(store, site.address, "other")
    vmstore.restore(tmp_path / "b", tmp_path / "copy.vms")
    with vmstore.open(tmp_path / "copy.vms") as copy:
        for text in ("Something else", "And else"):
            copy.record("other", chat(text), answer("No."))
        with refused("parted", vmstore.RefusedError, "other"):
            publish(copy, site.address, "other")
    with vmstore.open(tmp_path / "b.vms") as other:
        other.record("s", chat("Hello"), answer("Hi."))
        with refused("another-namespace"):
            publish(other, site.address)


def test_names_and_addresses_are_checked(path: Path, site: TierSite, tmp_path: Path) -> None:
    """A session that is not there, a manifest that is not, an empty tier and an odd address are refused by name."""
    with vmstore.open(path) as store:
        with refused("no-session", UnknownError, "plan"):
            publish(store, site.address, "plam")
        with refused("which-sessions", InputError):
            publish(store, site.address, "plan", older_than_s=5)
        with refused("no-object-address", InputError, "gs://"):
            publish(store, "gs://bucket/cold")
        with refused("no-cold-tier", vmstore.StoreError, "vmstore publish"):
            vmstore.open(site.address, "r")
        publish(store, site.address, "other")
    with refused("no-manifest", UnknownError, "17"):
        vmstore.open(f"{site.address}{'&' if '?' in site.address else '?'}manifest=17", "r")
    with refused("no-object-address", InputError, "manifest"):
        vmstore.open(f"{site.address}{'&' if '?' in site.address else '?'}manifest=x", "r")


def test_only_what_a_question_names_is_fetched(path: Path, site: TierSite, home: Path) -> None:
    """A question of one session fetches its archive alone, one of all fetches all, and none is fetched twice."""
    with vmstore.open(path) as store:
        publish(store, site.address, ALL)
        expected = list(store.query("PAGES page, tokens, text IN SESSION other"))
        hits = list(store.query("SEARCH 'miles' page, score IN SESSION other"))

    def copies() -> int:
        return len(list(home.rglob("*.archive")))

    asked: list[str] = []

    class Counting:
        def __init__(self, objects: Objects) -> None:
            self._objects = objects

        def __getattr__(self, name: str) -> Any:
            return getattr(self._objects, name)

        def get(self, name: str, start: int = 0, length: int | None = None) -> bytes | None:
            asked.append(name)
            return self._objects.get(name, start, length)

    with vmstore.open(site.address, "r") as cold:
        cold._ns.place.copies._objects = Counting(cold._ns.place.copies._objects)  # type: ignore[union-attr]
        assert list(cold.query("PAGES page, tokens, text IN SESSION other")) == expected
        assert list(cold.query("SEARCH 'miles' page, score IN SESSION other")) == hits
        assert copies() == 1
        assert cold.session("other").context().messages()
        assert copies() == 1
        assert len(cold.sessions()) == 5
        assert copies() == 5
    assert len(asked) == len(set(asked)) == 6, "five archives and the catalogue"
