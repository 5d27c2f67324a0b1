"""A conversation over a live session: what is sent is what is logged, and nothing that was said is lost."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.chat.conftest import Begin
from tests.refusals import refused
from tests.sdk.provider import Provider
from vmstore.chat.chat import ChatSession
from vmstore.chat.parts import AROUND, BACK, CONVERSATION, INSTRUCTIONS, SUMMARIES
from vmstore.errors import InputError, RefusedError, TextModelError
from vmstore.providers.streaming_model import AnswerStopped
from vmstore.store.store import Store


def ask(chat: ChatSession, text: str) -> str:
    """Says something and takes the whole answer."""
    chat.say(text)
    return "".join(chat.answer())


def sent(provider: Provider) -> list[dict[str, object]]:
    """The messages of the last request."""
    messages: list[dict[str, object]] = provider.seen[-1].body["messages"]
    return messages


def test_what_is_sent_is_what_is_logged(begin: Begin, provider: Provider) -> None:
    """The request that reached the provider is the one that the log gives back of the call."""
    chat = begin(system="You plan journeys.")
    assert ask(chat, "Where is Kyoto?") == "In Japan."
    logged = chat.request(1)
    assert {key: provider.seen[0].body[key] for key in logged} == logged
    assert sent(provider)[0] == {"role": "system", "content": "You plan journeys."}


def test_a_conversation_goes_on_where_it_was(begin: Begin, provider: Provider) -> None:
    """Opened again under another model, the session holds what was said, and the next request shows it."""
    ask(begin(budget=4_000), "Where is Kyoto?")
    again = begin("m-2")
    ask(again, "And Osaka?")
    assert [message["content"] for message in sent(provider)] == ["Where is Kyoto?", "In Japan.", "And Osaka?"]
    assert [entry.text for entry in again.entries(limit=3)] == ["In Japan.", "And Osaka?", "In Japan."]
    assert again.session.settings.l0_tokens_max == 4_000 and again.session.calls()[-1].model == "m-2"


def test_a_failed_answer_keeps_the_message(begin: Begin, provider: Provider) -> None:
    """After a provider that fails the message is there unanswered, and asking again sends it once."""
    chat = begin("down")
    chat.say("Where is Kyoto?")
    with pytest.raises(TextModelError):
        list(chat.answer())
    assert chat.awaits_answer() and chat.session.calls()[-1].status == "failed"
    again = begin("m-1")
    assert "".join(again.answer()) == "In Japan." and not again.awaits_answer()
    assert [message["content"] for message in sent(provider)] == ["Where is Kyoto?"]


def test_a_stopped_answer_is_kept_as_far_as_it_came(begin: Begin, provider: Provider) -> None:
    """What came before a stop is logged with an aborted call; asked again, the model is not shown it."""
    chat = begin("waits")
    chat.say("Where is Kyoto?")
    with pytest.raises(AnswerStopped):
        for _ in chat.answer():
            threading.Timer(0.05, chat.stop).start()
    assert chat.session.calls()[-1].status == "aborted"
    assert chat.entries(limit=1)[0].text == "In J" and chat.awaits_answer()
    provider.released.set()
    assert "".join(chat.answer()) == "In Japan."
    assert [message["content"] for message in sent(provider)] == ["Where is Kyoto?"]
    assert [entry.text for entry in chat.entries(limit=9)] == ["Where is Kyoto?", "In Japan."]


def test_a_brief_message_says_so_to_the_model(begin: Begin, provider: Provider) -> None:
    """The wish for a short answer is part of what is sent, and so of the log."""
    chat = begin()
    chat.say("Where is Kyoto?", brief=True)
    assert "two lines" in str(chat.entries(limit=1)[0].text)


def test_the_parts_of_a_prompt_are_all_of_it(begin: Begin) -> None:
    """The parts of a prompt add up to its tokens, and each page is of the part that says why it is there."""
    chat = begin(system="You plan journeys.", budget=600)
    ask(chat, "We take the sleeper Heron to Naples for the wedding of Ada. " * 8)
    for number in range(10):
        ask(chat, f"Carriage {number} of another train has wheels, windows, doors and a bell. " * 9)
    ask(chat, "What was it about Heron, Naples and the wedding of Ada?")
    made = chat.parts()
    assert made is not None and sum(made.parts.values()) == made.tokens <= made.budget
    parts = {page.part for page in made.pages}
    assert {INSTRUCTIONS, SUMMARIES, CONVERSATION} <= parts and AROUND in made.parts
    first = next(page for page in made.pages if page.page == chat.entries(limit=99)[0].page)
    assert first.part == BACK and first.since_call == made.call


def test_a_page_says_why_it_was_sent(begin: Begin) -> None:
    """A page's reasons are those of the query WHY, at the call that is asked about."""
    chat = begin()
    ask(chat, "Where is Kyoto?")
    ask(chat, "And Osaka?")
    page = chat.entries(limit=4)[0].page
    rows = chat.store.query(f"WHY {page} IN CONTEXT AT CALL 1", session="trip").to_dicts()
    about = chat.page(page, 1)
    assert about.why == [row["reason"] for row in rows] and about.text == "Where is Kyoto?"


def test_topics_have_their_turns_and_tokens(begin: Begin) -> None:
    """Each turn is tagged as its answer ends it, and what came up last stands first."""
    chat = begin()
    ask(chat, "Which paint for the garden fence, and does the fence need primer?")
    ask(chat, "Where is lunch in Lisbon?")
    tags = chat.tags()
    assert tags[0].last_turn == 2 and {"fence", "lisbon"} <= {tag.tag for tag in tags}
    assert chat.entries(limit=1)[0].tags


def test_earlier_entries_are_read_by_their_position(begin: Begin) -> None:
    """The entries before a position are those that were said before it."""
    chat = begin()
    for text in ("one", "two", "three"):
        ask(chat, text)
    last = chat.entries(limit=2)
    assert [entry.text for entry in chat.entries(limit=2, before=last[0].position)] == ["two", "In Japan."]


def test_an_export_has_the_form_that_its_name_ends_with(
    begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session is written as its file's ending says, and without a name to one of its own that is free."""
    monkeypatch.chdir(tmp_path)
    chat = begin(session="trip/a")
    ask(chat, "Where is Kyoto?")
    assert [chat.export().name, chat.export().name] == ["trip-a.md", "trip-a-2.md"]
    assert "In Japan." in Path("trip-a.md").read_text()
    assert Path(chat.export("a.jsonl")).read_text().startswith('{"kind":"bundle"')
    with refused("no-format", InputError, "a.odt"):
        chat.export("a.odt")


def test_a_recorded_session_is_not_talked_in(begin: Begin, store: Store) -> None:
    """A session whose prompts others made is refused, with the way to copy it."""
    store.record("trip", {"messages": [{"role": "user", "content": "Hi"}]}, {"choices": []})
    with refused("recorded-session", RefusedError, "trip"):
        begin()


def test_the_model_may_ask_for_pages(begin: Begin, provider: Provider) -> None:
    """With tools the model is offered those of the memory, and what it asks of them is answered before its answer."""
    chat = begin(asks=True)
    assert ask(chat, "Where is Kyoto?") == "In Japan."
    assert len(provider.seen) == 2 and "page_fault" in str(provider.seen[0].body["tools"])
