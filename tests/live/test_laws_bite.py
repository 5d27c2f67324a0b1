"""Each law of a live session is seen to break where the runtime is broken on purpose."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import msgspec
import pytest

from tests.live.test_laws import BUSY
from vmstore.core.mutation import Evict
from vmstore.live import messages
from vmstore.live.content_cache import ContentCache
from vmstore.live.runtime import Act
from vmstore.live.transcript import Transcript
from vmstore.testing import live_laws as laws
from vmstore.testing.simulate_live import LiveRun, played
from vmstore.vm.kernel.decide import DecisionRun
from vmstore.vm.kernel.eviction import EvictionPlan
from vmstore.vm.kernel.state import State

Plant = Callable[[pytest.MonkeyPatch], None]


def no_pressure(patch: pytest.MonkeyPatch) -> None:
    """Nobody makes room."""
    patch.setattr(DecisionRun, "settle", lambda self, cause: None)


def pins_that_yield(patch: pytest.MonkeyPatch) -> None:
    """What gives way is chosen without a look at pins."""
    patch.setattr(EvictionPlan, "_may", lambda self, page, winner: page in self.state.here and self.level(
        self.state.here[page]) < 4 and page not in self.kept)  # fmt: skip


def cut_contents(patch: pytest.MonkeyPatch) -> None:
    """What is read again has lost its end."""
    whole = ContentCache.all
    patch.setattr(ContentCache, "all", lambda self, at: {name: data[:-1] for name, data in whole(self, at).items()})


def unheard_pins(patch: pytest.MonkeyPatch) -> None:
    """What acts keeps something that the log does not tell."""
    whole = Act.tell

    def tell(self: Act, mutation: Any) -> int:
        self.state.references += 1
        return whole(self, mutation)

    patch.setattr(Act, "tell", tell)


def unheard_words(patch: pytest.MonkeyPatch) -> None:
    """Words are heard when they are said, and not when they are read."""
    whole, ticks = Transcript._create, count()

    def create(self: Transcript, position: int, made: Any) -> None:
        whole(self, position, made)
        self.answered += next(ticks)

    patch.setattr(Transcript, "_create", create)


def counted_calls(patch: pytest.MonkeyPatch) -> None:
    """What is told depends on how long the process lives."""
    ticks, whole = count(), messages.user
    patch.setattr(messages, "user", lambda act, content: whole(act, f"{content} {next(ticks)}"))


def no_reason(patch: pytest.MonkeyPatch) -> None:
    """Nobody says why."""
    whole = EvictionPlan._write

    def write(self: EvictionPlan, *arguments: Any) -> None:
        whole(self, *arguments)
        self.decided[:] = [
            msgspec.structs.replace(item, why=None) if isinstance(item, Evict) else item for item in self.decided
        ]

    patch.setattr(EvictionPlan, "_write", write)


def false_reason(patch: pytest.MonkeyPatch) -> None:
    """A contest tells another number than there was."""
    whole = EvictionPlan._write

    def write(self: EvictionPlan, *arguments: Any) -> None:
        self.used += 1
        whole(self, *arguments)
        self.used -= 1

    patch.setattr(EvictionPlan, "_write", write)


def unpacked(patch: pytest.MonkeyPatch) -> None:
    """A pack forgets the last page that came."""
    whole = State.residences

    def residences(self: State) -> tuple[list[Any], list[int]]:
        entered, left = whole(self)
        return entered[:-1], left

    patch.setattr(State, "residences", residences)


@pytest.mark.parametrize(
    ("law", "plant"),
    [
        (laws.within_budget, no_pressure),
        (laws.pins_hold, pins_that_yield),
        (laws.full_stays_full, cut_contents),
        (laws.live_is_replayed, unheard_pins),
        (laws.live_is_replayed, unheard_words),
        (laws.reasons_are_given, no_reason),
        (laws.reasons_are_given, false_reason),
        (laws.contexts_verify, unpacked),
    ],
    ids=lambda rule: rule.__name__,
)
def test_a_broken_runtime_is_caught(
    law: Callable[[LiveRun], None], plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the fault planted the law raises."""
    plant(monkeypatch)
    life = played(BUSY, calm=True)
    with pytest.raises(AssertionError):
        law(life)


def test_a_process_that_remembers_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where what is told hangs on the process, telling it again differs."""
    counted_calls(monkeypatch)
    with pytest.raises(AssertionError):
        laws.repeated_run(BUSY)
