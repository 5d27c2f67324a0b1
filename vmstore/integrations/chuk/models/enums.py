"""The words of the package: a value of each is the text, or the number, that stands in JSON."""

from __future__ import annotations

from enum import IntEnum, StrEnum

MEMORY_PAGE_MIME_TYPE = "application/x-memory-page"
VM_CHECKPOINT_MIME_TYPE = "application/x-vm-checkpoint"


class CompressionLevel(IntEnum):
    """How much of a page is shown."""

    FULL = 0
    REDUCED = 1
    ABSTRACT = 2
    REFERENCE = 3


ALL_COMPRESSION_LEVELS: list[CompressionLevel] = list(CompressionLevel)


class Modality(StrEnum):
    """The kind of content of a page."""

    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"
    STRUCTURED = "structured"


class StorageTier(StrEnum):
    """The tier of a page: L0 the prompt, L1 at hand, L2 to L4 away."""

    L0 = "L0"
    L1 = "L1"
    L2 = "L2"
    L3 = "L3"
    L4 = "L4"


class Affinity(StrEnum):
    """The place a page is near to."""

    LOCAL = "local"
    REMOTE = "remote"
    SHARED = "shared"


class VMMode(StrEnum):
    """How much a model is asked to keep to its memory."""

    STRICT = "strict"
    RELAXED = "relaxed"
    PASSIVE = "passive"


class MessageRole(StrEnum):
    """The author of a message."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    SYSTEM = "system"


class PageType(StrEnum):
    """The purpose of a page."""

    TRANSCRIPT = "transcript"
    SUMMARY = "summary"
    ARTIFACT = "artifact"
    CLAIM = "claim"
    PROCEDURE = "procedure"
    INDEX = "index"


class FaultReason(StrEnum):
    """The reason a page was asked for."""

    USER_REQUESTED_RECALL = "user_requested_recall"
    RESOLVE_REFERENCE = "resolve_reference"
    TOOL_PREREQUISITE = "tool_prereq"
    SPECULATIVE = "speculative"


class MutationType(StrEnum):
    """The kind of a mutation of a page."""

    CREATE = "create"
    FAULT_IN = "fault_in"
    EVICT = "evict"
    COMPRESS = "compress"
    PIN = "pin"
    UNPIN = "unpin"
    UPDATE = "update"
    DELETE = "delete"


class Actor(StrEnum):
    """The author of a mutation."""

    USER = "user"
    MODEL = "model"
    TOOL = "tool"
    SYSTEM = "system"


class ContextPrefix(StrEnum):
    """The letter a line of a packed context begins with."""

    USER = "U"
    ASSISTANT = "A"
    TOOL = "T"
    SUMMARY = "S"
    IMAGE = "I"
    AUDIO = "D"
    VIDEO = "V"
    STRUCTURED = "J"
    UNKNOWN = "?"


class ToolType(StrEnum):
    """The kind of a tool that is offered to a model."""

    FUNCTION = "function"


class FaultConfidenceThreshold(StrEnum):
    """How sure a request for a page has to be."""

    EXPLICIT = "explicit"
    REFERENCED = "referenced"
    SPECULATIVE = "speculative"
