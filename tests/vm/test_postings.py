"""Postings: the pages that answer some words best, by BM25 over windows of their stems."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.vm.recall.postings import K1, TERMS_MIN, WINDOW_CHARS, B, Postings, windows


def order(postings: Postings, **asked: float) -> list[int]:
    """The pages that match, best first."""
    matches = postings.matches(asked, lambda page: True)
    return sorted(matches, key=lambda page: (-matches[page].score, page))


def test_the_rarer_word_decides() -> None:
    """Of two pages with one word each the one with the rarer word comes first."""
    postings = Postings()
    for page, text in enumerate(("queue", "queue", "queue", "cache"), 1):
        postings.add(page, text)
    assert order(postings, queue=1.0, cach=1.0) == [4, 1, 2, 3]


def test_a_score_is_the_formula() -> None:
    """The score of a page is that of Robertson's formula, worked out by hand."""
    postings = Postings()
    postings.add(1, "cache cache disk")
    postings.add(2, "queue " * 20)
    mean = (TERMS_MIN + 20) / 2
    idf = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    expected = idf * 2 * (K1 + 1) / (2 + K1 * (1 - B + B * TERMS_MIN / mean))
    assert postings.matches({"cach": 1.0}, lambda page: True)[1].score == pytest.approx(expected)


def test_a_long_page_counts_by_its_best_window() -> None:
    """One line at the end of a long log is found as well as a message that says nothing else."""
    log = "worker ended after a while\n" * 400
    postings = Postings()
    postings.add(1, log + "the zebra escaped\n")
    postings.add(2, log)
    postings.add(3, "zebra")
    assert order(postings, zebra=1.0) == [3, 1]


def test_an_agreement_is_found_by_what_it_answers() -> None:
    """A page has the terms of what its words stand for."""
    postings = Postings()
    postings.add(1, "ok", beside="For the cache I suggest Redis.")
    assert postings.matches({"redis": 1.0}, lambda page: True)[1].terms == ("redis",)


def test_what_was_dropped_or_changed_is_not_found() -> None:
    """A page that says something else now is found by that alone, one that was dropped not at all."""
    postings = Postings()
    postings.add(1, "cache")
    postings.add(2, "cache")
    postings.add(1, "queue")
    postings.drop([2])
    assert order(postings, cach=1.0) == [] and order(postings, queue=1.0) == [1]
    assert 1 in postings and 2 not in postings and len(postings) == 1


WORDS = st.lists(st.sampled_from(("cache", "queue", "disk", "zebra\n" * 200)), max_size=6).map(" ".join)


@given(st.lists(st.tuples(st.integers(1, 4), st.none() | WORDS), max_size=12))
def test_what_was_said_before_leaves_no_trace(texts: list[tuple[int, str | None]]) -> None:
    """Pages that changed or were dropped score as in postings that were never told anything else."""
    changed, fresh = Postings(), Postings()
    last: dict[int, str | None] = {}
    for page, text in texts:
        last[page] = text
        if text is None:
            changed.drop([page])
        else:
            changed.add(page, text)
    for page, text in last.items():
        if text is not None:
            fresh.add(page, text)
    asked = {"cach": 1.0, "queue": 0.5, "zebra": 2.0}
    assert changed.matches(asked, lambda page: True) == fresh.matches(asked, lambda page: True)
    assert [changed.weight(term) for term in asked] == [fresh.weight(term) for term in asked]


@given(st.text(alphabet=" .\nabcé", max_size=6 * WINDOW_CHARS))
def test_windows_are_the_text(text: str) -> None:
    """The windows of a text joined are the text, and none is much longer than it may be."""
    actual_windows = list(windows(text))
    assert "".join(actual_windows) == text
    assert all(len(window) <= WINDOW_CHARS * 5 // 4 for window in actual_windows)
