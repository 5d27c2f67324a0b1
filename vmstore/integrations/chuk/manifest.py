"""The manifest: which pages a model has, and which it may ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pydantic import BaseModel, Field

from vmstore.integrations.chuk.models.enums import ALL_COMPRESSION_LEVELS, CompressionLevel, Modality, StorageTier
from vmstore.integrations.chuk.models.page import MemoryPage, PageTableEntry
from vmstore.integrations.chuk.page_table import PageTable

IMPORTANCE = 0.5
HintGenerator = Callable[[PageTableEntry], str]


class WorkingSetEntry(BaseModel):
    """A page that a model has."""

    page_id: str
    modality: str
    level: int
    tokens_est: int
    importance: float = 0.5


class AvailablePageEntry(BaseModel):
    """A page that a model may ask for."""

    page_id: str
    modality: str
    tier: str
    levels: list[int] = Field(default_factory=lambda: [int(level) for level in ALL_COMPRESSION_LEVELS])
    hint: str = ""


class ManifestPolicies(BaseModel):
    """The limits of a model's requests in a turn; `prefer_levels` begins with the level to try first."""

    faults_allowed: bool = True
    max_faults_per_turn: int = 2
    upgrade_budget_tokens: int = 4096
    prefer_levels: list[int] = Field(default_factory=lambda: [2, 1, 0])


class VMManifest(BaseModel):
    """The pages of a session as a model is shown them."""

    session_id: str
    working_set: list[WorkingSetEntry] = Field(default_factory=list)
    available_pages: list[AvailablePageEntry] = Field(default_factory=list)
    policies: ManifestPolicies = Field(default_factory=ManifestPolicies)

    def to_json(self, indent: int | None = None) -> str:
        """The manifest as JSON."""
        return self.model_dump_json(indent=indent)

    def to_wrapped_json(self, indent: int | None = None) -> str:
        """The same between the tags of a manifest."""
        return f"<VM:MANIFEST_JSON>\n{self.to_json(indent)}\n</VM:MANIFEST_JSON>"


class ManifestBuilder(BaseModel):
    """Makes manifests; at most `max_available_pages` that may be asked for, those to keep longest and newest first."""

    default_policies: ManifestPolicies = Field(default_factory=ManifestPolicies)
    max_available_pages: int = 50

    def build(
        self,
        session_id: str,
        page_table: PageTable,
        working_set_ids: list[str],
        working_set_tokens: dict[str, int] | None = None,
        working_set_importance: dict[str, float] | None = None,
        hint_generator: HintGenerator | None = None,
        policies: ManifestPolicies | None = None,
    ) -> VMManifest:
        """The manifest of a page table; ids it has no entry of are left out."""
        tokens, importance = working_set_tokens or {}, working_set_importance or {}
        entries = [entry for page_id in working_set_ids if (entry := page_table.lookup(page_id)) is not None]
        working_set = [
            WorkingSetEntry(
                page_id=entry.page_id,
                modality=entry.modality.value,
                level=entry.compression_level,
                tokens_est=tokens.get(entry.page_id, entry.size_tokens or 0),
                importance=importance.get(entry.page_id, IMPORTANCE),
            )
            for entry in entries
        ]
        here = set(working_set_ids)
        rest = [entry for page_id, entry in page_table.entries.items() if page_id not in here]
        rest.reverse()
        chosen = sorted(rest, key=lambda entry: entry.eviction_priority)
        return self._made(session_id, working_set, chosen, hint_generator, policies)

    def build_from_pages(
        self,
        session_id: str,
        working_set_pages: list[MemoryPage],
        available_entries: list[PageTableEntry],
        hint_generator: HintGenerator | None = None,
        policies: ManifestPolicies | None = None,
    ) -> VMManifest:
        """The manifest of pages at hand and of entries, in their order."""
        working_set = [
            WorkingSetEntry(
                page_id=page.page_id,
                modality=page.modality.value,
                level=page.compression_level,
                tokens_est=page.estimate_tokens(),
                importance=page.importance,
            )
            for page in working_set_pages
        ]
        here = {page.page_id for page in working_set_pages}
        rest = [entry for entry in available_entries if entry.page_id not in here]
        return self._made(session_id, working_set, rest, hint_generator, policies)

    def _made(
        self,
        session_id: str,
        working_set: list[WorkingSetEntry],
        available: Sequence[PageTableEntry],
        hint_generator: HintGenerator | None,
        policies: ManifestPolicies | None,
    ) -> VMManifest:
        return VMManifest(
            session_id=session_id,
            working_set=working_set,
            available_pages=list(_listed(available[: self.max_available_pages], hint_generator)),
            policies=self.default_policies if policies is None else policies,
        )


def _listed(entries: Iterable[PageTableEntry], hint_generator: HintGenerator | None) -> Iterable[AvailablePageEntry]:
    for entry in entries:
        yield AvailablePageEntry(
            page_id=entry.page_id,
            modality=entry.modality.value,
            tier=entry.tier.value,
            hint=_hint(entry, hint_generator or generate_simple_hint),
        )


def _hint(entry: PageTableEntry, hint_generator: HintGenerator) -> str:
    """A hint; empty where its maker fails: a model that is shown no hint can still ask for the page."""
    try:
        return hint_generator(entry)
    except Exception:
        return ""


class HintType:
    """The words of a simple hint."""

    RECENT = "recent"
    STORED = "stored"
    ARCHIVED = "archived"
    SUMMARY = "summary"
    EXCERPT = "excerpt"
    REFERENCE = "reference"
    CONTENT = "content"


TIERS = {
    StorageTier.L2: HintType.RECENT,
    StorageTier.L3: HintType.STORED,
    StorageTier.L4: HintType.ARCHIVED,
}
LEVELS = {
    CompressionLevel.REDUCED: HintType.EXCERPT,
    CompressionLevel.ABSTRACT: HintType.SUMMARY,
    CompressionLevel.REFERENCE: HintType.REFERENCE,
}


def generate_simple_hint(entry: PageTableEntry) -> str:
    """The hint of an entry: its modality where it is no text, where its page is, how much is left of it."""
    modality = None if entry.modality is Modality.TEXT else entry.modality.value
    words = (modality, TIERS.get(entry.tier), LEVELS.get(entry.compression_level))
    return " ".join(word for word in words if word) or HintType.CONTENT
