"""What would have been is what a simulator of its own says, and where it went another way is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.refusals import refused
from tests.replay import simulator
from tests.replay.told import lived, shorten
from vmstore.errors import InputError
from vmstore.replay.whatif import Run, as_recorded, what_if

ROOT = Path(__file__).resolve().parents[2]
BUDGETS = (400, 700, 1_500)


def told_of(run: Run) -> dict[str, Any]:
    """The numbers of a run that the simulator tells too."""
    fields = msgspec.structs.asdict(run.measures)
    fields["thrash_index"] = round(fields["thrash_index"], 4)
    return fields


@pytest.mark.parametrize("seed", range(12))
def test_a_what_if_is_what_a_simulator_says(seed: int) -> None:
    """Under every budget the faults, evictions, denials, peak, thrash and voided prefix are the simulator's."""
    trace = simulator.trace(seed, 150)
    stimuli = simulator.lived(trace, 700).stimuli
    for budget in BUDGETS:
        right = simulator.simulate(trace, budget)
        fields = told_of(what_if(stimuli, shorten, {"l0_tokens_max": budget}))
        assert {name: fields[name] for name in right} == right
        assert right["evictions"] and right["served"] and right["denied"]


def test_another_order_of_leaving_is_seen() -> None:
    """The simulator holds LRU alone: under the policy that weighs demand its numbers are others."""
    trace = simulator.trace(1, 150)
    stimuli = simulator.lived(trace, 700).stimuli
    right = simulator.simulate(trace, 400)
    fields = told_of(what_if(stimuli, shorten, {"l0_tokens_max": 400, "policy": "lfu"}))
    assert {name: fields[name] for name in right} != right


def test_the_same_settings_change_nothing() -> None:
    """A session decided again as it was has the recorded numbers, no other decision, and no form of its own."""
    for seed in range(6):
        stimuli = lived(seed).stimuli
        recorded, again = as_recorded(stimuli, shorten), what_if(stimuli, shorten, {})
        written = msgspec.structs.replace(recorded.measures, overhead=None, targets={})  # a what-if writes nothing
        assert again.measures.overhead is None and recorded.measures.overhead is not None
        assert msgspec.structs.replace(again.measures, targets={}) == written
        assert again.divergence is None and again.fallbacks == again.refused == 0


def test_the_first_other_decision_is_told_with_its_reason() -> None:
    """Where a what-if goes another way it says at which turn, what was decided, what is now, and why each was."""
    trace = simulator.trace(3, 150)
    stimuli = simulator.lived(trace, 700).stimuli
    divergence = what_if(stimuli, shorten, {"policy": "lfu"}).divergence
    assert divergence is not None and divergence.recorded != divergence.found
    assert divergence.recorded is not None and divergence.recorded.startswith("evict p")
    assert "recorded: used" in divergence.reason and "now: used" in divergence.reason and " of 700" in divergence.reason
    before = [each_round for each_round in stimuli.rounds if each_round.last < divergence.position]
    cut = msgspec.structs.replace(stimuli, rounds=before)
    assert what_if(cut, shorten, {"policy": "lfu"}).divergence is None, "nothing was other before"


def test_forms_nobody_recorded_are_counted() -> None:
    """A smaller budget needs forms the session never made: they are made and counted, the others taken over."""
    stimuli = lived(5, 200, budget=12_000).stimuli
    asked: list[int] = []

    def counted(value: Any, page: int, content: int, level: int) -> Any:
        asked.append(page)
        return shorten(value, page, content, level)

    run = what_if(stimuli, counted, {"l0_tokens_max": 5_000})
    assert run.fallbacks == len(asked) > 0
    assert run.measures.forms > run.fallbacks, "recorded ones were used too"


def test_a_budget_under_what_is_pinned_is_refused() -> None:
    """A budget that cannot hold what never yields is refused, by name and with the remedy."""
    stimuli = lived(2, 50).stimuli
    with refused("pins-over-budget", InputError, "450"):
        what_if(stimuli, shorten, {"l0_tokens_max": 450, "reserve_faults_tokens": 0})
    with refused("no-setting", InputError, "'colour'"):
        what_if(stimuli, shorten, {"colour": "red"})
    with refused("no-policy", InputError, "'lur'"):
        what_if(stimuli, shorten, {"policy": "lur"})


SEEDED = """
import msgspec
from tests.replay.told import lived, shorten
from vmstore.replay.whatif import what_if
stimuli = lived(4, 150).stimuli
for changed in ({"l0_tokens_max": 5000}, {"policy": "s3fifo"}, {"policy": "default", "l0_tokens_max": 9000}):
    print(msgspec.json.encode(what_if(stimuli, shorten, changed)).decode())
"""


def test_no_run_depends_on_how_hashes_fall() -> None:
    """The same what-ifs give the same bytes in processes with different hash seeds."""
    answers = set()
    for seed in ("0", "1", "77"):
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
        answers.add(subprocess.run([sys.executable, "-c", SEEDED], env=env, capture_output=True, check=True).stdout)
    assert len(answers) == 1 and b"demand@2" in answers.pop()
