"""Counts of a memory and of its parts."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from vmstore.integrations.chuk.models.enums import Modality, StorageTier


class DictCompatModel(BaseModel):
    """A model whose fields are read as the keys of a dict too."""

    def __getitem__(self, name: str) -> Any:
        """The value of a field; KeyError where there is none of that name."""
        if name not in type(self).model_fields:
            raise KeyError(name)
        return getattr(self, name)

    def __contains__(self, name: object) -> bool:
        return name in type(self).model_fields


class TLBStats(BaseModel):
    """Counts of a look-aside buffer."""

    size: int = 0
    max_size: int = 512
    utilization: float = 0.0
    hits: int = 0
    misses: int = 0
    hit_rate: float = 0.0


class WorkingSetStats(BaseModel):
    """Counts of a working set."""

    l0_pages: int = 0
    l1_pages: int = 0
    total_pages: int = 0
    tokens_used: int = 0
    tokens_available: int = 0
    utilization: float = 0.0
    needs_eviction: bool = False
    tokens_by_modality: dict[Modality, int] = Field(default_factory=dict)


class StorageStats(BaseModel):
    """The place where pages are stored, and how many there are."""

    backend: str
    persistent: bool = False
    session_id: str | None = None
    pages_stored: int = 0


class PageTableStats(BaseModel):
    """Counts of a page table."""

    total_pages: int
    dirty_pages: int
    pages_by_tier: dict[StorageTier, int]
    pages_by_modality: dict[Modality, int]

    @property
    def working_set_size(self) -> int:
        """The pages of L0 and L1."""
        return self.pages_by_tier.get(StorageTier.L0, 0) + self.pages_by_tier.get(StorageTier.L1, 0)


class CombinedPageTableStats(BaseModel):
    """Counts of a page table and of the buffer before it."""

    page_table: PageTableStats
    tlb: TLBStats


class FaultMetrics(BaseModel):
    """Counts of the pages that were asked for."""

    faults_this_turn: int = 0
    max_faults_per_turn: int = 2
    faults_remaining: int = 2
    total_faults: int = 0
    tlb_hit_rate: float = 0.0


def no_tokens() -> dict[Modality, int]:
    """No tokens of any modality."""
    return dict.fromkeys(Modality, 0)


def no_pages() -> dict[StorageTier, int]:
    """No pages in any tier."""
    return dict.fromkeys(StorageTier, 0)


def taken_by(modality: Modality) -> property:
    """The tokens that a modality takes of a budget."""
    return property(lambda budget: budget.get_tokens(modality), doc=f"The tokens of {modality.value}.")


class TokenBudget(BaseModel):
    """The tokens a prompt may hold, those reserved of it, and those each modality takes."""

    total_limit: int = 128000
    reserved: int = 4000
    tokens_by_modality: dict[Modality, int] = Field(default_factory=no_tokens)

    text_tokens = taken_by(Modality.TEXT)
    image_tokens = taken_by(Modality.IMAGE)
    audio_tokens = taken_by(Modality.AUDIO)
    video_tokens = taken_by(Modality.VIDEO)
    structured_tokens = taken_by(Modality.STRUCTURED)

    @property
    def used(self) -> int:
        """The tokens of everything."""
        return sum(self.tokens_by_modality.values())

    @property
    def available(self) -> int:
        """The tokens that are left beside the reserve."""
        return max(0, self.total_limit - self.reserved - self.used)

    @property
    def utilization(self) -> float:
        """The share that is taken of what is not reserved."""
        room = self.total_limit - self.reserved
        return self.used / room if room > 0 else 1.0

    def can_fit(self, tokens: int) -> bool:
        """Whether so many tokens have room."""
        return tokens <= self.available

    def add(self, tokens: int, modality: Modality) -> bool:
        """Takes tokens up; False, and nothing taken, where they have no room."""
        if not self.can_fit(tokens):
            return False
        self.set_tokens(modality, self.get_tokens(modality) + tokens)
        return True

    def remove(self, tokens: int, modality: Modality) -> None:
        """Gives tokens back, as many as there are at most."""
        self.set_tokens(modality, max(0, self.get_tokens(modality) - tokens))

    def get_tokens(self, modality: Modality) -> int:
        """The tokens of a modality."""
        return self.tokens_by_modality.get(modality, 0)

    def set_tokens(self, modality: Modality, tokens: int) -> None:
        """Says what a modality takes."""
        self.tokens_by_modality[modality] = tokens


class VMMetrics(BaseModel):
    """Counts of a memory since it was opened, and of the turn under way."""

    faults_total: int = 0
    faults_this_turn: int = 0
    tlb_hits: int = 0
    tlb_misses: int = 0
    evictions_total: int = 0
    evictions_this_turn: int = 0
    tokens_in_working_set: int = 0
    tokens_available: int = 0
    pages_by_tier: dict[StorageTier, int] = Field(default_factory=no_pages)
    pages_by_modality: dict[Modality, int] = Field(default_factory=no_tokens)
    compressions_total: int = 0
    compressions_this_turn: int = 0
    tokens_saved_by_compression: int = 0

    @property
    def fault_rate(self) -> float:
        """The faults of the turn under way."""
        return self.faults_this_turn

    @property
    def tlb_hit_rate(self) -> float:
        """The share of look-ups that the buffer answered; 0 where there was none."""
        lookups = self.tlb_hits + self.tlb_misses
        return self.tlb_hits / lookups if lookups else 0.0

    def record_fault(self) -> None:
        """Counts a page that was asked for."""
        self.faults_total += 1
        self.faults_this_turn += 1

    def record_tlb_hit(self) -> None:
        """Counts a look-up that the buffer answered."""
        self.tlb_hits += 1

    def record_tlb_miss(self) -> None:
        """Counts a look-up that the buffer did not answer."""
        self.tlb_misses += 1

    def record_eviction(self) -> None:
        """Counts a page that left."""
        self.evictions_total += 1
        self.evictions_this_turn += 1

    def record_compression(self, tokens_saved: int = 0) -> None:
        """Counts a page that was shortened, and by how much."""
        self.compressions_total += 1
        self.compressions_this_turn += 1
        self.tokens_saved_by_compression += tokens_saved

    def new_turn(self) -> None:
        """Begins a turn, of which nothing is counted yet."""
        self.faults_this_turn = self.evictions_this_turn = self.compressions_this_turn = 0


class MutationLogSummary(DictCompatModel):
    """Counts of a mutation log."""

    total_mutations: int = 0
    unique_pages: int = 0
    context_snapshots: int = 0
    creates: int = 0
    faults: int = 0
    evictions: int = 0
    compressions: int = 0
    pins: int = 0
    unpins: int = 0


class PrefetcherStats(DictCompatModel):
    """Counts of a prefetcher."""

    tools_tracked: int = 0
    pages_tracked: int = 0
    total_accesses: int = 0


class PackCacheStats(DictCompatModel):
    """Counts of a cache of packed contexts."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0
    invalidations: int = 0
    size: int = 0
    max_size: int = 0


def no_table() -> PageTableStats:
    """Counts of a page table without pages."""
    return PageTableStats(total_pages=0, dirty_pages=0, pages_by_tier=no_pages(), pages_by_modality=no_tokens())


class MemoryManagerStats(DictCompatModel):
    """Counts of a memory and of all its parts."""

    session_id: str = ""
    turn: int = 0
    mode: str = ""
    page_table: PageTableStats = Field(default_factory=no_table)
    working_set: WorkingSetStats = Field(default_factory=WorkingSetStats)
    fault_handler: FaultMetrics = Field(default_factory=FaultMetrics)
    tlb: TLBStats = Field(default_factory=TLBStats)
    mutation_log: MutationLogSummary = Field(default_factory=MutationLogSummary)
    prefetcher: PrefetcherStats = Field(default_factory=PrefetcherStats)
    pack_cache: PackCacheStats = Field(default_factory=PackCacheStats)
    metrics: VMMetrics = Field(default_factory=VMMetrics)
    pages_in_store: int = 0


class VMContext(DictCompatModel):
    """The request to a model: the developer message with the memory in it, the tools, and what they were made of."""

    developer_message: str = ""
    tools: list[Any] = Field(default_factory=list)
    manifest: Any = None
    packed_context: Any = None
