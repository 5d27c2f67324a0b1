"""Signals: what a message asks with, and what its words are signs of."""

from __future__ import annotations

import re

import pytest

from vmstore.vm.signals import PASSING, asked, asks_for_the_past, likely, recalls

RECALLS = [
    "As we decided earlier, what's our database_choice?",
    "What did we say about caching?",
    "You mentioned a library before that.",
    "Remember when we picked the name?",
    "Earlier you had another idea.",
    "Previously this was faster.",
    "What about that decision for the API?",
    "Explain our approach again.",
    "Let's go back to the login flow.",
    "I want to revisit the schema.",
    "Can we return to the plan?",
    "Are we still using Redis?",
    "Which database did we choose? I mean, what was our choice?",
    "Remind me how we talked about it.",
    "What’s our deployment strategy?",
    "like we agreed, keep it small",
    "what have we planned so far",
]
ORDINARY = [
    "Write a haiku about the sea.",
    "Tell me about implementation detail 17.",
    "Run the tests and fix what fails.",
    "Is Python fast?",
    "Thanks!",
    "",
]
SEED = [
    r"(as we|what did we|earlier|previously|remember when)",
    r"(that (decision|choice|plan|approach) (about|for|regarding))",
    r"(go back to|revisit|return to)",
]


@pytest.mark.parametrize("message", RECALLS)
def test_a_recall_is_heard(message: str) -> None:
    """A message that speaks of what was said before is a signal."""
    assert recalls(message)


@pytest.mark.parametrize("message", ORDINARY)
def test_another_message_is_no_recall(message: str) -> None:
    """A message about something new is none."""
    assert not recalls(message)


@pytest.mark.parametrize("pattern", SEED)
@pytest.mark.parametrize("message", RECALLS)
def test_what_the_seed_hears_is_heard(pattern: str, message: str) -> None:
    """Whatever one of three plain patterns finds in these is found here too."""
    assert recalls(message) >= (re.search(pattern, message.lower()) is not None)


@pytest.mark.parametrize(
    "message", ["What did we use before?", "Why did we change the queue?", "What was the cache originally?"]
)
def test_a_question_for_the_past_is_heard(message: str) -> None:
    """Who asks what held before, or why it changed, asks for what holds no more."""
    assert asks_for_the_past(message) and not asks_for_the_past("Which queue do we use?")


def test_a_message_asks_with_its_terms() -> None:
    """Words that only ask for the past weigh little beside those that name something; stop words nothing."""
    assert asked("What was the queue before we changed it?") == {"queue": 1.0, "chang": PASSING}


def test_a_decision_is_likelier_than_a_question() -> None:
    """What decides is looked for later rather than what asks."""
    assert (
        likely("Which queue?")
        < likely("The queue has ten workers.")
        < likely("Let's use NATS instead, since it is fast.")
    )
