"""The laws of the store over lives that hypothesis makes up, each law by itself.

`tests/test_laws_bite.py` sees each of them break under a planted fault; `tools/hold.py` holds them
over thousands of lives, and its failures come with the command that repeats them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import Phase, example, given, settings

from tests import lanes, laws
from vmstore.store.store import memory_store
from vmstore.testing.agent import ConversationEdit, ModelAnswer
from vmstore.testing.simulate import Player, play
from vmstore.testing.strategies import LISTING, AskStep, ForkStep, Life, conversations, lives

# What explains a failure costs minutes here; shrinking it is enough.
TRIED = settings(max_examples=lanes.tries(20), phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink])
FEWER = settings(TRIED, max_examples=lanes.tries(8))

# Lives that broke a law once.
GONE = ModelAnswer("aborts")
EDITED_THEN_FORKED = Life(
    steps=(
        AskStep(edits=(ConversationEdit("say", text=LISTING), ConversationEdit("say", text="b")), answer=GONE),
        AskStep(edits=(ConversationEdit("grow", text="!"),), answer=GONE),
        ForkStep(),
        AskStep(session=-1, edits=(ConversationEdit("delete"),), answer=GONE),
    )
)
TEXT_THEN_PICTURE = Life(
    "gemini",
    (
        AskStep(answer=ModelAnswer("thinks", LISTING)),
        AskStep(edits=(ConversationEdit("clear"), ConversationEdit("show", text=LISTING)), answer=GONE),
        AskStep(edits=(ConversationEdit("recast", k=1),), answer=GONE),
    ),
)
CALLED_BY_A_PERSON = Life(
    "anthropic",
    (
        AskStep(edits=(ConversationEdit("say", text="hi"),), answer=ModelAnswer("asks")),
        AskStep(edits=(ConversationEdit("recast", n=1),), answer=GONE),
        AskStep(edits=(ConversationEdit("answer", k=1, text="r"),), answer=GONE),
    ),
)


def hold(law: Callable[[Player], None], life: Life) -> None:
    """Plays a life and looks at it once."""
    with TemporaryDirectory() as folder:
        player = play(life, Path(folder))
        law(player)
        player.close()


def witnessed(life: Life) -> None:
    """Plays a life before a witness who then asks everything again."""
    with TemporaryDirectory() as folder:
        player, witness = Player(Path(folder), life.shape), laws.Witness()
        for step in life.steps:
            player.play(step)
            witness.look(player)
        witness.moved(player)
        player.close()


def twice(law: Callable[[Life, Path], None], life: Life) -> None:
    """Holds a law that plays the life itself."""
    with TemporaryDirectory() as folder:
        law(life, Path(folder))


@TRIED
@given(lives())
@example(EDITED_THEN_FORKED)
def test_every_answer_is_the_models(life: Life) -> None:
    """Every view answers at every call and at past positions as the model does, forks and restarts included."""
    hold(laws.answers_are_the_models, life)


@TRIED
@given(lives())
def test_a_request_comes_back_for_ever(life: Life) -> None:
    """Every request equals what was sent after all that followed, reopened, with views deleted, and on forks."""
    hold(laws.requests_come_back, life)


@FEWER
@given(lives())
def test_a_rebuilt_view_is_equal(life: Life) -> None:
    """Each view folded again has the digest it had (law 1)."""
    hold(laws.rebuilt_views_are_equal, life)


@FEWER
@given(lives())
def test_columns_are_the_views(life: Life) -> None:
    """The page table of the columns is that of the views, and their segments pass verify (law 1)."""
    hold(laws.columns_are_the_views, life)


@TRIED
@given(conversations())
def test_a_conversation_comes_back_from_memory(requests: list[dict[str, Any]]) -> None:
    """A store in memory gives back every request of a conversation, whatever the agent did to it in between."""
    store = memory_store()
    for request in requests:
        store.record("s", request)
    for call, request in enumerate(requests, 1):
        assert laws.same(store.session("s").wire.request(call=call), request)


@TRIED
@given(lives())
@example(EDITED_THEN_FORKED)
@example(TEXT_THEN_PICTURE)
def test_the_past_does_not_move(life: Life) -> None:
    """What was answered about a moment is answered again, live, later, on a fork and rebuilt (law 3)."""
    witnessed(life)


@FEWER
@given(lives())
def test_a_fork_leaks_nothing(life: Life) -> None:
    """What a parent or child says after the fork stands in no answer of the other (law 7)."""
    hold(laws.nothing_leaks, life)


@FEWER
@given(lives())
def test_verify_is_clean_after_any_life(life: Life) -> None:
    """Verify finds no problem in a store that was only used, and counts what info counts."""
    hold(laws.verify_is_clean, life)


@FEWER
@given(lives())
def test_the_same_stimuli_give_the_same_bytes(life: Life) -> None:
    """Under the same clock and ids the same life writes the same log, byte for byte."""
    twice(laws.same_stimuli_same_bytes, life)


@FEWER
@given(lives())
@example(CALLED_BY_A_PERSON)
def test_reopening_changes_nothing_that_is_written(life: Life) -> None:
    """A store reopened after every step writes the mutations it would have written had it stayed open."""
    twice(laws.reopening_changes_nothing, life)


@FEWER
@given(lives())
def test_what_is_refused_leaves_the_log_as_it_was(life: Life) -> None:
    """A refused request or fork is refused by an error of ours and leaves every byte of the log."""
    hold(laws.refusals_write_nothing, life)


@FEWER
@given(lives())
def test_a_retry_answers_as_the_first_time(life: Life) -> None:
    """The same request id returns the first answer and writes nothing; with another call it is a conflict."""
    hold(laws.retries_answer_the_same, life)


@FEWER
@given(lives())
def test_a_failure_spares_the_calls_after_it(life: Life) -> None:
    """A disk that was full for a moment loses that call and no other."""
    hold(laws.failures_pass, life)


@FEWER
@given(lives())
def test_the_head_in_memory_is_what_the_views_say(life: Life) -> None:
    """What the gate decides by equals the same session loaded from the views."""
    hold(laws.heads_are_the_views, life)
