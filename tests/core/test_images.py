"""How large a picture is stands in its first bytes, and what an image costs follows from it."""

from __future__ import annotations

import base64
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from vmstore.core.page import Modality
from vmstore.core.text.image_size import size_of
from vmstore.core.text.token_estimate import TOKENS_IMAGE, area, estimate


def drawn(form: str, width: int, height: int, **fields: object) -> bytes:
    """A picture as Pillow writes it."""
    made = io.BytesIO()
    Image.new("RGB", (width, height), "white").save(made, form, **fields)
    return made.getvalue()


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        ("PNG", {}),
        ("GIF", {}),
        ("JPEG", {}),
        ("JPEG", {"progressive": True}),
        ("JPEG", {"exif": b"Exif\0\0" + b"x" * 60_000}),
        ("WEBP", {}),
        ("WEBP", {"lossless": True}),
        ("WEBP", {"exif": b"Exif\0\0x"}),
    ],
    ids=str,
)
@pytest.mark.parametrize(("width", "height"), [(1, 1), (255, 3), (256, 2), (3, 700), (640, 257)])
def test_the_size_is_the_one_it_was_drawn_in(form: str, fields: dict[str, object], width: int, height: int) -> None:
    """Of each kind of picture width and height are read as Pillow wrote them, also out of a data URL."""
    content = drawn(form, width, height, **fields)
    assert size_of(content) == (width, height)
    url = f"data:image/{form.lower()};base64,".encode() + base64.b64encode(content)
    assert size_of(url) == (width, height)


@given(
    st.binary(max_size=60), st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8", b"RIFF1234WEBPVP8X"])
)
def test_broken_bytes_have_no_size_or_one(rest: bytes, sign: bytes) -> None:
    """Whatever follows a picture's first bytes, there is an answer, and no side of it is nothing."""
    size = size_of(sign + rest)
    assert size is None or min(size) > 0
    assert estimate(sign + rest, Modality.IMAGE) >= 1


@pytest.mark.parametrize(
    ("size", "tokens"), [((750, 1), 1), ((256, 256), 88), ((1_092, 1_092), 1_590), ((4_000, 3_000), 1_600), ((9, 9), 1)]
)
def test_an_image_costs_its_area(size: tuple[int, int], tokens: int) -> None:
    """A token for 750 pixels, no more than a provider reads of a picture, and no less than one."""
    assert area(*size) == tokens


def test_a_picture_that_does_not_say_is_a_flat_guess() -> None:
    """What lies elsewhere, and what is no picture known here, counts as 1,000 tokens."""
    elsewhere = b'{"type": "image_url", "image_url": {"url": "https://x.org/a.png"}}'
    for content in (elsewhere, b"%PDF-1.7", b"data:image/png,x"):
        assert estimate(content, Modality.IMAGE) == TOKENS_IMAGE


def test_a_thumbnail_costs_less() -> None:
    """A smaller picture of the same thing is cheaper, so that showing it makes room."""
    whole, small = drawn("PNG", 1_200, 800), drawn("JPEG", 256, 170)
    assert estimate(small, Modality.IMAGE) * 10 < estimate(whole, Modality.IMAGE)
