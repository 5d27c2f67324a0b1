"""vmstore remembers everything an AI agent's memory ever did, and answers any question about it."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from vmstore import aio
    from vmstore.columns.page_table import PageTable
    from vmstore.core.asof import AsOf, Call, Head, LoggedTime, Moment, Position, Time, Turn
    from vmstore.core.text.explanation import AskedWord, FeatureShare, MatchedWord, SearchExplanation
    from vmstore.embedders.embedder import Embedder, FunctionEmbedder
    from vmstore.embedders.hash_grams import HashGrams
    from vmstore.embedders.http import HttpEmbedder
    from vmstore.engine.batch import HandBatch as Batch
    from vmstore.engine.verify.history_tree import SessionHead
    from vmstore.erasure.erase import erase, plan_erasure
    from vmstore.errors import (
        ConflictError,
        CorruptError,
        EmbedderError,
        ErasedError,
        InputError,
        InternalError,
        LockedError,
        OvertakenError,
        ReadOnlyError,
        RefusedError,
        SpanExportError,
        StoreError,
        TextModelError,
        UnknownError,
        VmstoreError,
    )
    from vmstore.maintenance.archive import archive, unarchive
    from vmstore.maintenance.backup import backup, restore
    from vmstore.maintenance.doctor import doctor
    from vmstore.maintenance.embedding_worker import EmbeddingWorker
    from vmstore.maintenance.embeddings import embedded
    from vmstore.maintenance.publish import publish
    from vmstore.namespace.costs import CostShare
    from vmstore.namespace.reports import (
        ArchivedSession,
        ArchiveReport,
        Backup,
        BackupPart,
        Capability,
        Columns,
        ColumnSegment,
        CompactionReport,
        DiskShare,
        EmbeddedShare,
        EmbeddingReport,
        ErasedAgain,
        ErasurePlan,
        ErasureReport,
        ExportReport,
        Health,
        ImportedSession,
        ImportReport,
        Info,
        LeftContent,
        LineProblem,
        LockedFile,
        MergedSession,
        MergeReport,
        MigratedNamespace,
        MigratedSession,
        MigrationReport,
        NamespaceHealth,
        PlannedPage,
        PlannedSession,
        Problem,
        PublishedPart,
        PublishedViews,
        PublishReport,
        RestoreReport,
        SealInfo,
        SkippedSession,
        StoredContents,
        SweepReport,
        Symptom,
        Usage,
        VectorCoverage,
        Verdict,
    )
    from vmstore.namespace.results import (
        Affinity,
        Basis,
        CallInfo,
        Change,
        Compaction,
        ContextPage,
        Diff,
        Entry,
        Event,
        Fault,
        FaultAnswer,
        Hit,
        Hits,
        Page,
        PageLink,
        RecordedCall,
        Response,
        SessionInfo,
        SessionOverview,
        TurnInfo,
        Version,
    )
    from vmstore.namespace.signing_keys import SigningKey, new_key
    from vmstore.namespace.storekey import new_store_key
    from vmstore.prices.price_list import Price, PriceList
    from vmstore.providers.text_model import AnthropicModel, OpenAIModel, TextReply, TokenCounts
    from vmstore.replay.check import Difference, ReplayCheck
    from vmstore.replay.whatif import Divergence, Optimum, Run, SavedReplay
    from vmstore.retention.apply import RetentionReport
    from vmstore.retention.rules import RetentionRule, SparedPage
    from vmstore.retraction.results import Conflict, RegeneratedPage, RetractedPage, RetractedSession, Retraction
    from vmstore.retraction.retract import retract
    from vmstore.seals.seal import Seal
    from vmstore.seals.seals import read_seal, seal
    from vmstore.shares.regions import GrantInfo, Region, grants, regions, revoke, share
    from vmstore.store.approvals import ApprovalInfo, approvals, approve
    from vmstore.store.breakpoints import Breakpoint
    from vmstore.store.debug import Debug
    from vmstore.store.encrypt import EncryptionReport, RekeyReport, encrypt, rekey
    from vmstore.store.fleet.fleet import Fleet, LeftOut, open_fleet
    from vmstore.store.ledger_model import LedgerModel
    from vmstore.store.lineage import Lineage
    from vmstore.store.live.checkpoints import Checkpoint
    from vmstore.store.live.copy_page import bring, origin
    from vmstore.store.live.driver import Streamed
    from vmstore.store.live.live_session import Live
    from vmstore.store.live.options import LiveOptions
    from vmstore.store.live.prompt import Prompt
    from vmstore.store.live.tool_memory import MemoryPage, ToolMemory
    from vmstore.store.notes.exporter import NotesExport
    from vmstore.store.notes.importer import NotesImport
    from vmstore.store.parts.admin import Admin
    from vmstore.store.parts.catalog import Catalog
    from vmstore.store.parts.regions import Sharing
    from vmstore.store.parts.search_index import SearchIndex
    from vmstore.store.parts.trust import Trust
    from vmstore.store.reads.context import Context
    from vmstore.store.reads.evidence import SourceEvidence
    from vmstore.store.reads.proofs import Proof
    from vmstore.store.reads.session_diff import AlignedPages, SessionDiff
    from vmstore.store.recall.assembly.results import AssembledPrompt, PartChoice, PromptChoice, PromptOmission
    from vmstore.store.recall.memory import SessionMemory
    from vmstore.store.recall.parts.fact_memory import FactMemory
    from vmstore.store.recall.parts.segment_memory import SegmentMemory
    from vmstore.store.recall.parts.store_facts import StoreFacts
    from vmstore.store.recall.parts.tag_memory import TagMemory
    from vmstore.store.recall.parts.turn_memory import TurnMemory
    from vmstore.store.recall.results import (
        FactEdge,
        FactGraph,
        FactLink,
        FactsFound,
        FoundPage,
        FoundPages,
        FoundQuote,
        FoundQuotes,
        KnownFact,
        NamedTime,
        NamedTimes,
        Overview,
        Passage,
        RecallAnswer,
        RecalledText,
        RecallWorth,
        Topic,
    )
    from vmstore.store.recall.segments import SegmentInfo
    from vmstore.store.recall.store_memory import StoreMemory
    from vmstore.store.recall.tags import AliasSuggestion, TagInfo
    from vmstore.store.recall.tiers import ColdPage, NearTurn
    from vmstore.store.recall.turns.turn_summary import TurnSummaries
    from vmstore.store.session import Session
    from vmstore.store.settings_file import read_settings
    from vmstore.store.spans.exporter import SpanExporter
    from vmstore.store.store import Store, memory_store
    from vmstore.store.store import open_store as open
    from vmstore.store.virtual_context.chat_message import ClientMessage
    from vmstore.store.virtual_context.engine import InboundContext, TurnReport, VirtualContextEngine
    from vmstore.store.wire import Wire
    from vmstore.store.work.artifacts import ArtifactInfo, Artifacts
    from vmstore.store.work.atoms import AtomInfo, Atoms
    from vmstore.store.work.digests import Digests
    from vmstore.store.work.forms import AggregateInfo, Forms
    from vmstore.store.work.hand_off import HandOff
    from vmstore.store.work.model_forms import ModelForms
    from vmstore.store.work.observations import ObservationInfo, RecommendedLoad, SessionHit, WorkSearch
    from vmstore.store.work.plans import AgentPlan, Plans
    from vmstore.store.work.report import Brief
    from vmstore.store.work.results import GuardInfo, Lessons, SkillInfo, WorkMeasures
    from vmstore.store.work.session_work import SessionWork
    from vmstore.store.work.store_work import StoreWork
    from vmstore.store.work.tasks import AgentTask
    from vmstore.store.work.tool import ToolResult, tool
    from vmstore.store.work.vbrief import VBriefTools
    from vmstore.transfer.merge import merge
    from vmstore.transfer.migrate import migrate
    from vmstore.views.reads.context import ShownPage
    from vmstore.vm.assembly.tag_rules import TagRule
    from vmstore.vm.kernel.keywords import LiveSettings
    from vmstore.vm.kernel.presets import preset
    from vmstore.vm.kernel.settings import KernelSettings
    from vmstore.vm.metrics.report import FaultShare as FaultCounts
    from vmstore.vm.metrics.report import Measures
    from vmstore.vm.protocol.abi import AbiPage, MemoryABI
    from vmstore.vm.protocol.dialects.dialect import ToolCall
    from vmstore.vm.protocol.loop import RunResult
    from vmstore.vmql.execution.result import Result
    from vmstore.vmql.syntax.errors import QueryError
    from vmstore.work.artifact import ArtifactCheck
    from vmstore.work.digest import PackedDigests, TaskDigest
    from vmstore.work.disclosure import DisclosureStep
    from vmstore.work.plan import PlanStep
    from vmstore.work.vbrief import (
        BriefTier,
        CapturedSession,
        CompressionMetadata,
        CompressionStats,
        Playbook,
        PlaybookEntry,
        TodoItem,
        TodoList,
        VBriefDocument,
        VBriefInfo,
    )

__version__ = "0.1.0"

__all__ = [
    # opens a store, or records what a client sends
    "open", "memory_store", "open_fleet", "Fleet", "LeftOut", "wrap", "aio", "Store", "Session", "Live",
    "LiveSettings", "LiveOptions", "Context",
    "Batch", "preset", "read_settings",
    # moments
    "AsOf", "Moment", "Head", "Turn", "Call", "Position", "Time", "LoggedTime",
    # errors
    "VmstoreError", "StoreError", "LockedError", "InternalError", "UnknownError", "ErasedError", "InputError",
    "RefusedError", "ConflictError", "OvertakenError", "ReadOnlyError", "CorruptError", "QueryError",
    # what a store and a session answer
    "Affinity", "Basis", "CallInfo", "Compaction", "Change", "ContextPage", "Diff", "Entry", "Event", "Fault",
    "FaultAnswer", "Hit", "Hits", "SearchExplanation", "AskedWord", "MatchedWord", "FeatureShare", "Page",
    "RecordedCall", "PageLink", "Response", "SessionInfo", "SessionOverview", "SessionDiff", "AlignedPages",
    "SourceEvidence", "CostShare", "PriceList", "Price", "TurnInfo", "Version", "Result", "ShownPage", "Breakpoint",
    "PageTable", "PartChoice",
    # what a live session answers
    "KernelSettings", "Prompt", "RunResult", "ToolCall", "Streamed", "Checkpoint", "Measures", "FaultCounts",
    # what deciding a session again answers
    "Run", "Divergence", "SavedReplay", "Optimum", "ReplayCheck", "Difference",
    # the care of a store
    "Admin", "Catalog", "SearchIndex",
    "backup", "restore", "archive", "unarchive", "publish", "merge", "migrate", "doctor", "ArchiveReport",
    "ArchivedSession", "PublishReport", "PublishedPart",
    "SkippedSession", "Backup", "BackupPart", "RestoreReport", "Columns", "ColumnSegment", "CompactionReport",
    "EmbeddedShare", "VectorCoverage", "EmbeddingReport", "SweepReport", "ExportReport", "ImportReport",
    "ImportedSession", "LineProblem", "Info", "MergeReport", "MergedSession", "MigrationReport",
    "ErasedAgain", "NotesExport", "NotesImport",
    "MigratedNamespace", "MigratedSession", "PublishedViews", "Usage", "DiskShare", "StoredContents",
    "Verdict", "Problem", "Health", "Capability", "Symptom", "NamespaceHealth", "LockedFile",
    # trust: what is erased, kept, sealed, proved and encrypted
    "Trust", "erase", "plan_erasure", "retract", "seal", "read_seal", "new_key", "approve", "approvals",
    "new_store_key", "encrypt", "rekey", "ErasureReport", "ErasurePlan", "PlannedPage", "PlannedSession",
    "LeftContent", "SealInfo", "RetentionReport", "RetentionRule", "SparedPage", "Retraction", "RetractedSession",
    "RetractedPage", "RegeneratedPage", "Conflict", "Seal", "SessionHead", "Proof", "SigningKey", "ApprovalInfo",
    "EncryptionReport", "RekeyReport",
    # sharing between namespaces
    "Sharing", "share", "revoke", "grants", "regions", "GrantInfo", "Region", "bring", "origin",
    # vectors of texts
    "Embedder", "FunctionEmbedder", "HttpEmbedder", "HashGrams", "EmbeddingWorker", "embedded", "EmbedderError",
    # parts of a session
    "Lineage", "Wire", "Debug", "SessionMemory", "FactMemory", "TagMemory", "SegmentMemory", "TurnMemory",
    "StoreFacts", "FactEdge", "FactGraph", "FactLink", "FactsFound", "KnownFact",
    "StoreMemory", "RecallAnswer", "Passage", "RecalledText", "RecallWorth", "FoundPages", "FoundPage", "FoundQuotes",
    "FoundQuote", "NamedTime", "NamedTimes", "Overview", "Topic", "AssembledPrompt", "PromptChoice", "PromptOmission",
    "TagRule", "NearTurn", "ColdPage",
    # memory in two calls
    "VirtualContextEngine", "ClientMessage", "InboundContext", "TurnReport", "TurnSummaries", "OpenAIModel",
    "AnthropicModel", "TextModelError",
    "LedgerModel", "TextReply", "TokenCounts", "SpanExporter", "SpanExportError",
    "SegmentInfo", "TagInfo", "AliasSuggestion",
    # an agent's work
    "SessionWork", "StoreWork", "GuardInfo", "SkillInfo", "Lessons", "WorkMeasures", "Digests", "Forms", "HandOff",
    "AgentTask", "AggregateInfo", "AtomInfo", "Atoms", "ArtifactCheck", "ArtifactInfo", "Artifacts", "Brief",
    "ObservationInfo", "RecommendedLoad", "SessionHit", "WorkSearch", "AgentPlan", "Plans", "VBriefTools", "AbiPage",
    "ModelForms", "MemoryABI", "PackedDigests", "TaskDigest", "DisclosureStep", "PlanStep", "BriefTier",
    "CapturedSession", "CompressionMetadata", "CompressionStats", "Playbook", "PlaybookEntry", "TodoItem", "TodoList",
    "VBriefDocument", "VBriefInfo", "tool", "ToolResult", "ToolMemory", "MemoryPage", "__version__",
]  # fmt: skip

# Loaded when first used, so that the command's help need not load the store: which module has which names.
_HOMES = {
    "vmstore.store.store": "open=open_store memory_store Store",
    "vmstore.store.session": "Session",
    "vmstore.store.fleet.fleet": "open_fleet Fleet LeftOut",
    "vmstore.store.live.live_session": "Live",
    "vmstore.vm.kernel.keywords": "LiveSettings",
    "vmstore.store.live.options": "LiveOptions",
    "vmstore.store.settings_file": "read_settings",
    "vmstore.vm.kernel.presets": "preset",
    "vmstore.store.reads.context": "Context",
    "vmstore.engine.batch": "Batch=HandBatch",
    "vmstore.core.asof": "AsOf Moment Head Turn Call Position Time LoggedTime",
    "vmstore.errors": (
        "VmstoreError StoreError LockedError InternalError UnknownError ErasedError InputError "
        "RefusedError ConflictError OvertakenError ReadOnlyError CorruptError EmbedderError TextModelError "
        "SpanExportError"
    ),
    "vmstore.vmql.syntax.errors": "QueryError",
    "vmstore.namespace.results": (
        "Affinity Basis CallInfo Change Compaction ContextPage Diff Entry Event Fault FaultAnswer Hit Hits Page "
        "RecordedCall PageLink Response SessionInfo SessionOverview TurnInfo Version"
    ),
    "vmstore.vmql.execution.result": "Result",
    "vmstore.views.reads.context": "ShownPage",
    "vmstore.store.breakpoints": "Breakpoint",
    "vmstore.columns.page_table": "PageTable",
    "vmstore.vm.kernel.settings": "KernelSettings",
    "vmstore.store.live.prompt": "Prompt",
    "vmstore.vm.protocol.loop": "RunResult",
    "vmstore.vm.protocol.dialects.dialect": "ToolCall",
    "vmstore.store.live.driver": "Streamed",
    "vmstore.store.live.checkpoints": "Checkpoint",
    "vmstore.vm.metrics.report": "Measures FaultCounts=FaultShare",
    "vmstore.replay.whatif": "Run Divergence SavedReplay Optimum",
    "vmstore.replay.check": "ReplayCheck Difference",
    "vmstore.store.parts.admin": "Admin",
    "vmstore.store.parts.catalog": "Catalog",
    "vmstore.store.parts.search_index": "SearchIndex",
    "vmstore.maintenance.backup": "backup restore",
    "vmstore.maintenance.archive": "archive unarchive",
    "vmstore.maintenance.publish": "publish",
    "vmstore.transfer.merge": "merge",
    "vmstore.transfer.migrate": "migrate",
    "vmstore.store.notes.exporter": "NotesExport",
    "vmstore.store.notes.importer": "NotesImport",
    "vmstore.maintenance.doctor": "doctor",
    "vmstore.namespace.reports": (
        "ArchiveReport ArchivedSession SkippedSession PublishReport PublishedPart "
        "Backup BackupPart Capability RestoreReport Columns ColumnSegment "
        "CompactionReport EmbeddedShare EmbeddingReport VectorCoverage "
        "SweepReport ExportReport ImportReport ImportedSession LineProblem Info MergeReport MergedSession "
        "MigrationReport MigratedNamespace MigratedSession PublishedViews ErasedAgain "
        "Usage DiskShare StoredContents "
        "Verdict Problem Health Symptom NamespaceHealth LockedFile ErasureReport ErasurePlan "
        "PlannedPage PlannedSession LeftContent SealInfo"
    ),
    "vmstore.store.parts.trust": "Trust",
    "vmstore.erasure.erase": "erase plan_erasure",
    "vmstore.retraction.retract": "retract",
    "vmstore.seals.seals": "seal read_seal",
    "vmstore.namespace.signing_keys": "new_key SigningKey",
    "vmstore.store.approvals": "approve approvals ApprovalInfo",
    "vmstore.namespace.storekey": "new_store_key",
    "vmstore.store.encrypt": "encrypt rekey EncryptionReport RekeyReport",
    "vmstore.retention.apply": "RetentionReport",
    "vmstore.retention.rules": "RetentionRule SparedPage",
    "vmstore.retraction.results": "Retraction RetractedSession RetractedPage RegeneratedPage Conflict",
    "vmstore.seals.seal": "Seal",
    "vmstore.engine.verify.history_tree": "SessionHead",
    "vmstore.store.reads.proofs": "Proof",
    "vmstore.store.parts.regions": "Sharing",
    "vmstore.shares.regions": "share revoke grants regions GrantInfo Region",
    "vmstore.store.live.copy_page": "bring origin",
    "vmstore.store.lineage": "Lineage",
    "vmstore.store.reads.evidence": "SourceEvidence",
    "vmstore.store.reads.session_diff": "SessionDiff AlignedPages",
    "vmstore.namespace.costs": "CostShare",
    "vmstore.prices.price_list": "PriceList Price",
    "vmstore.embedders.http": "HttpEmbedder",
    "vmstore.embedders.hash_grams": "HashGrams",
    "vmstore.embedders.embedder": "Embedder FunctionEmbedder",
    "vmstore.maintenance.embedding_worker": "EmbeddingWorker",
    "vmstore.maintenance.embeddings": "embedded",
    "vmstore.core.text.explanation": "SearchExplanation AskedWord MatchedWord FeatureShare",
    "vmstore.store.wire": "Wire",
    "vmstore.store.debug": "Debug",
    "vmstore.store.work.session_work": "SessionWork",
    "vmstore.store.work.store_work": "StoreWork",
    "vmstore.store.work.tool": "tool ToolResult",
    "vmstore.store.live.tool_memory": "ToolMemory MemoryPage",
    "vmstore.store.work.results": "GuardInfo SkillInfo Lessons WorkMeasures",
    "vmstore.store.work.artifacts": "ArtifactInfo Artifacts",
    "vmstore.store.work.atoms": "AtomInfo Atoms",
    "vmstore.store.work.digests": "Digests",
    "vmstore.store.work.forms": "AggregateInfo Forms",
    "vmstore.store.work.model_forms": "ModelForms",
    "vmstore.store.work.hand_off": "HandOff",
    "vmstore.store.work.observations": "ObservationInfo RecommendedLoad SessionHit WorkSearch",
    "vmstore.store.work.plans": "AgentPlan Plans",
    "vmstore.store.work.report": "Brief",
    "vmstore.store.work.tasks": "AgentTask",
    "vmstore.store.work.vbrief": "VBriefTools",
    "vmstore.vm.protocol.abi": "AbiPage MemoryABI",
    "vmstore.work.artifact": "ArtifactCheck",
    "vmstore.work.digest": "PackedDigests TaskDigest",
    "vmstore.work.disclosure": "DisclosureStep",
    "vmstore.work.plan": "PlanStep",
    "vmstore.work.vbrief": (
        "BriefTier CapturedSession CompressionMetadata CompressionStats Playbook "
        "PlaybookEntry TodoItem TodoList VBriefDocument VBriefInfo"
    ),
    "vmstore.store.recall.memory": "SessionMemory",
    "vmstore.store.recall.parts.fact_memory": "FactMemory",
    "vmstore.store.recall.parts.tag_memory": "TagMemory",
    "vmstore.store.recall.parts.segment_memory": "SegmentMemory",
    "vmstore.store.recall.parts.turn_memory": "TurnMemory",
    "vmstore.store.recall.parts.store_facts": "StoreFacts",
    "vmstore.store.recall.assembly.results": "AssembledPrompt PartChoice PromptChoice PromptOmission",
    "vmstore.vm.assembly.tag_rules": "TagRule",
    "vmstore.store.recall.store_memory": "StoreMemory",
    "vmstore.store.virtual_context.engine": "VirtualContextEngine InboundContext TurnReport",
    "vmstore.store.virtual_context.chat_message": "ClientMessage",
    "vmstore.providers.text_model": "OpenAIModel AnthropicModel TextReply TokenCounts",
    "vmstore.store.ledger_model": "LedgerModel",
    "vmstore.store.spans.exporter": "SpanExporter",
    "vmstore.store.recall.results": (
        "RecallAnswer Passage RecalledText FoundPages FoundPage FoundQuotes FoundQuote Overview Topic RecallWorth"
        " KnownFact FactsFound FactGraph FactEdge FactLink NamedTime NamedTimes"
    ),
    "vmstore.store.recall.tiers": "NearTurn ColdPage",
    "vmstore.store.recall.turns.turn_summary": "TurnSummaries",
    "vmstore.store.recall.segments": "SegmentInfo",
    "vmstore.store.recall.tags": "TagInfo AliasSuggestion",
}
_MODULES = {
    name: (module, attribute or name)
    for module, names in _HOMES.items()
    for name, _, attribute in (word.partition("=") for word in names.split())
}

Client = TypeVar("Client")


def __getattr__(name: str) -> Any:
    """Finds a public name in the room it lives in."""
    if name != "aio" and name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "aio":
        return import_module("vmstore.aio")
    module, attribute = _MODULES[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def wrap(
    client: Client,
    store: str | os.PathLike[str] | Store = "agent.vms",
    session: str | Callable[[dict[str, Any]], str | None] | None = None,
    *,
    redaction: str | None = None,
) -> Client:
    """The client again, recording every request it sends to a model; the one given stays unrecorded.

    An OpenAI, Anthropic or google-genai client, sync or async, or an httpx client that one uses.
    `store` is a path, opened when the first call ends, or an open store. `session` is a name, or a
    function of a request's body that gives one; without it each conversation gets its own, named
    after the provider and the time. With `redaction` mask or refuse no secret enters the store; the
    model is sent what it is sent. The client's `vmstore` has `problems`, `conversation(name)`,
    `flush()` and `close()`.
    """
    from vmstore.capture.client.wrap import wrap as wrapped
    from vmstore.store.recorder import record_together
    from vmstore.store.store import open_store

    return wrapped(client, store, session, open_store=open_store, redaction=redaction, record_together=record_together)
