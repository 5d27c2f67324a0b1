"""The tools a model pages and recalls with, as JSON Schema has them: definitions, and what counts as a right call."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from vmstore.core.page import Modality
from vmstore.core.text.token_estimate import estimate
from vmstore.errors import InputError
from vmstore.vm.protocol.escape import loads

SCHEMAS: Final[tuple[str, ...]] = (
    "page_fault",
    "search_pages",
    "manifest",
    "page_result",
    "search_result",
    "refusal",
    "abi",
    "find_quote",
    "remember_when",
    "recall_all",
    "query_facts",
    "expand_topic",
    "collapse_topic",
)
VM_TOOLS: Final[tuple[str, ...]] = ("page_fault", "search_pages")
RECALL_TOOLS: Final[tuple[str, ...]] = ("find_quote", "remember_when", "recall_all")
"""Tools that only read: a session offers them where its setting `recall_tools` says so."""
FACT_TOOLS: Final[tuple[str, ...]] = ("query_facts",)
TOPIC_TOOLS: Final[tuple[str, ...]] = ("expand_topic", "collapse_topic")
"""Tools of a managed window where its session knows facts, or has topics: these say what is told from then on."""
_EXAMPLES: Final = {
    "page_fault": '{"page_id": "p17", "target_level": 2}',
    "search_pages": '{"query": "the database decision"}',
    "find_quote": '{"text": "we take Postgres"}',
    "remember_when": '{"query": "the deploy", "preset": "last_week"}',
    "recall_all": '{"tokens": 2000}',
    "query_facts": '{"subject": "user", "verb": "lives in"}',
    "expand_topic": '{"tag": "garden"}',
    "collapse_topic": '{"tag": "garden", "depth": "none"}',
}
KINDS: dict[str, type] = {"string": str, "integer": int}


def memory_tools(recall: bool) -> tuple[str, ...]:
    """The names of the tools that the memory answers itself, those that only read among them if `recall`."""
    return (*VM_TOOLS, *RECALL_TOOLS) if recall else VM_TOOLS


def schema(name: str) -> dict[str, Any]:
    """One of the published schemas, all of which stand in the folder `schemas`; the caller's to change."""
    found: dict[str, Any] = json.loads(_published(name))
    return found


def parameters(tool: str) -> dict[str, Any]:
    """The schema of a tool's arguments as requests carry it."""
    whole = schema(tool)
    return {key: whole[key] for key in ("type", "properties", "required")}


def arguments_of(tool: str, given: Any) -> dict[str, Any]:
    """The arguments of a call, with the defaults of those left out; what the tool does not know is dropped.

    `given` is an object or its JSON text. Raises InputError naming the argument that is wrong.
    """
    if isinstance(given, str):
        given = _read(tool, given)
    if not isinstance(given, Mapping):
        raise InputError(f"{tool}: the arguments are no JSON object; give one like {_example(tool)}", code="not-json")
    known = schema(tool)
    taken: dict[str, Any] = {}
    for name, schema_of_argument in known["properties"].items():
        if given.get(name) is not None:
            taken[name] = _checked(tool, name, given[name], schema_of_argument)
        elif name in known["required"]:
            raise InputError(f"{tool}: no {name}; give one like {_example(tool)}", code="argument-missing")
        elif "default" in schema_of_argument:
            taken[name] = schema_of_argument["default"]
    return taken


def toolset_hash(tools: Sequence[Any]) -> str:
    """The id of a set of tool definitions: SHA-256 of its canonical JSON, in hexadecimal."""
    return hashlib.sha256(_canonical(tools)).hexdigest()


def toolset_tokens(tools: Sequence[Any]) -> int:
    """Estimated tokens of the definitions, which every call pays for."""
    return estimate(_canonical(tools), Modality.STRUCTURED) if tools else 0


@functools.cache
def _published(name: str) -> bytes:
    assert name in SCHEMAS, f"schemas are {SCHEMAS}"
    return Path(__file__).parent.joinpath("schemas", f"{name}.json").read_bytes()


def _canonical(tools: Sequence[Any]) -> bytes:
    return json.dumps(tools, sort_keys=True, separators=(",", ":")).encode()


def _read(tool: str, text: str) -> Any:
    if not text.strip():
        return {}
    try:
        return loads(text)
    except ValueError:
        raise InputError(
            f"{tool}: the arguments are no JSON; give an object like {_example(tool)}", code="not-json"
        ) from None


def _checked(tool: str, name: str, value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # some providers know only one kind of number
    if not isinstance(value, KINDS[schema["type"]]) or isinstance(value, bool):
        raise InputError(
            f"{tool}: {name} is no {schema['type']}; give one like {_example(tool)}", code="not-an-argument"
        )
    if "enum" in schema and value not in schema["enum"]:
        raise InputError(
            f"{tool}: no {name} {str(value)[:80]!r}; give one of {', '.join(schema['enum'])}", code="not-an-argument"
        )
    if "minimum" in schema and not schema["minimum"] <= value <= schema["maximum"]:
        raise InputError(
            f"{tool}: {name} {value} is not possible; give {schema['minimum']} to {schema['maximum']}",
            code="not-an-argument",
        )
    return value


def _example(tool: str) -> str:
    return _EXAMPLES[tool]
