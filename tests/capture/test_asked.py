"""What a client asked beside what was sent of it: its messages are the session's, the context is what went out."""

from __future__ import annotations

from typing import Any

import vmstore
from tests.refusals import refused
from vmstore.errors import RefusedError
from vmstore.store.recorder import record_asked

Json = dict[str, Any]


def user(text: str) -> Json:
    """A user's message."""
    return {"role": "user", "content": text}


def assistant(text: str) -> Json:
    """An answer."""
    return {"role": "assistant", "content": text}


def answer(text: str) -> Json:
    """A completion."""
    return {"choices": [{"message": assistant(text), "finish_reason": "stop"}]}


def request(*messages: Json) -> Json:
    """A request of chat completions."""
    return {"model": "m-1", "messages": list(messages)}


TALK = [message for n in range(6) for message in (user(f"Question {n} of the day."), assistant(f"Answer {n} to it."))]
LAST = user("And the last one?")
BLOCK = user("<virtual-context>\nthey asked five questions\n</virtual-context>")


def test_a_call_s_context_is_what_was_sent_of_what_was_asked() -> None:
    """What stayed out is said in the session and in no context; turns are those of the client."""
    sent = request(BLOCK, *TALK[-2:], LAST)
    with vmstore.memory_store() as store:
        store.record("s", sent, answer("Yes."), asked=request(*TALK, LAST))
        session = store.session("s")
        assert session.wire.request(call=1) == sent
        assert (session.info().turns, len(session.context(call=1).page_ids)) == (7, 4)
        assert [page.type for page in session.pages() if page.type != "transcript"] == ["index"]
        assert store.verify().ok


def test_what_is_asked_again_is_written_once() -> None:
    """The second request writes its new messages alone, though other ones were sent."""
    with vmstore.memory_store() as store:
        record_asked(store, "s", request(*TALK, LAST), None)
        position = store.session("s").info().position
        assert record_asked(store, "s", request(*TALK, LAST), None) == request(*TALK, LAST)
        assert position == store.session("s").info().position
        store.record("s", request(LAST), answer("Yes."), asked=request(*TALK, LAST))
        pages = len(store.session("s").pages())
        longer = [*TALK, LAST, assistant("Yes."), user("Why?")]
        store.record("s", request(BLOCK, *longer[-2:]), answer("So."), asked=request(*longer))
        assert len(store.session("s").pages()) == pages + 3  # a question, a block and an answer
        assert store.session("s").info().turns == 8


def test_a_text_that_was_cut_is_a_shorter_form_of_its_page() -> None:
    """A result that was sent shorter stands under its page, at a level, and in full again with the next call."""
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    asks = {"role": "assistant", "content": None, "tool_calls": [call]}
    whole = {"role": "tool", "tool_call_id": "c1", "content": "a line of the file\n" * 200}
    cut = {**whole, "content": whole["content"][:900] + " […] " + whole["content"][-300:]}
    with vmstore.memory_store() as store:
        asked = request(LAST, asks, whole)
        store.record("s", request(LAST, asks, cut), answer("Yes."), asked=asked)
        store.record("s", asked, answer("Yes."), asked=asked)
        session = store.session("s")
        assert [session.wire.request(call=n)["messages"][2] for n in (1, 2)] == [cut, whole]
        (page,) = session.pages(role="tool")
        kinds = [event.event for event in session.lineage.history(page.page)]
        assert kinds.count("compress") == 1 and "update" not in kinds


def test_another_process_goes_on_with_what_was_asked(tmp_path: Any) -> None:
    """A handle that was opened since knows the question that was taken in and never sent: it is no new one."""
    with vmstore.open(tmp_path / "a.vms") as store:
        record_asked(store, "s", request(*TALK, LAST), None)
    with vmstore.open(tmp_path / "a.vms") as store:
        store.record("s", request(BLOCK, LAST), answer("Yes."), asked=request(*TALK, LAST))
        store.record("s", request(*TALK, LAST), answer("Yes."))
        session = store.session("s")
        assert (session.info().turns, len([page for page in session.pages() if page.role == "user"])) == (7, 8)


def test_a_question_that_was_sent_is_asked_twice_where_it_is_said_twice() -> None:
    """People say "go on" twice: the rule for what was never sent changes nothing of that."""
    with vmstore.memory_store() as store:
        talk = [user("go on"), assistant("Yes."), user("go on")]
        store.record("s", request(*talk[:1]), answer("Yes."))
        store.record("s", request(*talk), answer("Yes."))
        assert store.session("s").info().turns == 2


def test_what_was_sent_before_and_left_is_asked_anew() -> None:
    """A question that stood in a prompt, and no more in the last one, is a new one where somebody asks it again."""
    with vmstore.memory_store() as store:
        for text in ("go on", "And Nara?", "go on"):
            store.record("s", request(user(text)), answer("Yes."))
        assert store.session("s").info().turns == 3


def test_what_the_memory_tells_opens_no_turn() -> None:
    """A block is nobody's word: the same question, sent again with another one, is of the same turn."""
    with vmstore.memory_store() as store:
        for block in (BLOCK, user("<virtual-context>\nsomething else\n</virtual-context>")):
            store.record("s", request(block, LAST), answer("Yes."), asked=request(*TALK, LAST))
        assert store.session("s").info().turns == 7


def test_a_session_that_manages_itself_takes_in_no_request() -> None:
    """It is told what happens instead."""
    with vmstore.memory_store() as store:
        store.live_session("s", l0_tokens_max=4_000)
        with refused("manages-its-memory", RefusedError):
            record_asked(store, "s", request(LAST), None)
