"""Lists of prompts: from files and sessions, asked in order, gone on with."""

from __future__ import annotations

import pytest

from tests.chat.conftest import Begin
from tests.refusals import refused
from tests.sdk.provider import Provider
from vmstore.chat.prompts import PromptRun, instructions_of, prompts_of, said_in
from vmstore.errors import InputError, TextModelError
from vmstore.store.store import Store

PROMPTS = ["Where is Kyoto?", "And Osaka?", "And Nara?"]


def test_a_list_is_asked_in_order(begin: Begin) -> None:
    """Each prompt has its answer, with the provider's counts and the parts of its prompt."""
    answers = list(PromptRun(begin(), PROMPTS).answers())
    assert [answer.asked for answer in answers] == PROMPTS
    assert {answer.answer for answer in answers} == {"In Japan."}
    assert [(answer.turn, answer.call, answer.tokens_in) for answer in answers] == [(1, 1, 9), (2, 2, 9), (3, 3, 9)]
    assert all(sum(answer.parts.values()) == answer.tokens for answer in answers)


def test_a_list_asked_again_asks_nobody(begin: Begin, provider: Provider) -> None:
    """What was answered is read from the store, as it was."""
    first = list(PromptRun(begin(), PROMPTS).answers())
    again = PromptRun(begin(), PROMPTS)
    assert again.done == 3 and list(again.answers()) == first
    assert len(provider.seen) == 3


def test_a_list_goes_on_after_the_last_answer(begin: Begin, provider: Provider) -> None:
    """After a failure the question that had none is asked again, once, and then the rest."""
    answers = PromptRun(begin(), PROMPTS).answers()
    next(answers)
    answers.close()
    with pytest.raises(TextModelError):
        list(PromptRun(begin("down"), PROMPTS).answers())
    run = PromptRun(begin("m-1"), PROMPTS)
    assert run.done == 1 and [answer.status for answer in run.answers()] == ["ok"] * 3
    asked = [message["content"] for message in provider.seen[-1].body["messages"] if message["role"] == "user"]
    assert asked == PROMPTS


def test_other_talk_between_does_not_count(begin: Begin, provider: Provider) -> None:
    """A list knows its own questions in a session in which the same was said by somebody else."""
    chat = begin()
    chat.say(PROMPTS[0])
    list(chat.answer())
    assert PromptRun(chat, PROMPTS).done == 0
    list(PromptRun(chat, PROMPTS).answers())
    assert len(provider.seen) == 4


def test_masked_questions_are_known_again(begin: Begin, store: Store, provider: Provider) -> None:
    """Where a session masks what is said, a list that was asked is still known."""
    store.live_session("trip", l0_tokens_max=4_000, redaction="mask")
    prompts = ["Write to ada@example.com, please."]
    list(PromptRun(begin(), prompts).answers())
    assert PromptRun(begin(), prompts).done == 1


@pytest.mark.parametrize(
    ("text", "is_jsonl"),
    [
        ("Where?\n\n  And when? \n", False),
        ('{"prompt": "Where?"}\n"And when?"\n{"role": "assistant", "content": "x"}\n', True),
        ('{"role": "user", "content": "Where?"}\n{"text": "And when?"}', True),
    ],
)
def test_prompts_stand_one_a_line(text: str, is_jsonl: bool) -> None:
    """A list is plain lines, or JSON lines that are texts or objects."""
    assert prompts_of(text, is_jsonl=is_jsonl) == ["Where?", "And when?"]


@pytest.mark.parametrize("text", ['{"prompt": 3}', "{", '{"role": "user"}', '""'])
def test_a_line_that_is_no_prompt_is_named(text: str) -> None:
    """A JSON line that asks nothing is refused by its number."""
    with refused("input", InputError, "line 2"):
        prompts_of(f'"Where?"\n{text}', is_jsonl=True)


def test_an_empty_list_is_refused(begin: Begin) -> None:
    """A list without a prompt is refused before anything is asked."""
    with refused("input", InputError):
        PromptRun(begin(), [])


def test_what_a_person_said_is_asked_again(begin: Begin, store: Store) -> None:
    """The messages of a recorded session and what instructs there make a list; pictures and answers do not."""
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    parts = [{"type": "text", "text": "Which is"}, picture, {"type": "text", "text": "this?"}]
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": parts},
        {"role": "user", "content": [picture]},
    ]
    store.record("old", {"messages": messages}, {"choices": [{"message": {"role": "assistant", "content": "A cat"}}]})
    old = store.session("old")
    assert said_in(store, old) == ["Hello", "Which is\n\nthis?"]
    assert instructions_of(old) == "Be kind."
