"""An encrypted store meets what a plain one does: kills, writers at once, and whole lives."""

from __future__ import annotations

import os
import time
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings

import vmstore
from tests import laws
from tests.disasters.child import joined, kill, start
from tests.engine.stories import answer, chat
from vmstore.store.store import Store
from vmstore.testing.simulate import Player
from vmstore.testing.strategies import Life, lives

KILLS = 8
SESSIONS = 6
LONG = "why? " * 20_000


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A store key."""
    return vmstore.new_store_key(tmp_path / "store.key")


def recorder(path: Path, key: Path, first: int, other_number: int) -> None:
    """Says that it begins, records for ever, each call for a new user, and says how many it was told are there."""
    os.write(other_number, b"!")
    store = vmstore.open(path, key=key)
    for number in count(first):
        store.session(f"s{number}", create=True, user=f"user {number}")
        store.record(f"s{number}", chat(f"question {number} {LONG}"), answer("yes"))
        os.write(other_number, b".")


def test_what_was_acknowledged_can_be_read(tmp_path: Path, key: Path) -> None:
    """Killed while it makes a key for each call, every acknowledged call is there and decrypts, and nothing by half."""
    path, kept, tries = tmp_path / "a.vms", 0, 0
    vmstore.open(path, key=key).close()
    while tries < KILLS or kept < KILLS:
        tries += 1
        assert tries < 100, "the recorder never came to record"
        reader, writer = os.pipe()
        pid = start(lambda writer=writer, first=kept: recorder(path, key, first, writer))  # type: ignore[misc]
        os.close(writer)
        assert os.read(reader, 1) == b"!"
        time.sleep(0.05 + 0.02 * tries)
        kill(pid)
        other_count = len(os.read(reader, 1 << 20))
        os.close(reader)
        with vmstore.open(path, key=key) as store:
            assert store.verify().ok
            calls = [info.session for info in store.sessions() if info.calls]
            assert kept + other_count <= len(calls) <= kept + other_count + 1
            for number in range(kept, len(calls)):
                assert store.session(f"s{number}").wire.request(call=1) == chat(f"question {number} {LONG}")
            kept = max((int(info.session[1:]) + 1 for info in store.sessions()), default=0)
            if kept > len(calls):  # one session was opened and its call not yet recorded
                store.record(f"s{kept - 1}", chat(f"question {kept - 1} {LONG}"), answer("yes"))


def writer(path: Path, key: Path, name: int) -> None:
    """Opens sessions of users whom another process meets at the same time."""
    with vmstore.open(path, key=key) as store:
        for number in range(SESSIONS):
            store.session(f"{name}/{number}", create=True, user=f"user {number}")
            store.record(f"{name}/{number}", chat(f"{name} asks {number}"), answer("yes"))


def test_processes_that_meet_a_user_at_once_share_the_key(tmp_path: Path, key: Path) -> None:
    """Three processes write for the same new users at the same time; every word is read, under one key a user."""
    path = tmp_path / "a.vms"
    vmstore.open(path, key=key).close()
    children = [start(lambda name=name: writer(path, key, name)) for name in range(3)]  # type: ignore[misc]
    assert [joined(child) for child in children] == [0, 0, 0]
    with vmstore.open(path, key=key) as store:
        assert store.verify().ok and len(store.sessions(user="user 3")) == 3
        assert store.admin.log.vault.keyring.count() == SESSIONS  # type: ignore[attr-defined]


class Locked(Player):
    """A player whose store is encrypted."""

    def open(self) -> Store:
        """A handle on the store, with its key."""
        key = self.path.with_name("store.key")
        if not key.exists():
            vmstore.new_store_key(key)
        return vmstore.open(self.path, key=key, clock=self.clock, ids=self.ids)


@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.generate, Phase.shrink])
@given(lives())
def test_lives_are_lived_encrypted(life: Life) -> None:
    """Whatever agents do to an encrypted store, requests come back, views folded again are equal, verify is clean."""
    with TemporaryDirectory() as folder:
        player = Locked(Path(folder), life.shape)
        for step in life.steps:
            player.play(step)
        laws.rebuilt_views_are_equal(player)
        laws.nothing_leaks(player)
        laws.verify_is_clean(player)
        player.close()
