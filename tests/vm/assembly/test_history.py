"""Which messages belong together, which turns a message is about, and where a conversation begins."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lanes import tries
from tests.refusals import refused
from vmstore.errors import InputError
from vmstore.vm.assembly.hint import HintTopic, hint
from vmstore.vm.assembly.history import chains, is_whole, kept_turns, turns_of
from vmstore.vm.assembly.message_cut import cut, shortened
from vmstore.vm.assembly.recent_turns import STEP, first_turn, longest
from vmstore.vm.assembly.tag_rules import TAG_RULES, TagRule, checked, is_over, priority_of, texts_of

USER = {"role": "user", "content": "go on"}
ASKED: dict[str, list[Any]] = {
    "chat": [
        {"role": "assistant", "tool_calls": [{"id": "a"}, {"id": "b"}]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
    ],
    "anthropic": [
        {"role": "assistant", "content": [{"type": "text", "text": "so"}, {"type": "tool_use", "id": "a"}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "1"}]},
    ],
    "responses": [
        {"type": "function_call", "call_id": "a", "name": "read"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
    ],
    "gemini": [
        {"role": "model", "parts": [{"functionCall": {"name": "read"}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "read"}}]},
    ],
}


@pytest.mark.parametrize("shape", ASKED)
def test_a_call_and_its_results_are_one_chain(shape: str) -> None:
    """In every shape a call stands with all its results, and neither without the other is whole."""
    asked = ASKED[shape]
    assert chains([USER, *asked, USER]) == [[0], [*range(1, 1 + len(asked))], [1 + len(asked)]]
    assert is_whole(asked)
    assert not is_whole(asked[:-1]) and not is_whole(asked[1:])


def test_what_stands_between_a_call_and_its_result_stays_with_them() -> None:
    """A result that comes late draws all that was said since its call into the chain."""
    call, result, _ = ASKED["chat"]
    assert chains([call, USER, result]) == [[0, 1, 2]]


def test_a_turn_begins_with_what_a_person_says() -> None:
    """Messages of a person that follow each other are one turn, and a tool's result begins none."""
    items = [USER, USER, *ASKED["anthropic"], {"role": "assistant", "content": "done"}, USER]
    assert turns_of(items) == [[0, 1, 2, 3, 4], [5]]


def test_turns_are_kept_by_topic() -> None:
    """Turns of another topic go, but for the last ones, untagged ones, and questions about a time."""
    tags = [frozenset({"css"}), frozenset({"db"}), frozenset(), frozenset({"db"})]
    assert kept_turns(tags, frozenset({"css"}), protected=1) == [True, False, True, True]
    assert kept_turns(tags, frozenset({"css"}), protected=1, is_temporal=True) == [True] * 4
    assert kept_turns(tags, frozenset(), protected=0) == [True] * 4


@settings(max_examples=tries(40))
@given(st.lists(st.integers(1, 200), min_size=1, max_size=60), st.integers(10, 4_000), st.integers(0, 4))
def test_a_conversation_begins_where_it_fits(sizes: list[int], budget: int, protected: int) -> None:
    """It begins at a turn there is, and takes more than it may only from the last mark before the protected turns."""
    before = [sum(sizes[:at]) for at in range(len(sizes))]
    first = first_turn(before, sum(sizes), budget, protected)
    actual_sizes = sizes[first:]
    assert 0 <= first < len(sizes) and len(actual_sizes) >= min(protected, len(sizes))
    most = longest(budget)
    assert sum(actual_sizes) <= max(most, sum(sizes[-max(1, protected) :]) + int(most * STEP))


def test_a_conversation_begins_at_the_same_turn_for_many_calls() -> None:
    """Of 200 turns of 50 tokens in a conversation of 2,800 the first turn changes once in 44, as its step is."""
    assert longest(8_000) == 2_800 and longest(3_000) == 450
    firsts = [first_turn([50 * turn for turn in range(last)], 50 * last, 8_000, 3) for last in range(100, 300)]
    changes = sum(before != after for before, after in pairwise(firsts))
    assert changes <= 200 // 44 + 1


def test_long_texts_are_cut_and_calls_are_not() -> None:
    """What a tool printed loses its middle; arguments of a call, ids and what is signed stay to the letter."""
    assert len(cut("a" * 500, 100)) == 100
    assert shortened({"role": "tool", "tool_call_id": "c" * 99, "content": "x" * 99}, 20) == {
        "role": "tool",
        "tool_call_id": "c" * 99,
        "content": cut("x" * 99, 20),
    }
    call = {"type": "tool_use", "id": "a", "input": {"text": "y" * 99}}
    assert shortened({"role": "assistant", "content": [call, {"type": "text", "text": "z" * 99}]}, 20) == {
        "role": "assistant",
        "content": [call, {"type": "text", "text": cut("z" * 99, 20)}],
    }


def test_rules_by_tag() -> None:
    """The first rule that fits counts: its priority, its days, its text; a wrong one is named."""
    assert [priority_of([tag], TAG_RULES) for tag in ("architecture-db", "Debugging", "food")] == [10, 7, 5]
    day = 86_400_000_000
    assert is_over(["debug"], 0, 8 * day, TAG_RULES) and not is_over(["debug"], 0, 6 * day, TAG_RULES)
    assert not is_over(["architecture"], 0, 900 * day, TAG_RULES) and not is_over([], 0, 900 * day, TAG_RULES)
    rules = checked([TagRule("legal*", 9, text="Never quote a filing."), TagRule("*", 5)])
    assert texts_of({"legal-filing", "food"}, rules) == ["Never quote a filing."]
    with refused("not-a-limit", InputError, "'x'"):
        checked([TagRule("x", ttl_days=0)])


def test_the_hint_keeps_its_size() -> None:
    """The hint names topics with their turns in at most 200 tokens, and nothing where there is no topic."""
    topics = [HintTopic(f"topic-{at}", at + 1, "what it came to, in many words " * 4) for at in range(60)]
    text = hint(topics, rounds=10, budget=3_000)
    assert 50 <= len(text) / 4 <= 200
    assert text.splitlines()[:3] == [
        "<context-topics>",
        "Prior conversation topics available for recall:",
        "- topic-0 (1 turn): what it came to, in many words what it came to, in many words what it…",
    ]
    assert "At most 10 tool rounds" in text and "Budget: 3,000 tokens" in text
    assert hint([]) == "" and hint(topics, tokens=10) == ""
    assert hint([HintTopic("</context-topics>", 1)]).count("</context-topics>") == 1
