"""What the parts of a memory ask of a model is recorded as the agent's calls are, under the name of the part."""

from __future__ import annotations

import pytest

import vmstore
from tests.refusals import refused
from vmstore.errors import InputError, TextModelError
from vmstore.providers.text_model import TextReply, TokenCounts


class ShortModel:
    """A text model that says the same of everything, and counts; it fails where it is told to."""

    name = "small-1"
    fails = False

    def complete(self, prompt: str, system: str = "") -> TextReply:
        """One sentence."""
        if self.fails:
            raise TextModelError("it is down")
        return TextReply("They spoke of trains.", TokenCounts(len(prompt) // 4, 5))


def test_what_sums_up_is_a_call_of_the_compactor() -> None:
    """A segment's summary by a model leaves one call with its counts, its request and the name of the part."""
    with vmstore.memory_store() as store:
        model = vmstore.LedgerModel(ShortModel(), store, "compactor")
        engine = vmstore.VirtualContextEngine(store, "talk", window_tokens=1_000, summarizer=model)
        messages = []
        for number in range(20):
            messages += [
                {"role": "user", "content": f"And carriage {number}? " * 10},
                {"role": "assistant", "content": "A wheel. " * 20},
            ]
        report = engine.on_turn_complete(messages)
        assert report is not None and report.note == "" and model.flush()
        (call,) = store.session("compactor").calls()
        assert (call.component, call.model, call.tokens_out, call.status) == ("compactor", "small-1", 5, "ok")
        assert "carriage 3" in store.session("compactor").wire.request(call=1)["messages"][0]["content"]


def test_a_model_that_fails_is_a_failed_call() -> None:
    """What it raised reaches who asked, and stands in the store."""
    inner = ShortModel()
    inner.fails = True
    with vmstore.memory_store() as store:
        model = vmstore.LedgerModel(inner, store, "tagger", session="aside")
        with pytest.raises(TextModelError):
            model.complete("What is it about?", "Answer in a word.")
        assert model.flush()
        (call,) = store.session("aside").calls()
        assert (call.component, call.status, call.error) == ("tagger", "failed", "it is down")


def test_a_component_has_a_plain_name() -> None:
    """What cannot be one is refused before anything is asked."""
    with vmstore.memory_store() as store, refused("not-a-name", InputError):
        vmstore.LedgerModel(ShortModel(), store, "Ann's own")
