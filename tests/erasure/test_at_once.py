"""Sealers, erasers, archivers and writers at once, each a process of its own: none fails, and what is left is whole."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.disasters.child import joined, start
from tests.engine.stories import answer, chat
from tests.erasure.found import found_in
from vmstore.erasure.certificates import beside, certificates
from vmstore.errors import UnknownError
from vmstore.maintenance import archive as archiving
from vmstore.maintenance.archive import archive, archived_sessions, unarchive
from vmstore.namespace.signing_keys import read_key
from vmstore.seals.seals import folder_of, seals_in

ROUNDS = 4
SESSIONS = [f"s{n}" for n in range(2 * ROUNDS)]
LONG = "long violet words, many of them; " * 2_500
EVEN, ODD = SESSIONS[::2], SESSIONS[1::2]


def secret(name: str) -> str:
    """What was said in a session."""
    return f"the violet number of {name} is {4711 * (1 + SESSIONS.index(name))}"


def seal(path: Path) -> None:
    """Seals, some times."""
    for _ in range(ROUNDS):
        with closing(vmstore.open(path, "r")) as store:
            vmstore.seal(store, read_key(path.with_name("seal.key")))


def erase(path: Path, names: Iterable[str]) -> None:
    """Erases some sessions, one after the other; one that another erased meanwhile is not there any more."""
    for name in names:
        with closing(vmstore.open(path)) as store:
            try:
                vmstore.erase(store, session=name)
            except UnknownError:
                assert name not in {session.session for session in store.sessions()}


def move(path: Path, names: Iterable[str]) -> None:
    """Archives some sessions, and moves every third back."""
    for name in names:
        with closing(vmstore.open(path)) as store:
            try:
                archive(store, name, grace_s=0)
                if SESSIONS.index(name) % 3 == 0:
                    unarchive(store, name)
            except UnknownError:  # it has lost its name
                assert name not in {session.session for session in store.sessions()}


def write(path: Path) -> None:
    """Records in a session of its own."""
    with closing(vmstore.open(path)) as store:
        for n in range(4 * ROUNDS):
            store.record("w", chat(f"Line {n}"), answer("Noted."))


def look(path: Path) -> None:
    """Verifies, some times, and finds nothing wrong."""
    for _ in range(ROUNDS):
        with closing(vmstore.open(path, "r")) as store:
            verdict = store.verify()
            assert verdict.ok, verdict.problems


def copy(path: Path) -> None:
    """Makes backups, each of which can be restored."""
    for n in range(ROUNDS):
        vmstore.backup(path, path.with_name(f"{n}.bak"))


TOGETHER: dict[str, list[Callable[[Path], None]]] = {
    "two sealers": [seal, seal, write],
    "two erasers of the same": [lambda path: erase(path, SESSIONS), lambda path: erase(path, SESSIONS)],
    "two erasers of others": [lambda path: erase(path, EVEN), lambda path: erase(path, ODD), write],
    "an eraser and a sealer": [lambda path: erase(path, EVEN), seal, write],
    "an archiver and an eraser": [lambda path: move(path, SESSIONS), lambda path: erase(path, EVEN)],
    "two archivers": [lambda path: move(path, SESSIONS), lambda path: move(path, SESSIONS[::-1])],
    "an eraser, a look and a copy": [lambda path: erase(path, EVEN), look, copy],
    "an archiver, a look and a copy": [lambda path: move(path, SESSIONS), look, copy],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with some sessions, and a key to seal it."""
    path = tmp_path / "a.vms"
    with vmstore.open(path) as store:
        for name in SESSIONS:
            store.record(name, chat(secret(name)), answer("Noted."))
            store.record(name, chat(secret(name), "Noted.", f"{name}: {LONG}"), answer("Gone."))
        vmstore.seal(store, vmstore.new_key(tmp_path / "seal.key"))
    return path


@pytest.mark.parametrize("who", TOGETHER)
def test_nobody_fails_and_what_is_left_is_whole(path: Path, who: str) -> None:
    """All end well, every seal holds, what was erased is gone and certified once, and the rest reads as before."""
    assert [joined(pid) for pid in [start(partial(work, path)) for work in TOGETHER[who]]] == [0] * len(TOGETHER[who])
    gone = SESSIONS if "two erasers" in who else EVEN if "eraser" in who else []
    with vmstore.open(path) as store:
        verdict = store.verify(seals=list(seals_in(folder_of(path / "default"), "default")))
        assert verdict.ok, verdict.problems
        assert {session.session for session in store.sessions()} & set(SESSIONS) == set(SESSIONS) - set(gone)
        for name in set(SESSIONS) - set(gone):
            assert store.session(name).wire.request(call=2) == chat(secret(name), "Noted.", f"{name}: {LONG}")
        assert not (path / "default" / "erasing").exists()
        if write in TOGETHER[who]:
            assert len(store.session("w").calls()) == 4 * ROUNDS
        if "archiver" in who and not gone:
            assert set(archived_sessions(store)) <= set(SESSIONS)
    planted = [secret(name).encode() for name in gone] + [f"{name}: {LONG[:200]}".encode() for name in gone]
    assert found_in(path, planted) == {}
    named = [
        (erasure.session, cell.position, cell.index)
        for certificate in certificates(beside(path))
        for erasure in certificate.erasures
        for cell in erasure.cells
    ]
    assert len(named) == len(set(named)) and len({session for session, _, _ in named}) == len(gone)
    for copied in path.parent.glob("*.bak"):
        vmstore.restore(copied, path.with_name(f"{copied.stem}.vms"))


def test_threads_of_one_store_do_not_wait_for_each_other_for_ever(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread archives while another of the same store erases: both end, however far the first one is."""
    real, erasers = archiving._write, list[threading.Thread]()
    store = vmstore.open(path)  # closed where all is well: who waits for ever would keep it open

    def late(*arguments: Any) -> None:
        if not erasers:
            erasers.append(threading.Thread(target=lambda: vmstore.erase(store, session="s1"), daemon=True))
            erasers[0].start()
            erasers[0].join(0.3)  # it holds what it needs, and waits for who archives
        real(*arguments)

    monkeypatch.setattr(archiving, "_write", late)
    archiver = threading.Thread(target=lambda: archive(store, ["s0", "s2"], grace_s=0), daemon=True)
    archiver.start()
    archiver.join(30)
    erasers[0].join(30)
    assert not archiver.is_alive() and not erasers[0].is_alive(), "they wait for each other"
    assert set(archived_sessions(store)) == {"s0", "s2"} and store.verify().ok
    store.close()
