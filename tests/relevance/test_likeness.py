"""Words that are written alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.relevance.likeness import ONE_TYPO, halves, likeness, likest, turned, typos, typos_allowed

WORDS = st.text(alphabet="abcdé", min_size=1, max_size=10)


def distance(word: str, other: str) -> int:
    """The typos between two words, read from the definition: every way from the one to the other is tried."""
    if not word or not other:
        return len(word) + len(other)
    ways = [
        distance(word[1:], other) + 1,
        distance(word, other[1:]) + 1,
        distance(word[1:], other[1:]) + (word[0] != other[0]),
    ]
    if len(word) > 1 and len(other) > 1 and word[0] == other[1] and word[1] == other[0]:
        ways.append(distance(word[2:], other[2:]) + 1)
    return min(ways)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("neccessary", "necessary"),
        ("reimbursment", "reimbursement"),
        ("recieve", "receive"),
        ("seperate", "separate"),
        ("wrod", "word"),
        ("postgres", "postgresql"),
        ("vacatoin", "vacation"),
        ("handlre", "handler"),
        ("xainting", "painting"),
    ],
)
def test_a_typo_is_forgiven(typed: str, meant: str) -> None:
    """A word with a typo finds the word that was meant before others."""
    others = ["nothing", "of", "kind", "words", "vocation", "receipt", "pointing", "panting"]
    assert likest(typed, [*others, meant], 3)[0] == meant


@pytest.mark.parametrize(
    ("typed", "other"),
    [("cat", "car"), ("2.13.4", "2.13.5"), ("d8b066f", "d8b0669"), ("paint", "plants"), ("word", "word")],
)
def test_some_words_have_no_typos(typed: str, other: str) -> None:
    """Short words, versions, hashes, other words and the word itself are not taken for typos."""
    assert likest(typed, [other], 3) == []


def test_long_words_have_two_typos_if_they_begin_right() -> None:
    """Two typos are forgiven in eight letters, but not where the first of them is one."""
    assert likest("refactroign", ["refactoring"], 1)
    assert typos_allowed("abcdefgh") == 2
    assert typos("xbcdefgx", "abcdefgh", 2) == 2
    assert not likest("xbcdefgx", ["abcdefgh"], 1)


@given(st.text(alphabet="abc", max_size=5), st.text(alphabet="abc", max_size=5), st.integers(0, 3))
def test_typos_are_counted(word: str, other: str, most: int) -> None:
    """The number of typos is that of the definition, and none where it is more than was asked for."""
    exact = distance(word, other)
    assert typos(word, other, most) == (exact if exact <= most else None)


@given(WORDS, WORDS)
def test_likeness_is_mutual(word: str, other: str) -> None:
    """Likeness is between 0 and 1 and the same both ways."""
    assert likeness(word, other) == likeness(other, word)
    assert 0 <= likeness(word, other) <= 1


@given(
    st.text(alphabet="abcd", min_size=4, max_size=10), st.integers(0, 20), st.sampled_from("abcdx"), st.integers(0, 3)
)
def test_every_single_typo_is_forgiven(word: str, place: int, letter: str, kind: int) -> None:
    """A word with one typo anywhere is like the word, whichever of its letters it was."""
    at = place % len(word)
    typed = (
        word[:at] + word[at + 1 :],
        word[:at] + letter + word[at:],
        word[:at] + letter + word[at + 1 :],
        word[:at] + word[at + 1 : at + 2] + word[at : at + 1] + word[at + 2 :],
    )[kind]
    if typed != word and len(typed) >= ONE_TYPO:
        assert likest(typed, [word], 1) == [word]


@given(WORDS)
def test_halves_are_the_word(word: str) -> None:
    """The halves of a word make it, and turning its middle twice gives it back."""
    assert "".join(halves(word)) == word
    assert turned(turned(word)) == word
