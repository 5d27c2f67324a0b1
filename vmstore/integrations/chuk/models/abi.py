"""The terms a model may rely on, and how well its memory served it."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from pydantic import BaseModel, Field

from vmstore.integrations.chuk.models.enums import CompressionLevel, FaultReason, Modality, PageType
from vmstore.integrations.chuk.models.fault import FaultRecord
from vmstore.integrations.chuk.models.page import now

PAGE_TOKENS = 200  # what a page that was referred to is taken for


class PageManifestEntry(BaseModel):
    """A page of the prompt, and what may be done with it."""

    page_id: str
    modality: Modality
    page_type: PageType
    compression_level: CompressionLevel
    tokens: int
    importance: float
    provenance: list[str] = Field(default_factory=list)
    can_evict: bool = True
    can_compress: bool = True


class MemoryABI(BaseModel):
    """The pages a model has, and the limits it has to keep."""

    pages: list[PageManifestEntry] = Field(default_factory=list)
    faults_allowed: bool = True
    upgrade_budget_tokens: int = 2048
    max_context_tokens: int = 128000
    reserved_tokens: int = 2000
    tool_schema_tokens_reserved: int = 0
    active_toolset_hash: str | None = None
    modality_weights: dict[Modality, float] = Field(default_factory=lambda: dict.fromkeys(Modality, 1.0))

    @property
    def available_tokens(self) -> int:
        """The tokens that are left for pages."""
        return self.max_context_tokens - self.reserved_tokens - self.tool_schema_tokens_reserved


class RecallAttempt(BaseModel):
    """An answer that recalled something."""

    turn: int
    query: str
    page_ids_cited: list[str] = Field(default_factory=list)
    user_corrected: bool = False
    timestamp: datetime = Field(default_factory=now)


class UserExperienceMetrics(BaseModel):
    """Measures a user notices: recalls that were right, pages that go and come back, tokens that were of use."""

    recall_attempts: list[RecallAttempt] = Field(default_factory=list)
    fault_history: list[FaultRecord] = Field(default_factory=list)
    pages_referenced_per_turn: dict[int, list[str]] = Field(default_factory=dict)
    tokens_in_context_per_turn: dict[int, int] = Field(default_factory=dict)

    def recall_success_rate(self) -> float:
        """The share of recalls that nobody corrected; 1 where there was none."""
        right = sum(not attempt.user_corrected for attempt in self.recall_attempts)
        return right / len(self.recall_attempts) if self.recall_attempts else 1.0

    def thrash_index(self, window_turns: int = 5) -> float:
        """The pages that were asked for again within the last turns, a turn."""
        if not self.fault_history or window_turns <= 0:
            return 0.0
        last = max(fault.turn for fault in self.fault_history)
        asked = Counter(fault.page_id for fault in self.fault_history if fault.turn > last - window_turns)
        return sum(count - 1 for count in asked.values()) / window_turns

    def effective_tokens_ratio(self, turn: int) -> float:
        """The share of a turn's context that was referred to, estimated by its pages; 0 where nothing is known."""
        tokens = self.tokens_in_context_per_turn.get(turn, 0)
        referenced = len(self.pages_referenced_per_turn.get(turn, ()))
        return min(1.0, referenced * PAGE_TOKENS / tokens) if tokens else 0.0

    def record_recall_attempt(
        self, turn: int, query: str, page_ids_cited: list[str], user_corrected: bool = False
    ) -> None:
        """Notes an answer that recalled something."""
        attempt = RecallAttempt(turn=turn, query=query, page_ids_cited=page_ids_cited, user_corrected=user_corrected)
        self.recall_attempts.append(attempt)

    def record_fault(
        self, page_id: str, reason: FaultReason, turn: int, tokens_loaded: int, latency_ms: float = 0.0
    ) -> None:
        """Notes a page that was asked for."""
        record = FaultRecord(
            page_id=page_id, reason=reason, turn=turn, tokens_loaded=tokens_loaded, latency_ms=latency_ms
        )
        self.fault_history.append(record)

    def record_turn_context(self, turn: int, tokens_in_context: int, pages_referenced: list[str]) -> None:
        """Notes how large a turn's context was, and which pages were referred to."""
        self.tokens_in_context_per_turn[turn] = tokens_in_context
        self.pages_referenced_per_turn[turn] = list(pages_referenced)

    def get_fault_reason_breakdown(self) -> dict[FaultReason, int]:
        """How often pages were asked for, by reason."""
        return dict(Counter(fault.reason for fault in self.fault_history))
