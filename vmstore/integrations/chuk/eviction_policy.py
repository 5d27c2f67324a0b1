"""Policies: which pages of a tier may go, each with a score; the lowest goes first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from pydantic import BaseModel, Field

from vmstore.integrations.chuk.models.enums import Modality, StorageTier
from vmstore.integrations.chuk.models.page import MemoryPage, aware, now

HOUR_S = 3600.0
IMPORTANCE = 0.5  # of a page that nobody weighed
FREQUENCY_LOG_MAX = 10.0


class EvictionCandidate(BaseModel):
    """A page that may go."""

    page_id: str
    score: float


class EvictionContext(BaseModel):
    """A working set as a policy sees it."""

    current_turn: int = 0
    l0_page_ids: list[str] = Field(default_factory=list)
    l1_pages: dict[str, MemoryPage] = Field(default_factory=dict)
    pinned_page_ids: set[str] = Field(default_factory=set)
    importance_overrides: dict[str, float] = Field(default_factory=dict)
    anti_thrash: Any = None
    page_table: Any = None


class EvictionPolicy(Protocol):
    """The interface of a policy; one of a program's own is handed to a `MemoryManager`."""

    def score_candidates(
        self, context: EvictionContext, from_tier: StorageTier, tokens_needed: int = 0
    ) -> list[EvictionCandidate]:
        """The pages of a tier that may go, the lowest score first."""
        ...


class ImportanceWeightedLRUConfig(BaseModel):
    """How much each thing weighs."""

    l0_position_weight: float = 0.4
    l0_importance_weight: float = 0.4
    l0_thrash_weight: float = 0.2
    l1_recency_weight: float = 0.3
    l1_frequency_weight: float = 0.2
    l1_importance_weight: float = 0.3
    l1_thrash_weight: float = 0.2


class ImportanceWeightedLRU:
    """By recency, importance and how lately a page went or came; of L1 by how often it was used, too."""

    def __init__(self, config: ImportanceWeightedLRUConfig | None = None) -> None:
        self.config = ImportanceWeightedLRUConfig() if config is None else config

    def score_candidates(
        self, context: EvictionContext, from_tier: StorageTier, tokens_needed: int = 0
    ) -> list[EvictionCandidate]:
        """The pages of a tier that may go, the lowest score first."""
        weights, overrides = self.config, context.importance_overrides

        def of_l0(page_id: str, place: float) -> float:
            importance = overrides.get(page_id, IMPORTANCE) * weights.l0_importance_weight
            return place * weights.l0_position_weight + importance + _thrash(context, page_id, weights.l0_thrash_weight)

        def of_l1(page: MemoryPage) -> float:
            frequency = min(1.0, math.log1p(page.access_count) / FREQUENCY_LOG_MAX)
            importance = overrides.get(page.page_id, page.importance)
            return (
                _recency(page) * weights.l1_recency_weight
                + frequency * weights.l1_frequency_weight
                + importance * weights.l1_importance_weight
                + _thrash(context, page.page_id, weights.l1_thrash_weight)
            )

        return _scored(context, from_tier, of_l0, of_l1)


class LRUEvictionPolicy:
    """By recency alone."""

    def score_candidates(
        self, context: EvictionContext, from_tier: StorageTier, tokens_needed: int = 0
    ) -> list[EvictionCandidate]:
        """The pages of a tier that may go, the lowest score first."""
        return _scored(context, from_tier, lambda page_id, place: place, _recency)


def _weights() -> dict[Modality, float]:
    return {
        Modality.TEXT: 1.0,
        Modality.STRUCTURED: 0.8,
        Modality.IMAGE: 0.5,
        Modality.AUDIO: 0.4,
        Modality.VIDEO: 0.3,
    }


class ModalityAwareLRUConfig(BaseModel):
    """Factors of the scores of pages, by modality."""

    modality_weights: dict[Modality, float] = Field(default_factory=_weights)


class ModalityAwareLRU:
    """Another policy's scores, lowered for what is large and seldom read again."""

    def __init__(self, config: ModalityAwareLRUConfig | None = None, base_policy: EvictionPolicy | None = None) -> None:
        self.config = ModalityAwareLRUConfig() if config is None else config
        self.base_policy: EvictionPolicy = ImportanceWeightedLRU() if base_policy is None else base_policy

    def score_candidates(
        self, context: EvictionContext, from_tier: StorageTier, tokens_needed: int = 0
    ) -> list[EvictionCandidate]:
        """The pages of a tier that may go, the lowest score first."""
        weights = self.config.modality_weights

        def weighed(candidate: EvictionCandidate) -> EvictionCandidate:
            modality = _modality(context, candidate.page_id)
            weight = 1.0 if modality is None else weights.get(modality, 1.0)
            return EvictionCandidate(page_id=candidate.page_id, score=candidate.score * weight)

        scored = map(weighed, self.base_policy.score_candidates(context, from_tier, tokens_needed))
        return sorted(scored, key=lambda candidate: candidate.score)


def _scored(
    context: EvictionContext,
    tier: StorageTier,
    of_l0: Callable[[str, float], float],
    of_l1: Callable[[MemoryPage], float],
) -> list[EvictionCandidate]:
    """The pages of a tier that nobody holds, scored, the lowest first."""

    def scores() -> Iterator[tuple[str, float]]:
        if tier == StorageTier.L0:
            count = len(context.l0_page_ids)
            for index, page_id in enumerate(context.l0_page_ids):
                if _may_go(context, page_id):
                    yield page_id, of_l0(page_id, index / count)
        elif tier == StorageTier.L1:
            for page_id, page in context.l1_pages.items():
                if not page.pinned and _may_go(context, page_id):
                    yield page_id, of_l1(page)

    ordered = sorted(scores(), key=lambda pair: pair[1])
    return [EvictionCandidate(page_id=page_id, score=score) for page_id, score in ordered]


def _may_go(context: EvictionContext, page_id: str) -> bool:
    if page_id in context.pinned_page_ids:
        return False
    return context.anti_thrash is None or bool(context.anti_thrash.can_evict(page_id, context.current_turn))


def _thrash(context: EvictionContext, page_id: str, weight: float) -> float:
    """How lately a page went or came, weighed."""
    if context.anti_thrash is None:
        return 0.0
    return float(context.anti_thrash.get_eviction_penalty(page_id, context.current_turn)) * weight


def _recency(page: MemoryPage) -> float:
    """1 for a page used now, 1/2 an hour ago, less before."""
    age_s = (now() - aware(page.last_accessed)).total_seconds()
    return 1.0 / (1.0 + max(0.0, age_s) / HOUR_S)


def _modality(context: EvictionContext, page_id: str) -> Modality | None:
    if (page := context.l1_pages.get(page_id)) is not None:
        return page.modality
    entry = None if context.page_table is None else context.page_table.lookup(page_id)
    return None if entry is None else entry.modality
