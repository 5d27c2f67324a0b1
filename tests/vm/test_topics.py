"""Topics: what texts are about and how alike they are, without weights learned anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.vm.recall.text_pieces import without_controls
from vmstore.vm.recall.topics import PPM, closeness, leading, profile, stem, topics

TEXTS = st.text(max_size=300)

ONE_WORD = [
    ("databases", "database"),
    ("queries", "query"),
    ("classes", "class"),
    ("boxes", "box"),
    ("caching", "caches"),
    ("cached", "cache"),
    ("testing", "tests"),
    ("shipped", "shipping"),
    ("pricing", "prices"),
    ("planned", "plans"),
    ("calling", "called"),
    ("deciding", "decides"),
]
TWO_WORDS = [("string", "str"), ("status", "stat"), ("need", "ne"), ("glass", "glas"), ("über", "übers"), ("p99", "p9")]


@pytest.mark.parametrize(("word", "other"), ONE_WORD)
def test_forms_of_a_word_are_one(word: str, other: str) -> None:
    """Plurals, participles and gerunds count as their word."""
    assert stem(word) == stem(other)


@pytest.mark.parametrize(("word", "other"), TWO_WORDS)
def test_other_words_stay_apart(word: str, other: str) -> None:
    """What only looks like an ending is none."""
    assert stem(word) != stem(other)


ABOUT = [
    ("We use PostgreSQL for the database; the database has two replicas.", ("database", "postgresql")),
    ("As we decided earlier, what's our database_choice?", ("database", "choice")),
    ("Yes, I think so too, thanks.", ()),
    ("deadbeef00 3f786850e387550fdab836ed7e6dc881de23001b 12 345", ()),
    ("データベース", ("デー", "ータ")),
    ("", ()),
]


@pytest.mark.parametrize(("text", "first"), ABOUT)
def test_a_text_has_its_topics(text: str, first: tuple[str, ...]) -> None:
    """The words said most lead; small words, words of talking, hashes and numbers are no topics."""
    actual_topics = topics(text)
    assert actual_topics[: len(first)] == first and (first or not actual_topics)


def test_topics_are_capped_and_shown_as_said() -> None:
    """At most so many are given, each in the form it was said in most."""
    assert topics("caches cache caches, index, table, view, row, key", 2) == ("caches", "index")


def test_a_turn_has_the_topics_of_its_pages() -> None:
    """Several texts together lead with what they share."""
    pages = [profile("replication of the log"), profile("the log is slow"), profile("compaction")]
    assert leading(pages, 1) == ("log",)


def test_alike_is_more_alike() -> None:
    """A text is nearer to one about the same than to one about something else."""
    asked = profile("Which database did we choose?")
    assert closeness(asked, profile("Decision: use PostgreSQL for the database"))[1] > 0
    assert closeness(asked, profile("Decision: use React for the frontend")) == (0, 0)


def test_similarity_is_the_cosine() -> None:
    """It is the cosine of the terms' weights, cut to whole parts per million."""
    assert closeness(profile("cache"), profile("cache log"))[1] == 707_106
    assert closeness(profile("cache cache cache cache"), profile("cache log"))[1] == 707_106
    assert closeness(profile("cache cache log"), profile("cache log log"))[1] == 800_000


@given(TEXTS, TEXTS)
def test_similarity_is_a_measure(a: str, b: str) -> None:
    """It is whole, symmetric, between 0 and a million, a million for the same text, the same twice."""
    first, two = profile(a), profile(b)
    covered, actual = closeness(first, two)
    assert type(actual) is int and 0 <= actual <= PPM
    assert actual == closeness(two, first)[1] == closeness(profile(a), profile(b))[1]
    assert 0 <= covered <= PPM
    assert closeness(first, first) == ((PPM, PPM) if first.norm else (0, 0))


@given(TEXTS)
def test_topics_are_of_the_text(text: str) -> None:
    """Every topic is a word of the text or two signs of it, none twice, eight at most."""
    actual_topics = topics(text)
    assert len(actual_topics) == len(set(actual_topics)) <= 8
    assert all(topic in without_controls(text).casefold() for topic in actual_topics)


def test_a_long_text_counts_with_its_ends() -> None:
    """What stands in the middle of millions of characters is not looked at."""
    text = "alpha " * 50_000 + "beta " * 2_000_000 + "gamma " * 50_000
    assert topics(text) == ("alpha", "gamma")
