"""What a change is: an edit, or a shorter form of the same text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capture.words import CLIPPED, LONG, NOTE, SHORT
from vmstore.capture.conversation.part_diff import alike, reads_like_a_summary, shorter
from vmstore.core.page import Level, Method

REFERENCE = (Level.REFERENCE, Method.REPLACED)
REDUCED = (Level.REDUCED, Method.CLIPPED)
ABSTRACT = (Level.ABSTRACT, Method.SHORTENED)


@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        (NOTE, REFERENCE),
        ("[cleared]", REFERENCE),
        ("Done.", REFERENCE),
        ("", REFERENCE),
        (LONG[:300], REDUCED),
        (LONG[-300:], REDUCED),
        (CLIPPED, REDUCED),
        (SHORT, ABSTRACT),
        (LONG, None),
        (LONG + "more", None),
        (LONG.upper(), None),
        (LONG[:-5], None),
        (LONG.upper()[: len(LONG) * 8 // 10], None),
    ],
)
def test_a_long_text_is_shortened_as_it_reads(after: str, wanted: object) -> None:
    """Cut is reduced, reworded is abstract, a note in its place is a reference, anything else an edit."""
    assert shorter(LONG.encode(), after.encode()) == wanted


def test_a_short_text_is_edited_unless_a_note_says_it_is_gone() -> None:
    """Nothing is gained by compressing a line, so a changed line is an edit; "omitted" still means gone."""
    assert shorter(b"Which file?", b"Which?") is None
    assert shorter(b"total 0\n", b"Old environment output: (1 lines omitted)") == REFERENCE


def test_a_note_changed_for_another_is_an_edit() -> None:
    """What was a note from the beginning is not compressed by another note."""
    assert shorter(b"(3 lines omitted)", b"(4 lines omitted)") is None


def test_bytes_that_are_no_text_are_compared_all_the_same() -> None:
    """Contents may be any bytes; the answer is then by length and by what was kept."""
    data = bytes(range(256)) * 8
    assert shorter(data, data) is None
    assert shorter(data, data[:256]) == REDUCED
    assert not alike(data, b"\xfe\x01")


def test_alike_means_shared_beginnings_and_ends() -> None:
    """A corrected question resembles itself, another question does not."""
    assert alike(b"Open the second file.", b"Open the third file.")
    assert alike(b"Open the file.", b"Open the file. Then close it.")
    assert not alike(b"Open the file.", b"What time is it?")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Summary of the conversation so far: nothing.", True),
        ("<summary>It works.</summary>", True),
        ("The conversation was compacted. It works.", True),
        ("This session is being continued; the conversation is summarized below.", True),
        ("## Context checkpoint", True),
        ("Please open the file.", False),
        ("x" * 3000 + " summary", False),
        ("", False),
    ],
)
def test_a_summary_says_what_it_is_at_its_beginning(text: str, wanted: bool) -> None:
    """A text that calls itself a summary reads like one; a word far inside a long text does not."""
    assert reads_like_a_summary(text.encode()) is wanted


contents = st.one_of(st.binary(max_size=300), st.text("ab \n", max_size=400).map(str.encode))


@given(contents, contents)
def test_only_what_is_shorter_is_a_shorter_form(old: bytes, new: bytes) -> None:
    """Whatever the two contents, a form at a level is a level from 1 to 3 and no copy of the full text."""
    actual_shorter = shorter(old, new)
    if actual_shorter is not None:
        assert actual_shorter in (REFERENCE, REDUCED, ABSTRACT)
        assert new != old
        if b"omitted" not in new:
            assert len(new.decode("utf-8", "replace")) < len(old.decode("utf-8", "replace"))


@given(contents, contents)
def test_the_same_change_is_always_named_the_same(old: bytes, new: bytes) -> None:
    """The rules see the two contents only, and a content is alike itself."""
    assert shorter(old, new) == shorter(bytes(old), bytes(new))
    assert alike(old, new) == alike(bytes(old), bytes(new))
    assert shorter(old, old) is None
    assert not old or alike(old, old)


@given(st.text("abc \n", min_size=120, max_size=600), st.data())
def test_a_cut_out_middle_is_reduced(text: str, data: st.DataObject) -> None:
    """Beginning and end kept and a fifth or more cut from between is a clipped form."""
    head = data.draw(st.integers(0, len(text) * 2 // 5))
    tail = data.draw(st.integers(1, len(text) * 2 // 5))
    clipped = text[:head] + text[len(text) - tail :]
    assert shorter(text.encode(), clipped.encode()) == REDUCED
