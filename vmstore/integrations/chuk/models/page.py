"""A page as its users hold it, and its entry in the page table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, Field

from vmstore.core.clock import SystemClock, SystemIds
from vmstore.integrations.chuk.models.enums import Affinity, CompressionLevel, Modality, PageType, StorageTier
from vmstore.integrations.items import as_json

CHARACTERS_PER_TOKEN = 4
ID_DIGITS = 8  # of an id that somebody may read
TOKENS_UNKNOWN = 100  # of a content that is no text and states no size


def now() -> datetime:
    """The time, in UTC."""
    return moment(SystemClock().now())


def moment(at_us: int) -> datetime:
    """A time of the log as a datetime in UTC."""
    return datetime.fromtimestamp(at_us / 1e6, UTC)


def aware(at: datetime) -> datetime:
    """A time with its zone; one that names none is in UTC."""
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


class MemoryPage(BaseModel):
    """A page: content of any modality, where it is, and how much of it is shown."""

    page_id: str
    session_id: str | None = None
    modality: Modality
    page_type: PageType = PageType.TRANSCRIPT
    provenance: list[str] = Field(default_factory=list)
    represents: str | None = None
    representation_level: CompressionLevel = CompressionLevel.FULL
    storage_tier: StorageTier = StorageTier.L1
    artifact_id: str | None = None
    content: Any | None = None
    compression_level: CompressionLevel = CompressionLevel.FULL
    representations: dict[CompressionLevel, str] = Field(default_factory=dict)
    size_bytes: int = 0
    size_tokens: int | None = None
    created_at: datetime = Field(default_factory=now)
    last_accessed: datetime = Field(default_factory=now)
    access_count: int = 0
    importance: float = Field(default=0.5, ge=0.0, le=1.0)
    dirty: bool = False
    pinned: bool = False
    parent_page_id: str | None = None
    mime_type: str | None = None
    duration_seconds: float | None = None
    dimensions: tuple[int, int] | None = None
    transcript: str | None = None
    caption: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    def mark_accessed(self) -> None:
        """Counts a use of the page, now."""
        self.access_count += 1
        self.last_accessed = now()

    def mark_dirty(self) -> None:
        """Says that the page differs from what was stored of it."""
        self.dirty = True

    def mark_clean(self) -> None:
        """Says that the page is stored as it is."""
        self.dirty = False

    def estimate_tokens(self) -> int:
        """The tokens the page takes: as stated, else a quarter of its characters, or of its bytes."""
        if self.size_tokens is not None:
            return self.size_tokens
        if self.content is None:
            return 0
        if isinstance(self.content, str):
            return len(self.content) // CHARACTERS_PER_TOKEN
        if isinstance(self.content, dict):
            return len(as_json(self.content).decode()) // CHARACTERS_PER_TOKEN
        return self.size_bytes // CHARACTERS_PER_TOKEN if self.size_bytes else TOKENS_UNKNOWN


class PageTableEntry(BaseModel):
    """The facts of a page that need no content."""

    page_id: str
    tier: StorageTier
    artifact_id: str | None = None
    compression_level: CompressionLevel = CompressionLevel.FULL
    page_type: PageType = PageType.TRANSCRIPT
    provenance: list[str] = Field(default_factory=list)
    dirty: bool = False
    pinned: bool = False
    last_flushed: datetime | None = None
    last_accessed: datetime = Field(default_factory=now)
    access_count: int = 0
    size_tokens: int | None = None
    modality: Modality = Modality.TEXT
    affinity: Affinity = Affinity.LOCAL

    def mark_accessed(self) -> None:
        """Counts a use of the page, now."""
        self.access_count += 1
        self.last_accessed = now()

    @property
    def eviction_priority(self) -> float:
        """How early the page may go, from 0, which is never, to 1; by what it is for."""
        return 0.0 if self.pinned else PRIORITIES[self.page_type]


PRIORITIES = {
    PageType.CLAIM: 0.1,
    PageType.INDEX: 0.2,
    PageType.PROCEDURE: 0.3,
    PageType.SUMMARY: 0.4,
    PageType.ARTIFACT: 0.6,
    PageType.TRANSCRIPT: 0.7,
}
"""How early pages of each purpose may go."""


def event_to_page(
    message: str,
    role: str,
    session_id: str,
    event_id: str | None = None,
    page_type: PageType = PageType.TRANSCRIPT,
    importance: float = 0.5,
) -> MemoryPage:
    """A message as a page; by the beginning of its event's id, or one of its own."""
    return MemoryPage(
        page_id=f"msg_{(event_id or new_id())[:ID_DIGITS]}",
        session_id=session_id,
        modality=Modality.TEXT,
        page_type=page_type,
        content=message,
        importance=importance,
        metadata={"role": role},
    )


def new_id() -> str:
    """An id nobody has."""
    return SystemIds().salt().hex()
