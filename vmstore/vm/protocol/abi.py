"""MemoryABI: what memory and model agree on before a call, and what a call has left for pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from vmstore.core.page import Modality, PageType
from vmstore.errors import InputError
from vmstore.vm.protocol.escape import printed
from vmstore.vm.protocol.prompt_page import PromptPage
from vmstore.vm.protocol.tools import toolset_hash, toolset_tokens

UPGRADE_TOKENS = 2_048
WEIGHTS_PPM = {
    Modality.TEXT: 1_000_000,
    Modality.IMAGE: 800_000,
    Modality.AUDIO: 600_000,
    Modality.VIDEO: 400_000,
    Modality.STRUCTURED: 1_000_000,  # read as text is
}
"""How much a page's importance counts by its modality, in parts per million."""


class AbiPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page in the prompt, and what may be done with it."""

    page_id: str
    modality: str
    page_type: str
    compression_level: int
    tokens: int
    importance: float
    provenance: tuple[str, ...]
    can_evict: bool
    can_compress: bool


class MemoryABI(msgspec.Struct, frozen=True, kw_only=True):
    """The nine things a model and a memory agree on; `available_tokens` is what the others leave."""

    pages: tuple[AbiPage, ...]
    faults_allowed: bool
    upgrade_budget_tokens: int
    max_context_tokens: int
    reserved_tokens: int
    available_tokens: int
    tool_schema_tokens_reserved: int
    active_toolset_hash: str | None
    modality_weights: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, as the published schema has it."""
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return plain


def memory_abi(
    leaves: Iterable[PromptPage],
    *,
    max_context_tokens: int,
    reserved_tokens: int = 0,
    tools: Sequence[Any] = (),
    faults_allowed: bool = True,
    upgrade_budget_tokens: int = UPGRADE_TOKENS,
) -> MemoryABI:
    """The agreement for these pages and tools; raises InputError where nothing is left for pages."""
    schemas = toolset_tokens(tools)
    available = max_context_tokens - reserved_tokens - schemas
    if available < 0:
        raise InputError(
            f"a window of {max_context_tokens} tokens has no room for {reserved_tokens} reserved and {schemas} of "
            "tool schemas; widen it, or offer fewer tools",
            code="over-budget",
        )
    return MemoryABI(
        pages=tuple(map(_page, leaves)),
        faults_allowed=faults_allowed,
        upgrade_budget_tokens=upgrade_budget_tokens,
        max_context_tokens=max_context_tokens,
        reserved_tokens=reserved_tokens,
        available_tokens=available,
        tool_schema_tokens_reserved=schemas,
        active_toolset_hash=toolset_hash(tools) if tools else None,
        modality_weights={modality.word: weight / 1_000_000 for modality, weight in WEIGHTS_PPM.items()},
    )


def _page(leaf: PromptPage) -> AbiPage:
    return AbiPage(
        page_id=printed(leaf.name),
        modality=leaf.modality.word,
        page_type=leaf.type.word,
        compression_level=leaf.level,
        tokens=leaf.tokens,
        importance=leaf.importance / 1_000_000,
        provenance=tuple(map(printed, leaf.provenance)),
        can_evict=not (leaf.pinned or leaf.task or leaf.instructs),
        can_compress=leaf.type is not PageType.INDEX and leaf.lower() is not None,
    )
