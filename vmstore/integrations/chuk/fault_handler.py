"""Answers a model's requests: a page by its id, at a level; pages by a query."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from pydantic import BaseModel, Field, PrivateAttr

from vmstore.core.clock import SystemClock
from vmstore.integrations.chuk.compressor import CompressorRegistry, text_of
from vmstore.integrations.chuk.models.content import (
    AudioContent,
    FaultEffects,
    ImageContent,
    PageContent,
    PageData,
    PageMeta,
    SearchResultEntry,
    StructuredContent,
    TextContent,
    VideoContent,
)
from vmstore.integrations.chuk.models.enums import ALL_COMPRESSION_LEVELS, CompressionLevel, Modality, StorageTier
from vmstore.integrations.chuk.models.page import MemoryPage, PageTableEntry
from vmstore.integrations.chuk.models.stats import FaultMetrics, VMMetrics
from vmstore.integrations.chuk.page_table import PageTable
from vmstore.integrations.chuk.tlb import PageTLB

ERROR = "error"  # the id of the page that stands for one
RELEVANCE_ID, RELEVANCE_HINT = 1.0, 0.8
LINKS = ("http://", "https://")


class PageLoader(Protocol):
    """Gives pages by their ids."""

    async def load(self, page_id: str, tier: StorageTier, artifact_id: str | None = None) -> MemoryPage | None:
        """A page; None where there is none."""
        ...


class PageCompressor(Protocol):
    """Gives pages at a level."""

    async def compress(self, page: MemoryPage, target_level: CompressionLevel) -> MemoryPage:
        """The page at a level, as near as it can be had."""
        ...


class FaultResult(BaseModel):
    """The outcome of a request for a page."""

    success: bool
    page: MemoryPage | None = None
    error: str | None = None
    source_tier: StorageTier | None = None
    latency_ms: float = 0.0
    was_compressed: bool = False


class VMToolResult(BaseModel):
    """A page as the tool hands it to a model."""

    page: PageData
    effects: FaultEffects = Field(default_factory=FaultEffects)

    def to_json(self) -> str:
        """The same as JSON."""
        return self.model_dump_json(exclude_none=True)


class VMToolError(BaseModel):
    """A request that was not served."""

    error: str
    page_id: str | None = None


class PageFaultHandler(BaseModel):
    """Serves at most `max_faults_per_turn` requests a turn."""

    page_table: PageTable | None = None
    tlb: PageTLB | None = None
    page_store: dict[str, MemoryPage] = Field(default_factory=dict)
    metrics: VMMetrics = Field(default_factory=VMMetrics)
    max_faults_per_turn: int = 2
    faults_this_turn: int = 0
    _loader: Any = PrivateAttr(default=None)
    _compressor: Any = PrivateAttr(default=None)

    def configure(
        self,
        page_table: PageTable,
        tlb: PageTLB | None = None,
        loader: PageLoader | None = None,
        compressor: PageCompressor | None = None,
    ) -> None:
        """Has it look pages up in a table, load them by a loader and shorten them by a compressor."""
        self.page_table, self.tlb, self._loader, self._compressor = page_table, tlb, loader, compressor

    def new_turn(self) -> None:
        """Begins a turn."""
        self.faults_this_turn = 0
        self.metrics.new_turn()

    def can_fault(self) -> bool:
        """Whether the turn has a request left."""
        return self.faults_this_turn < self.max_faults_per_turn

    async def handle_fault(self, page_id: str, target_level: int = CompressionLevel.ABSTRACT) -> FaultResult:
        """A page at a level, or why not."""
        clock = SystemClock()
        began_us = clock.ticks()
        if not self.can_fault():
            return _refused(f"Fault limit exceeded: {self.max_faults_per_turn} a turn; answer with the pages there are")
        if self.page_table is None:
            return _refused("Page table not configured; call configure() first")
        entry = self._entry(page_id)
        if entry is None:
            return _refused(f"Page not found: {page_id}; search_pages(query) finds pages")
        tier = entry.tier
        page = await self._load(page_id, tier, entry.artifact_id)
        if page is None:
            return _refused(f"Failed to load page {page_id} from {tier.value}: its content is not there")
        shown = await self._at(page, CompressionLevel(target_level))
        was_compressed = shown.compression_level != page.compression_level
        self.faults_this_turn += 1
        self.metrics.record_fault()
        shown.mark_accessed()
        self.page_table.mark_accessed(page_id)
        if self.tlb is not None:
            self.tlb.insert(entry)
        # As it is: the page that was loaded, and no copy of it.
        return FaultResult.model_construct(
            success=True,
            page=shown,
            error=None,
            source_tier=tier,
            latency_ms=(clock.ticks() - began_us) / 1_000,
            was_compressed=was_compressed,
        )

    def store_page(self, page: MemoryPage) -> None:
        """Keeps a page to be asked for."""
        self.page_store[page.page_id] = page

    def build_tool_result(self, fault_result: FaultResult, evictions: list[str] | None = None) -> VMToolResult:
        """The outcome of a request, as the tool hands it to a model."""
        page = fault_result.page
        if not fault_result.success or page is None:
            data = PageData(
                page_id=ERROR,
                modality=Modality.TEXT,
                level=CompressionLevel.FULL,
                tier=StorageTier.L0,
                content=TextContent(text=fault_result.error or "nothing is known of why"),
            )
            return VMToolResult(page=data)
        data = PageData(
            page_id=page.page_id,
            modality=page.modality,
            level=page.compression_level,
            tier=StorageTier.L0,
            content=self._format_content_for_modality(page),
            meta=self._build_meta(page, fault_result),
        )
        tokens = page.estimate_tokens()
        effects = FaultEffects(promoted_to_working_set=True, tokens_est=tokens, evictions=evictions)
        return VMToolResult(page=data, effects=effects)

    def get_metrics(self) -> FaultMetrics:
        """Counts of requests."""
        return FaultMetrics(
            faults_this_turn=self.faults_this_turn,
            max_faults_per_turn=self.max_faults_per_turn,
            faults_remaining=max(0, self.max_faults_per_turn - self.faults_this_turn),
            total_faults=self.metrics.faults_total,
            tlb_hit_rate=self.metrics.tlb_hit_rate,
        )

    def _entry(self, page_id: str) -> PageTableEntry | None:
        """The entry of a page, from the buffer where there is one, else from the table."""
        assert self.page_table is not None, "it was asked for"
        if self.tlb is not None:
            entry = self.tlb.lookup(page_id)
            if entry is not None:
                self.metrics.record_tlb_hit()
                return entry
            self.metrics.record_tlb_miss()
        return self.page_table.lookup(page_id)

    async def _load(self, page_id: str, tier: StorageTier, artifact_id: str | None) -> MemoryPage | None:
        if self._loader is None:
            return self.page_store.get(page_id)
        page: MemoryPage | None = await self._loader.load(page_id, tier, artifact_id)
        return page

    async def _at(self, page: MemoryPage, level: CompressionLevel) -> MemoryPage:
        """The page at a level; where nobody can give more than it holds, as it is."""
        if page.compression_level == level:
            return page
        if self._compressor is not None:
            shown: MemoryPage = await self._compressor.compress(page, level)
            return shown
        return (await CompressorRegistry.default().compress_page(page, level)).page

    def _format_content_for_modality(self, page: MemoryPage) -> PageContent:
        if page.modality == Modality.IMAGE:
            return _image(page)
        said = page.transcript or (page.content if isinstance(page.content, str) else None)
        if page.modality == Modality.AUDIO:
            return AudioContent(transcript=said, duration_seconds=page.duration_seconds)
        if page.modality == Modality.VIDEO:
            scenes = page.metadata.get("scenes") or []
            return VideoContent(scenes=scenes, transcript=said, duration_seconds=page.duration_seconds)
        if page.modality == Modality.STRUCTURED:
            return StructuredContent(data=page.content if isinstance(page.content, dict) else {})
        return TextContent(text=text_of(page))

    def _build_meta(self, page: MemoryPage, fault_result: FaultResult) -> PageMeta:
        return PageMeta(
            source_tier=fault_result.source_tier,
            mime_type=page.mime_type,
            size_bytes=page.size_bytes or None,
            dimensions=list(page.dimensions) if page.dimensions else None,
            duration_seconds=page.duration_seconds,
            latency_ms=fault_result.latency_ms,
        )


def _refused(error: str) -> FaultResult:
    return FaultResult(success=False, error=error)


def _image(page: MemoryPage) -> ImageContent:
    content = page.content if isinstance(page.content, str) else None
    if content is not None and content.startswith(LINKS):
        return ImageContent(caption=page.caption, url=content)
    if content is not None and content.startswith("data:"):
        return ImageContent(caption=page.caption, base64=content)
    return ImageContent(caption=page.caption or content)


class SearchResult(BaseModel):
    """The pages a query found, and how many pages there are."""

    results: list[SearchResultEntry] = Field(default_factory=list)
    total_available: int = 0

    def to_json(self) -> str:
        """The same as JSON."""
        return self.model_dump_json()


SearchFn = Callable[[str, str | None, int], Awaitable[SearchResult]]
"""Answers a query, of a modality or of all, with some pages at most."""


class PageSearchHandler(BaseModel):
    """Finds pages by their ids and hints, or by a function of the caller's."""

    page_table: PageTable | None = None
    page_hints: dict[str, str] = Field(default_factory=dict)
    _search: Any = PrivateAttr(default=None)

    def configure(self, page_table: PageTable, search_fn: SearchFn | None = None) -> None:
        """Has it search a table, or ask a function."""
        self.page_table, self._search = page_table, search_fn

    def set_hint(self, page_id: str, hint: str) -> None:
        """Says what a page is about."""
        self.page_hints[page_id] = hint

    async def search(self, query: str, modality: str | None = None, limit: int = 5) -> SearchResult:
        """The pages a query found, the best first."""
        if self._search is not None:
            answer: SearchResult = await self._search(query, modality, limit)
            return answer
        if self.page_table is None:
            return SearchResult()
        return SearchResult(results=self.matches(query, modality)[:limit], total_available=len(self.page_table))

    def matches(self, query: str, modality: str | None = None) -> list[SearchResultEntry]:
        """The pages whose id or hint has the query in it, ids first."""
        entries = [] if self.page_table is None else self.page_table.entries.values()
        words = query.lower()
        scored = [
            (self._relevance(entry.page_id, words), entry)
            for entry in entries
            if modality is None or entry.modality == modality
        ]
        scored.sort(key=lambda pair: -pair[0])
        return [self.result(entry, relevance) for relevance, entry in scored if relevance]

    def result(self, entry: PageTableEntry, relevance: float) -> SearchResultEntry:
        """A page as a search answers with it."""
        return SearchResultEntry(
            page_id=entry.page_id,
            modality=entry.modality,
            tier=entry.tier,
            levels=list(ALL_COMPRESSION_LEVELS),
            hint=self.page_hints.get(entry.page_id, ""),
            relevance=relevance,
        )

    def _relevance(self, page_id: str, words: str) -> float:
        if words in page_id.lower():
            return RELEVANCE_ID
        return RELEVANCE_HINT if words in self.page_hints.get(page_id, "").lower() else 0.0
