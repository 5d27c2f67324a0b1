"""A look-aside buffer: the entries of the page table that were used last."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, PrivateAttr

from vmstore.integrations.chuk.models.page import MemoryPage, PageTableEntry
from vmstore.integrations.chuk.models.stats import CombinedPageTableStats, TLBStats
from vmstore.integrations.chuk.page_table import PageTable


class PageTLB(BaseModel):
    """At most `max_entries` entries; the one that was used longest ago gives way."""

    max_entries: int = 512
    hits: int = 0
    misses: int = 0
    _entries: dict[str, PageTableEntry] = PrivateAttr(default_factory=dict)  # the one used last stands last

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, page_id: object) -> bool:
        return page_id in self._entries

    def lookup(self, page_id: str) -> PageTableEntry | None:
        """The entry of a page, counted as a hit; None, counted as a miss, where it is not here."""
        entry = self._entries.pop(page_id, None)
        if entry is None:
            self.misses += 1
            return None
        self.hits += 1
        self._entries[page_id] = entry
        return entry

    def insert(self, entry: PageTableEntry) -> None:
        """Takes an entry in, as the one used last."""
        self._entries.pop(entry.page_id, None)
        while len(self._entries) >= max(1, self.max_entries):
            self._evict_lru()
        self._entries[entry.page_id] = entry

    def invalidate(self, page_id: str) -> bool:
        """Takes an entry out; False where it was not here."""
        return self._entries.pop(page_id, None) is not None

    def invalidate_tier(self, tier: str) -> int:
        """Takes the entries of a tier out; how many there were."""
        gone = [page_id for page_id, entry in self._entries.items() if entry.tier == tier]
        for page_id in gone:
            del self._entries[page_id]
        return len(gone)

    def flush(self) -> int:
        """Takes all entries out; how many there were."""
        count = len(self._entries)
        self._entries.clear()
        return count

    def get_all(self) -> list[PageTableEntry]:
        """The entries, the one used longest ago first."""
        return list(self._entries.values())

    @property
    def hit_rate(self) -> float:
        """The share of look-ups that were answered; 0 where there was none."""
        lookups = self.hits + self.misses
        return self.hits / lookups if lookups else 0.0

    def reset_stats(self) -> None:
        """Counts from here on."""
        self.hits = self.misses = 0

    def get_stats(self) -> TLBStats:
        """How full the buffer is, and how often it answered."""
        size = len(self._entries)
        return TLBStats(
            size=size,
            max_size=self.max_entries,
            utilization=size / self.max_entries if self.max_entries else 0.0,
            hits=self.hits,
            misses=self.misses,
            hit_rate=self.hit_rate,
        )

    def _evict_lru(self) -> PageTableEntry | None:
        """Takes the entry out that was used longest ago; None where there is none."""
        oldest = next(iter(self._entries), None)
        return None if oldest is None else self._entries.pop(oldest)


class TLBWithPageTable:
    """A page table behind a buffer, which never answers what the table would not."""

    def __init__(self, page_table: PageTable, tlb: PageTLB | None = None) -> None:
        self.page_table = page_table
        self.tlb = PageTLB() if tlb is None else tlb

    def lookup(self, page_id: str) -> PageTableEntry | None:
        """The entry of a page, from the buffer or the table; None where there is none."""
        entry = self.tlb.lookup(page_id)
        if entry is None and (entry := self.page_table.lookup(page_id)) is not None:
            self.tlb.insert(entry)
        return entry

    def register(self, page: MemoryPage) -> PageTableEntry:
        """Enters a page in both."""
        entry = self.page_table.register(page)
        self.tlb.insert(entry)
        return entry

    def update_location(self, page_id: str, **kwargs: Any) -> bool:
        """Says where a page is now; False where there is no such page."""
        self.tlb.invalidate(page_id)
        return self.page_table.update_location(page_id, **kwargs)

    def mark_dirty(self, page_id: str) -> bool:
        """Says that a page differs from what was stored of it; False where there is no such page."""
        self.tlb.invalidate(page_id)
        return self.page_table.mark_dirty(page_id)

    def remove(self, page_id: str) -> PageTableEntry | None:
        """Takes a page out of both; None where there was none."""
        self.tlb.invalidate(page_id)
        return self.page_table.remove(page_id)

    def get_stats(self) -> CombinedPageTableStats:
        """Counts of both."""
        return CombinedPageTableStats(page_table=self.page_table.get_stats(), tlb=self.tlb.get_stats())
