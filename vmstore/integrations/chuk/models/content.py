"""The values tools hand to a model: contents by modality, effects of a fault, tools as they are offered."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from vmstore.integrations.chuk.models.enums import CompressionLevel, Modality, StorageTier, ToolType


class TextContent(BaseModel):
    """A text."""

    text: str = ""


class ImageContent(BaseModel):
    """A picture: where it lies, its bytes as a data URL, or words about it."""

    caption: str | None = None
    url: str | None = None
    base64: str | None = None
    embedding: list[float] | None = None


class AudioContent(BaseModel):
    """Sound, as the words that are spoken in it."""

    transcript: str | None = None
    timestamps: list[dict[str, Any]] | None = None
    duration_seconds: float | None = None


class VideoContent(BaseModel):
    """A film, as its scenes and the words that are spoken in it."""

    scenes: list[Any] = Field(default_factory=list)
    transcript: str | None = None
    duration_seconds: float | None = None


class StructuredContent(BaseModel):
    """Data, with the name of its schema."""

    data: dict[str, Any] = Field(default_factory=dict)
    schema_name: str | None = None


PageContent = TextContent | ImageContent | AudioContent | VideoContent | StructuredContent


class PageMeta(BaseModel):
    """The facts of a page beside its content."""

    source_tier: StorageTier | None = None
    mime_type: str | None = None
    size_bytes: int | None = None
    dimensions: list[int] | None = None
    duration_seconds: float | None = None
    latency_ms: float | None = None


class PageData(BaseModel):
    """A page as a tool hands it to a model."""

    page_id: str
    modality: Modality
    level: CompressionLevel
    tier: StorageTier
    content: PageContent
    meta: PageMeta = Field(default_factory=PageMeta)


class FaultEffects(BaseModel):
    """The changes of a fault in the working set."""

    promoted_to_working_set: bool = False
    tokens_est: int = 0
    evictions: list[str] | None = None


class SearchResultEntry(BaseModel):
    """A page that a search found."""

    page_id: str
    modality: Modality
    tier: StorageTier
    levels: list[CompressionLevel] = Field(default_factory=list)
    hint: str = ""
    relevance: float = 0.0


class ToolParameter(BaseModel):
    """A parameter of a tool, as JSON Schema states it."""

    type: str
    description: str
    enum: list[str] | None = None
    minimum: int | None = None
    maximum: int | None = None
    default: Any | None = None


class ToolParameters(BaseModel):
    """The parameters of a tool."""

    type: str = "object"
    properties: dict[str, ToolParameter] = Field(default_factory=dict)
    required: list[str] = Field(default_factory=list)


class ToolFunction(BaseModel):
    """A function that a model may call."""

    name: str
    description: str
    parameters: ToolParameters


class ToolDefinition(BaseModel):
    """A tool as it is offered to a model."""

    type: ToolType = ToolType.FUNCTION
    function: ToolFunction


class FormattedPage(BaseModel):
    """A page as the line of a packed context."""

    content: str
    tokens_est: int = 0
