"""The report of a session's memory in numbers, with targets and warnings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from vmstore.core.decision import FaultReason

WINDOW_TURNS = 5  # of the thrash index


class FaultShare(msgspec.Struct, frozen=True, kw_only=True):
    """The faults of the model for one reason; `share` of all it asked for, `success` those not denied."""

    asked: int = 0
    denied: int = 0
    share: float | None = None
    success: float | None = None


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics of a session's memory. Shares are from 0 to 1, None where the divisor is 0.

    `faults` are references to what was not in the prompt at the level asked for; `thrash_index` is
    the mean over the turns of the repeated faults of a topic in the last five turns, a turn;
    `thrash_now` that of the last. `utilisation` is of the budget, at calls. `prefix_voided` counts
    the tokens a provider's prefix cache lost by the pages it was sent, `invalidated` by the requests as
    they were sent, where they were; `prefix_cost` is what the former cost in dollars; `call_cost` is what a
    call's input costs, in tokens at full price, where one that was kept costs a tenth and one written 1.25.
    `compression` is the tokens of abstracts over those of the pages they stand for, `effective` the
    share of what calls were sent that was cited, came back in an answer or was read again by a tool.
    `evictions_a_minute` and `fault_latency_p95_ms`, from a fault to the call that shows the page, are by
    the clock of the log, `overhead` is what the log says of contents over the contents, in bytes.
    `searches` are recalls, `searched_pages` what they gave: `searched_used` of those were used by an answer of that
    turn or the next, `searched_in_prompt` were in the prompt anyway when they were given.
    """

    turns: int
    calls: int
    references: int
    hits: int
    faults: int
    served: int
    denied: int
    fault_tokens: int
    fault_rate: float | None
    hit_rate: float | None
    faults_a_turn: float | None
    faults_a_turn_max: int
    model_faults: int
    reasons: dict[str, FaultShare]
    denials: dict[str, int]
    thrash_index: float | None
    thrash_peak: float
    thrash_now: float
    evictions: int
    freed_tokens: int
    compressions: int
    prefetches: int
    prefetch_hits: int
    prefetch_hit_rate: float | None
    utilisation: float | None
    utilisation_peak: float | None
    l0_peak: int
    l0_tokens: int
    l0_available: int
    calls_over_budget: int
    pages: dict[str, int]
    prefix_voided: int
    prefix_voided_a_call: float | None
    prefix_cost: float | None
    forms: int
    compression: float | None
    recalls: int
    recall_success: float | None
    effective: float | None
    evictions_a_minute: float | None = None
    fault_latency_p95_ms: float | None = None
    overhead: float | None = None
    call_cost: float | None = None
    invalidated: int = 0
    searches: int = 0
    searched_pages: int = 0
    searched_used: int = 0
    searched_used_share: float | None = None
    searched_in_prompt: int = 0
    searched_tokens: int = 0
    targets: dict[str, bool | None] = {}
    flags: list[str] = []


class Band(NamedTuple):
    """The usual share of the model's faults with a reason, and the share that should give pause."""

    low: float
    high: float
    below: float
    above: float
    means: str


BANDS = {
    FaultReason.USER_REQUESTED_RECALL: Band(0.40, 0.60, 0.20, 1.0, "the model asks on its own account too often"),
    FaultReason.RESOLVE_REFERENCE: Band(0.20, 0.40, 0.0, 0.60, "what is needed is too often not in the prompt"),
    FaultReason.TOOL_PREREQ: Band(0.10, 0.20, 0.0, 0.40, "tools do not find the pages they need"),
    FaultReason.SPECULATIVE: Band(0.0, 0.10, 0.0, 0.20, "the budget goes into guesses"),
}
"""Per reason: the usual share of all faults, from and to, then the shares outside of which something is wrong."""


class Target(NamedTuple):
    """A target: the bound of a number, from below or above."""

    limit: float
    over: bool = False

    def met(self, value: float | None) -> bool | None:
        """Whether a value keeps it; None where there is nothing to judge."""
        if value is None:
            return None
        return value > self.limit if self.over else value < self.limit

    @property
    def words(self) -> str:
        """As people write it."""
        return f"{'over' if self.over else 'under'} {self.limit:g}"


TARGETS = {
    "fault_rate": Target(0.05),
    "hit_rate": Target(0.80, over=True),
    "compression": Target(0.10),
    "utilisation": Target(0.90, over=True),
    "prefetch_hit_rate": Target(0.60, over=True),
    "fault_latency_p95_ms": Target(500),
    "overhead": Target(0.10),
    "recall_success": Target(0.95, over=True),
    "thrash_index": Target(0.5),
    "effective": Target(0.60, over=True),
}
"""What each number should be in a session whose memory works well."""


class MetricValue(NamedTuple):
    """One number by name, with its target and whether it keeps it, and what should give pause."""

    metric: str
    value: float | None
    target: str | None = None
    met: bool | None = None
    flag: str | None = None


def judged(found: Measures) -> Measures:
    """The same with targets and what should give pause."""
    targets = {name: target.met(getattr(found, name)) for name, target in TARGETS.items()}
    flags = [flag for reason in BANDS if (flag := _flag(found, reason)) is not None]
    return msgspec.structs.replace(found, targets=targets, flags=flags)


def numbers(found: Measures) -> Iterator[MetricValue]:
    """All of them one by one, in their order; those of the reasons for faults at the end."""
    for name in found.__struct_fields__:
        value = getattr(found, name)
        if name in TARGETS:
            yield MetricValue(name, value, TARGETS[name].words, TARGETS[name].met(value))
        elif value is None or isinstance(value, int | float):
            yield MetricValue(name, value)
    for tier, count in found.pages.items():
        yield MetricValue(f"pages_{tier.lower()}", count)
    for reason, band in BANDS.items():
        share, target = found.reasons[reason.word], f"{band.low:g} to {band.high:g}"
        met = None if share.share is None else band.low <= share.share <= band.high
        yield MetricValue(f"share_{reason.word}", share.share, target, met, _flag(found, reason))
        yield MetricValue(f"success_{reason.word}", share.success)


def _flag(found: Measures, reason: FaultReason) -> str | None:
    band, part = BANDS[reason], found.reasons[reason.word].share
    if part is None or band.below <= part <= band.above:
        return None
    return f"{reason.word} is {part:.0%} of the model's faults: {band.means}"


def share(part: int, whole: int) -> float | None:
    """A part of a whole, to six digits; None of nothing."""
    return round(part / whole, 6) if whole else None
