"""Whether work grows with what is worked on: ratios of CPU time that a busy machine cannot turn."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time_ns

TRIES = 6
FLOOR_NS = 100_000  # below a tenth of a millisecond a clock tells little


def cpu_ns(work: Callable[[], object]) -> int:
    """The nanoseconds of CPU that a piece of work takes."""
    start = process_time_ns()
    work()
    return process_time_ns() - start


def grows_at_most(small: Callable[[], object], large: Callable[[], object], times: float) -> bool:
    """Whether the large work costs less than so many times the small one.

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
