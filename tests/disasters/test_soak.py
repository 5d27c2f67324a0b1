"""The soak can fail: what grows, what slows down and a WAL that never begins again are each named, and no noise is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import campaign
import pytest
from campaigns import soak
from campaigns.gauges import MIB, Sample, broken, quantile, step
from campaigns.load import KINDS

from tests import lanes

HOURS = [60.0 * n for n in range(1, 121)]


@pytest.mark.parametrize("plant", lanes.first_by_day(campaign.PLANTS["soak"]))
def test_a_planted_fault_is_seen(plant: str) -> None:
    """A process that keeps what it wrote, a reader that never ends and a call that takes longer each fail a soak."""
    with TemporaryDirectory(dir=campaign.MEMORY if campaign.MEMORY.is_dir() else None) as place:
        with pytest.raises(soak.Bounds) as raised:
            soak.batch(1, Path(place), lanes.tries(3), plant)
    assert plant in {kind for kind, _ in raised.value.all}


def run(
    memory: Callable[[int], float] = lambda n: 50.0,
    times: Callable[[int], int] = lambda n: 10_000,
    probe: Callable[[int], int] = lambda n: 2_000,
    wal: Callable[[int], float] = lambda n: 1.2,
) -> list[Sample]:
    """Two hours, in which each minute of number n was as told: MiB of a process and of the WAL, microseconds."""
    made = []
    for n, seconds in enumerate(HOURS):
        wall = {kind: Counter[int]() for kind in KINDS}
        wall["call"] = Counter({step(times(n)): 90, step(times(n) * 3): 10})
        wall["probe"] = Counter({step(probe(n)): 100})
        cpu = {kind: Counter[int]() for kind in KINDS}
        sizes = {"log wal": round(wal(n) * MIB)}
        made.append(Sample(seconds, sizes, {"writer": round(memory(n) * MIB)}, wall, cpu))
    return made


def kinds(samples: list[Sample]) -> list[str]:
    """The bounds that are broken."""
    return [kind for kind, _ in broken(samples)]


def test_what_is_flat_breaks_no_bound() -> None:
    """Steady memory, times and WAL are within all bounds, and so is memory that only filled its caches at first."""
    assert kinds(run()) == []
    assert kinds(run(memory=lambda n: 50.0 + min(n, 30) * 4)) == []


def test_memory_that_grows_is_named() -> None:
    """A process that grows by half a MiB a minute is a leak; one that was large for some minutes is not."""
    assert kinds(run(memory=lambda n: 50.0 + n / 2)) == ["leak"]
    assert kinds(run(memory=lambda n: 500.0 if n % 7 == 3 else 50.0)) == []


def test_what_slows_down_is_named() -> None:
    """Twice the p99 is too slow, unless the probe beside it took twice as long too."""
    assert kinds(run(times=lambda n: 10_000 + n * 100)) == ["slow"]
    assert kinds(run(times=lambda n: 10_000 + n * 100, probe=lambda n: 2_000 + n * 20)) == []


def test_a_wal_beyond_its_bound_is_named() -> None:
    """One look at a WAL that is too long is enough."""
    assert kinds(run(wal=lambda n: 40.0 if n == 60 else 1.2)) == ["wal"]


def test_a_quantile_is_of_all_times() -> None:
    """A quantile counts every time once, to a percent."""
    times = Counter({step(n * 100): 1 for n in range(1, 101)})
    assert quantile(times, 0.5) == pytest.approx(5_000, rel=0.02)
    assert quantile(times, 0.99) == pytest.approx(9_900, rel=0.02)
    assert quantile(Counter(), 0.5) == 0.0
