"""Shorter forms of pages, by modality. Texts are shortened as the store shortens them, word for word."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from pydantic import BaseModel

from vmstore.core.text.token_estimate import CHARACTERS_PER_TOKEN
from vmstore.integrations.chuk.models.enums import CompressionLevel, Modality
from vmstore.integrations.chuk.models.page import MemoryPage
from vmstore.integrations.items import as_json
from vmstore.vm.compressors.form import Form, Material
from vmstore.vm.compressors.registry import compressed

CUT = " … "
SummarizeFn = Callable[[str, int], Awaitable[str]]
"""Writes a text in at most so many tokens."""


class CompressionResult(BaseModel):
    """A page before and after."""

    page: MemoryPage
    original_tokens: int
    compressed_tokens: int
    level_before: CompressionLevel
    level_after: CompressionLevel

    @property
    def tokens_saved(self) -> int:
        """How many tokens less it takes."""
        return self.original_tokens - self.compressed_tokens


class Compressor(Protocol):
    """The interface of a compressor."""

    @property
    def supported_modality(self) -> Modality:
        """The modality it shortens."""
        ...

    async def compress(self, page: MemoryPage, target_level: CompressionLevel) -> CompressionResult:
        """The page at a level; as it is where it is there already."""
        ...

    def can_compress(self, current_level: CompressionLevel, target_level: CompressionLevel) -> bool:
        """Whether there is anything to do."""
        ...


class TextCompressorConfig(BaseModel):
    """How short texts are made."""

    reduced_ratio: float = 0.5
    abstract_max_tokens: int = 200
    reference_max_tokens: int = 50


class TextCompressor:
    """Texts: their central sentences, their key points, their first line; or what a function writes of them."""

    def __init__(self, config: TextCompressorConfig | None = None, summarize_fn: SummarizeFn | None = None) -> None:
        self.config = TextCompressorConfig() if config is None else config
        self._summarize = summarize_fn

    @property
    def supported_modality(self) -> Modality:
        """Text."""
        return Modality.TEXT

    def can_compress(self, current_level: CompressionLevel, target_level: CompressionLevel) -> bool:
        """Whether the level is a shorter one."""
        return target_level > current_level

    async def compress(self, page: MemoryPage, target_level: CompressionLevel) -> CompressionResult:
        """The page at a shorter level; as it is where it is there already."""
        if not self.can_compress(page.compression_level, target_level) or not _is_read(page):
            return unchanged(page)
        text = text_of(page)
        return result(page, target_level, await self._shorter(page, text, target_level))

    async def _shorter(self, page: MemoryPage, text: str, level: CompressionLevel) -> str:
        if level is CompressionLevel.REFERENCE:
            first = next(iter(text.strip().splitlines()), "")
            return clipped(f"[{page.page_type.value}] {first}", self.config.reference_max_tokens)
        most = self.config.abstract_max_tokens
        if level is CompressionLevel.REDUCED:
            most = max(1, int(page.estimate_tokens() * self.config.reduced_ratio))
        if self._summarize is not None:
            return await self._summarize(text, most)
        form = compressed(Material(content=text.encode("utf-8", "replace")), level)
        return clipped(form.content.decode() if isinstance(form, Form) else text, most)


class ImageCompressor:
    """Pictures: their captions, then a line that names them; no smaller picture is made."""

    @property
    def supported_modality(self) -> Modality:
        """Pictures."""
        return Modality.IMAGE

    def can_compress(self, current_level: CompressionLevel, target_level: CompressionLevel) -> bool:
        """Whether the level is a shorter one."""
        return target_level > current_level

    async def compress(self, page: MemoryPage, target_level: CompressionLevel) -> CompressionResult:
        """The page at a shorter level; as it is where it is there already."""
        if not self.can_compress(page.compression_level, target_level):
            return unchanged(page)
        if target_level is CompressionLevel.REDUCED:
            return relabelled(page, target_level)
        if target_level is CompressionLevel.ABSTRACT:
            return result(page, target_level, page.caption or "[IMAGE]")
        return result(page, target_level, f"[image:{page.page_id}]")


class PassthroughCompressor:
    """Keeps the content of pages that only a model could shorten."""

    def __init__(self, modality: Modality = Modality.TEXT) -> None:
        self._modality = modality

    @property
    def supported_modality(self) -> Modality:
        """The modality it was made for."""
        return self._modality

    def can_compress(self, current_level: CompressionLevel, target_level: CompressionLevel) -> bool:
        """Whether the level is a shorter one."""
        return target_level > current_level

    async def compress(self, page: MemoryPage, target_level: CompressionLevel) -> CompressionResult:
        """The page with another level and the same content."""
        if not self.can_compress(page.compression_level, target_level):
            return unchanged(page)
        return relabelled(page, target_level)


class CompressorRegistry:
    """The compressor of each modality."""

    def __init__(self, compressors: dict[Modality, Compressor] | None = None) -> None:
        self._compressors: dict[Modality, Compressor] = dict(compressors or {})

    def register(self, modality: Modality, compressor: Compressor) -> None:
        """Has a compressor shorten a modality."""
        self._compressors[modality] = compressor

    def get(self, modality: Modality) -> Compressor:
        """The compressor of a modality; one that keeps contents where none was registered."""
        return self._compressors.get(modality) or PassthroughCompressor(modality)

    async def compress_page(self, page: MemoryPage, target_level: CompressionLevel) -> CompressionResult:
        """A page at a level, by the compressor of its modality."""
        return await self.get(page.modality).compress(page, target_level)

    @classmethod
    def default(cls) -> CompressorRegistry:
        """Texts and pictures shortened, all else as it is."""
        others = (Modality.AUDIO, Modality.VIDEO, Modality.STRUCTURED)
        compressors: dict[Modality, Compressor] = {Modality.TEXT: TextCompressor(), Modality.IMAGE: ImageCompressor()}
        return cls(compressors | {modality: PassthroughCompressor(modality) for modality in others})


def text_of(page: MemoryPage) -> str:
    """The content of a page as a text."""
    if page.content is None:
        return ""
    if isinstance(page.content, bytes):
        return f"[{len(page.content):,} bytes]"
    return page.content if isinstance(page.content, str) else as_json(page.content).decode()


def _is_read(page: MemoryPage) -> bool:
    """Whether a page has words to be shortened."""
    return page.content is not None and not isinstance(page.content, bytes)


def clipped(text: str, tokens: int) -> str:
    """A text within some tokens: whole, or its beginning and its end."""
    most = tokens * CHARACTERS_PER_TOKEN
    if len(text) <= most:
        return text
    end = max(0, most - len(CUT)) // 4
    begin = max(0, most - len(CUT) - end)
    return f"{text[:begin]}{CUT}{text[len(text) - end :]}" if begin and end else text[:most]


def unchanged(page: MemoryPage) -> CompressionResult:
    """The result where there was nothing to do."""
    level, tokens = page.compression_level, page.estimate_tokens()
    # Without a copy: the page of the result is the one that was handed in.
    return CompressionResult.model_construct(
        page=page, original_tokens=tokens, compressed_tokens=tokens, level_before=level, level_after=level
    )


def result(page: MemoryPage, level: CompressionLevel, content: str) -> CompressionResult:
    """The result where a page has a shorter content."""
    tokens = max(1, len(content) // CHARACTERS_PER_TOKEN)
    short = page.model_copy(update={"content": content, "compression_level": level, "size_tokens": tokens})
    return CompressionResult.model_construct(
        page=short,
        original_tokens=page.estimate_tokens(),
        compressed_tokens=tokens,
        level_before=page.compression_level,
        level_after=level,
    )


def relabelled(page: MemoryPage, level: CompressionLevel) -> CompressionResult:
    """The result where a page has the same content at another level."""
    tokens = page.estimate_tokens()
    return CompressionResult.model_construct(
        page=page.model_copy(update={"compression_level": level}),
        original_tokens=tokens,
        compressed_tokens=tokens,
        level_before=page.compression_level,
        level_after=level,
    )
