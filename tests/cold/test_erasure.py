"""Erasure reaches a cold tier: no object holds a byte of it, and one that is out of reach stays named."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.cold.conftest import TierSite
from tests.erasure.found import found_in
from tests.erasure.test_nothing_left import PLANTED, WORDS, lived, recorded
from tests.refusals import refused
from vmstore.cold.tier import ColdTier
from vmstore.erasure.certificates import certificates
from vmstore.erasure.erase import erase, finish_erasing, plan_erasure
from vmstore.errors import StoreError
from vmstore.maintenance.archive import archive
from vmstore.maintenance.publish import publish

USER = WORDS["user"]


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A store in which a word is planted in each thing that a user's agents can write."""
    path = tmp_path / "p.vms"
    with vmstore.open(path) as store:
        recorded(store)
        lived(store)
        store.record("bystander", {"model": "m", "messages": [{"role": "user", "content": "Nobody's."}]}, None)
    return path


@pytest.mark.parametrize("left", [False, True])
def test_nothing_of_a_user_is_left_in_any_object(planted: Path, site: TierSite, tmp_path: Path, left: bool) -> None:
    """All that a user's agents wrote is in the objects before an erasure and in none after, nor in a copy here."""
    with vmstore.open(planted) as store:
        publish(store, site.address)
        if left:
            archive(store, [info.session for info in store.sessions()], grace_s=0, to=site.address)
        site.objects.put("default/archives/stray-of-a-kill", b"zstd?" + PLANTED[0])
        with vmstore.open(site.address, "r") as cold:
            assert len(cold.sessions()) > 3
        there = found_in(site.copied_to(tmp_path / "before"), PLANTED)
        assert len(there) > len(PLANTED) - 3, "the words were planted"
        plan = plan_erasure(store, user=USER, derived=True, copies=True)
        assert len(plan.objects) >= 3
        done = erase(store, user=USER, derived=True, copies=True)
        assert done.left == [] and any("versions" in line and site.address in line for line in done.beyond)
    assert found_in(site.copied_to(tmp_path / "after"), PLANTED) == {}
    assert found_in(tmp_path / "user", PLANTED) == {}
    (certificate,) = certificates(tmp_path / "p.vms.erasures")
    assert f"cold tier {site.address}" in certificate.rewritten
    with vmstore.open(site.address, "r") as cold:
        assert cold.verify().ok
        assert any(name.startswith("erased-") for name in (info.session for info in cold.sessions()))
        assert cold.session("bystander").pages()[0].page
    with vmstore.open(planted) as store:
        assert store.verify().ok


def test_a_tier_out_of_reach_stays_named_until_it_is_finished(
    planted: Path, site: TierSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Erased while the tier is away the store is clean, says where something may be left, and finishes it later."""

    def away(self: ColdTier) -> None:
        raise StoreError(f"{self.address} cannot be reached; try again", code="unreachable")

    with vmstore.open(planted) as store:
        publish(store, site.address)
        with monkeypatch.context() as patch:
            patch.setattr(ColdTier, "newest", away)
            assert "cannot be reached" in plan_erasure(store, user=USER).objects[0]
            done = erase(store, user=USER, derived=True, copies=True)
            assert done.left == [site.address]
            assert any("--finish" in line for line in done.beyond)
            assert [problem.where for problem in store.verify().problems] == [site.address]
            with refused("cold-left", StoreError, "--finish"):
                finish_erasing(store)
    with vmstore.open(planted) as store:  # opens all the same
        assert found_in(site.copied_to(tmp_path / "open"), PLANTED[:1])
        finish_erasing(store)
        assert store.verify().ok
    assert found_in(site.copied_to(tmp_path / "done"), PLANTED) == {}


def test_a_kill_while_a_tier_is_cleared_is_finished_by_the_next_opening(
    planted: Path, site: TierSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended while the tier is written again, the erasure is finished there when the store is next opened."""

    class Killed(BaseException):
        pass

    def killed(self: ColdTier, manifest: object) -> None:
        raise Killed

    with vmstore.open(planted) as store:
        publish(store, site.address)
        with monkeypatch.context() as patch:
            patch.setattr(ColdTier, "add", killed)
            with pytest.raises(Killed):
                erase(store, user=USER, derived=True, copies=True)
    assert found_in(site.copied_to(tmp_path / "killed"), PLANTED[:1])
    with vmstore.open(planted) as store:
        assert store.verify().ok
    assert found_in(site.copied_to(tmp_path / "done"), PLANTED) == {}


def test_what_one_machine_erased_is_not_published_again_by_a_copy(
    planted: Path, site: TierSite, tmp_path: Path
) -> None:
    """A copy of the store that still has it does not put it back: the tier is ahead of it."""
    with vmstore.open(planted) as store:
        publish(store, site.address)
        store.backup(tmp_path / "b")
        erase(store, user=USER, derived=True, copies=True)
    (tmp_path / "p.vms.erasures").rename(tmp_path / "ledger")
    vmstore.restore(tmp_path / "b", tmp_path / "copy.vms", agreed=True)
    with vmstore.open(tmp_path / "copy.vms") as copy:
        publish(copy, site.address)
    assert found_in(site.copied_to(tmp_path / "after"), PLANTED) == {}
