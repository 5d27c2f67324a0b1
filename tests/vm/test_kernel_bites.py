"""Each law of the kernel is seen to break where the kernel is broken on purpose."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from tests.vm.played import Played
from tests.vm.test_kernel import CROWDED, fields, played, reasons_hold, refolded, same_as_counted, within_budget
from vmstore.vm.kernel import eviction
from vmstore.vm.kernel.decide import DecisionRun, decide
from vmstore.vm.kernel.eviction import Contest, EvictionPlan
from vmstore.vm.kernel.state import State

Plant = Callable[[pytest.MonkeyPatch], None]


def crowded(law: Callable[[Played], Any]) -> None:
    """Holds a law at the end of a crowded session."""
    *_, session = played(CROWDED)
    law(session)


def lives_on(session: Played) -> None:
    """A state folded again is the one that lived."""
    assert fields(refolded(session)) == fields(session.state)


def only_looks(session: Played) -> None:
    """Deciding changes nothing."""
    before = fields(session.state)
    decide(session.state, [])
    assert fields(session.state) == before


def forgotten_tokens(patch: pytest.MonkeyPatch) -> None:
    """What leaves is still counted."""
    whole = State._leave

    def leave(self: State, value: Any, *, evicted: bool) -> None:
        whole(self, value, evicted=evicted)
        self.used += value.tokens

    patch.setattr(State, "_leave", leave)


def pins_that_yield(patch: pytest.MonkeyPatch) -> None:
    """Pins are counted and not looked at."""
    patch.setattr(EvictionPlan, "_may", lambda self, page, winner: page in self.state.here and self.level(
        self.state.here[page]) < 4 and page not in self.kept)  # fmt: skip


def no_pressure(patch: pytest.MonkeyPatch) -> None:
    """Nobody makes room."""
    patch.setattr(DecisionRun, "settle", lambda self, cause: None)


def no_losers(patch: pytest.MonkeyPatch) -> None:
    """The nearest that stayed are not told."""
    patch.setattr(eviction, "LOSERS", 0)


def more_candidates(patch: pytest.MonkeyPatch) -> None:
    """One candidate too many."""
    whole = EvictionPlan._free

    def free(self: EvictionPlan, winner: int) -> Contest:
        value = whole(self, winner)
        return value._replace(candidates=value.candidates + 1)

    patch.setattr(EvictionPlan, "_free", free)


def out_of_order(patch: pytest.MonkeyPatch) -> None:
    """The policy's last goes first."""
    whole = EvictionPlan._free

    def free(self: EvictionPlan, winner: int) -> Contest:
        value = whole(self, winner)
        return value._replace(order=iter(list(value.order)[::-1]))

    patch.setattr(EvictionPlan, "_free", free)


def too_many(patch: pytest.MonkeyPatch) -> None:
    """More goes than is needed."""
    whole = EvictionPlan._take

    def take(self: EvictionPlan, need: int, *rest: Any) -> None:
        whole(self, need + 1_000, *rest)

    patch.setattr(EvictionPlan, "_take", take)


def no_reason(patch: pytest.MonkeyPatch) -> None:
    """Nobody says why."""
    whole = EvictionPlan._write

    def write(self: EvictionPlan, *arguments: Any) -> None:
        whole(self, *arguments)
        self.decided[:] = [
            type(item)(**{**{name: getattr(item, name) for name in item.__struct_fields__}, "why": None})
            if hasattr(item, "why") else item for item in self.decided
        ]  # fmt: skip

    patch.setattr(EvictionPlan, "_write", write)


def hidden_clock(patch: pytest.MonkeyPatch) -> None:
    """A state keeps what is in no mutation."""
    ticks, whole = count(), State.apply

    def apply(self: State, position: int, value: Any) -> None:
        whole(self, position, value)
        self.vacated = next(ticks)

    patch.setattr(State, "apply", apply)


def meddling(patch: pytest.MonkeyPatch) -> None:
    """Asking which pages may go lets time pass."""
    patch.setattr(
        EvictionPlan, "make", lambda self, *arguments, **more: setattr(self.state, "rank", self.state.rank + 1) is None
    )


@pytest.mark.parametrize(
    ("law", "plant"),
    [
        (same_as_counted, forgotten_tokens),
        (within_budget, pins_that_yield),
        (within_budget, no_pressure),
        (reasons_hold, no_losers),
        (reasons_hold, more_candidates),
        (reasons_hold, out_of_order),
        (reasons_hold, too_many),
        (reasons_hold, no_reason),
        (lives_on, hidden_clock),
        (only_looks, meddling),
    ],
    ids=lambda rule: rule.__name__,
)
def test_a_broken_kernel_is_caught(law: Callable[[Played], Any], plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the fault planted the law raises."""
    plant(monkeypatch)
    with pytest.raises((AssertionError, StopIteration)):
        crowded(law)
