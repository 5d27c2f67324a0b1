"""A live session that asks somebody for the tags of its turns: when it asks, what it logs, how it goes on without."""

from __future__ import annotations

import json
from typing import Any

import pytest

import vmstore
from tests.tags.test_taggers import SAID, fails, tags
from vmstore.core.clock import ManualClock
from vmstore.errors import InputError


def model(prompt: str) -> str:
    """A model that knows two topics."""
    return '{"tags": ["travel"]}' if "Lisbon" in prompt.rpartition("The turn:")[2] else '{"tags": ["house-repair"]}'


def talk(store: vmstore.Store, value: Any = SAID, **options: Any) -> vmstore.Live:
    """A live session in which some turns were said and answered."""
    live = store.live_session("talk", l0_tokens_max=8_000, tags="asked", **options)
    for asked, answered in value:
        live.user(asked)
        live.pack()
        live.assistant(answered)
    return live


def test_each_turn_is_tagged_as_its_answer_ends_it() -> None:
    """The model is asked once a turn after its answer, is shown the tags there are, and the answer is logged."""
    prompts: list[str] = []

    def heard(prompt: str) -> str:
        prompts.append(prompt)
        return model(prompt)

    live = talk(vmstore.memory_store(), tagger=heard)
    assert len(prompts) == 3 and "house-repair" in prompts[1]
    assert tags(live) == {"house-repair": (2, ["model"]), "travel": (1, ["model"])}
    logged = [json.loads(live.content(page.page)) for page in live.pages(actor="facts-model")]
    assert [record["outcome"] for record in logged] == ["answered"] * 3


@pytest.mark.parametrize("options", [{}, {"tagger": fails}], ids=["nobody", "down"])
def test_the_words_decide_where_nobody_answers(options: dict[str, Any]) -> None:
    """Without a tagger, as on a handle given none, and with one that fails, each turn has tags by its words."""
    assert tags(talk(vmstore.memory_store(), **options))["fence"][0] == 2


def test_an_answer_of_a_provider_is_tagged_too() -> None:
    """What is taken in as a provider's response ends its turn as what is told in words does."""
    live = talk(vmstore.memory_store(), SAID[:1], tagger=model)
    live.user("How about lunch in Lisbon?")
    live.pack()
    live.record({}, {"choices": [{"message": {"role": "assistant", "content": "Sure."}, "finish_reason": "stop"}]})
    assert "travel" in tags(live)


def test_segments_end_by_the_tags_that_were_asked_for() -> None:
    """With compaction a segment ends where the words of a message are about none of its tags."""
    live = talk(vmstore.memory_store(), tagger=lambda prompt: '{"tags": ["fence"]}', compaction=True)
    assert [segment.first_turn for segment in live.memory.segments.all()] == [1, 3]


def test_replay_and_a_new_process_ask_nobody(tmp_path: Any) -> None:
    """A replay decides again without a question, and a session opened again has its tags and goes on by its words."""
    with vmstore.open(tmp_path / "s.vms") as store:
        live = talk(store, tagger=model)
        assert live.debug.check().ok
        before = tags(live)
    with vmstore.open(tmp_path / "s.vms") as store:
        again = store.live_session("talk", l0_tokens_max=8_000)
        assert tags(again) == before
        again.user("Which strings does a violin need?")
        again.pack()
        again.assistant("Gut strings for the violin.")
        assert "violin" in tags(again) and store.verify().ok


def test_a_session_said_again_keeps_what_was_asked_for() -> None:
    """A copy that asks for its tags takes over those of the model, and its next answer has the tagger asked."""
    store = vmstore.memory_store(clock=ManualClock(20_000 * 86_400_000_000, 1_000))
    talk(store, tagger=model)
    store.admin.redrive("talk", "again", l0_tokens_max=8_000, tags="asked")
    assert tags(store.session("again")) == tags(store.session("talk"))


def test_who_cannot_be_asked_is_refused_before_anything_is_written() -> None:
    """A tagger that is no function, model or embedder is refused, and there is no session."""
    store = vmstore.memory_store()
    with pytest.raises(InputError, match="cannot be asked for tags"):
        store.live_session("talk", l0_tokens_max=8_000, tagger=7)
    assert not store.sessions()
