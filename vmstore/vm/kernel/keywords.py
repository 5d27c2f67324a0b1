"""The settings of a live session as keywords, so that a type checker knows each; `Settings` says what they mean."""

from __future__ import annotations

from typing import TypedDict

from vmstore.vm.kernel.settings import Artifacts, Learning, Paging, Remembers, Rules, Shape, Tagging, Threshold


class WhatIf(TypedDict, total=False):
    """The settings under which a session can be decided again, beside its policy."""

    l0_tokens_max: int
    parameters: dict[str, int]
    rules: Rules
    paging: Paging
    mark_soft: float
    mark_hard: float
    reserve_faults_tokens: int
    reserve_protocol_tokens: int
    faults_a_turn_max: int
    fault_tokens_a_turn_max: int
    fault_threshold: Threshold
    pinned_turns: int
    protected_turns: int
    cooldown_turns: int
    compress: bool
    prefetch: bool
    recall_share: float
    remembers: Remembers
    model: str | None
    window_tokens_max: int | None
    conversation: bool
    shape: Shape | None
    segment_tokens_max: int
    compress_level: int
    prefetch_depth: int
    batches: bool
    recall_tokens_max: int
    arrivals_last: bool
    returned_tokens_max: int
    recall_tools: bool
    zone: str
    tags: Tagging
    compaction: bool
    compact_soft: float
    compact_hard: float
    facts: bool
    learning: Learning
    artifacts: Artifacts
    idle_hours: int
    behaviour: int


class LiveSettings(WhatIf, total=False):
    """The settings of a live session that are not as by default: `LiveSettings(l0_tokens_max=8_000)`."""

    policy: str
