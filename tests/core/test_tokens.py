"""The token estimator counts the same everywhere."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vmstore.core.page import Modality
from vmstore.core.text.token_estimate import BYTES_PER_AUDIO_TOKEN, TOKENS_IMAGE, estimate


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("ä" * 4, 1), ("😀" * 5, 2), ("x" * 400, 100)]
)
@pytest.mark.parametrize("modality", [Modality.TEXT, Modality.STRUCTURED])
def test_text_is_a_quarter_of_its_characters(modality: Modality, text: str, tokens: int) -> None:
    """Four characters, not bytes, are one token, rounded up."""
    assert estimate(text.encode(), modality) == tokens


@given(text=st.text(st.characters(codec=None)))
@example(text="000000\ud800")
def test_any_text_is_counted(text: str) -> None:
    """Any text counts as a quarter of its characters, lone surrogates included."""
    assert estimate(text.encode("utf-8", "surrogatepass"), Modality.TEXT) == (len(text) + 3) // 4


def test_an_image_that_does_not_say_its_size_is_a_flat_guess() -> None:
    """Bytes that tell no size count as an image of 1,000 tokens, however many they are."""
    assert estimate(b"", Modality.IMAGE) == estimate(b"\xff" * 9_999, Modality.IMAGE) == TOKENS_IMAGE


@pytest.mark.parametrize(("length", "tokens"), [(0, 0), (1, 1), (1, 1), (BYTES_PER_AUDIO_TOKEN + 1, 2)])
@pytest.mark.parametrize("modality", [Modality.AUDIO, Modality.VIDEO])
def test_sound_is_counted_by_length(modality: Modality, length: int, tokens: int) -> None:
    """Audio and video count their bytes, rounded up, though these are no text."""
    assert estimate(b"\xff" * length, modality) == tokens
