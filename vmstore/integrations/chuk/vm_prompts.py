"""Rules, tools and the message they stand in, as a model is sent them of its memory. The words are the store's own."""

from __future__ import annotations

from typing import Any

from vmstore.integrations.chuk.models.content import ToolDefinition, ToolFunction, ToolParameter, ToolParameters
from vmstore.integrations.chuk.models.enums import VMMode
from vmstore.vm.protocol.manifest import Policies
from vmstore.vm.protocol.rules import Paging, Rules, rules_text
from vmstore.vm.protocol.tools import VM_TOOLS as TOOL_NAMES
from vmstore.vm.protocol.tools import schema

FAULTS = 2
RULES_TAGS = ("<VM:RULES>\n", "\n</VM:RULES>")
OPENINGS = {
    VMMode.STRICT: "STRICT memory: answer from mapped pages and nothing else.",
    VMMode.RELAXED: "Beside this conversation you have a virtual memory of pages.",
    VMMode.PASSIVE: "You are a helpful assistant. What this session knows stands in the context below; answer from it.",
}


def _rules(mode: VMMode, faults: int) -> str:
    """The rules of a mode without their tags."""
    if mode is VMMode.PASSIVE:
        return OPENINGS[mode]
    rules = Rules.STRICT if mode is VMMode.STRICT else Rules.RELAXED
    text = rules_text(rules, Paging.HYBRID, Policies(max_faults_per_turn=faults))
    opening, closing = RULES_TAGS
    limit = f"Limit of page_fault calls a turn: ({faults})."
    return f"{OPENINGS[mode]}\n{text.removeprefix(opening).removesuffix(closing)}\n{limit}"


VM_STRICT_PROMPT = _rules(VMMode.STRICT, FAULTS)
VM_RELAXED_PROMPT = _rules(VMMode.RELAXED, FAULTS)
VM_PASSIVE_PROMPT = _rules(VMMode.PASSIVE, FAULTS)
VM_PROMPTS = {
    VMMode.STRICT: VM_STRICT_PROMPT,
    VMMode.RELAXED: VM_RELAXED_PROMPT,
    VMMode.PASSIVE: VM_PASSIVE_PROMPT,
}


def get_prompt_for_mode(mode: VMMode) -> str:
    """The rules of a mode."""
    return VM_PROMPTS[mode]


def build_vm_developer_message(
    mode: VMMode,
    manifest_json: str,
    context: str,
    system_prompt: str = "",
    max_faults_per_turn: int = FAULTS,
) -> str:
    """The message that a model is sent: its instructions, the rules, the manifest, and the pages."""
    rules = _rules(mode, max_faults_per_turn)
    if mode is VMMode.PASSIVE:
        blocks = [system_prompt or rules, _block("VM:CONTEXT", context)]
    else:
        blocks = [
            system_prompt,
            _block("VM:RULES", rules),
            _block("VM:MANIFEST_JSON", manifest_json),
            _block("VM:CONTEXT", context),
        ]
    return "\n\n".join(block for block in blocks if block)


def _block(tag: str, text: str) -> str:
    return f"<{tag}>\n{text}\n</{tag}>"


def _definition(tool: str) -> ToolDefinition:
    """A tool as the store publishes its schema."""
    known = schema(tool)
    names = ToolParameter.model_fields
    properties = {
        name: ToolParameter(**{key: value for key, value in stated.items() if key in names})
        for name, stated in known["properties"].items()
    }
    parameters = ToolParameters(properties=properties, required=known["required"])
    return ToolDefinition(function=ToolFunction(name=tool, description=known["description"], parameters=parameters))


VM_TOOL_DEFINITIONS = [_definition(tool) for tool in TOOL_NAMES]
PAGE_FAULT_TOOL, SEARCH_PAGES_TOOL = VM_TOOL_DEFINITIONS


def get_vm_tools(include_search: bool = True) -> list[ToolDefinition]:
    """The tools a model pages with."""
    return list(VM_TOOL_DEFINITIONS) if include_search else [PAGE_FAULT_TOOL]


def get_vm_tools_as_dicts(include_search: bool = True) -> list[dict[str, Any]]:
    """The same as a request carries them."""
    return [tool.model_dump(mode="json", exclude_none=True) for tool in get_vm_tools(include_search)]


VM_TOOLS = get_vm_tools_as_dicts()
