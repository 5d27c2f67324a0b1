"""The lanes of the tests: which are slow, which wait for the night, and how hard hypothesis tries in each.

A test is slow when `tests/slow.txt` says so. `python tools/check.py --time` writes that table from
the CPU seconds of one whole run, processes that a test starts included, so nobody marks tests by hand.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from hypothesis import HealthCheck, settings

TABLE = Path(__file__).with_name("slow.txt")
SLOW_S = 0.2
STAYS_S = 0.14  # a test of the table stays in it down to this, so that the table does not flicker
EXAMPLES = {"dev": 10, "ci": 40, "nightly": 2000}
LANES = {"fast": "dev", "ci": "ci", "nightly": "nightly"}  # and the profile that each runs with
HEADER = (
    "# CPU seconds of each test over a fifth of a second. Written by `python tools/check.py --time`; do not edit.\n"
)
COST = "cpu_s"


def register_profiles() -> None:
    """Registers the profiles dev, ci and nightly; ci is loaded until a lane chooses."""
    # Shared machines stall, so no example has a deadline and slow drawing is no fault.
    patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
    # dev and ci draw the same examples every time: a lane that was green stays green until the code changes.
    for name in ("dev", "ci"):
        settings.register_profile(name, patient, max_examples=EXAMPLES[name], derandomize=True, database=None)
    settings.register_profile("nightly", patient, max_examples=EXAMPLES["nightly"])
    settings.load_profile("ci")


def tries(count: int) -> int:
    """How many examples the profile in force draws where ci draws `count`."""
    return max(1, count * settings.default.max_examples // EXAMPLES["ci"])  # type: ignore[union-attr]


def crossed(rows: Iterable[Any], columns: Iterable[Any], every: int = 3) -> list[ParameterSet]:
    """The pairs of two lists, for `parametrize`: each of either list is in some pair by day, all pairs wait for night.

    One pair of `every` is taken by day, along the diagonals.
    """
    columns = list(columns)
    pairs = ((at + of, row, column) for at, row in enumerate(rows) for of, column in enumerate(columns))
    return [pytest.param(row, column, marks=pytest.mark.nightly if at % every else ()) for at, row, column in pairs]


def first_by_day(values: Iterable[Any]) -> list[ParameterSet]:
    """Values for `parametrize` of which the first is tried by day, and the others wait for the night."""
    return [pytest.param(value, marks=pytest.mark.nightly if at else ()) for at, value in enumerate(values)]


def spread(length: int, count: int = 250) -> list[int]:
    """Places of something so long: all of them by night, by day so many from the first to the last, evenly."""
    if length <= count or tries(1) > 1:
        return list(range(length))
    return [at * (length - 1) // (count - 1) for at in range(count)]


def table(text: str) -> dict[str, float]:
    """The CPU seconds of each slow test, by its node id."""
    rows = (line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(seconds) for seconds, name in rows}


def table_text(costs: Mapping[str, float], before: Mapping[str, float]) -> str:
    """The table after a run that cost this: of files that were not run, what stood in it before stays."""
    files = {name.partition("::")[0] for name in costs}
    kept = {name: cost for name, cost in before.items() if name.partition("::")[0] not in files}
    slow = {name: cost for name, cost in costs.items() if cost >= (STAYS_S if name in before else SLOW_S)}
    return HEADER + "".join(f"{cost:7.2f} {name}\n" for name, cost in sorted((kept | slow).items()))


def heaviest_first(items: Iterable[pytest.Item], costs: Mapping[str, float]) -> list[pytest.Item]:
    """The tests with the dearest files first: the last file that a worker gets is a cheap one."""
    files: dict[str, float] = defaultdict(float)
    for name, cost in costs.items():
        files[name.partition("::")[0]] -= cost
    return sorted(items, key=lambda item: files.get(item.nodeid.partition("::")[0], 0.0))


class Lane:
    """Marks the slow tests, and leaves out what the chosen lane does not run."""

    def __init__(self, name: str, costs: Mapping[str, float]) -> None:
        self._name, self._costs = name, costs

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Marks, sorts and deselects; a test that the command line names is always run."""
        named = [argument for argument in config.args if "::" in argument]
        kept, left = [], []
        for item in items:
            if item.nodeid in self._costs:
                item.add_marker("slow")
            asked = any(item.nodeid.startswith(name.removeprefix("./")) for name in named)
            (kept if asked or self._runs(item) else left).append(item)
        if left:
            config.hook.pytest_deselected(items=left)
        items[:] = heaviest_first(kept, self._costs)

    def _runs(self, item: pytest.Item) -> bool:
        nightly = item.get_closest_marker("nightly") is not None
        slow = item.get_closest_marker("slow") is not None
        return self._name == "nightly" or (not nightly and not (slow and self._name == "fast"))


class Meter:
    """Measures the CPU seconds of each test, with those of the wider fixtures it stands on.

    A fixture of a module or session is made once, in whichever test comes first. It is counted with
    every test that asks for it: leaving out only the first would move the cost to the second.
    """

    def __init__(self) -> None:
        self._fixtures: dict[tuple[str, str], float] = {}
        self._shared = 0.0  # what the test that runs spent on wider fixtures
        self._nested = 0.0
        self._spent = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """Measures a fixture that is wider than a test, without the fixtures that it asks for itself."""
        if fixturedef.scope == "function":
            return (yield)
        outer, self._nested, start = self._nested, 0.0, cpu_s()
        try:
            return (yield)
        finally:
            whole = cpu_s() - start
            self._fixtures[fixturedef.argname, fixturedef.baseid] = own = whole - self._nested
            self._nested, self._shared = outer + whole, self._shared + own

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Iterator[None]:
        """Begins a test's account."""
        self._spent = self._shared = self._nested = 0.0
        return (yield from self._counted())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Adds the test itself, and hands its account to the report."""
        try:
            return (yield from self._counted())
        finally:
            names = set(getattr(item, "fixturenames", ()))
            wider = sum(
                cost for (name, base), cost in self._fixtures.items() if name in names and item.nodeid.startswith(base)
            )
            item.user_properties.append((COST, self._spent - self._shared + wider))

    def _counted(self) -> Iterator[None]:
        start = cpu_s()
        try:
            return (yield)
        finally:
            self._spent += cpu_s() - start


class Record:
    """Collects what the meters of all workers report, and writes the table."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.costs: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes the account of a test that has ended."""
        if report.when == "teardown":
            for name, cost in report.user_properties:
                if name == COST:
                    self.costs[report.nodeid] = cost

    def pytest_sessionfinish(self) -> None:
        """Writes the table."""
        before = table(self._path.read_text()) if self._path.exists() else {}
        self._path.write_text(table_text(self.costs, before))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Says what all tests together cost."""
        slow = [cost for cost in self.costs.values() if cost >= SLOW_S]
        terminalreporter.write_line(
            f"{len(self.costs)} tests took {sum(self.costs.values()):.0f} s of CPU,"
            f" {len(slow)} of them over {SLOW_S} s: {sum(slow):.0f} s"
        )


def cpu_s() -> float:
    """The CPU seconds of this process and of the processes that it started and awaited."""
    return sum(os.times()[:4])
