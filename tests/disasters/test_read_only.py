"""A store on a medium that cannot be written is asked as any other."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import vmstore
from tests.disasters.child import kill, start
from tests.disasters.mounts import remount, small_disk
from tests.engine.stories import answer, chat, tell
from tests.refusals import refused
from vmstore.errors import ReadOnlyError, StoreError, VmstoreError


def answers(store: vmstore.Store) -> list[object]:
    """What a store says of everything."""
    sessions = store.sessions()
    calls = [(s.session, call.call) for s in sessions for call in store.session(s.session).calls()]
    return [sessions, calls, [store.session(name).wire.messages(call=call) for name, call in calls], store.verify().ok]


@pytest.mark.parametrize("kept", [True, False], ids=["with views", "without views"])
def test_a_read_only_medium_is_asked(tmp_path: Path, kept: bool) -> None:
    """On a read-only disk every question has the answer it had, with the views there or not."""
    with small_disk(tmp_path / "disk", "8m") as folder:
        path = folder / "agent.vms"
        tell(path)
        with vmstore.open(path) as store:
            expected = answers(store)
        if not kept:
            for file in (path / "default").glob("views-*"):
                file.unlink()
        remount(folder, "ro")
        with vmstore.open(path, "r") as store:
            assert answers(store) == expected
            with refused("read-only", ReadOnlyError):
                store.record("plan", chat("no"))


def test_writing_on_a_read_only_medium_is_refused(tmp_path: Path) -> None:
    """Opening for writing, or the first record, is an error of ours that says what to do instead."""
    with small_disk(tmp_path / "disk", "8m") as folder:
        tell(folder / "agent.vms")
        remount(folder, "ro")
        with pytest.raises((ReadOnlyError, StoreError), match="mode 'r'"):
            with vmstore.open(folder / "agent.vms") as store:
                store.record("plan", chat("no"))
        with refused("not-writable", StoreError):
            vmstore.open(folder / "new.vms")


@pytest.mark.parametrize("index", [True, False], ids=["with its index", "without its index"])
def test_a_medium_made_read_only_after_a_kill_keeps_what_was_acknowledged(tmp_path: Path, index: bool) -> None:
    """What a killed writer was told is durable is never left out in silence on a medium made read-only since."""
    with small_disk(tmp_path / "disk", "8m") as folder:
        path = folder / "agent.vms"
        tell(path)

        def work() -> None:
            store = vmstore.open(path)
            for number in range(5):
                store.record("late", chat(f"{number}"), answer("yes"))
            os.write(value, b".")
            time.sleep(60)  # until it is killed, the store open

        heard, value = os.pipe()
        pid = start(work)
        os.close(value)
        assert os.read(heard, 1) == b".", "the child ended before it had recorded"
        os.close(heard)
        kill(pid)
        if not index:  # as in a copy that left the shared memory out
            (path / "default" / "log.sqlite-shm").unlink()
        remount(folder, "ro")
        try:
            with vmstore.open(path, "r") as store:
                calls = store.session("late").info().calls
        except StoreError as error:
            assert "last commits" in str(error) and "copy the store" in str(error)
        except VmstoreError as error:
            raise AssertionError(f"the acknowledged session is missing: {error}") from error
        else:
            assert calls == 5


def test_a_reader_writes_no_byte(store_path: Path) -> None:
    """Asking everything of a store opened for reading leaves log and views as they were."""
    tell(store_path)
    with vmstore.open(store_path) as store:
        expected = answers(store)
    before = {file.name: file.read_bytes() for file in (store_path / "default").glob("*.sqlite")}
    with vmstore.open(store_path, "r") as store:
        assert answers(store) == expected
    assert {file.name: file.read_bytes() for file in (store_path / "default").glob("*.sqlite")} == before


def test_a_reader_sees_what_is_written_meanwhile(store_path: Path) -> None:
    """A handle for reading, opened before a writer's commits, answers with them."""
    tell(store_path)
    with vmstore.open(store_path, "r") as reader, vmstore.open(store_path) as writer:
        assert "late" not in [s.session for s in reader.sessions()]
        writer.record("late", chat("hi"), answer("yes"))
        assert reader.session("late").wire.messages() == chat("hi")["messages"]
        assert reader.verify().ok
