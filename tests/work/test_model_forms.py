"""Forms of observations by a model: logged, told in the place of those by rules, and never without them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.refusals import refused
from tests.work.agents import Done, worked
from vmstore import Session, Store, memory_store
from vmstore.errors import ErasedError, InputError

LONG: Done = ("run", {"command": "make all"}, "gcc -c part.c\n" * 100 + "error: part_7.c:12: no member 'size'\n")
SHORT: Done = ("run", {"command": "ls"}, "a.c")


@pytest.fixture
def store() -> Store:
    """A store with a session of twelve long observations and a short one."""
    store = memory_store()
    longs: list[Done] = [("run", {"command": f"make part_{n}"}, f"{n}: {LONG[2]}") for n in range(12)]
    worked(store, "s", [[longs[0], SHORT], *([long] for long in longs[1:])], "ann")
    return store


@pytest.fixture
def session(store: Store) -> Session:
    """The session."""
    return store.session("s")


def model(asked: list[str], **fields: Any) -> Callable[[str], str]:
    """A model that writes the same form of every page it is shown."""
    form = {"summary": "The build stops at part_7.c.", "key_facts": ["no member 'size'", "nine tests passed"], **fields}

    def complete(prompt: str) -> str:
        asked.append(prompt)
        pages = re.findall(r"^page (p\d+)$", prompt, re.MULTILINE)
        return json.dumps({"observations": [{"page": page, **form} for page in pages]})

    return complete


def test_a_form_by_a_model_is_told_and_asked_for_once(store: Store, session: Session) -> None:
    """Twelve are asked about in two prompts, once; a key fact that stands nowhere is left out."""
    asked: list[str] = []
    before = session.info().position
    rules = session.work.observations()
    made = session.work.forms.write(model(asked))
    assert (len(made.forms), made.by_rules, len(asked)) == (12, 0, 2)
    shown = session.work.observations()
    long = [each for each in shown if each.method == "llm-summarize"]
    assert len(long) == 12 and {each.summary for each in long} == {"The build stops at part_7.c."}
    assert all(each.key_facts == ["no member 'size'"] and each.reconstructible for each in long)
    assert [each for each in shown if each not in long] == [each for each in rules if each.original_tokens < 64]
    assert session.work.forms.write(model(asked)).forms == [] and len(asked) == 2
    assert session.work.observations(position=before) == rules and store.verify().ok
    assert "The build stops at part_7.c." in session.work.steps()[-2].content
    (saved,) = store.query("SESSIONS tokens_saved, compression_ratio").to_dicts()
    assert saved["tokens_saved"] == sum(each.original_tokens - each.compressed_tokens for each in shown)


def _fails(_: str) -> str:
    raise OSError("no route to the model")


@pytest.mark.parametrize(
    "complete",
    [
        _fails,
        lambda _: "I cannot.",
        lambda _: 7,
        model([], summary=""),
        model([], summary="more words " * 90),
        lambda _: '{"observations": [{"page": "p999", "summary": "x"}, 7, {"page": ["p7"]}]}',
    ],
)
def test_where_a_model_says_nothing_of_use_the_rules_stand(session: Session, complete: Callable[[str], Any]) -> None:
    """Whatever is wrong with its answer, it is logged, the forms are those by rules, and it may be asked again."""
    rules, asked = session.work.observations(), list[str]()
    made = session.work.forms.write(complete)
    assert (made.forms, made.by_rules) == ([], 12) and session.work.observations() == rules
    assert session.info().pages > len(rules)
    assert len(session.work.forms.write(model(asked)).forms) == 12 and asked


def test_a_form_goes_with_what_it_was_made_of(store: Store, session: Session) -> None:
    """Erasing an answer takes the form, and the model's answer that told of it, along; a fork has the others."""
    form = session.work.forms.write(model([])).forms[0]
    first = session.work.observations()[0]
    fork = session.fork("f")
    assert fork.work.observations()[0].summary == first.summary
    store.trust.erase(page=f"s/{first.result}")
    with pytest.raises(ErasedError):
        session.content(form)
    left = session.work.observations()
    assert first.page not in {each.page for each in left}
    assert "part_7" not in json.dumps(store.query("MUTATIONS page WHERE kind = create", session="s").to_dicts())
    assert sum(each.method == "llm-summarize" for each in left) == 11 and store.verify().ok


def test_a_live_prompt_holds_no_form_by_itself() -> None:
    """The page of a form is told to nobody's model, and what cannot be asked is refused."""
    store = memory_store()
    live = store.live_session("s", l0_tokens_max=8_000)
    live.user("Build it.")
    call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"command": "make all"}'}}
    live.assistant({"role": "assistant", "content": None, "tool_calls": [call]})
    live.tool("c1", LONG[2])
    assert len(live.work.forms.write(model([])).forms) == 1
    assert "The build stops" not in json.dumps(live.pack().request)
    with refused("input", InputError):
        live.work.forms.write("gpt")  # type: ignore[arg-type]
