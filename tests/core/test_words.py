"""Words: how a text is read when it is searched."""

from __future__ import annotations

import pytest

from vmstore.core.text.tokenizer import WORD_CHARS, readable, words

READINGS = [
    ("Where is Kyoto?", ["where", "is", "kyoto"]),
    ("snake_case and kebab-case", ["snake", "case", "and", "kebab", "case"]),
    ("Straße STRASSE", ["strasse", "strasse"]),
    ("p17 2026-11-22 0.5", ["p17", "2026", "11", "22", "0", "5"]),
    ("京都 и Киото", ["京都", "и", "киото"]),
    ("", []),
    (" \n\t—!", []),
]


@pytest.mark.parametrize(("text", "texts"), READINGS)
def test_words_are_runs_of_letters_and_digits(text: str, texts: list[str]) -> None:
    """A text reads as its words in order, in one case, whatever stands between them."""
    assert words(text) == texts


def test_a_long_word_is_cut() -> None:
    """A run longer than any word counts as its beginning, so that a line of base64 is no burden."""
    assert words("a" * 5_000) == ["a" * WORD_CHARS]


@pytest.mark.parametrize(("content", "text"), [(b"caf\xc3\xa9", "café"), (b"\xff\xfe", None), (b"a\0b", None)])
def test_only_texts_are_read(content: bytes, text: str | None) -> None:
    """What is no UTF-8, or holds a NUL, is no text and is never found."""
    assert readable(content) == text
