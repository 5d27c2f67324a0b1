"""How a bench measures: goals and rows, contenders in rounds, clocks, notes on the side."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

HIGHER, LOWER = "higher", "lower"
ROUNDS_MIN = 2
SLOW_FLUSH_S = 1e-3  # a raw append and its flush take less where flushes are fast

Clock = Callable[[], float]
cpu: Clock = time.process_time
wall: Clock = time.perf_counter


class MissingError(Exception):
    """A peer is not installed; the message names it and the pip line."""


class Goal(NamedTuple):
    """One figure of a bench, and what must hold of it: a number, or words where the run decides."""

    name: str
    goal: float | str = ""
    better: str = HIGHER


class Row(NamedTuple):
    """A figure as it was measured: the median over rounds, the lowest and the highest of them."""

    name: str
    figure: float
    low: float
    high: float
    goal: float | str
    better: str
    ok: bool


class Act(NamedTuple):
    """What a contender does, and what must be done before and after it off the clock."""

    run: Callable[[], Any]
    before: Callable[[], Any] = lambda: None
    after: Callable[[], Any] = lambda: None


class Bench:
    """One run: where files go, how large things are, and which contender is slowed on purpose."""

    def __init__(
        self,
        folder: Path,
        memory: Path,
        stores: Path,
        *,
        quick: bool = False,
        held_out: bool = False,
        coding: Path | None = None,
        wordings: Path | None = None,
        topics: Path | None = None,
        embedder: str | None = None,
        burdens: Mapping[str, float] | None = None,
        say: Callable[[str], None] = print,
    ) -> None:
        self.folder = folder
        self.memory = memory
        self.stores = stores
        self.quick = quick
        self.held_out = held_out
        self.coding = coding
        self.wordings = wordings
        self.topics = topics
        self.embedder = embedder
        self.say = say
        self.regime = "off the clock"
        self._burdens = dict(burdens or {})

    def size(self, full: int, quick: int) -> int:
        """A size: the full one, or the smaller one of a quick run."""
        return quick if self.quick else full

    def time(self, name: str, act: Callable[[], Any], clock: Clock = cpu) -> float:
        """Seconds an act of a contender takes; a burden laid on it is part of that.

        An act that gives a float tells its own seconds: those of the process it ran in.
        """
        burden = self.burden(name)
        started = clock()
        other_act = act()
        if isinstance(other_act, float):
            return other_act + burden
        if burden:
            until = clock() + burden
            while clock() < until:
                pass
        return clock() - started

    def burden(self, name: str) -> float:
        """Seconds laid on each act of a contender, to see the figures move."""
        return self._burdens.get(name, 0.0)

    def race(
        self,
        contenders: Mapping[str, Act | Callable[[], Any]],
        rounds: int,
        *,
        clock: Clock = cpu,
        budget_s: float = math.inf,
    ) -> dict[str, list[float]]:
        """Seconds of each contender in each round, in turns, so that all meet the same noise.

        The collector runs between acts and not within them. Past the budget no further round begins.
        Says the medians, for work on one of them.
        """
        times: dict[str, list[float]] = {name: [] for name in contenders}
        started = wall()
        for n in range(rounds):
            if n >= ROUNDS_MIN and wall() - started > budget_s:
                break
            for name, contender in contenders.items():
                act = contender if isinstance(contender, Act) else Act(contender)
                act.before()
                gc.collect()
                gc.disable()
                try:
                    times[name].append(self.time(name, act.run, clock))
                finally:
                    gc.enable()
                act.after()
        self.say("  " + ", ".join(f"{name} {statistics.median(taken):.4g} s" for name, taken in times.items()))
        return times

    def flushes(self, times: Sequence[float]) -> bool:
        """Notes the regime of the floor's appends; whether flushes are slow."""
        median = statistics.median(times)
        slow = median > SLOW_FLUSH_S
        self.regime = f"{'slow' if slow else 'fast'}: raw append and fdatasync {1e3 * median:.3f} ms in the median"
        return slow


def row(goal: Goal, figures: Sequence[float], bound: float | None = None) -> Row:
    """The row of a goal; `bound` is what must hold where the run decides it."""
    figure = statistics.median(figures)
    asked = goal.goal if bound is None else bound
    return Row(goal.name, figure, min(figures), max(figures), asked, goal.better, _holds(figure, asked, goal.better))


def _holds(figure: float, asked: float | str, better: str) -> bool:
    """Whether a figure is as good as asked; where nothing is asked, it is."""
    if isinstance(asked, str):
        return True
    return figure >= asked if better == HIGHER else figure <= asked


def ratios(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Round by round, how many times the second the first is."""
    return [a / b for a, b in zip(above, below, strict=True)]


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which a share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
