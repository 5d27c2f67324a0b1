"""Turns and calls: a turn opens with the first human message after a final answer, calls count requests."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capture.words import NOTE, SHAPES, Item, answer, ask, kinds, model_text, request, result, system, user
from vmstore.errors import UnknownError
from vmstore.store.session import Session
from vmstore.store.store import Store, memory_store

Step = tuple[list[Item], Any]
ASKED = [user("What time is it?"), ask("c1"), result("c1", "noon")]


def lived(store: Store, *steps: Step, shape: str = "chat") -> Session:
    """A session in which these requests were answered like this."""
    for items, response in steps:
        answered = answer(response, shape) if isinstance(response, tuple) else response
        store.record("s", request(items, shape), answered)
    return store.session("s")


def turns(*steps: Step, shape: str = "chat") -> list[int]:
    """The turn of each call."""
    with memory_store() as store:
        return [call.turn for call in lived(store, *steps, shape=shape).calls()]


@pytest.mark.parametrize("shape", SHAPES)
def test_tool_results_stay_in_the_turn(shape: str) -> None:
    """A question, the model's call of a tool and its answer are one turn of two calls."""
    assert turns((ASKED[:1], ask("c1")), (ASKED, model_text("It is noon.")), shape=shape) == [1, 1]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_word_after_a_final_answer_opens_a_turn(shape: str) -> None:
    """After the model has answered, what a person says next is the next turn."""
    talk = [user("a"), model_text("b"), user("c"), model_text("d"), user("e")]
    assert turns((talk[:1], model_text("b")), (talk[:3], model_text("d")), (talk, model_text("f")), shape=shape) == [
        1,
        2,
        3,
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_continue_said_twice_is_two_turns(shape: str) -> None:
    """The same word said again after an answer is another message of another turn."""
    first, second = [user("continue")], [user("continue"), model_text("Done."), user("continue")]
    with memory_store() as store:
        session = lived(store, (first, model_text("Done.")), (second, model_text("Done.")), shape=shape)
        assert [call.turn for call in session.calls()] == [1, 2]
        pages = [page.page for page in session.context().pages]
        assert len(set(pages)) == len(pages) == 3


def test_a_call_tried_again_is_another_call_of_the_same_turn() -> None:
    """Failed, aborted and repeated requests count as calls and open nothing."""
    question = [user("What now?")]
    tried = [
        (question, TimeoutError()),
        (question, None),
        (question, model_text("This.")),
        (question, model_text("That.")),
    ]
    assert turns(*tried) == [1, 1, 1, 1]


def test_a_word_after_an_aborted_call_stays_in_its_turn() -> None:
    """Without a final answer the turn goes on, whatever a person adds."""
    assert turns(([user("Dig.")], None), ([user("Dig."), user("Deeper.")], model_text("Dug."))) == [1, 1]


def test_a_failed_call_without_a_word_leaves_the_answer_final() -> None:
    """After a final answer a call that only failed changes nothing: the next word opens a turn."""
    talk = [user("a"), model_text("b"), user("c")]
    assert turns((talk[:1], model_text("b")), (talk[:2], TimeoutError()), (talk, model_text("d"))) == [1, 1, 2]


def test_two_words_after_an_answer_are_one_turn() -> None:
    """Only the first of several messages opens the turn."""
    talk = [user("a"), model_text("b"), user("c"), user("d")]
    assert turns((talk[:1], model_text("b")), (talk, model_text("e"))) == [1, 2]


@pytest.mark.parametrize("back", ["b", "Something else altogether."])
def test_an_answer_sent_back_in_other_words_opens_one_turn(back: str) -> None:
    """An agent may trim or replace what the model said; the one word after it opens one turn."""
    talk = [user("a"), model_text(back), user("c")]
    assert turns((talk[:1], model_text("b\n")), (talk, model_text("d"))) == [1, 2]


def test_answers_first_seen_in_a_request_separate_turns() -> None:
    """A history handed over in one request is counted as the turns it tells of."""
    talk = [system("s"), user("a"), model_text("b"), user("c"), *ASKED[1:], model_text("d"), user("e")]
    with memory_store() as store:
        session = lived(store, (talk, model_text("f")))
        assert [call.turn for call in session.calls()] == [3]
        assert [turn.calls for turn in session.turns()] == [0, 0, 1]


TOLD = [system("s"), user("a"), model_text("b"), user("c"), model_text("d")]


@pytest.mark.parametrize(
    "changed",
    [
        [system("t"), *TOLD[1:]],
        [TOLD[0], user("Summary of the conversation so far: a, b, c."), TOLD[4]],
        [system("t"), user("Summary of the conversation so far: a, b, c."), TOLD[4]],
    ],
    ids=["instructions", "summary", "both"],
)
def test_instructions_and_summaries_open_no_turn(changed: list[Item]) -> None:
    """Neither a changed system message nor a compaction's note is a person's word."""
    assert turns((TOLD[:2], model_text("b")), (TOLD[:4], model_text("d")), (changed, model_text("e"))) == [1, 2, 2]


def test_an_edited_word_opens_no_turn() -> None:
    """A message that was said before and reads otherwise now is an edit, not a new word."""
    talk = [user("Which file?"), model_text("This one."), user("Open it.")]
    edited = [user("Which of the files?"), *talk[1:]]
    assert turns((talk[:1], model_text("This one.")), (talk, model_text("Open.")), (edited, model_text("Open."))) == [
        1,
        2,
        2,
    ]


def test_a_message_that_comes_back_opens_no_turn() -> None:
    """What was evicted and re-enters was said long ago."""
    talk = [user("a"), model_text("b"), user("c"), model_text("d"), user("e")]
    calls = turns(
        (talk[:1], model_text("b")),
        (talk[:3], model_text("d")),
        (talk[2:4], model_text("x")),
        (talk[:4], model_text("y")),
    )
    assert calls == [1, 2, 2, 2]


def test_an_unrelated_question_is_no_shorter_form_of_the_last() -> None:
    """Calls without a history share nothing: each question is a page and a turn of its own."""
    long = user("How is bread baked, and what does the yeast do? " * 12)
    with memory_store() as store:
        session = lived(store, ([long], model_text("Slowly.")), ([user("What time is it?")], model_text("Noon.")))
        assert [call.turn for call in session.calls()] == [1, 2]
        assert "compress" not in kinds(store)
        assert session.page(session.context().pages[0].page).version == 1


def test_turns_begin_where_their_commit_begins() -> None:
    """The end of a turn is the position before the next one, and its context its last call's."""
    talk = [user("a"), *ASKED[1:], model_text("b"), user("c")]
    with memory_store() as store:
        session = lived(store, (talk[:1], ask("c1")), (talk[:3], model_text("b")), (talk, model_text("d")))
        first, two = session.turns()
        assert (first.turn, first.calls, two.turn, two.calls) == (1, 2, 2, 1)
        assert session.context(turn=1).basis.call == 2
        assert session.context(position=two.position - 1).basis.call == 2
        assert session.pages(turn=1) == session.pages(position=two.position - 1)


def test_a_turn_without_a_call_names_the_nearest() -> None:
    """A turn told of in a history made no call here: asking for its context names the turn that did."""
    with memory_store() as store:
        session = lived(store, ([user("a"), model_text("b"), user("c")], model_text("d")))
        for turn in (0, 1):
            with pytest.raises(UnknownError, match=f"turn {turn} made no call; the nearest .* is turn 2"):
                session.context(turn=turn)


def test_meta_lines_are_no_ones_word() -> None:
    """Developer messages and tool results beside each other open no turn after an answer."""
    talk = [user("a"), model_text("b")]
    response = request([*talk, result("c0", NOTE)])
    response["messages"].append({"role": "developer", "content": "be quick"})
    with memory_store() as store:
        session = lived(store, (talk[:1], model_text("b")))
        store.record("s", response, answer(model_text("c")))
        assert [call.turn for call in session.calls()] == [1, 1]
