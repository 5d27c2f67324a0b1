"""The manifest says what there is: by the schema, in bounds, and honest about what it leaves out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.vm.protocol.leaves import form, leaf, leaves
from vmstore.core.page import Modality, Tier
from vmstore.core.text.token_estimate import estimate
from vmstore.errors import InputError
from vmstore.vm.protocol import Policies, PromptPage, manifest, manifest_json, schema

VALID = Draft202012Validator(schema("manifest"))


def test_the_manifest_is_the_seeds() -> None:
    """Pages in the prompt, pages to load and policies stand as the protocol's example has them."""
    mapped = [leaf("msg_302", "x", tokens=85, importance=700_000)]
    diagram = leaf("img_045", "x", modality=Modality.IMAGE, tier=Tier.L3, hint="architecture diagram", level=1)
    near = leaf("summary_seg_02", "x", tier=Tier.L1, hint="page\n fault\tdefinitions", others=(form(2, 1), form(1, 3)))
    actual_manifest = manifest(
        "sess_456", mapped, [near, diagram], Policies(max_faults_per_turn=2, upgrade_budget_tokens=4096)
    )
    assert actual_manifest == {
        "session_id": "sess_456",
        "working_set": [
            {"page_id": "msg_302", "modality": "text", "level": 0, "tokens_est": 85, "importance": 0.7},
        ],
        "available_pages": [
            {
                "page_id": "summary_seg_02",
                "modality": "text",
                "tier": "L2",
                "levels": [2, 1, 0],
                "hint": "page fault definitions",
            },
            {
                "page_id": "img_045",
                "modality": "image",
                "tier": "L3",
                "levels": [1],
                "hint": "architecture diagram",
            },
        ],
        "policies": {
            "faults_allowed": True,
            "max_faults_per_turn": 2,
            "upgrade_budget_tokens": 4096,
            "prefer_levels": [2, 1, 0],
        },
    }
    VALID.validate(actual_manifest)


@given(leaves(), leaves(), st.integers(0, 12), st.integers(0, 600))
def test_a_manifest_stays_in_its_bounds(
    mapped: list[PromptPage], available: list[PromptPage], entries_max: int, tokens_max: int
) -> None:
    """Any pages give valid JSON by the schema, within entries and tokens, and no page goes uncounted."""
    actual_manifest = manifest("s", mapped, available, Policies(), entries_max=entries_max, tokens_max=tokens_max)
    text = manifest_json(actual_manifest)
    assert "\n" not in text
    read: dict[str, Any] = json.loads(text)
    VALID.validate(read)
    listed = len(read["working_set"]), len(read["available_pages"])
    more = read.get("more", {"working_set": 0, "available_pages": 0})
    assert (listed[0] + more["working_set"], listed[1] + more["available_pages"]) == (len(mapped), len(available))
    assert sum(listed) <= entries_max
    # Its frame, which no bound can take away, has under 70 tokens.
    assert estimate(text.encode(), Modality.STRUCTURED) <= max(tokens_max, 70)
    assert ("more" in read) == (sum(listed) < len(mapped) + len(available))


def test_the_most_important_pages_are_listed() -> None:
    """Where there is no room for all, both lists keep their most important pages, in the order they came in."""
    mapped = [leaf(f"m{n}", "x", importance=n * 1_000) for n in range(50)]
    available = [leaf(f"a{n}", "x", importance=n * 1_000, hint="h") for n in range(100_000)]
    actual_manifest = manifest("s", mapped, available, Policies(), entries_max=6)
    assert [page["page_id"] for page in actual_manifest["working_set"]] == ["m47", "m48", "m49"]
    assert [page["page_id"] for page in actual_manifest["available_pages"]] == ["a99997", "a99998", "a99999"]
    assert actual_manifest["more"] == {"working_set": 47, "available_pages": 99_997}


def test_a_long_hint_is_cut() -> None:
    """A hint helps to find a page and is no way to read it."""
    actual_manifest = manifest("s", [], [leaf("p1", "x", hint="word " * 1_000)], Policies())
    hint = actual_manifest["available_pages"][0]["hint"]
    assert len(hint) == 120
    assert hint.endswith("…")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"prefer_levels": ()}, "some of 0 to 3"),
        ({"prefer_levels": (4,)}, "some of 0 to 3"),
        ({"max_faults_per_turn": -1}, "counted from 0"),
        ({"upgrade_budget_tokens": -1}, "counted from 0"),
    ],
)
def test_policies_that_mean_nothing_are_refused(fields: dict[str, Any], words: str) -> None:
    """A level that does not exist and a negative budget are refused with what to write."""
    with pytest.raises(InputError, match=words):
        Policies(**fields)
