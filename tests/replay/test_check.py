"""A session is decided as it was, and a decision that was tampered with is named."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest

from tests.replay.told import Life, lived, shorten
from vmstore.core import mutation as m
from vmstore.replay.check import ReplayCheck, check
from vmstore.replay.stimuli import RecordedCommit, Stimuli, is_decision, stimuli
from vmstore.testing.simulate_live import ACTS, LiveRun

At = tuple[int, m.AnyMutation]
Plant = Callable[[m.AnyMutation], list[m.AnyMutation]]
"""What stands in the place of a decision."""

SETTINGS = [
    {},
    {"policy": "default", "budget": 6_000},
    {"policy": "s3fifo", "compress": False},
    {"policy": "lfu", "budget": 4_000, "pinned_turns": 0},
    {"policy": "modality", "prefetch": False, "cooldown_turns": 0, "protected_turns": 0},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_every_decision_is_decided_again(seed: int, settings: dict[str, object]) -> None:
    """Any session, under any policy and settings, is decided again byte by byte as it was."""
    life = lived(seed, 250, **settings)  # type: ignore[arg-type]
    found = check(life.stimuli, shorten)
    assert found.ok, found.difference
    assert found.decisions > 200 and found.commits == len(life.commits)


def planted(life: Life, kind: type, plant: Plant, nth: int = 5) -> tuple[Stimuli, int]:
    """A session of which one decision was replaced; what comes after moves as it would have in the log."""
    seen, moved, where = 0, 0, 0
    commits = []
    for commit in life.commits:
        mutations: list[At] = []
        for position, one in commit.mutations:
            told = [one]
            if isinstance(one, kind) and (is_decision(one) or kind is m.Pack):
                seen += 1
                if seen == nth:
                    told, where = plant(one), position
            for each in told:
                mutations.append((mutations[-1][0] + 1 if mutations else position + moved, each))
            moved += len(told) - 1
        commits.append(RecordedCommit(commit.at, mutations, commit.cell))
        if where:
            break  # the rest names positions that have moved
    assert where, f"the session has no {kind.__name__} number {nth}"
    return stimuli("s", commits), where


def named(found: ReplayCheck, where: int) -> tuple[str, str]:
    """What a check says of its first difference, which is at a position."""
    assert found.difference is not None and not found.ok
    assert found.difference.position == where, found.difference
    assert str(found.difference).startswith(f"session 's', position {where} (turn ")
    return found.difference.expected, found.difference.found


def other(**fields: object) -> Plant:
    """A decision with other fields."""
    return lambda one: [msgspec.structs.replace(one, **fields)]  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (m.Evict, {"page": 2}),
        (m.Evict, {"score": 123_456}),
        (m.Evict, {"tokens": 1}),
        (m.FaultIn, {"level": 3}),
        (m.FaultIn, {"reference": 1}),
        (m.FaultDenied, {"because": 7}),
        (m.Prefetch, {"tokens": 99_999}),
        (m.Pressure, {"used": 1}),
        (m.Pack, {"left": (4,)}),
        (m.Pack, {"entered": ()}),
        (m.Pack, {"tokens": 1}),
        (m.Pack, {"leaves": 0}),
    ],
    ids=lambda one: one.__name__ if isinstance(one, type) else next(iter(one)),
)
def test_a_changed_decision_is_named(kind: type, fields: dict[str, object]) -> None:
    """Any field of any decision that is another is a difference, told with both."""
    told, where = planted(lived(7, 250), kind, other(**fields), 2 if kind is m.FaultDenied else 5)
    expected, found = named(check(told, shorten), where)
    word = {m.FaultIn: "fault_in", m.FaultDenied: "fault_denied"}.get(kind, kind.__name__.lower())
    assert expected != found
    assert expected.startswith(word) and found.startswith(word)


def test_another_reason_is_a_difference() -> None:
    """A contest told otherwise, with the decision as it was, is named: losers, cut-off, candidates."""
    for change in ({"candidates": 999}, {"losers": ((1, 1),)}, {"cutoff": 7}, {"policy": 40}):

        def plant(one: m.AnyMutation, change: dict[str, object] = change) -> list[m.AnyMutation]:
            assert isinstance(one, m.Evict) and one.why is not None
            return [msgspec.structs.replace(one, why=one.why._replace(**change))]

        life = lived(7, 250)
        firsts = [one for commit in life.commits for _, one in commit.mutations if isinstance(one, m.Evict)]
        nth = next(
            at for at, one in enumerate([e for e in firsts if is_decision(e)], 1) if one.why is not None and at > 3
        )
        told, where = planted(life, m.Evict, plant, nth)
        expected, found = named(check(told, shorten), where)
        assert expected.startswith("evict") and found.startswith("evict")


def test_a_missing_decision_is_named() -> None:
    """A decision that was taken out is found now, where nothing or another was recorded."""
    for kind in (m.Evict, m.FaultIn, m.Prefetch):
        told, where = planted(lived(7, 250), kind, lambda one: [])
        found = check(told, shorten).difference
        assert found is not None and found.position <= where + 1
        assert found.expected != found.found


def test_an_extra_decision_is_named() -> None:
    """A decision that nobody took stands where another, or nothing, is found."""
    told, where = planted(lived(7, 250), m.Pressure, lambda one: [one, m.Evict(10, 0, 5)])
    expected, found = named(check(told, shorten), where + 1)
    assert expected.startswith("evict (page 10") and not found.startswith("evict (page 10")


def test_a_root_is_not_compared() -> None:
    """A pack's root is a hash of contents, which no decision depends on."""
    told, _ = planted(lived(7, 250), m.Pack, other(root=b"another" * 4))
    assert check(told, shorten).ok


def test_a_kernel_that_decides_otherwise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check compares what this kernel decides: with another order of victims it names a difference."""
    from vmstore.vm.policies.lru import LRU1

    stimuli_told = lived(3, 250).stimuli
    assert check(stimuli_told, shorten).ok
    monkeypatch.setattr(LRU1, "place", lambda self, one, now: (0, -one.used))
    assert not check(stimuli_told, shorten).ok


CALM = tuple(act for act in ACTS if act not in ("restart", "rebuild", "fail"))
BUSY = tuple(act for act in ACTS if act in ("user", "pack", "fault", "configure", "search", "annotate", "stand_in"))


@pytest.mark.parametrize(("seed", "acts"), [(17, BUSY), (31, BUSY), (61, BUSY), (571, CALM)])
def test_what_is_written_past_the_kernel_is_decided_on_at_the_next_act(seed: int, acts: tuple[str, ...]) -> None:
    """A note, a link or a fork that comes while a decision is due leaves it to the next act, then and when checked."""
    chance, life = random.Random(seed), LiveRun(calm=True, seed=seed)
    for _ in range(40):
        act = chance.choice(acts if chance.random() < 0.8 else ["stand_in", "annotate"])
        life.play((act, chance.randint(0, 500), chance.randint(0, 7)))
    assert [one.debug.check().difference for one in life.live] == [None] * len(life.live)
    life.close()
