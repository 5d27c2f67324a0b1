"""The yardstick is Belady's choice on the recorded references."""

from __future__ import annotations

import itertools

from tests.replay import simulator
from tests.replay.told import shorten
from vmstore.replay.whatif import optimum, what_if


def fewest(uses: list[int], room: int) -> int:
    """The fewest faults any order of leaving can have, every one of them tried; pages are of one size."""
    best = {frozenset[int](): 0}
    for page in uses:
        then: dict[frozenset[int], int] = {}
        for here, faults in best.items():
            cost = faults + (page not in here)
            whole = here | {page}
            for kept in itertools.combinations(sorted(whole - {page}), min(room - 1, len(whole) - 1)):
                after = frozenset((*kept, page))
                then[after] = min(then.get(after, 1 << 30), cost)
        best = then
    return min(best.values())


def test_the_optimum_is_the_fewest_faults_there_can_be() -> None:
    """On pages of one size it is what trying every order of leaving gives, that pages arrive not counted."""
    for seed in range(20):
        turns = [simulator.Turn([10] * len(turn.new), turn.uses) for turn in simulator.trace(seed, 18)]
        stimuli = simulator.lived(turns, 700).stimuli
        pages, uses = 0, []
        for turn in turns:
            uses += range(pages, pages + len(turn.new))
            pages += len(turn.new)
            uses += [page for page, _ in turn.uses if page >= 0]
        actual_optimum = optimum(stimuli, 40, (), 100)
        assert actual_optimum is not None
        assert actual_optimum.faults == fewest(uses, 4) - pages
        assert (
            actual_optimum.fault_tokens == actual_optimum.faults * 10
            and actual_optimum.above == 100 - actual_optimum.faults
        )


def test_no_policy_beats_it_on_whole_pages() -> None:
    """Under every budget LRU has at least as many faults that could be served as the optimum with the same room."""
    for seed in range(6):
        trace = simulator.trace(seed, 150)
        stimuli = simulator.lived(trace, 700).stimuli
        for budget in (400, 700, 1_500):
            run = what_if(stimuli, shorten, {"l0_tokens_max": budget})
            actual_optimum = optimum(stimuli, budget, (), run.measures.faults)
            assert actual_optimum is not None and 0 <= actual_optimum.faults <= run.measures.faults
            assert run.optimum is not None and run.optimum.above == run.measures.faults - run.optimum.faults


def test_pins_leave_no_room() -> None:
    """Where what is pinned takes all there is no yardstick."""
    stimuli = simulator.lived(simulator.trace(1, 20), 700).stimuli
    assert optimum(stimuli, 0, (), 3) is None
