"""A request made with what is kept of the ones before is the one built from nothing, and costs what is new in it."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vmstore
from tests.vm.protocol.leaves import leaf, leaves, talks
from vmstore.live.request import written
from vmstore.vm.protocol.conversation import PlacedPage
from vmstore.vm.protocol.memo import Memo
from vmstore.vm.protocol.messages import DIALECTS, Messages, messages
from vmstore.vm.protocol.prompt_page import PromptPage
from vmstore.vm.protocol.rules import Rules

Chance = st.randoms(use_true_random=False)


def same(made: Messages, fresh: Messages, kept: Memo) -> None:
    """Two requests are one, as values and as JSON; the second was made without a memo."""
    body, right = ({**case.request, "tools": case.tools} for case in (made, fresh))
    assert (body, made.left) == (right, fresh.left)
    assert written(body, kept) == written(right)


@pytest.mark.parametrize("shape", DIALECTS)
@given(pages=st.one_of(leaves(12), talks()), rules=st.sampled_from(Rules), chance=Chance)
def test_a_kept_request_is_the_one_made_anew(shape: str, pages: list[PromptPage], rules: Rules, chance: Any) -> None:
    """Whatever comes, leaves, moves and changes between requests, what is kept of the last ones changes nothing."""
    kept, prompt = Memo(), list(pages)
    for _ in range(5):
        same(messages(prompt, shape=shape, rules=rules, memo=kept), messages(prompt, shape=shape, rules=rules), kept)
        match chance.randrange(5):
            case 0 if prompt:
                prompt.pop(chance.randrange(len(prompt)))
            case 1:
                chance.shuffle(prompt)
            case 2 if prompt:
                at = chance.randrange(len(prompt))
                prompt[at] = msgspec.structs.replace(prompt[at], content=b"now in other words", mime="text/plain")
            case 3:
                prompt.append(leaf(f"p{chance.randrange(900, 999)}", "new", message=chance.randrange(9)))
            case _:
                prompt = [msgspec.structs.replace(page) for page in pages]  # equal, and not the same objects


def test_what_stands_as_it_stood_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred pages and a new one the new one alone is written."""
    wrote: list[str] = []

    def note(text: str) -> str:
        wrote.append(text)
        return text

    monkeypatch.setattr(sys.modules[PlacedPage.__module__], "tagless", note)
    kept, prompt = Memo(), [leaf(f"p{n}", f"words of {n}", message=n) for n in range(1, 101)]
    messages(prompt, memo=kept)
    assert len(wrote) == 100
    messages([*prompt, leaf("p101", "words of 101", message=101)], memo=kept)
    assert len(wrote) == 101


def test_what_two_requests_did_not_need_is_let_go() -> None:
    """A page that left the prompt is kept for one more request and no longer."""
    kept, page = Memo(), leaf("p1", "words", message=1)
    messages([page], memo=kept)
    for _ in range(2):
        messages([], memo=kept)
    left = [*kept._now.values(), *kept._before.values()]
    assert not any(isinstance(item, PlacedPage) for item in left)


@pytest.mark.parametrize("shape", DIALECTS)
def test_what_a_caller_does_to_a_request_changes_no_other(shape: str) -> None:
    """Marks put on messages, and messages taken out, are in the request they were put in and in none after it."""
    with vmstore.memory_store() as store:
        session = store.live_session("s", system="You are brief.", shape=shape, l0_tokens_max=20_000)
        for turn in range(4):
            session.user(f"Look at module {turn}.")
            packed = session.pack()
            whole = session.wire.request(call=turn + 1)
            assert packed.request == whole
            for body in (packed.request, packed.messages().request):
                entry = next(body[name] for name in ("messages", "contents", "input") if name in body)
                entry[0]["marked"] = True
                entry.clear()
            call = {"id": f"c{turn}", "type": "function", "function": {"name": "read", "arguments": '{"a": 1}'}}
            session.assistant({"role": "assistant", "content": None, "tool_calls": [call]})
            session.tool(f"c{turn}", f"Module {turn} has sixty lines.")
            assert session.wire.request(call=turn + 1) == whole
