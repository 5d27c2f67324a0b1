"""Requests for pages, how many a turn may make, and what happened to a page."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, Field

from vmstore.integrations.chuk.models.enums import (
    Actor,
    FaultConfidenceThreshold,
    FaultReason,
    MutationType,
    StorageTier,
)
from vmstore.integrations.chuk.models.page import now


class FaultPolicy(BaseModel):
    """How many pages a turn may ask for, and how many tokens they may take."""

    max_faults_per_turn: int = 3
    max_fault_tokens_per_turn: int = 8192
    fault_confidence_threshold: FaultConfidenceThreshold = FaultConfidenceThreshold.REFERENCED
    tokens_used_this_turn: int = 0
    faults_this_turn: int = 0

    def can_fault(self, estimated_tokens: int) -> bool:
        """Whether the turn has room for one more page of so many tokens."""
        is_counted = self.faults_this_turn < self.max_faults_per_turn
        return is_counted and self.tokens_used_this_turn + estimated_tokens <= self.max_fault_tokens_per_turn

    def record_fault(self, tokens: int) -> None:
        """Counts a page that was asked for."""
        self.faults_this_turn += 1
        self.tokens_used_this_turn += tokens

    def new_turn(self) -> None:
        """Begins a turn, in which nothing was asked for yet."""
        self.faults_this_turn = self.tokens_used_this_turn = 0


class FaultRecord(BaseModel):
    """One page that was asked for."""

    page_id: str
    reason: FaultReason
    turn: int
    tokens_loaded: int
    latency_ms: float = 0.0
    timestamp: datetime = Field(default_factory=now)


class PageMutation(BaseModel):
    """One thing that happened to a page; of a store `mutation_id` is the page and its position in the log."""

    mutation_id: str
    page_id: str
    timestamp: datetime = Field(default_factory=now)
    turn: int = 0
    mutation_type: MutationType
    tier_before: StorageTier | None = None
    tier_after: StorageTier
    actor: Actor
    cause: str | None = None
