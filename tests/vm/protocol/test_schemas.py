"""The published schemas: what they take, what the protocol writes by them, and what they catch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError

import vmstore.vm.protocol as protocol
from tests.refusals import refused
from tests.vm.protocol.leaves import form, leaf, leaves
from vmstore.core.page import Modality, PageType, Role, Tier
from vmstore.errors import InputError
from vmstore.vm.protocol import (
    SCHEMAS,
    Budget,
    LoadedPage,
    PromptPage,
    SearchHit,
    SearchResults,
    memory_abi,
    page_result,
    refusal,
    schema,
    search_result,
    toolset_hash,
)
from vmstore.vm.protocol.messages import DIALECTS
from vmstore.vm.protocol.tools import arguments_of, parameters

BUDGET = Budget(3, 2, 8_192)


def valid(name: str, value: Any) -> None:
    """Holds a value against a published schema."""
    Draft202012Validator(schema(name)).validate(value)


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_published_schema_is_one(name: str) -> None:
    """Each schema is a JSON Schema of the draft it names, under its own title."""
    Draft202012Validator.check_schema(schema(name))
    assert schema(name)["title"] == name


def test_every_schema_is_listed() -> None:
    """The folder of schemas holds those that are named, and no other."""
    folder = Path(protocol.__file__).parent / "schemas"
    assert sorted(path.stem for path in folder.iterdir()) == sorted(SCHEMAS)


def test_the_tools_are_the_seeds() -> None:
    """The two definitions are the protocol's to the letter, with the optional reason of a fault beside."""
    fault, search = DIALECTS["chat"].tools()
    reason = fault["function"]["parameters"]["properties"].pop("reason")
    assert reason["enum"] == ["user_requested_recall", "resolve_reference", "tool_prereq", "speculative"]
    assert fault == {
        "type": "function",
        "function": {
            "name": "page_fault",
            "description": "Load a memory page into context at specified compression level. "
            "Use when you need content from a known page_id.",
            "parameters": {
                "type": "object",
                "properties": {
                    "page_id": {"type": "string", "description": "ID of the page to load"},
                    "target_level": {
                        "type": "integer",
                        "minimum": 0,
                        "maximum": 3,
                        "default": 2,
                        "description": "0=full, 1=reduced, 2=abstract/summary, 3=reference only",
                    },
                },
                "required": ["page_id"],
            },
        },
    }
    assert search == {
        "type": "function",
        "function": {
            "name": "search_pages",
            "description": "Search for pages matching a query. "
            "Use when you need to find relevant pages but don't know their IDs.",
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "Search query (semantic or keyword)"},
                    "modality": {
                        "type": "string",
                        "enum": ["text", "image", "audio", "video", "structured"],
                        "description": "Filter by content type",
                    },
                    "limit": {"type": "integer", "default": 5, "description": "Maximum results to return"},
                },
                "required": ["query"],
            },
        },
    }


@given(leaves(), st.booleans(), st.sampled_from(Tier))
def test_any_page_makes_a_valid_envelope(pages: list[PromptPage], promoted: bool, source: Tier) -> None:
    """Every page, of any modality and content, is answered by the schema."""
    for page in pages:
        evicted = tuple(other.name for other in pages)
        valid("page_result", page_result(LoadedPage(page, source, promoted, evicted), BUDGET))
    hits = [
        SearchHit(page, relevance)
        for page, relevance in zip(pages, [-1, 2_000_000, 700_000] * len(pages), strict=False)
    ]
    valid("search_result", search_result(SearchResults(hits, len(pages) + 40), BUDGET))


@given(leaves())
def test_any_pages_make_a_valid_agreement(pages: list[PromptPage]) -> None:
    """The agreement of any pages is by the schema."""
    tools = DIALECTS["chat"].tools()
    valid("abi", memory_abi(pages, max_context_tokens=128_000, reserved_tokens=2_000, tools=tools).to_dict())


def test_the_envelope_of_the_seed() -> None:
    """The protocol's example of a loaded picture comes out as it stands there."""
    page = leaf(
        "img_045",
        "Architecture diagram",
        modality=Modality.IMAGE,
        level=2,
        tier=Tier.L1,
        tokens=95,
        mime="image/png; charset=utf-8",
        width=1200,
        height=800,
        others=(),
    )
    caption = PromptPage(**{**{n: getattr(page, n) for n in page.__struct_fields__}, "mime": "text/plain"})
    other_page_result = page_result(LoadedPage(caption, Tier.L3))
    assert other_page_result == {
        "page": {
            "page_id": "img_045",
            "modality": "image",
            "level": 2,
            "tier": "L1",
            "content": {"caption": "Architecture diagram"},
            "meta": {"mime_type": "text/plain", "source_tier": "L3", "size_bytes": 20, "dimensions": [1200, 800]},
        },
        "effects": {"promoted_to_working_set": True, "tokens_est": 95, "evictions": None},
    }


@pytest.mark.parametrize(
    ("page", "content"),
    [
        (leaf("p", "two words"), {"text": "p is in the context above"}),
        (leaf("p", '{"a": 1}', modality=Modality.STRUCTURED), {"data": {"text": "p is in the context above"}}),
        (
            leaf("p", "so", modality=Modality.AUDIO, duration_ms=1500),
            {"transcript": "so", "duration_seconds": 1.5},
        ),
        (
            leaf(
                "p",
                '{"transcript": "so", "timestamps": [{"time": 0.5, "text": "so"}, {"time": "x", "text": "y"}, 3]}',
                modality=Modality.AUDIO,
            ),
            {"transcript": "so", "timestamps": [{"time": 0.5, "text": "so"}], "duration_seconds": 0.0},
        ),
        (
            leaf(
                "p",
                '{"scenes": [{"timestamp": 1, "description": "a door", "keyframe_url": "http://x/1"}, {}]}',
                modality=Modality.VIDEO,
            ),
            {"scenes": [{"timestamp": 1, "description": "a door", "keyframe_url": "http://x/1"}]},
        ),
        (leaf("p", "they walk", modality=Modality.VIDEO), {"scenes": [], "transcript": "they walk"}),
        (
            leaf("p", content=b"\x89PNG", mime="image/png", modality=Modality.IMAGE, others=(form(2, 1, "a door"),)),
            {"caption": "a door"},
        ),
        (
            leaf("p", content=b"\x89PNG", mime="image/png", modality=Modality.IMAGE),
            {"caption": "[IMAGE: image/png, 4 bytes]"},
        ),
    ],
)
def test_content_is_told_by_its_modality(page: PromptPage, content: dict[str, Any]) -> None:
    """Sound, film and pictures have the protocol's content; text and data stand in the context, and it says where."""
    other_page_result = page_result(LoadedPage(page, Tier.L2))
    assert other_page_result["page"]["content"] == content
    valid("page_result", other_page_result)


def test_a_schema_catches_what_is_wrong() -> None:
    """A page without its level, a content of another modality and a hint among the results are caught."""
    other_page_result = page_result(LoadedPage(leaf("p", "x"), Tier.L2))
    for wrong in (
        {
            **other_page_result,
            "page": {key: value for key, value in other_page_result["page"].items() if key != "level"},
        },
        {**other_page_result, "page": {**other_page_result["page"], "content": {"caption": "x"}}},
        {**other_page_result, "page": {**other_page_result["page"], "tier": "L9"}},
        {"page": other_page_result["page"]},
    ):
        with pytest.raises(ValidationError):
            valid("page_result", wrong)
    with pytest.raises(ValidationError):
        valid("search_result", {"results": [{"page_id": "p1"}], "total_available": 1})


def test_a_refusal_is_by_its_schema() -> None:
    """A refusal says which, why, and what is left."""
    valid("refusal", refusal("denied", "three faults a turn", BUDGET))
    with pytest.raises(ValidationError):
        valid("refusal", refusal("because", "x"))


# ---- arguments


@pytest.mark.parametrize(
    ("tool", "arguments", "taken"),
    [
        ("page_fault", '{"page_id": "p1"}', {"page_id": "p1", "target_level": 2, "reason": "resolve_reference"}),
        (
            "page_fault",
            {"page_id": "p1", "target_level": 0.0, "reason": "speculative", "extra": 1},
            {"page_id": "p1", "target_level": 0, "reason": "speculative"},
        ),
        (
            "page_fault",
            {"page_id": "p1", "target_level": None},
            {"page_id": "p1", "target_level": 2, "reason": "resolve_reference"},
        ),
        ("search_pages", '{"query": "db", "modality": "image"}', {"query": "db", "modality": "image", "limit": 5}),
    ],
)
def test_right_arguments_are_taken(tool: str, arguments: Any, taken: dict[str, Any]) -> None:
    """What is left out has its default, what nobody knows is dropped, and a whole float is a whole number."""
    assert arguments_of(tool, arguments) == taken
    Draft202012Validator(parameters(tool)).validate(taken)


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("page_fault", "{", "no JSON"),
        ("page_fault", "", "no page_id"),
        ("page_fault", None, "no JSON object"),
        ("page_fault", "[1]", "no JSON object"),
        ("page_fault", "{}", "no page_id"),
        ("page_fault", {"page_id": 7}, "page_id is no string"),
        ("page_fault", {"page_id": "p1", "target_level": 7}, "target_level 7 is not possible; give 0 to 3"),
        ("page_fault", {"page_id": "p1", "target_level": True}, "target_level is no integer"),
        ("page_fault", {"page_id": "p1", "target_level": "2"}, "target_level is no integer"),
        ("page_fault", {"page_id": "p1", "target_level": 1.5}, "target_level is no integer"),
        ("page_fault", {"page_id": "p1", "reason": "curiosity"}, "no reason 'curiosity'; give one of user_"),
        ("page_fault", "[" * 100_000, "no JSON"),
        ("search_pages", {"query": "x", "modality": "smell"}, "no modality 'smell'"),
    ],
)
def test_wrong_arguments_are_named(tool: str, arguments: Any, words: str) -> None:
    """Whatever a model writes as arguments is refused with what to write instead."""
    with pytest.raises(InputError, match=words):
        arguments_of(tool, arguments)


# ---- the agreement


def test_the_agreement_counts_what_is_left() -> None:
    """What is available is the window without what is reserved and without the schemas of the tools."""
    tools = DIALECTS["anthropic"].tools()
    abi = memory_abi([], max_context_tokens=10_000, reserved_tokens=2_000, tools=tools)
    assert abi.tool_schema_tokens_reserved > 200
    assert abi.available_tokens == 10_000 - 2_000 - abi.tool_schema_tokens_reserved
    assert abi.upgrade_budget_tokens == 2_048
    assert abi.modality_weights["text"] == 1.0
    assert [abi.modality_weights[kind] for kind in ("image", "audio", "video")] == [0.8, 0.6, 0.4]
    assert abi.active_toolset_hash == toolset_hash(tools) != toolset_hash(tools[:1])
    assert len(abi.__struct_fields__) == 9
    with refused("over-budget", InputError):
        memory_abi([], max_context_tokens=100, tools=tools)


def test_the_agreement_says_what_may_be_done() -> None:
    """Pins, plans and instructions may not be evicted; an index and what has no smaller form may not be compressed."""
    small = (form(2, 1),)
    pages = [
        leaf("p1", "longer text", others=small, provenance=("p0",)),
        leaf("p2", "longer text", pinned=True, others=small),
        leaf("p3", "longer text", task=True),
        leaf("p4", "longer text", role=Role.SYSTEM),
        leaf("p5", "longer text", type=PageType.INDEX, others=small),
    ]
    other_pages = memory_abi(pages, max_context_tokens=1_000).pages
    assert [page.can_evict for page in other_pages] == [True, False, False, False, True]
    assert [page.can_compress for page in other_pages] == [True, True, False, False, False]
    assert other_pages[0].provenance == ("p0",)
