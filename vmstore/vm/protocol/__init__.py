"""How the prompt is written and what the model may ask: VM:CONTEXT, the manifest, the rules, the tools, the loop.

Everything here is pure: pages come in as leaves, text and requests go out, and the only thing
called is what the caller hands in.
"""

from __future__ import annotations

from vmstore.vm.protocol.abi import MemoryABI, memory_abi
from vmstore.vm.protocol.citation_filter import unmarked
from vmstore.vm.protocol.citations import Citation, citations
from vmstore.vm.protocol.context import Line, context_text, read_context
from vmstore.vm.protocol.conversation import conversation
from vmstore.vm.protocol.loop import Denied, Ran, Session, rounds
from vmstore.vm.protocol.manifest import Policies, manifest, manifest_json
from vmstore.vm.protocol.memo import Memo
from vmstore.vm.protocol.messages import Messages, messages
from vmstore.vm.protocol.prompt_page import Form, Leaf
from vmstore.vm.protocol.rules import Paging, Rules, developer_message, may_fault, rules_text
from vmstore.vm.protocol.select import Left, Lowered, Selection, select
from vmstore.vm.protocol.tool_results import Budget, Found, Hit, Loaded, page_result, refusal, search_result
from vmstore.vm.protocol.tools import SCHEMAS, VM_TOOLS, schema, toolset_hash

__all__ = [
    "Leaf",
    "Form",
    "select",
    "Selection",
    "Left",
    "Lowered",
    "context_text",
    "read_context",
    "Line",
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
    "Loaded",
    "Hit",
    "Found",
    "Budget",
    "page_result",
    "search_result",
    "refusal",
    "Citation",
    "citations",
    "rounds",
    "unmarked",
    "Ran",
    "Session",
    "Denied",
]
