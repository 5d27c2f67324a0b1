"""Taggers that ask somebody else: what they find, how they fail, and what of it is logged."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import vmstore
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.embedders.embedder import FunctionEmbedder
from vmstore.errors import InputError
from vmstore.store.session import Session
from vmstore.tags.answer import parse_tags

SAID = (("Which primer does the garden fence need?", "Oil primer for the fence."), ("And then?", "Two coats."),
        ("How about lunch in Lisbon, a lunch by the sea?", "Lunch, sure."))  # fmt: skip


@pytest.fixture
def talk() -> Session:
    """A recorded session of three turns."""
    store = vmstore.memory_store(clock=ManualClock(20_000 * 86_400_000_000, 1_000), ids=SeededIds(1))
    messages: list[dict[str, str]] = []
    session = store.session("talk", create=True)
    for asked, answered in SAID:
        messages.append({"role": "user", "content": asked})
        reply = {"role": "assistant", "content": answered}
        session.record({"model": "m", "messages": list(messages)}, {"choices": [{"message": reply}]})
        messages.append(reply)
    return session


def tags(session: Session) -> dict[str, tuple[int, list[str]]]:
    """The tags of a session with their turns and how they were found."""
    return {tag.tag: (tag.turns, tag.methods) for tag in session.memory.tags.all()}


def test_a_model_gives_the_tags_and_is_shown_those_there_are(talk: Session) -> None:
    """Its tags are spelled as all are, the next prompt lists them, and nobody is asked twice."""
    prompts: list[str] = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        if "Lisbon" in prompt.rpartition("The turn:")[2]:
            return 'Sure! ```json\n{"tags": ["Travel Plans"]}\n```'
        return '<think>["no"]</think>{"tags": ["House Repairs", "house-repair"]}'

    assert talk.memory.turns.tag(model) == 3
    assert tags(talk) == {"house-repair": (2, ["model"]), "travel-plan": (1, ["model"])}
    assert "none yet" in prompts[0] and "house-repair" in prompts[1] and "garden fence" in prompts[1]
    assert "garden fence" not in prompts[2], "another topic is not shown the one before"
    assert talk.memory.turns.tag(model) == 0 and len(prompts) == 3
    logged = [json.loads(talk.content(page.page)) for page in talk.pages(actor="facts-model")]
    assert [record["outcome"] for record in logged] == ["answered"] * 3


def fails(prompt: str) -> str:
    """A model that is down."""
    raise RuntimeError("down")


@pytest.mark.parametrize(
    ("model", "outcome"),
    [(fails, "raised"), (lambda prompt: "It is about fences.", "no_tags"), (lambda prompt: 7, "wrong_type"),
     (lambda prompt: '{"tags": [{"a": 1}', "no_tags")],
    ids=["raises", "prose", "number", "broken"],
)  # fmt: skip
def test_where_a_model_fails_the_words_decide(talk: Session, model: Callable[[str], Any], outcome: str) -> None:
    """Every turn has the tags of the keyword rule, and how the model failed is logged."""
    assert talk.memory.turns.tag(model) == 3
    actual_tags = tags(talk)
    assert actual_tags["fence"][0] == 2 and "lunch" in actual_tags
    logged = [json.loads(talk.content(page.page))["outcome"] for page in talk.pages(actor="facts-model")]
    assert logged == [outcome] * 3


def test_an_embedder_takes_the_closest_of_the_tags_there_are(talk: Session) -> None:
    """It makes no tag: the first turn's come of its words, and what is close to one of them has that."""

    def vectors(texts: list[str]) -> list[list[float]]:
        return [[1.0, float("fence" in text or "coats" in text), float("unch" in text)] for text in texts]

    assert talk.memory.turns.tag(FunctionEmbedder("toy", vectors, 3)) == 3
    actual_tags = tags(talk)
    assert "closest" in actual_tags["fence"][1] and actual_tags["fence"][0] >= 2


def test_what_is_no_tagger_is_refused(talk: Session) -> None:
    """What cannot be asked is refused before anything is read."""
    with pytest.raises(InputError) as refused:
        talk.memory.turns.tag(7)  # type: ignore[arg-type]
    assert refused.value.code == "not-a-tagger"


def test_the_tags_of_an_answer_are_read_through_what_stands_around_them() -> None:
    """The last list of texts counts; a list of other things, names too long and prose give none."""
    assert parse_tags('["a"] no: ["Data-Bases", "b", "c", "d"]', {}, {}) == ["data-base", "b", "c"]
    assert parse_tags(f'["{"x" * 99}"]', {}, {}) == [] and parse_tags("[1, 2]", {}, {}) == []
    assert parse_tags('{"tags": ["db"]}', {"database": 2}, {"db": "database"}) == ["database"]
    assert parse_tags('["_general"]', {}, {}) == ["_general"]
