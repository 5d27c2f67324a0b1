"""Where a text answers a question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.relevance.excerpt import EXCERPT_CHARS, Excerpt, excerpt, has, holds, runs
from vmstore.relevance.query import parse_query
from vmstore.relevance.words import Analyzer

ENGLISH = Analyzer()
TOKENS = [
    "a",
    "retry_with_backoff",
    "PageFaultHandler",
    "src/app/main.py",
    "./x",
    "../y/z.txt",
    "--dry-run",
    "-v",
    "-xzf",
    "C++",
    "C#",
    ".NET",
    "i++",
    "v2.13.4",
    "10:30",
    "2023-05-07T10:30:00Z",
    "127.0.0.1:80",
    "ana@example.com",
    "https://example.org/a?b=c#d",
    "d8b066f0aa",
    "std::vec",
    "_x",
    "__init__",
    "O'Brien",
    "don't",
    "e-mail",
    "iPhone手机",
    "北京",
    "हिन्दी",
    "ภาษา",
    "👍",
    "🇩🇪",
    "€5",
    "50%",
    "x=1",
    "{'a':1}",
    "[1,2]",
    "a.b.c",
    "foo()",
    "#12",
    "@ana",
]


def shown(text: str, query: str, chars: int = EXCERPT_CHARS, **weights: float) -> str:
    """The excerpt with brackets around what was found."""
    return excerpt(text, parse_query(query, ENGLISH), ENGLISH, chars, weights or None).marked("[", "]")


def phrase_in(text: str, phrase: str) -> bool:
    """Whether a quoted phrase stands in a text."""
    (asked,) = parse_query(f'"{phrase}"', ENGLISH).phrases
    return holds(text, asked, ENGLISH)


@pytest.mark.parametrize(
    ("text", "phrase", "stands"),
    [
        ("the red car", "red car", True),
        ("a car, red", "red car", False),
        ("red old car", "red car", False),
        ("To be or not to be", "not to be", True),
        ("to be not", "not to be", False),
        ("class PageFaultHandler", "fault handler", True),
        ("I retry with backoff", "retry_with_backoff", False),
        ("call retry_with_backoff now", "retry_with_backoff now", True),
        ("我去了北京。", "北京", True),
        ("北边的京城", "北京", False),
        ("painted fences", "paint fence", True),
        ("", "red", False),
    ],
)
def test_a_phrase_stands_where_its_words_are_neighbours(text: str, phrase: str, stands: bool) -> None:
    """The words of a phrase follow each other, stop words and signs too, and its names stand as a whole."""
    assert phrase_in(text, phrase) is stands


@given(st.lists(st.sampled_from("ab"), max_size=30), st.lists(st.sampled_from("ab"), min_size=1, max_size=5))
def test_every_place_of_a_run_is_found(sequence: list[str], wanted: list[str]) -> None:
    """Runs are found where comparing at every place finds them, those that overlap too."""
    size = len(wanted)
    plain = [at for at in range(len(sequence) - size + 1) if sequence[at : at + size] == wanted]
    assert list(runs(sequence, wanted)) == plain


def test_what_is_required_or_left_out_can_be_read_in_a_text() -> None:
    """A text has an asked word by its terms, its names, its stop words, or by how a word begins."""
    for query in ("paint", "fault_handler", "config*", '"the fence"', "d8b066f"):
        (wanted, *_) = parse_query(f"{query}", ENGLISH).phrases or parse_query(query, ENGLISH).words
        assert has("painting the fence of faultHandler in configuration d8b066f0aa", wanted, ENGLISH)
        assert not has("nothing of it", wanted, ENGLISH)


@given(st.text(max_size=80))
def test_a_text_has_every_word_of_itself(text: str) -> None:
    """A search for a text with its own words finds it, in any writing."""
    for wanted in parse_query(text + "\n.", ENGLISH).words:
        assert has(text, wanted, ENGLISH)


@given(st.lists(st.sampled_from(TOKENS), max_size=8).map(" ".join))
def test_a_text_has_every_name_of_itself(text: str) -> None:
    """Names, paths, numbers and flags are found by themselves."""
    for wanted in parse_query(text, ENGLISH).words:
        assert has(text, wanted, ENGLISH)
    if "-" not in text:
        assert holds(text, parse_query(f'"{text}"', ENGLISH).phrases[0], ENGLISH) if text else True


def test_the_best_place_is_shown() -> None:
    """Of a long text the stretch is shown that answers most of the question, from its sentence on."""
    text = "A car came. " + "Nothing here. " * 40 + "Then the museum showed a red car. " + "And on. " * 40
    assert shown(text, "museum car").startswith("…Then the [museum] showed a red [car]. And on.")


def test_a_phrase_is_shown_before_its_words() -> None:
    """Where a phrase stands is a better place than where its words stand apart."""
    text = "A red house, a car. " + "Nothing here. " * 40 + "It was the red car at last."
    assert "[red car]" in shown(text, '"red car"')


def test_a_word_that_weighs_more_is_shown_before_others() -> None:
    """The place of a rare word is better than that of two frequent ones."""
    text = "Maria came late. " + "Nothing here. " * 40 + "The kiln is hot."
    assert "[Maria]" in shown(text, "maria late kiln")
    assert "[kiln]" in shown(text, "maria late kiln", maria=0.1, late=0.1, kiln=5.0)


def test_signs_and_accents_are_marked_as_they_are_written() -> None:
    """What is marked is the text's own writing, whatever form was asked for."""
    assert shown("Cafe\u0301 don’t ＦＵＬＬ \x1b[31mred\x1b[0m car", 'café full "red" dont') == (
        "[Cafe\u0301] don’t [ＦＵＬＬ] [red] car"
    )
    assert shown("我去年去了北京，看了", "北京") == "我去年去了[北京]，看了"
    assert shown("👩\u200d💻 at work", "💻") == "👩\u200d[💻] at work"


def test_an_excerpt_is_one_line() -> None:
    """Line breaks, tabs and signs for terminals become single spaces, and marks move with their words."""
    assert shown("one\n\n\ttwo\x07 three", "three") == "one two [three]"


def test_without_an_answer_the_beginning_is_shown() -> None:
    """A text that has none of the words is shown from its beginning."""
    assert shown("Once upon a time. " * 20, "needle", 30) == "Once upon a time. Once upon…"
    assert excerpt("", parse_query("x", ENGLISH), ENGLISH) == Excerpt("")


@given(st.text(max_size=300), st.text(max_size=20), st.integers(30, 200))
def test_any_text_has_an_excerpt(text: str, query: str, chars: int) -> None:
    """An excerpt keeps within its length, is one line, and its marks are in order within it."""
    actual_excerpt = excerpt(text, parse_query(f"{query} {text[50:80]}", ENGLISH), ENGLISH, chars)
    assert len(actual_excerpt.text) <= chars
    assert len(actual_excerpt.text.splitlines()) <= 1
    at = 0
    for start, stop in actual_excerpt.marks:
        assert at <= start < stop <= len(actual_excerpt.text)
        at = stop
