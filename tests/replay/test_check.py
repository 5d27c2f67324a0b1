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
    actual = check(life.stimuli, shorten)
    assert actual.ok, actual.difference
    assert actual.decisions > 200 and actual.commits == len(life.commits)


def planted(life: Life, kind: type, plant: Plant, nth: int = 5) -> tuple[Stimuli, int]:
    """A session of which one decision was replaced; what comes after moves as it would have in the log."""
    seen, moved, where = 0, 0, 0
    commits = []
    for commit in life.commits:
        mutations: list[At] = []
        for position, mutation in commit.mutations:
            other_mutations = [mutation]
            if isinstance(mutation, kind) and (is_decision(mutation) or kind is m.Pack):
                seen += 1
                if seen == nth:
                    other_mutations, where = plant(mutation), position
            for each in other_mutations:
                mutations.append((mutations[-1][0] + 1 if mutations else position + moved, each))
            moved += len(other_mutations) - 1
        commits.append(RecordedCommit(commit.at, mutations, commit.cell))
        if where:
            break  # the rest names positions that have moved
    assert where, f"the session has no {kind.__name__} number {nth}"
    return stimuli("s", commits), where


def named(actual: ReplayCheck, where: int) -> tuple[str, str]:
    """What a check says of its first difference, which is at a position."""
    assert actual.difference is not None and not actual.ok
    assert actual.difference.position == where, actual.difference
    assert str(actual.difference).startswith(f"session 's', position {where} (turn ")
    return actual.difference.expected, actual.difference.found


def other(**fields: object) -> Plant:
    """A decision with other fields."""
    return lambda value: [msgspec.structs.replace(value, **fields)]  # type: ignore[type-var]


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
    ids=lambda rule: rule.__name__ if isinstance(rule, type) else next(iter(rule)),
)
def test_a_changed_decision_is_named(kind: type, fields: dict[str, object]) -> None:
    """Any field of any decision that is another is a difference, told with both."""
    other_stimuli, where = planted(lived(7, 250), kind, other(**fields), 2 if kind is m.FaultDenied else 5)
    expected, text = named(check(other_stimuli, shorten), where)
    word = {m.FaultIn: "fault_in", m.FaultDenied: "fault_denied"}.get(kind, kind.__name__.lower())
    assert expected != text
    assert expected.startswith(word) and text.startswith(word)


def test_another_reason_is_a_difference() -> None:
    """A contest told otherwise, with the decision as it was, is named: losers, cut-off, candidates."""
    for change in ({"candidates": 999}, {"losers": ((1, 1),)}, {"cutoff": 7}, {"policy": 40}):

        def plant(mutation: m.AnyMutation, change: dict[str, object] = change) -> list[m.AnyMutation]:
            assert isinstance(mutation, m.Evict) and mutation.why is not None
            return [msgspec.structs.replace(mutation, why=mutation.why._replace(**change))]

        life = lived(7, 250)
        firsts = [
            mutation for commit in life.commits for _, mutation in commit.mutations if isinstance(mutation, m.Evict)
        ]
        nth = next(
            at for at, first in enumerate([e for e in firsts if is_decision(e)], 1) if first.why is not None and at > 3
        )
        other_stimuli, where = planted(life, m.Evict, plant, nth)
        expected, text = named(check(other_stimuli, shorten), where)
        assert expected.startswith("evict") and text.startswith("evict")


def test_a_missing_decision_is_named() -> None:
    """A decision that was taken out is found now, where nothing or another was recorded."""
    for kind in (m.Evict, m.FaultIn, m.Prefetch):
        other_stimuli, where = planted(lived(7, 250), kind, lambda value: [])
        difference = check(other_stimuli, shorten).difference
        assert difference is not None and difference.position <= where + 1
        assert difference.expected != difference.found


def test_an_extra_decision_is_named() -> None:
    """A decision that nobody took stands where another, or nothing, is found."""
    other_stimuli, where = planted(lived(7, 250), m.Pressure, lambda value: [value, m.Evict(10, 0, 5)])
    expected, text = named(check(other_stimuli, shorten), where + 1)
    assert expected.startswith("evict (page 10") and not text.startswith("evict (page 10")


def test_a_root_is_not_compared() -> None:
    """A pack's root is a hash of contents, which no decision depends on."""
    other_stimuli, _ = planted(lived(7, 250), m.Pack, other(root=b"another" * 4))
    assert check(other_stimuli, shorten).ok


def test_a_kernel_that_decides_otherwise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check compares what this kernel decides: with another order of victims it names a difference."""
    from vmstore.vm.policies.lru import LRU1

    stimuli_told = lived(3, 250).stimuli
    assert check(stimuli_told, shorten).ok
    monkeypatch.setattr(LRU1, "place", lambda self, value, now: (0, -value.used))
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
    assert [session.debug.check().difference for session in life.live] == [None] * len(life.live)
    life.close()
