"""Who verifies, backs up or reads while another process erases: an answer of before or of after, no false alarm."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.disasters.child import joined, start
from tests.engine.stories import answer, chat
from tests.erasure.found import found_in
from tests.erasure.test_kills import STEPS
from vmstore.erasure.erase import erase
from vmstore.errors import ErasedError
from vmstore.log import destruction
from vmstore.log.blobs import CellFiles
from vmstore.maintenance import backup
from vmstore.maintenance.archive import archive
from vmstore.transfer import merge

SECRET = "the combination is 4711-violet-9"
LONG = "long violet words, many of them; " * 3_000
HELD_S = 0.7  # longer than who does not wait takes
BESIDE = {
    **STEPS,
    "before the archives": (destruction.Archives, "destroy", True),
    "before a file": (destruction, "overwrite", True),
    "a file of zeros": (destruction, "overwrite", False),
}


def hold_at(at: Any, name: str, before: bool, gate: Path) -> None:
    """Has the process wait where something is called for the first time, until a gate is open."""
    real: Callable[..., Any] = getattr(at, name)

    def wait(*arguments: Any, **fields: Any) -> Any:
        done = None if before else real(*arguments, **fields)
        gate.with_suffix(".there").touch()
        while not gate.exists():
            time.sleep(0.005)
        return real(*arguments, **fields) if before else done

    setattr(at, name, wait)


@contextmanager
def erasing(path: Path, step: str) -> Iterator[None]:
    """Another process erases, and is held at a step while the block begins; it goes on after a while."""
    gate = path.with_name("gate")

    def child() -> None:
        hold_at(*BESIDE[step], gate)
        with closing(vmstore.open(path)) as store:
            erase(store, session="s")

    pid = start(child)
    while not gate.with_suffix(".there").exists():
        assert os.waitpid(pid, os.WNOHANG) == (0, 0), "it ended before it came there"
        time.sleep(0.005)
    opened = threading.Timer(HELD_S, gate.touch)
    opened.start()
    try:
        yield
    finally:
        opened.cancel()
        gate.touch()
        assert joined(pid) == 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a session to be erased, part of it archived, and one that stays."""
    path = tmp_path / "a.vms"
    with vmstore.open(path) as store:
        store.record("s", chat(SECRET), answer("Noted."))
        archive(store, "s", grace_s=0)
        store.record("s", chat(SECRET, "Noted.", LONG), answer("Gone."))
        store.session("s").annotate("p6", tags=["violet-tag"])
        store.record("t", chat("Where is the crane?"), answer("By the sluice."))
    return path


@pytest.mark.parametrize("mode", ["r", "rw"])
@pytest.mark.parametrize("step", BESIDE)
def test_verify_finds_nothing(path: Path, step: str, mode: str) -> None:
    """Wherever an erasure stands, verify beside it is clean, through a handle for reading and one for writing."""
    with closing(vmstore.open(path, mode) if mode == "r" else vmstore.open(path)) as store, erasing(path, step):
        verdict = store.verify()
    assert verdict.ok, verdict.problems


@pytest.mark.parametrize("asked", ["verify", "content"])
def test_a_file_that_is_overwritten_while_it_is_read(path: Path, asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who knew where a content lay, and finds zeros there, looks again and hears that it was erased."""
    beside, real = ExitStack(), CellFiles.read

    def late(files: CellFiles, commitment: bytes) -> bytes | None:
        monkeypatch.setattr(CellFiles, "read", real)
        beside.enter_context(erasing(path, "a file of zeros"))
        return files.read(commitment)

    with vmstore.open(path, "r") as store, beside:
        session = store.session("s")
        page = next(page.page for page in session.pages() if session.content(page.page) == LONG.encode())
        monkeypatch.setattr(CellFiles, "read", late)
        if asked == "verify":
            verdict = store.verify()
            assert verdict.ok, verdict.problems
        else:
            with pytest.raises(ErasedError):
                session.content(page)
        assert CellFiles.read is real, "the file was never read"


@pytest.mark.parametrize("step", BESIDE)
def test_a_backup_is_whole(path: Path, step: str) -> None:
    """Wherever an erasure stands, a backup beside it is made at once, and holds what was there before it or after."""
    with erasing(path, step):
        vmstore.backup(path, path.with_name("a.bak"))
    vmstore.restore(path.with_name("a.bak"), path.with_name("again.vms"))
    with vmstore.open(path.with_name("again.vms")) as store:
        assert store.verify().ok
        assert store.session("t").calls() != []
        (session,) = [session.session for session in store.sessions() if session.session != "t"]
        with pytest.raises(ErasedError):  # what was erased since the restored one was told by its certificate
            store.session(session).content("p6")


def test_who_writes_goes_on_beside_a_backup(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a backup copies, others record; who erases waits until it has copied."""

    real, order = backup._copy_files, []

    def slow(source: Path, target: Path) -> None:
        if not order:
            pid = start(lambda: vmstore.open(path).record("t", chat("More?"), answer("No.")) and None)
            assert joined(pid) == 0
            order.append("recorded")
            eraser = threading.Thread(target=lambda: joined(start(gone)) or order.append("erased"))
            eraser.start()
            eraser.join(0.3)
            threads.append(eraser)
        real(source, target)

    def gone() -> None:
        with closing(vmstore.open(path)) as store:
            erase(store, session="s")

    threads: list[threading.Thread] = []
    monkeypatch.setattr(backup, "_copy_files", slow)
    vmstore.backup(path, path.with_name("a.bak"))
    order.append("copied")
    threads[0].join()
    assert order[0] == "recorded" and sorted(order[1:]) == ["copied", "erased"]
    with vmstore.open(path) as store:
        assert store.verify().ok


@pytest.mark.parametrize("step", BESIDE)
def test_what_is_merged_is_whole(path: Path, step: str) -> None:
    """Wherever an erasure of the other store stands, a merge takes what was there before it or after."""
    into = path.with_name("into.vms")
    vmstore.open(into).close()
    with erasing(path, step):
        vmstore.merge(into, path)
    assert vmstore.merge(into, path).conflicts == 0
    with vmstore.open(into) as store:
        assert store.verify().ok and len(store.sessions()) == 2
    assert found_in(into, [SECRET.encode(), LONG[:200].encode(), b"violet-tag"]) == {}


@pytest.mark.parametrize("late", ["_proven", "_brought"])
def test_what_is_erased_as_it_is_merged_is_taken_as_erased(
    path: Path, late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the other store loses after it was proven comes as erased; what it is about to lose waits for the merge."""
    into, real = path.with_name("into.vms"), getattr(merge, late)
    vmstore.open(into).close()

    def gone() -> None:
        with closing(vmstore.open(path)) as store:
            erase(store, session="s")

    def then(*arguments: Any) -> Any:
        monkeypatch.setattr(merge, late, real)
        done = real(*arguments)
        pids.append(start(gone))
        if late == "_proven":
            assert joined(pids.pop()) == 0
        else:
            time.sleep(HELD_S)
        return done

    pids: list[int] = []
    monkeypatch.setattr(merge, late, then)
    vmstore.merge(into, path)
    assert [joined(pid) for pid in pids] == [0] * len(pids)
    with vmstore.open(into) as store:
        verdict = store.verify()
        assert verdict.ok, verdict.problems
    assert vmstore.merge(into, path, agreed=True).conflicts == 0
    assert found_in(into, [SECRET.encode(), LONG[:200].encode(), b"violet-tag"]) == {}
