"""Older turns in a sentence each: by a model that is asked once, by their words where it fails, and gone with them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

import vmstore
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import InputError
from vmstore.store.store import Store

NOTES = [
    {
        "turn": 2,
        "critical": False,
        "summary": "They asked what part two of the fence costs.",
        "keywords": ["Fence", "cost"],
    },
    {"turn": 3, "critical": True, "anchors": {"home": "Oslo"}},
    {"turn": 99, "critical": True, "anchors": {"home": "Rome"}},
    {"turn": "4", "summary": "No number."},
    {"turn": 5, "critical": False, "summary": "much too long " * 40},
]
GOOD = "Sure! " + json.dumps({"turns": NOTES}) + " That is all."


@pytest.fixture
def store() -> Store:
    """A recorded session of six turns of Ann's that is over."""
    made = vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000, 0), ids=SeededIds(5))
    made.session("s", create=True, user="ann")
    messages: list[dict[str, Any]] = []
    for n in range(1, 7):
        messages.append({"role": "user", "content": f"What does part {n} cost? I have no time."})
        messages.append({"role": "assistant", "content": f"Part {n} costs {n * 10} EUR. It is in stock."})
        made.record("s", {"model": "m", "messages": list(messages[:-1])}, {"choices": [{"message": messages[-1]}]})
    made.session("s").close()
    return made


def summaries(store: Store) -> dict[str, str]:
    """The sentences of turns, by turn."""
    asked = "PAGES hint, text WHERE type = summary"
    return {row["hint"]: row["text"] for row in store.query(asked, session="s").to_dicts()}


def test_a_model_is_asked_once_and_what_it_says_is_kept(store: Store) -> None:
    """Its sentences and anchors are written for turns asked about, others go by words, and nobody is asked twice."""
    asked: list[str] = []

    def model(prompt: str) -> str:
        asked.append(prompt)
        return GOOD

    memory = store.session("s").memory
    made = memory.turns.summarize(model)
    assert len(asked) == 1 and "turn 2\nUSER: What does part 2 cost?" in asked[0] and "turn 1\n" not in asked[0]
    assert (len(made.summaries), made.critical, made.by_words) == (4, [3], 3)
    actual_summaries = summaries(store)
    assert (
        actual_summaries["turn 2"] == NOTES[0]["summary"]
        and actual_summaries["turn 5"] == "What does part 5 cost? Part 5 costs 50 EUR."
    )
    assert sorted(actual_summaries) == ["turn 2", "turn 4", "turn 5", "turn 6"]
    critical = [row["turn"] for row in store.query("TURNS turn WHERE is_identity_critical", session="s").to_dicts()]
    assert critical == [1, 3] and [fact.what for fact in store.memory.facts.all(user="ann")] == ["Oslo"]
    assert memory.turns.summarize(model).summaries == [] and len(asked) == 1
    store.admin.rebuild()
    assert store.verify().ok and summaries(store) == actual_summaries


@pytest.mark.parametrize(
    "model",
    [
        lambda prompt: "I would rather not.",
        lambda prompt: '{"turns": [{"turn": 2',
        lambda prompt: '{"turns": {"2": "x"}}',
        lambda prompt: 7,
        lambda prompt: 1 / 0,
        lambda prompt: time.sleep(5),
        None,
    ],
    ids=["prose", "broken", "another shape", "no text", "raises", "late", "nobody"],
)
def test_where_a_model_fails_the_first_sentences_stand(store: Store, model: Callable[[str], Any] | None) -> None:
    """Whatever comes back, each turn has a sentence of its own words, and how it ended is logged."""
    made = store.session("s").memory.turns.summarize(model, timeout_s=0.2)
    assert made.by_words == len(made.summaries) == 5 and made.critical == []
    assert summaries(store)["turn 6"] == "What does part 6 cost? Part 6 costs 60 EUR."
    logged = [json.loads(row[0]) for row in store.query("PAGES text WHERE type = value", session="s")]
    assert [log["phase"] for log in logged] == ([] if model is None else ["turns"])


def test_a_live_session_keeps_its_hot_turns_and_its_prompt(store: Store) -> None:
    """Of a session that goes on the last five turns have no sentence, and none stands in its prompt."""
    live = store.live_session("live", l0_tokens_max=8_000, user="ann")
    for n in range(8):
        live.user(f"Say {n}.")
        live.pack()
        live.assistant(f"It is {n}.")
    before = live.pack().pages
    made = live.memory.turns.summarize()
    hints = [live.page(page).hint for page in made.summaries]
    assert hints == ["turn 2", "turn 3"] and live.pack().pages == before and live.debug.check().ok
    answer = store.session("s").memory.recall_user("say 1")
    assert "Say 1. It is 1." in str(answer)


def test_a_sentence_goes_with_its_turn(store: Store) -> None:
    """Erased, a message takes the anchor it gave along, and the model's answer that named it, and no other sentence."""
    memory = store.session("s").memory
    memory.turns.summarize(lambda prompt: GOOD)
    for page in list(store.query("PAGES page WHERE text LIKE 'What does part 3 cost%'", session="s")):
        vmstore.erase(store, page=page[0], in_session="s", derived=True)
    everything = str(store.query("PAGES text ACROSS SESSIONS").to_dicts()) + str(store.query("FACTS what").to_dicts())
    assert "Oslo" not in everything and "That is all." not in everything
    assert summaries(store)["turn 2"] == NOTES[0]["summary"], "of another turn"
    with pytest.raises(InputError):
        memory.turns.summarize(7)  # type: ignore[arg-type]
