"""The film of a session shows at every call what the session says the model saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import Phase, given, settings

import vmstore
from tests.debug.conftest import DEMO, Served
from tests.debug.films import events, faults, shown
from tests.replay.lives import live
from vmstore.core.mutation import MUTATION_NAMES
from vmstore.debug.events import FROM_LOG
from vmstore.debug.session_data import SessionData, film
from vmstore.store.store import Store
from vmstore.testing.simulate import play
from vmstore.testing.strategies import Life, lives
from vmstore.views.branch import Branch
from vmstore.views.projectors.decisions import ANSWERS, ASKS, MOVES, PINS, decided

FEWER = settings(max_examples=25, phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink])


@FEWER
@given(lives())
def test_a_film_is_its_session_whatever_its_life(life: Life) -> None:
    """Of every session of random lives, forks among them, the film's stays give each call's pages and tokens."""
    with TemporaryDirectory() as folder:
        player = play(life, Path(folder))
        for info in player.store.sessions():
            session = player.store.session(info.session)
            assert faults(film(player.store, session), session) == []
        player.close()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_film_of_a_live_session_has_what_its_kernel_decided(seed: int) -> None:
    """Faults, evictions, pins, pressure, segments and marks of a live session and of its fork are in the film."""
    with vmstore.memory_store() as store:
        session = live(store, "s", seed=seed, turns=12)
        for name in ("s", session.fork("t", turn=8).name):
            each_session = store.session(name)
            made = film(store, each_session)
            assert faults(made, each_session) == []
            assert made.budget == each_session.settings.l0_tokens_max and made.policy == each_session.settings.policy
            counts = Counter(made.words[kind] for kind in made.events.kind)
            logged = Counter(entry.kind for entry in store.tail() if entry.session == "s")
            if name == "s":
                for kind in ("fault_in", "fault_denied", "pin", "unpin", "reference", "cite", "recall", "create"):
                    assert counts[kind] == logged[kind], kind
                for kind in ("pressure", "segment", "search"):
                    assert counts[kind] == logged[kind] > 0, kind
                assert counts["evict"] + counts["shorten"] == logged["evict"]
                assert counts["mark"] == logged["mark"] == len(made.marks)
            key = int(store.admin.views.execute("SELECT session FROM sessions WHERE name = ?", (name,)).get)
            kinds = {MUTATION_NAMES[item] for item in {*ASKS, *PINS, *ANSWERS, *MOVES} - FROM_LOG}
            right = [
                (item.position, MUTATION_NAMES[item.kind])
                for item in decided(Branch(store.admin.views, key), made.position, MUTATION_NAMES.keys() - FROM_LOG)
            ]
            assert right and right == [
                (position, word.replace("shorten", "evict"))
                for position, word in zip(
                    made.events.position, map(made.words.__getitem__, made.events.kind), strict=True
                )
                if word in {*kinds, "shorten"}
            ]


def test_the_film_of_the_demo(demo: Served) -> None:
    """The session that ships is the same in its film, and what its compactions took away is told."""
    session = demo.store.session(DEMO)
    made = film(demo.store, session)
    assert faults(made, session) == []
    assert made.words[made.turns.hint[0]] and made.fidelity == "derived" and made.parent is None
    compacted = events(made, "compaction")
    assert compacted and all(" left, " in why and why.endswith(" tokens") for _, _, why in compacted)
    position, page, why = compacted[0]
    at = made.calls.position.index(position)
    before, after = ({row[0] for row in shown(made, n)} for n in (at - 1, at))
    assert page in after and len(before - after) == int(why.split()[0])


def test_the_film_of_a_real_session(data: Path) -> None:
    """A session that pi wrote is the same in its film."""
    with vmstore.memory_store() as store:
        store.import_file(data / "pi" / "before-compaction.jsonl", session="pi")
        assert faults(film(store, store.session("pi")), store.session("pi")) == []


def _later(made: SessionData) -> None:
    made.stays.end[0] += 1 if made.stays.end[0] < len(made.calls.call) else -1


def _other_rank(made: SessionData) -> None:
    made.stays.rank[0] += 1 << 40


def _other_level(made: SessionData) -> None:
    made.stays.level[-1] += 1


def _shorter(made: SessionData) -> None:
    made.events.why.pop()


def _swapped(made: SessionData) -> None:
    made.events.position.reverse()


@pytest.mark.parametrize("spoil", [_later, _other_rank, _other_level, _shorter, _swapped])
def test_a_spoilt_film_is_noticed(spoil: Callable[[SessionData], None]) -> None:
    """What the tests above hold a film against finds each fault that is planted in one."""
    with vmstore.memory_store() as store:
        session = live(store, "s", turns=3)
        made = film(store, session)
        assert faults(made, session) == []
        spoil(made)
        assert faults(made, session) != []


def test_a_session_without_a_call_has_a_film() -> None:
    """A session of which nothing was packed has pages and events, and no call, turn or stay."""
    with vmstore.memory_store() as store:
        store.session("empty", create=True)
        made = film(store, store.session("empty"))
        assert (made.calls.call, made.turns.turn, made.stays.page, made.pages.page) == ([], [], [], [])
        waiting = store.live_session("waiting", l0_tokens_max=6_000, system="Be kind.")
        made = film(store, waiting)
        assert made.calls.call == [] and made.pages.page and faults(made, waiting) == []


def test_a_film_is_small(small: Store) -> None:
    """Texts of pages are not in a film: a page of 5 MB leaves it as short as one of a few words."""
    before = len(msgspec.json.encode(film(small, small.session("s1"))))
    small.record("long", {"model": "m", "messages": [{"role": "user", "content": "long " * 1_000_000}]})
    assert len(msgspec.json.encode(film(small, small.session("long")))) < before + 200
