"""The memory package of chuk-ai-session-manager, by its names, over a store: specs/chuk.md."""

from vmstore.integrations.chuk.artifacts_bridge import (
    ArtifactsBridge,
    CheckpointEntry,
    CheckpointManifest,
    CheckpointMetadata,
    InMemoryBackend,
    PageMetadata,
)
from vmstore.integrations.chuk.compressor import (
    CompressionResult,
    Compressor,
    CompressorRegistry,
    ImageCompressor,
    PassthroughCompressor,
    TextCompressor,
    TextCompressorConfig,
)
from vmstore.integrations.chuk.context_packer import ContextPacker, ContextPackerConfig, PackedContext
from vmstore.integrations.chuk.demand_paging import DEFAULT_RECALL_SIGNALS, DemandPagingPrePass
from vmstore.integrations.chuk.eviction_policy import (
    EvictionCandidate,
    EvictionContext,
    EvictionPolicy,
    ImportanceWeightedLRU,
    ImportanceWeightedLRUConfig,
    LRUEvictionPolicy,
    ModalityAwareLRU,
    ModalityAwareLRUConfig,
)
from vmstore.integrations.chuk.fault_handler import (
    FaultResult,
    PageFaultHandler,
    PageSearchHandler,
    SearchResult,
    VMToolError,
    VMToolResult,
)
from vmstore.integrations.chuk.manager import MemoryManager
from vmstore.integrations.chuk.manifest import (
    AvailablePageEntry,
    HintType,
    ManifestBuilder,
    ManifestPolicies,
    VMManifest,
    WorkingSetEntry,
    generate_simple_hint,
)
from vmstore.integrations.chuk.models import (
    ALL_COMPRESSION_LEVELS,
    MEMORY_PAGE_MIME_TYPE,
    VM_CHECKPOINT_MIME_TYPE,
    Actor,
    Affinity,
    AudioContent,
    CombinedPageTableStats,
    CompressionLevel,
    ContextPrefix,
    FaultConfidenceThreshold,
    FaultEffects,
    FaultMetrics,
    FaultPolicy,
    FaultReason,
    FaultRecord,
    FormattedPage,
    ImageContent,
    MemoryABI,
    MemoryPage,
    MessageRole,
    Modality,
    MutationType,
    PageContent,
    PageData,
    PageManifestEntry,
    PageMeta,
    PageMutation,
    PageTableEntry,
    PageTableStats,
    PageType,
    RecallAttempt,
    SearchResultEntry,
    StorageStats,
    StorageTier,
    StructuredContent,
    TextContent,
    TLBStats,
    TokenBudget,
    ToolDefinition,
    ToolFunction,
    ToolParameter,
    ToolParameters,
    ToolType,
    UserExperienceMetrics,
    VideoContent,
    VMMetrics,
    VMMode,
    WorkingSetStats,
)
from vmstore.integrations.chuk.models.page import event_to_page
from vmstore.integrations.chuk.mutation_log import ContextSnapshot, MutationLogLite
from vmstore.integrations.chuk.pack_cache import ContextPackCache
from vmstore.integrations.chuk.pack_cache import PackedContext as CachedPackedContext
from vmstore.integrations.chuk.page_table import PageTable
from vmstore.integrations.chuk.prefetcher import SimplePrefetcher, ToolUsagePattern
from vmstore.integrations.chuk.replacement import replace_package, use, using
from vmstore.integrations.chuk.tlb import PageTLB, TLBWithPageTable
from vmstore.integrations.chuk.vm_prompts import (
    PAGE_FAULT_TOOL,
    SEARCH_PAGES_TOOL,
    VM_PASSIVE_PROMPT,
    VM_PROMPTS,
    VM_RELAXED_PROMPT,
    VM_STRICT_PROMPT,
    VM_TOOL_DEFINITIONS,
    VM_TOOLS,
    build_vm_developer_message,
    get_prompt_for_mode,
    get_vm_tools,
    get_vm_tools_as_dicts,
)
from vmstore.integrations.chuk.working_set import AntiThrashPolicy, PinnedSet, WorkingSetConfig, WorkingSetManager

__all__ = [
    "Actor", "Affinity", "CompressionLevel", "ContextPrefix", "FaultConfidenceThreshold", "FaultReason",
    "MessageRole", "Modality", "MutationType", "PageType", "StorageTier", "ToolType", "VMMode",
    "ALL_COMPRESSION_LEVELS", "MEMORY_PAGE_MIME_TYPE", "VM_CHECKPOINT_MIME_TYPE", "CombinedPageTableStats",
    "FaultMetrics", "PageTableStats", "StorageStats", "TLBStats", "WorkingSetStats", "AudioContent", "FaultEffects",
    "FormattedPage", "ImageContent", "PageContent", "PageData", "PageMeta", "SearchResultEntry",
    "StructuredContent", "TextContent", "VideoContent", "ToolDefinition", "ToolFunction", "ToolParameter",
    "ToolParameters", "MemoryPage", "PageTableEntry", "TokenBudget", "VMMetrics", "FaultPolicy", "FaultRecord",
    "PageMutation", "MemoryABI", "PageManifestEntry", "RecallAttempt", "UserExperienceMetrics", "PageTable",
    "PageTLB", "TLBWithPageTable", "AntiThrashPolicy", "PinnedSet", "WorkingSetConfig", "WorkingSetManager",
    "CachedPackedContext", "ContextPackCache", "ContextSnapshot", "MutationLogLite", "SimplePrefetcher",
    "ToolUsagePattern", "ContextPacker", "ContextPackerConfig", "PackedContext", "AvailablePageEntry", "HintType",
    "ManifestBuilder", "ManifestPolicies", "VMManifest", "WorkingSetEntry", "generate_simple_hint", "FaultResult",
    "PageFaultHandler", "PageSearchHandler", "SearchResult", "VMToolError", "VMToolResult", "ArtifactsBridge",
    "CheckpointEntry", "CheckpointManifest", "CheckpointMetadata", "InMemoryBackend", "PageMetadata",
    "PAGE_FAULT_TOOL", "SEARCH_PAGES_TOOL", "VM_PASSIVE_PROMPT", "VM_PROMPTS", "VM_RELAXED_PROMPT",
    "VM_STRICT_PROMPT", "VM_TOOL_DEFINITIONS", "VM_TOOLS", "EvictionCandidate", "EvictionContext", "EvictionPolicy",
    "ImportanceWeightedLRU", "ImportanceWeightedLRUConfig", "LRUEvictionPolicy", "ModalityAwareLRU",
    "ModalityAwareLRUConfig", "CompressionResult", "Compressor", "CompressorRegistry", "ImageCompressor",
    "PassthroughCompressor", "TextCompressor", "TextCompressorConfig", "MemoryManager", "event_to_page",
    "build_vm_developer_message", "get_prompt_for_mode", "get_vm_tools", "get_vm_tools_as_dicts",
    "DEFAULT_RECALL_SIGNALS", "DemandPagingPrePass", "replace_package", "use", "using",
]  # fmt: skip
