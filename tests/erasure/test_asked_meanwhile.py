"""Erased while a model is asked: what it read before does not come back with its answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.erasure.found import found_in
from vmstore.namespace.namespace import Namespace
from vmstore.store.store import Store

SECRET = "Wiesenstrasse 9"


def recorded(folder: Path) -> tuple[Store, str]:
    """A recorded session of three turns in the middle of which somebody says where they live; and that page."""
    store = vmstore.open(folder)
    store.session("s", create=True, user="ann")
    messages: list[dict[str, Any]] = []
    for text in ("What does it cost?", f"I live at {SECRET} since May.", "Do you deliver on Monday?"):
        messages.append({"role": "user", "content": text})
        messages.append({"role": "assistant", "content": "I wrote it down."})
        store.record("s", {"model": "m", "messages": list(messages[:-1])}, {"choices": [{"message": messages[-1]}]})
    store.session("s").close()
    ((page,),) = store.query(f"PAGES page WHERE text LIKE '%{SECRET}%'", session="s")
    return store, page


class ErasingModel:
    """A model that says what it was shown, while the page is erased as it is asked for the first time."""

    def __init__(self, store: Store, page: str, answer: Callable[[str], str]) -> None:
        self._store, self._page, self._answer = store, page, answer
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if SECRET in prompt:
            vmstore.erase(self._store, page=self._page, in_session="s")
        return self._answer(prompt)


def _turns(prompt: str) -> str:
    notes = [{"turn": turn, "critical": False, "summary": f"They live at {SECRET}."} for turn in (1, 2, 3)]
    return json.dumps({"turns": notes if SECRET in prompt else []})


def _facts(prompt: str) -> str:
    fact = {"subject": "user", "verb": "lives at", "object": SECRET, "quote": f"I live at {SECRET}", "type": "personal"}
    return json.dumps({"facts": [fact] if SECRET in prompt else []})


def _tags(prompt: str) -> str:
    return json.dumps({"tags": [SECRET.lower() if SECRET in prompt else "delivery"]})


ASKING: dict[str, tuple[Callable[[str], str], Callable[[Store, Any], object]]] = {
    "turns": (_turns, lambda store, model: store.session("s").memory.turns.summarize(model)),
    "facts": (_facts, lambda store, model: store.session("s").memory.facts.extract(model=model)),
    "tags": (_tags, lambda store, model: store.session("s").memory.turns.tag(model)),
}


@pytest.mark.parametrize("what", ASKING)
def test_what_is_erased_while_a_model_is_asked_stays_erased(tmp_path: Path, what: str) -> None:
    """No file holds it afterwards, and what is left is asked about and written all the same."""
    answer, ask = ASKING[what]
    store, page = recorded(tmp_path / "s")
    model = ErasingModel(store, page, answer)
    ask(store, model)
    assert any(SECRET in prompt for prompt in model.prompts) and SECRET not in model.prompts[-1]
    assert store.verify().ok
    store.close()
    assert found_in(tmp_path, [SECRET.encode()]) == {}


@pytest.mark.parametrize("what", ASKING)
def test_a_gate_that_does_not_look_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """Where nobody asks what was erased meanwhile, the text is in the log again: the test above would fail."""
    monkeypatch.setattr(Namespace, "as_read", lambda self, erasure: True)
    answer, ask = ASKING[what]
    store, page = recorded(tmp_path / "s")
    ask(store, ErasingModel(store, page, answer))
    store.close()
    assert found_in(tmp_path, [SECRET.encode()])
