"""Room in the prompt: pages at shorter levels, and which of them go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vmstore.core.decision import Cause
from vmstore.integrations.chuk.compressor import CompressionResult, CompressorRegistry, result, unchanged
from vmstore.integrations.chuk.history.journal import Act, Contest, PageJournal
from vmstore.integrations.chuk.history.state import MemoryState
from vmstore.integrations.chuk.models.enums import CompressionLevel, StorageTier
from vmstore.integrations.chuk.models.page import MemoryPage

NEXT_LEVEL = CompressionLevel.ABSTRACT  # what pages are shortened to before any goes


class Levels:
    """Pages at a level: whole from the log, shorter by compressors, where there are any."""

    def __init__(self, journal: PageJournal, registry: CompressorRegistry | None) -> None:
        self._journal = journal
        self.registry = registry

    def full(self, page: MemoryPage) -> MemoryPage:
        """A page at level 0, as it was accepted."""
        if page.compression_level is CompressionLevel.FULL or not self._journal.has_content(page.page_id):
            return page
        return self._journal.whole(page.page_id).model_copy(update={"storage_tier": page.storage_tier})

    async def compress(self, page: MemoryPage, target_level: CompressionLevel) -> MemoryPage:
        """The page at a level; as it is where nothing is shorter."""
        if target_level is not CompressionLevel.FULL and self.registry is None:
            return page
        full = self.full(page)
        short = await self.shorter(full, target_level)
        return short.page if short.tokens_saved > 0 else full

    async def shorter(self, page: MemoryPage, level: CompressionLevel) -> CompressionResult:
        """A page at a shorter level: as the log has it, else made of its full content, never of another form."""
        if level <= page.compression_level or self.registry is None:
            return unchanged(page)
        known = self._journal.pages.get(page.page_id)
        if known is not None and level in known.contents:
            content = self._journal.content(page.page_id, level, self._journal.position)["content"]
            made = result(page, level, content)
        else:
            made = await self.registry.compress_page(self.full(page), level)
        return CompressionResult.model_construct(
            page=made.page.model_copy(update={"storage_tier": page.storage_tier}),
            original_tokens=page.estimate_tokens(),
            compressed_tokens=made.compressed_tokens,
            level_before=page.compression_level,
            level_after=made.level_after,
        )


class Removal(NamedTuple):
    """A page that makes room: by a shorter form, or by going."""

    page_id: str
    short: MemoryPage | None
    freed: int


class Room:
    """The room of a working set: what has to go for a page to come."""

    def __init__(self, state: MemoryState, levels: Levels) -> None:
        self._state = state
        self._levels = levels

    @property
    def tokens(self) -> int:
        """The tokens that pages may take."""
        budget = self._state.working_set.budget
        return budget.total_limit - budget.reserved

    async def plan(self, tokens: int, page_id: str) -> list[Removal] | None:
        """The pages that make room for some tokens, in their order; None where there is not as much to be had.

        First the pages that may go are shortened, as long as that frees what is aimed at; then they go.
        """
        working_set, room = self._state.working_set, self.tokens
        used = working_set.tokens_used
        if tokens > room:
            return None
        if used + tokens <= room * working_set.config.eviction_threshold:
            return []
        target = working_set.calculate_eviction_target(tokens)
        scored = working_set.get_eviction_candidates(target, page_table=self._state.page_table)
        candidates = [name for name, _ in scored if name != page_id]
        removals: dict[str, Removal] = {}
        for name in candidates:
            if _freed(removals.values()) < target and (short := await self._short(name)) is not None:
                removals[name] = short
        for name in candidates:
            if _freed(removals.values()) < target:
                removals.pop(name, None)
                removals[name] = Removal(name, None, self._state.tokens_of(name))
        return list(removals.values()) if used - _freed(removals.values()) + tokens <= room else None

    async def _short(self, page_id: str) -> Removal | None:
        """A page's shorter form; None where it has none that takes less."""
        page = self._state.pages.get(page_id)
        if self._levels.registry is None or page is None or page.compression_level >= NEXT_LEVEL:
            return None
        short = await self._levels.shorter(page, NEXT_LEVEL)
        return Removal(page_id, short.page, short.tokens_saved) if short.tokens_saved > 0 else None

    def make(self, act: Act, removals: Sequence[Removal], tokens: int, winner: str, cause: Cause) -> None:
        """Adds to an act what makes room, each with the contest it came from."""
        if not removals:
            return
        working_set = self._state.working_set
        candidates = tuple(working_set.get_eviction_candidates(tokens, page_table=self._state.page_table))
        contest = Contest(self.tokens, working_set.tokens_used, tokens, winner, candidates)
        for removal in removals:
            if removal.short is not None:
                act.compress(removal.short, StorageTier.L0, removal.freed, contest)
            else:
                words = "eviction_pressure"
                act.evict(removal.page_id, StorageTier.L2, StorageTier.L0, cause, words, removal.freed, contest)


def _freed(removals: Iterable[Removal]) -> int:
    return sum(removal.freed for removal in removals)
