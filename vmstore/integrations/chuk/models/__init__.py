"""Pages, requests for them, contents and counts, as values."""

from vmstore.integrations.chuk.models.abi import MemoryABI, PageManifestEntry, RecallAttempt, UserExperienceMetrics
from vmstore.integrations.chuk.models.content import (
    AudioContent,
    FaultEffects,
    FormattedPage,
    ImageContent,
    PageContent,
    PageData,
    PageMeta,
    SearchResultEntry,
    StructuredContent,
    TextContent,
    ToolDefinition,
    ToolFunction,
    ToolParameter,
    ToolParameters,
    VideoContent,
)
from vmstore.integrations.chuk.models.enums import (
    ALL_COMPRESSION_LEVELS,
    MEMORY_PAGE_MIME_TYPE,
    VM_CHECKPOINT_MIME_TYPE,
    Actor,
    Affinity,
    CompressionLevel,
    ContextPrefix,
    FaultConfidenceThreshold,
    FaultReason,
    MessageRole,
    Modality,
    MutationType,
    PageType,
    StorageTier,
    ToolType,
    VMMode,
)
from vmstore.integrations.chuk.models.fault import FaultPolicy, FaultRecord, PageMutation
from vmstore.integrations.chuk.models.page import MemoryPage, PageTableEntry
from vmstore.integrations.chuk.models.stats import (
    CombinedPageTableStats,
    FaultMetrics,
    MemoryManagerStats,
    MutationLogSummary,
    PackCacheStats,
    PageTableStats,
    PrefetcherStats,
    StorageStats,
    TLBStats,
    TokenBudget,
    VMContext,
    VMMetrics,
    WorkingSetStats,
)

__all__ = [
    "ALL_COMPRESSION_LEVELS", "Actor", "Affinity", "AudioContent", "CombinedPageTableStats", "CompressionLevel",
    "ContextPrefix", "FaultConfidenceThreshold", "FaultEffects", "FaultMetrics", "FaultPolicy", "FaultReason",
    "FaultRecord", "FormattedPage", "ImageContent", "MEMORY_PAGE_MIME_TYPE", "MemoryABI", "MemoryManagerStats",
    "MemoryPage", "MessageRole", "Modality", "MutationLogSummary", "MutationType", "PackCacheStats", "PageContent",
    "PageData", "PageManifestEntry", "PageMeta", "PageMutation", "PageTableEntry", "PageTableStats", "PageType",
    "PrefetcherStats", "RecallAttempt", "SearchResultEntry", "StorageStats", "StorageTier", "StructuredContent",
    "TLBStats", "TextContent", "TokenBudget", "ToolDefinition", "ToolFunction", "ToolParameter", "ToolParameters",
    "ToolType", "UserExperienceMetrics", "VMContext", "VMMetrics", "VMMode", "VM_CHECKPOINT_MIME_TYPE",
    "VideoContent", "WorkingSetStats",
]  # fmt: skip
