"""Packed contexts that may be asked for again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from pydantic import BaseModel, Field

from vmstore.integrations.chuk.models.page import now
from vmstore.integrations.chuk.models.stats import PackCacheStats
from vmstore.integrations.items import as_json


class PackedContext(BaseModel):
    """A working set as it was packed for a model and a budget."""

    vm_context: str
    vm_manifest_json: str
    page_ids: list[str] = Field(default_factory=list)
    tokens_used: int = 0
    created_at: datetime = Field(default_factory=now)
    session_id: str = ""
    model_id: str = ""
    token_budget: int = 0
    working_set_hash: str = ""


class CacheEntry(BaseModel):
    """A packed context, and when and how often it was asked for."""

    packed: PackedContext
    last_accessed: datetime = Field(default_factory=now)
    access_count: int = 0


class CacheKey(NamedTuple):
    """The things a packed context was made of."""

    session_id: str
    model_id: str
    token_budget: int
    working_set_hash: str


class ContextPackCache:
    """At most `max_entries` contexts; the one that was asked for longest ago gives way."""

    def __init__(self, max_entries: int = 32) -> None:
        self.max_entries = max_entries
        self._entries: dict[CacheKey, CacheEntry] = {}
        self._counts = {"hits": 0, "misses": 0, "evictions": 0, "invalidations": 0}

    @staticmethod
    def compute_working_set_hash(page_ids: list[str], versions: Mapping[str, int] | None = None) -> str:
        """A name for some pages, in any order, at some versions."""
        named = sorted((page_id, (versions or {}).get(page_id, 0)) for page_id in page_ids)
        return hashlib.sha256(as_json(named)).hexdigest()[:16]

    def get(self, session_id: str, model_id: str, token_budget: int, working_set_hash: str) -> PackedContext | None:
        """A packed context; None where there is none."""
        key = CacheKey(session_id, model_id, token_budget, working_set_hash)
        entry = self._entries.pop(key, None)
        self._counts["misses" if entry is None else "hits"] += 1
        if entry is None:
            return None
        entry.access_count += 1
        entry.last_accessed = now()
        self._entries[key] = entry
        return entry.packed

    def put(
        self, session_id: str, model_id: str, token_budget: int, working_set_hash: str, packed: PackedContext
    ) -> None:
        """Keeps a packed context."""
        key = CacheKey(session_id, model_id, token_budget, working_set_hash)
        self._entries.pop(key, None)
        while len(self._entries) >= max(1, self.max_entries):
            del self._entries[next(iter(self._entries))]
            self._counts["evictions"] += 1
        names = {"session_id": session_id, "model_id": model_id, "token_budget": token_budget}
        self._entries[key] = CacheEntry(
            packed=packed.model_copy(update={**names, "working_set_hash": working_set_hash})
        )

    def invalidate_session(self, session_id: str) -> int:
        """Forgets what was packed of a session; how much there was."""
        gone = [key for key in self._entries if key.session_id == session_id]
        for key in gone:
            del self._entries[key]
        self._counts["invalidations"] += len(gone)
        return len(gone)

    def invalidate_all(self) -> None:
        """Forgets everything."""
        self._counts["invalidations"] += len(self._entries)
        self._entries.clear()

    @property
    def size(self) -> int:
        """How many contexts there are."""
        return len(self._entries)

    @property
    def hit_rate(self) -> float:
        """The share of questions that were answered; 0 where there was none."""
        asked = self._counts["hits"] + self._counts["misses"]
        return self._counts["hits"] / asked if asked else 0.0

    def get_stats(self) -> PackCacheStats:
        """Counts of the cache."""
        return PackCacheStats(**self._counts, size=self.size, max_size=self.max_entries)
