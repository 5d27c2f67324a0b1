"""The page table: where each page is, without its content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from heapq import nsmallest

from pydantic import BaseModel, Field

from vmstore.integrations.chuk.models.enums import CompressionLevel, Modality, StorageTier
from vmstore.integrations.chuk.models.page import MemoryPage, PageTableEntry, aware, now
from vmstore.integrations.chuk.models.stats import PageTableStats


class PageTable(BaseModel):
    """Entries of pages by their ids. That of a `MemoryManager` is folded from its session."""

    entries: dict[str, PageTableEntry] = Field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, page_id: object) -> bool:
        return page_id in self.entries

    def lookup(self, page_id: str) -> PageTableEntry | None:
        """The entry of a page; None where there is none."""
        return self.entries.get(page_id)

    def register(self, page: MemoryPage) -> PageTableEntry:
        """Enters a page as it stands."""
        entry = PageTableEntry(
            page_id=page.page_id,
            tier=page.storage_tier,
            artifact_id=page.artifact_id,
            compression_level=page.compression_level,
            page_type=page.page_type,
            provenance=list(page.provenance),
            dirty=page.dirty,
            pinned=page.pinned,
            last_accessed=page.last_accessed,
            access_count=page.access_count,
            size_tokens=page.estimate_tokens(),
            modality=page.modality,
        )
        self.register_entry(entry)
        return entry

    def register_entry(self, entry: PageTableEntry) -> None:
        """Enters an entry in the place of one of the same page."""
        self.entries[entry.page_id] = entry

    def remove(self, page_id: str) -> PageTableEntry | None:
        """Takes an entry out; None where there was none."""
        return self.entries.pop(page_id, None)

    def update_location(
        self,
        page_id: str,
        tier: StorageTier,
        artifact_id: str | None = None,
        compression_level: CompressionLevel | None = None,
    ) -> bool:
        """Says where a page is now; False where there is no such page."""
        entry = self.entries.get(page_id)
        if entry is None:
            return False
        entry.tier = tier
        if artifact_id is not None:
            entry.artifact_id = artifact_id
        if compression_level is not None:
            entry.compression_level = compression_level
        return True

    def update_compression(self, page_id: str, compression_level: CompressionLevel) -> bool:
        """Says how much of a page is shown; False where there is no such page."""
        return self._change(page_id, lambda entry: setattr(entry, "compression_level", compression_level))

    def mark_accessed(self, page_id: str) -> bool:
        """Counts a use of a page; False where there is no such page."""
        return self._change(page_id, PageTableEntry.mark_accessed)

    def mark_dirty(self, page_id: str) -> bool:
        """Says that a page differs from what was stored of it; False where there is no such page."""
        return self._change(page_id, lambda entry: setattr(entry, "dirty", True))

    def mark_clean(self, page_id: str) -> bool:
        """Says that a page is stored as it is; False where there is no such page."""

        def clean(entry: PageTableEntry) -> None:
            entry.dirty, entry.last_flushed = False, now()

        return self._change(page_id, clean)

    def get_by_tier(self, tier: StorageTier) -> list[PageTableEntry]:
        """The entries of a tier, in the order they were entered."""
        return self._where(lambda entry: entry.tier == tier)

    def get_by_modality(self, modality: Modality) -> list[PageTableEntry]:
        """The entries of a modality."""
        return self._where(lambda entry: entry.modality == modality)

    def get_by_type(self, page_type: str) -> list[PageTableEntry]:
        """The entries of a purpose."""
        return self._where(lambda entry: entry.page_type == page_type)

    def get_dirty_pages(self) -> list[PageTableEntry]:
        """The entries whose pages differ from what was stored of them."""
        return self._where(lambda entry: entry.dirty)

    def get_working_set(self) -> list[PageTableEntry]:
        """The entries of L0 and L1."""
        return self._where(lambda entry: entry.tier in (StorageTier.L0, StorageTier.L1))

    def get_eviction_candidates(self, tier: StorageTier = StorageTier.L1, limit: int = 10) -> list[PageTableEntry]:
        """The entries of a tier that nobody pinned, those first that were used longest ago."""
        loose = self._where(lambda entry: entry.tier == tier and not entry.pinned)
        return nsmallest(limit, loose, key=lambda entry: aware(entry.last_accessed))

    def get_stats(self) -> PageTableStats:
        """How many pages there are, by tier and modality."""
        tiers = Counter(entry.tier for entry in self.entries.values())
        modalities = Counter(entry.modality for entry in self.entries.values())
        return PageTableStats(
            total_pages=len(self.entries),
            dirty_pages=len(self.get_dirty_pages()),
            pages_by_tier={tier: tiers[tier] for tier in StorageTier},
            pages_by_modality={modality: modalities[modality] for modality in Modality},
        )

    def get_total_tokens(self, tiers: list[StorageTier] | None = None) -> int:
        """The tokens of all pages, or of those of some tiers."""
        return sum(entry.size_tokens or 0 for entry in self.entries.values() if tiers is None or entry.tier in tiers)

    def _where(self, holds: Callable[[PageTableEntry], bool]) -> list[PageTableEntry]:
        """Entries are changed in place by their users, so no index is kept beside them."""
        return [entry for entry in self.entries.values() if holds(entry)]

    def _change(self, page_id: str, change: Callable[[PageTableEntry], None]) -> bool:
        entry = self.entries.get(page_id)
        if entry is None:
            return False
        change(entry)
        return True
