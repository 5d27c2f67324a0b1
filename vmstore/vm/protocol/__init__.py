"""The prompt protocol: VM:CONTEXT, the manifest, the rules, the tools, the loop.

Everything here is pure: pages come in as leaves, text and requests go out, and the only thing
called is what the caller hands in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from warnings import warn

from vmstore.vm.assembly.choice import LoweredPage, OmittedPage
from vmstore.vm.protocol.abi import MemoryABI, memory_abi
from vmstore.vm.protocol.citation_filter import unmarked
from vmstore.vm.protocol.citations import Citation, citations
from vmstore.vm.protocol.context import ContextLine, context_text, read_context
from vmstore.vm.protocol.conversation import conversation
from vmstore.vm.protocol.loop import DeniedFault, ManagedSession, RunResult, rounds
from vmstore.vm.protocol.manifest import Policies, manifest, manifest_json
from vmstore.vm.protocol.memo import Memo
from vmstore.vm.protocol.messages import Messages, messages
from vmstore.vm.protocol.prompt_page import PageForm, PromptPage
from vmstore.vm.protocol.rules import Paging, Rules, developer_message, may_fault, rules_text
from vmstore.vm.protocol.select import Selection, select
from vmstore.vm.protocol.tool_results import (
    Budget,
    LoadedPage,
    SearchHit,
    SearchResults,
    page_result,
    refusal,
    search_result,
)
from vmstore.vm.protocol.tools import SCHEMAS, VM_TOOLS, schema, toolset_hash

__all__ = [
    "PromptPage",
    "PageForm",
    "select",
    "Selection",
    "OmittedPage",
    "LoweredPage",
    "context_text",
    "read_context",
    "ContextLine",
    "manifest",
    "manifest_json",
    "Policies",
    "Rules",
    "Paging",
    "may_fault",
    "rules_text",
    "developer_message",
    "conversation",
    "messages",
    "Messages",
    "VM_TOOLS",
    "SCHEMAS",
    "schema",
    "toolset_hash",
    "MemoryABI",
    "memory_abi",
    "Memo",
    "LoadedPage",
    "SearchHit",
    "SearchResults",
    "Budget",
    "page_result",
    "search_result",
    "refusal",
    "Citation",
    "citations",
    "rounds",
    "unmarked",
    "RunResult",
    "ManagedSession",
    "DeniedFault",
]

_BEFORE = {
    "Leaf": PromptPage,
    "Form": PageForm,
    "Left": OmittedPage,
    "Lowered": LoweredPage,
    "Line": ContextLine,
    "Loaded": LoadedPage,
    "Hit": SearchHit,
    "Found": SearchResults,
    "Ran": RunResult,
    "Session": ManagedSession,
    "Denied": DeniedFault,
}
"""Names as they were before; they go with the release after this one."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Resolves a former name, with a warning that states the new one."""
        if name not in _BEFORE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        now = _BEFORE[name]
        words = f"vmstore.vm.protocol.{name} is called {now.__name__}; the old name goes with the next release"
        warn(words, DeprecationWarning, stacklevel=2)
        return now
