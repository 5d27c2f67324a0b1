"""Sessions that manage their memory, with contents that were erased: prompts, faults, pins, replays."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.erasure.found import found_in
from tests.refusals import refused
from vmstore.erasure.erase import erase
from vmstore.errors import ErasedError
from vmstore.replay.check import ReplayCheck
from vmstore.store import replay
from vmstore.testing.simulate_live import SETTINGS

SECRET = "Let's go with Postgres, the number is 4711-violet."
PAGE = "p9"  # where it is said
TOLD = {**SETTINGS, "l0_tokens_max": 1_200}


def checked(store: vmstore.Store, name: str) -> ReplayCheck:
    """What `vmstore replay --check` finds."""
    ns = store._ns
    return replay.checked(ns, ns.key(name) or 0, name)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with a live session in which a secret was said, is pinned, and was made a claim; and a fork of it."""
    path = tmp_path / "a.vms"
    with vmstore.open(path) as store:
        live = store.live_session("s", system="Be brief.", **TOLD)
        assert live.user(SECRET) == [PAGE]
        live.pack()
        live.assistant("Yes.")
        live.pin(PAGE)
        live.compress(PAGE, 2)
        live.fork("s-b")
    return path


def goes_on(store: vmstore.Store, name: str) -> list[str]:
    """A few turns more, in a prompt that fills up; the pages of the first prompt."""
    live = store.session(name)
    live.user("What was erased, and at which position?")  # the words of what stands for it
    first = live.pack().pages
    for n in range(8):
        live.assistant(f"so {n} " * 40)
        live.user(f"And {n}? " * 40)
        live.pack()
    return first


def test_an_erased_page_leaves_every_prompt(path: Path) -> None:
    """It leaves the session's prompt and its fork's by logged mutations, a pin yields, and the laws and checks hold."""
    with vmstore.open(path) as other, vmstore.open(path) as store:
        sessions = {name: (other.session(name), store.session(name)) for name in ("s", "s-b")}
        for both in sessions.values():
            for item in both:
                item.stats()
        erase(store, page=PAGE, in_session="s", derived=True)
        assert found_in(path, [SECRET.encode(), b"4711-violet", b"4711_violet"]) == {}
        for name, (theirs, _) in sessions.items():
            assert PAGE not in goes_on(store, name)
            assert PAGE not in theirs.pack().pages
            rows = [tuple(row) for row in store.query(f"MUTATIONS kind, page IN SESSION {name}")]
            assert [row for row in rows if row[1] == PAGE][-2:] == [("unpin", PAGE), ("evict", PAGE)]
            assert checked(store, name).difference is None
        assert store.verify().ok and other.verify().ok
        assert found_in(path, [SECRET.encode(), b"4711-violet", b"4711_violet"]) == {}


def test_a_fault_is_told_where_it_was_erased(path: Path) -> None:
    """Who asks for it, the model or the program, hears at which position it was erased, and nothing is empty."""
    with vmstore.open(path) as store:
        erase(store, page=PAGE, in_session="s")
        at = next(info.position for info in store.sessions() if info.session == "s") - 2
        for name in ("s", "s-b"):
            live = store.session(name)
            assert live.page_fault(PAGE, 0).content == f"[erased at position {at}]".encode()
            with pytest.raises(ErasedError, match=f"position {at};"):
                live.content(PAGE)
            live.pack()
            assert checked(store, name).difference is None


def test_a_session_that_was_erased_cannot_be_decided_again(path: Path) -> None:
    """Its settings are gone with it, and the answer says so; its fork goes on with settings of its own."""
    with vmstore.open(path) as store:
        uid = store._ns.views.execute("SELECT hex(uid) FROM sessions WHERE name = 's'").get
        erase(store, session="s")
        name = f"erased-{uid.lower()[:12]}"
        with refused("settings-erased", ErasedError):
            checked(store, name)
        assert store.verify().ok
