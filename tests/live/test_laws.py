"""The laws of a live session over lives that hypothesis makes up, each law by itself.

`tests/live/test_laws_bite.py` sees each of them break under a planted fault.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, given, settings

from vmstore.store.live.live_session import Live
from vmstore.testing import live_laws as laws
from vmstore.testing.simulate_live import ACTS, SETTINGS, STEPS, LiveRun, Step, clocked, played

# Every act, in an order that leaves each something to do.
BUSY: list[Step] = [
    (act, 7 * n + at, (n + at) % 8)
    for n in range(4)
    for at, act in enumerate(
        ("user", "pack", "call", "call", "pack", "model", "user", "pack", "model", *sorted({*ACTS}))
    )
]
# A page that is read where words are looked for is pinned after that, and then again.
PINNED: list[Step] = [
    ("model", 5, 5), ("user", 6, 6), ("record", 33, 1), ("segment", 38, 6), ("think", 40, 0), ("user", 43, 3),
    ("user", 7, 1), ("call", 9, 3), ("call", 10, 4), ("model", 12, 6), ("user", 13, 7), ("pin", 37, 7), ("user", 14, 2),
]  # fmt: skip
TRIED = settings(max_examples=max(1, settings.default.max_examples // 2))
NO_LONG_SEARCH = settings(TRIED, phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink])


def hold(law: Callable[[LiveRun], None], steps: list[Step]) -> None:
    """Plays a life in memory, where a restart forgets all but the log, and looks at it."""
    life = played(steps)
    law(life)
    life.close()


@NO_LONG_SEARCH
@given(STEPS)
def test_the_prompt_stays_in_its_budget(steps: list[Step]) -> None:
    """At every commit's end and at every pack the prompt is within the budget in force then (law 6)."""
    hold(laws.within_budget, steps)


@NO_LONG_SEARCH
@given(STEPS)
def test_a_pinned_page_stays(steps: list[Step]) -> None:
    """No page gives way while a person, or what it is, pins it (law 6)."""
    hold(laws.pins_hold, steps)


@NO_LONG_SEARCH
@given(STEPS)
def test_full_stays_full(steps: list[Step]) -> None:
    """Every byte handed in comes back after any history, and through a fault at level 0 where it fits (law 5)."""
    hold(laws.full_stays_full, steps)


@NO_LONG_SEARCH
@given(STEPS)
def test_live_equals_replayed(steps: list[Step]) -> None:
    """State and words folded from the log equal the live ones field by field, on forks and after restarts (law 1)."""
    hold(laws.live_is_replayed, steps)


@NO_LONG_SEARCH
@given(STEPS)
def test_no_decision_without_its_reason(steps: list[Step]) -> None:
    """Each decision carries its contest or points at it, and its numbers are those of the state before it (law 4)."""
    hold(laws.reasons_are_given, steps)


@NO_LONG_SEARCH
@given(STEPS)
def test_what_was_packed_is_what_is_read(steps: list[Step]) -> None:
    """The log verifies, and each pack's context is the prompt as the kernel had it, in its order."""
    hold(laws.contexts_verify, steps)


@NO_LONG_SEARCH
@given(STEPS)
def test_the_same_acts_write_the_same(steps: list[Step]) -> None:
    """A process that dies after every commit writes the bodies that one which lives on writes (law 4)."""
    with TemporaryDirectory() as folder:
        laws.repeated_run(steps, Path(folder) / "agent.vms")


@pytest.mark.parametrize(
    "law",
    [
        laws.within_budget,
        laws.pins_hold,
        laws.live_is_replayed,
        laws.reasons_are_given,
        laws.contexts_verify,
        laws.full_stays_full,
    ],
    ids=lambda law: law.__name__,
)
def test_a_busy_life_keeps_every_law(law: Callable[[LiveRun], None], tmp_path: Path) -> None:
    """A life with every act there is keeps the law."""
    life = played(BUSY, tmp_path / "agent.vms")
    assert life.failed and life.restarts and len(life.live) > 3 and len(life.packs) > 10
    law(life)
    life.close()


@pytest.mark.parametrize("steps", [BUSY, PINNED], ids=["every act", "pinned once it was read"])
def test_a_life_is_told_again(steps: list[Step], tmp_path: Path) -> None:
    """A life writes the same whether its process lives on, or dies after every act and reads log or snapshot."""
    laws.repeated_run(steps, tmp_path / "agent.vms")


def test_two_processes_take_turns(tmp_path: Path) -> None:
    """Two handles on one session each decide on what the other wrote, and both see what a refold sees."""
    life = LiveRun(tmp_path / "agent.vms")
    with clocked(life.path, 77) as other:
        there = other.session("s")
        assert isinstance(there, Live)
        for n in range(12):
            life.play(("user", n, n % 8))
            there.pack()
            there.assistant(f"Answer {n}. " * 30)
            life.play(("call", n, 4))
            there.page_fault(life.page(3 * n), 0, by_model=True)
            life.play(("pack", 0, 0))
        assert laws.plain(life.runtime.state) == laws.plain(there.look(lambda runtime: runtime.state))
        laws.live_is_replayed(life)
        laws.within_budget(life)
    life.close()


@pytest.mark.parametrize("when", ["it read", "it decided"])
def test_who_was_overtaken_decides_again(tmp_path: Path, when: str) -> None:
    """An act that another process' write overtakes is decided again on what that wrote, and nothing is lost."""
    life = LiveRun(tmp_path / "agent.vms")
    life.session.user("One.")
    with clocked(life.path, 78) as other:
        there = other.session("s")
        assert isinstance(there, Live)
        there.user("Two.")
        runtime, overtaken = life.session.runtime(), []
        owner, name = (runtime, "current") if when == "it read" else (runtime.shorter, "begin")
        was = getattr(owner, name)

        def overtake() -> object:
            actual_was = was()
            if not overtaken:
                overtaken.append(there.user("Three."))
            return actual_was

        setattr(owner, name, overtake)
        life.session.user("Four.")
    contents = [life.session.content(page.page) for page in life.session.pages(role="user")]
    assert overtaken and contents == [b"One.", b"Two.", b"Three.", b"Four."]
    laws.live_is_replayed(life)
    life.close()


SEEDED = """
import hashlib
from vmstore.testing.live_laws import bodies
from vmstore.testing.simulate_live import played
from tests.live.test_laws import BUSY
print(hashlib.sha256(b"".join(body for _, body in bodies(played(BUSY, calm=True)))).hexdigest())
"""


def test_no_hash_seed_decides() -> None:
    """The same acts write the same bodies whatever PYTHONHASHSEED is."""
    stdouts = set()
    for seed in ("0", "1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", SEEDED], env=environment, capture_output=True, text=True, check=True
        )
        stdouts.add(done.stdout)
    assert len(stdouts) == 1 and len(stdouts.pop()) > 60


def test_a_second_handle_goes_on(tmp_path: Path) -> None:
    """A session that is live is found as one by its name alone, with its settings, in another process."""
    life = LiveRun(tmp_path / "agent.vms")
    life.session.user("Hello.")
    with clocked(life.path, 79) as other:
        there = other.session("s")
        assert isinstance(there, Live) and there.settings == life.session.settings
        assert there.settings.policy.partition("@")[0] == SETTINGS["policy"]
        there.assistant("Good morning.")
    assert [page.role for page in life.session.pages()][-1] == "assistant"
    life.close()
