"""The disk is full: a clear error, everything acknowledged readable, nothing by half, and it goes on after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.disasters.mounts import remount, small_disk
from tests.engine.stories import answer, chat
from tests.refusals import refused
from vmstore.errors import StoreError

CALLS_MAX = 500


def request(call: int) -> dict[str, Any]:
    """A request with something new of some length."""
    return chat(f"{call}: " + "all work and no play " * 90, seed=call)


def fill(store: vmstore.Store) -> tuple[int, StoreError]:
    """Records until the disk is full; how many calls were acknowledged, and the error."""
    for call in range(1, CALLS_MAX):
        try:
            store.record("s", request(call), answer(f"{call}"))
        except StoreError as error:
            return call - 1, error
    raise AssertionError("the disk never filled")


def whole(store: vmstore.Store, acknowledged: int) -> int:
    """Asserts that every acknowledged call is there and equal and nothing is there by half; the calls there."""
    session = store.session("s")
    calls = session.calls()
    assert acknowledged <= len(calls) <= acknowledged + 1
    for call in range(1, len(calls) + 1):
        assert session.wire.request(call=call) == request(call)
    assert {call.status for call in calls[:acknowledged]} == {"ok"}
    assert store.verify().ok
    return len(calls)


@pytest.mark.parametrize("size", ["700k", "1m"])
def test_a_full_disk_is_a_clear_error(tmp_path: Path, size: str) -> None:
    """The call that finds the disk full raises StoreError naming the file, and all before it are there."""
    with small_disk(tmp_path / "disk", size) as folder:
        store = vmstore.open(folder / "agent.vms")
        acknowledged, error = fill(store)
        assert acknowledged > 3
        assert "agent.vms" in str(error) and "full" in str(error)
        with vmstore.open(folder / "agent.vms", "r") as reader:
            whole(reader, acknowledged)
        store.close()
        with vmstore.open(folder / "agent.vms", "r") as reader:
            whole(reader, acknowledged)


def test_a_full_disk_says_that_nothing_is_there(tmp_path: Path) -> None:
    """Wherever a disk is full, each record that fails for it says for sure that it is not there, and none is."""
    texts = list[str]()
    for kib in range(600, 1_600, 100):
        with small_disk(tmp_path / str(kib), f"{kib}k") as folder, vmstore.open(folder / "agent.vms") as store:
            acknowledged, error = fill(store)
            for _ in range(3):
                with pytest.raises(StoreError) as again:
                    store.record("s", request(acknowledged + 1), answer("no"))
                texts += [str(error), str(again.value)]
            with vmstore.open(folder / "agent.vms", "r") as reader:
                assert whole(reader, acknowledged) == acknowledged
    assert not [text for text in texts if "is not known" in text]
    assert [text for text in texts if "nothing of the commit is there" in text]


def test_a_store_goes_on_when_there_is_room_again(tmp_path: Path) -> None:
    """The same handle records again once the disk has room, and a new one sees it all."""
    with small_disk(tmp_path / "disk", "1m") as folder:
        store = vmstore.open(folder / "agent.vms")
        fill(store)
        remount(folder, "size=8m")
        there = len(store.session("s").calls())
        for call in range(there + 1, there + 4):
            assert store.record("s", request(call), answer(f"{call}")).call == call
        assert whole(store, there + 3) == there + 3
        store.close()
        with vmstore.open(folder / "agent.vms") as again:
            assert whole(again, there + 3) == there + 3


def test_no_store_is_made_on_a_full_disk(tmp_path: Path) -> None:
    """Where a new store does not fit, the error says so and nothing is left behind."""
    with small_disk(tmp_path / "disk", "64k") as folder:
        (folder / "ballast").write_bytes(bytes(40_000))
        with refused("not-written", StoreError):
            vmstore.open(folder / "agent.vms").record("s", request(1))
        left = [p.name for p in folder.iterdir() if p.name != "agent.vms"]
        assert left == ["ballast"]
