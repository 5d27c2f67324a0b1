"""What is said of a session's memory in numbers, with the seed's targets and what should give pause."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from vmstore.core.decision import FaultReason

WINDOW_TURNS = 5  # of the thrash index


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The faults of the model for one reason; `share` of all it asked for, `success` those not denied."""

    asked: int = 0
    denied: int = 0
    share: float | None = None
    success: float | None = None


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """How a session's memory did. Shares are from 0 to 1, None where there is nothing to share.

    `faults` are references to what was not in the prompt at the level asked for; `thrash_index` is
    the mean over the turns of the repeated faults of a page in the last five turns, a turn;
    `thrash_now` that of the last. `utilisation` is of the budget, at calls. `prefix_voided` counts
    the tokens a provider's prefix cache lost, `prefix_cost` is what they cost in dollars.
    `compression` is the tokens of abstracts over those of the pages they stand for, `effective` the
    share of what calls were sent that was cited or came back in an answer.
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
    reasons: dict[str, Asked]
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
    targets: dict[str, bool | None] = {}
    flags: list[str] = []


class Band(NamedTuple):
    """Which share of the model's faults has a reason as a rule, and from where on it should give pause."""

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
"""Seed 000:2203-2208."""


def judged(found: Measures) -> Measures:
    """The same with the seed's targets (000:2139-2154, 2347) and what should give pause."""
    targets = {
        "fault_rate": _under(found.fault_rate, 0.05),
        "hit_rate": _over(found.hit_rate, 0.80),
        "compression": _under(found.compression, 0.10),
        "utilisation": _over(found.utilisation, 0.90),
        "prefetch_hit_rate": _over(found.prefetch_hit_rate, 0.60),
        "recall_success": _over(found.recall_success, 0.95),
        "thrash_index": _under(found.thrash_index, 0.5),
        "effective": _over(found.effective, 0.60),
    }
    flags = []
    for reason, band in BANDS.items():
        share = found.reasons[reason.word].share
        if share is not None and not band.below <= share <= band.above:
            flags.append(f"{reason.word} is {share:.0%} of the model's faults: {band.means}")
    return msgspec.structs.replace(found, targets=targets, flags=flags)


def share(part: int, whole: int) -> float | None:
    """A part of a whole, to six digits; None of nothing."""
    return round(part / whole, 6) if whole else None


def _under(value: float | None, limit: float) -> bool | None:
    return None if value is None else value < limit


def _over(value: float | None, limit: float) -> bool | None:
    return None if value is None else value > limit
