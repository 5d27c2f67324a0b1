"""Whether work grows with what is worked on: ratios of counted steps, which no busy machine can turn.

What is counted is every line of Python and every call of a function in C. What one such call does
inside (a pattern that backtracks, a copy of a long text) is no step: the nightly lane, which has its
machine to itself, therefore holds the same ratios of CPU time too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time_ns
from types import FrameType
from typing import Any

from tests.lanes import tries

TRIES = 6
FLOOR_STEPS = 100  # what is done once, however small the work
FLOOR_NS = 100_000  # below a tenth of a millisecond a clock tells little


def steps(work: Callable[[], object], db: Any = None) -> int:
    """The lines of Python that a piece of work runs, the functions in C that it calls, and a database's steps."""
    count = 0

    def traced(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return traced

    def called(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "c_call"

    def ticked() -> bool:
        nonlocal count
        count += 1
        return False

    before = sys.gettrace(), sys.getprofile()
    if db is not None:
        db.set_progress_handler(ticked, 1)
    sys.settrace(traced)
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(before[1])
        sys.settrace(before[0])
        if db is not None:
            db.set_progress_handler(None)
    return count


def cpu_ns(work: Callable[[], object]) -> int:
    """The nanoseconds of CPU that a piece of work takes."""
    start = process_time_ns()
    work()
    return process_time_ns() - start


def grows_at_most(small: Callable[[], object], large: Callable[[], object], times: float) -> bool:
    """Whether the large work takes less than so many times the steps of the small one; by night its time as well."""
    # Done once before it is counted: what is made at its first use would weigh on the small one alone.
    small()
    if steps(large) >= times * max(steps(small), FLOOR_STEPS):
        return False
    by_day = tries(1) == 1
    return by_day or lasts_at_most(small, large, times)


def lasts_at_most(small: Callable[[], object], large: Callable[[], object], times: float) -> bool:
    """Whether the large work costs less CPU than so many times the small one.

    A neighbour on the machine makes a piece of work dearer, never cheaper, and comes and goes: so both are
    taken again, in turns, and the least of each is compared. What truly grows faster fails every time.
    """
    costs: list[tuple[int, int]] = []
    while len(costs) < TRIES:
        costs.append((cpu_ns(small), cpu_ns(large)))
        least_small, least_large = (min(of) for of in zip(*costs, strict=True))
        if least_large < times * max(least_small, FLOOR_NS):
            return True
    return False
