"""A store is made whole or not at all: makers race, and makers are killed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import vmstore
from tests.disasters.child import joined, kill, start
from tests.engine.stories import LOG, chat

MAKERS = 8
KILLS = 20


def race(path: Path, name: str) -> None:
    """Lets several processes open a store that is not there at the same moment, each to record one call."""
    gate, starter = os.pipe()

    def work(number: int) -> None:
        os.close(starter)
        os.read(gate, 1)  # returns for all when the parent closes its end
        with vmstore.open(path) as store:
            store.record(name.format(number), chat(f"from {number}"))

    pids = [start(lambda number=number: work(number)) for number in range(MAKERS)]  # type: ignore[misc]
    os.close(gate)
    os.close(starter)
    assert [joined(pid) for pid in pids] == [0] * MAKERS


def test_makers_race_and_all_write_the_winners_store(store_path: Path) -> None:
    """Eight processes that make one store at once all succeed, and all their calls are in it."""
    race(store_path, "s{}")
    with vmstore.open(store_path) as store:
        assert [s.session for s in store.sessions()] == [f"s{n}" for n in range(MAKERS)]
        assert store.verify().ok
    assert [p.name for p in store_path.parent.iterdir()] == ["agent.vms"]


def test_makers_race_for_one_session(store_path: Path) -> None:
    """Eight processes that record the first call of one session at once leave one session of eight calls."""
    race(store_path, "same")
    with vmstore.open(store_path) as store:
        assert [(s.session, s.calls) for s in store.sessions()] == [("same", MAKERS)]
        assert {store.session("same").wire.request(call=n)["messages"][1]["content"] for n in range(1, MAKERS + 1)} == {
            f"from {n}" for n in range(MAKERS)
        }
        assert store.verify().ok


def test_makers_race_for_a_namespace(store_path: Path) -> None:
    """A namespace that several processes make in a store is made once."""
    vmstore.open(store_path).close()

    def work() -> None:
        vmstore.open(store_path, namespace="team").close()

    pids = [start(work) for _ in range(4)]
    assert [joined(pid) for pid in pids] == [0] * 4
    assert sorted(p.name for p in store_path.iterdir()) == ["default", "team"]


def test_a_killed_maker_leaves_no_store_or_a_valid_one(tmp_path: Path) -> None:
    """Whenever the maker is killed there is no store or a sound one, and only hidden folders are left over."""
    begun = time.monotonic()
    assert joined(start(lambda: vmstore.open(tmp_path / "timed.vms").close())) == 0
    needed = time.monotonic() - begun
    outcomes = []
    for number in range(KILLS):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "agent.vms"
        pid = start(lambda path=path: vmstore.open(path).close())  # type: ignore[misc]
        time.sleep(needed * 1.8 * number / KILLS)
        kill(pid)
        outcomes.append(path.exists())
        assert all(p.name.startswith(".agent.vms.") and p.name.endswith(".new") for p in folder.iterdir() if p != path)
        with vmstore.open(path) as store:
            store.record("s", chat("hi"))
            assert store.verify().ok
    assert set(outcomes) == {False, True}, "the kills came before and after the store was made"


def test_the_folder_is_made_for_its_owner_and_readers(store_path: Path) -> None:
    """A new store's folders can be read by others as usual, not by the maker alone as temporary ones."""
    vmstore.open(store_path).close()
    assert [(p.stat().st_mode & 0o777) for p in (store_path, store_path / "default")] == [0o755, 0o755]
    assert (store_path / LOG).is_file()
