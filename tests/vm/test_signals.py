"""Signals: which pages the next message may need, by what it says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.core.decision import Signal
from vmstore.errors import InputError
from vmstore.vm.signals import Having, Hint, Hints, Signals, Wanted, hint, recalls, wanted

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
    """Whatever one of the seed's three patterns finds in these is found here too."""
    assert recalls(message) >= (re.search(pattern, message.lower()) is not None)


CLAIMS = [hint(10 + at, f"Decision: use {what} for {topic}") for at, (what, topic) in enumerate(
    [("PostgreSQL", "the database"), ("FastAPI", "the API"), ("React", "the frontend"), ("GCP", "deployment"),
     ("pytest", "testing"), ("Redis", "the cache"), ("Stripe", "payments")]
)]  # fmt: skip
PAGES = [*CLAIMS, hint(1, "database schema notes"), hint(2, "database backup"), hint(3, "poem about the sea")]


def having(hints: Sequence[Hint]) -> Having:
    """Hints to be asked for by term."""
    known = Hints()
    for one in sorted(hints, key=lambda one: one.page):
        known.add(one)
    return partial(known.having, without=(), newest=len(hints))


def test_a_recall_wants_the_claims_it_is_about_first() -> None:
    """The right claim comes first, five in all, then pages on the topic, then the last summary."""
    found = wanted("As we decided earlier, what's our cache?", CLAIMS, having(PAGES), [90, 91])
    assert found[0] == Wanted(15, Signal.RECALL)
    assert [one.signal for one in found].count(Signal.RECALL) == 5
    assert found[-1] == Wanted(91, Signal.SUMMARY)


def test_a_topic_wants_two_pages() -> None:
    """Without a recall the two best pages of each topic are wanted, and the last summary."""
    found = wanted("Tune the database and the frontend.", CLAIMS, having(PAGES), [90])
    assert [(one.signal, one.topic) for one in found] == [
        (Signal.TOPIC, "database"),
        (Signal.TOPIC, "database"),
        (Signal.TOPIC, "frontend"),
        (Signal.SUMMARY, ""),
    ]


def test_equal_pages_go_by_importance_then_by_age() -> None:
    """Of pages that say the same the weightier is wanted first, then the newer."""
    same = [hint(1, "the cache"), hint(2, "the cache", 900_000), hint(3, "the cache")]
    assert [one.page for one in wanted("cache", hints=having(same), signals=Signals(pages_a_topic=3))] == [2, 3, 1]


def test_the_summary_comes_always() -> None:
    """An ordinary message wants the last summary alone, and nothing where there is none."""
    assert wanted("Is Python fast?", CLAIMS, having(PAGES), [90]) == (Wanted(90, Signal.SUMMARY),)
    assert wanted("Is Python fast?", CLAIMS, having(PAGES)) == ()


def test_signals_are_set() -> None:
    """Patterns and numbers can be given; nothing is wanted where all are off."""
    own = Signals(patterns=("wie besprochen",), claims_max=1, pages_a_topic=0, summary=False)
    assert len(wanted("Wie besprochen: Cache!", CLAIMS, having(PAGES), [90], own)) == 1
    off = Signals(patterns=(), claims_max=0, pages_a_topic=0, summary=False)
    assert wanted(RECALLS[0], CLAIMS, having(PAGES), [90], off) == ()


@pytest.mark.parametrize(
    ("given", "why"),
    [({"patterns": ("(",)}, "no regular"), ({"patterns": ("a" * 501,)}, "501"), ({"claims_max": -1}, "negative")],
)
def test_wrong_signals_are_refused(given: dict[str, object], why: str) -> None:
    """A pattern that is none or too long, and a negative number, are refused with the reason."""
    with pytest.raises(InputError, match=why):
        Signals(**given)  # type: ignore[arg-type]


@given(st.text(max_size=200), st.lists(st.text(max_size=40), max_size=8), st.lists(st.integers(1, 99), max_size=3))
def test_wanted_pages_are_known_and_named_once(message: str, texts: list[str], summaries: list[int]) -> None:
    """Whatever is said, only known pages are wanted, none twice, the same ones each time."""
    hints: list[Hint] = [hint(100 + at, text) for at, text in enumerate(texts)]
    found = wanted(message, hints[::2], having(hints), summaries)
    pages = [one.page for one in found]
    assert len(pages) == len(set(pages)) and set(pages) <= {one.page for one in hints} | set(summaries)
    assert found == wanted(message, hints[::2], having(hints), summaries)
    assert not summaries or summaries[-1] in pages


@given(
    st.lists(st.sets(st.sampled_from(["harbour", "log", "train", "sea"])), max_size=12),
    st.sets(st.sampled_from(["harbour", "log", "train", "wind"])),
    st.sets(st.integers(0, 12)),
    st.integers(0, 6),
)
def test_hints_are_found_by_term(said: list[set[str]], terms: set[str], away: set[int], newest: int) -> None:
    """By term the same hints are found as by looking at the newest in turn, and a page's later hint holds."""
    known = Hints()
    for page, words in enumerate(said):
        known.add(hint(page, "old"))
        known.add(hint(page, " ".join(["old", *sorted(words)])))
    plain = [page for page in range(len(said)) if page not in away][::-1][:newest]
    found = known.having(sorted(terms), away, newest)
    assert sorted(one.page for one in found) == sorted(page for page in plain if said[page] & terms)
    assert all(one is known[one.page] and set(one.about.weights) == {"old", *said[one.page]} for one in found)
