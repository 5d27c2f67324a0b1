"""Images, sound and film: thumbnails, what was handed in, and lines that say what they are."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.core.page import Method, Modality
from vmstore.core.text.token_estimate import estimate
from vmstore.vm.compressors.form import Form, Material, NoForm, NoFormReason
from vmstore.vm.compressors.reference_line import length, type_by_bytes
from vmstore.vm.compressors.registry import compressed

TRANSCRIPT = """0:01 Ana: Welcome to the call about the cache of the server. The cache is full every night.
0:40 Ben: The cache fills because the nightly job at 02:30 reads all files. We can limit the job to 4 GB.
1:20 Ana: Then limit the job. The weather is nice here. Bye."""


def drawn(kind: str, width: int = 640, height: int = 480, mode: str = "RGB", **fields: Any) -> bytes:
    """An image of a kind, with a pattern that does not pack to nothing."""
    image_of = pytest.importorskip("PIL.Image")
    image = image_of.new("RGB", (width, height))
    image.putdata([(x * 7 % 256, y * 5 % 256, x * y % 256) for y in range(height) for x in range(width)])
    made = io.BytesIO()
    image.convert(mode).save(made, kind, **fields)
    return made.getvalue()


def opened(form: Form | NoForm) -> Any:
    """The image of a form."""
    image_of = pytest.importorskip("PIL.Image")
    assert isinstance(form, Form), form
    return image_of.open(io.BytesIO(form.content))


KINDS = [
    ("PNG", "image/png", "RGBA"),
    ("JPEG", "image/jpeg", "RGB"),
    ("GIF", "image/gif", "P"),
    ("WEBP", "image/webp", "RGB"),
]


@pytest.mark.parametrize(("kind", "mime", "mode"), KINDS, ids=[kind for kind, *_ in KINDS])
def test_an_image_has_a_thumbnail(kind: str, mime: str, mode: str) -> None:
    """Level 1 is a JPEG of at most 256 pixels in the image's proportions, the same bytes each time."""
    material = Material(content=drawn(kind, mode=mode), modality=Modality.IMAGE, mime=mime)
    form = compressed(material, 1)
    assert opened(form).format == "JPEG" and opened(form).size == (256, 192)
    assert isinstance(form, Form) and (form.method, form.mime) == (Method.THUMBNAIL, "image/jpeg")
    assert len(form.content) < len(material.content) and form == compressed(material, 1)


def test_a_turned_photo_is_set_upright() -> None:
    """What a camera noted about how it was held is followed."""
    image_of = pytest.importorskip("PIL.Image")
    exif = image_of.Exif()
    exif[0x0112] = 6
    form = compressed(Material(content=drawn("JPEG", exif=exif), modality=Modality.IMAGE, mime="image/jpeg"), 1)
    assert opened(form).size == (192, 256)


def test_a_moving_image_shows_its_first_picture() -> None:
    """Of a moving GIF the thumbnail is the first picture."""
    image_of = pytest.importorskip("PIL.Image")
    red, blue = (image_of.effect_noise((400, 400), 90).convert("RGB").point(lambda v: v) for _ in range(2))
    red.paste((255, 0, 0), (0, 0, 400, 200))
    made = io.BytesIO()
    red.save(made, "GIF", save_all=True, append_images=[blue])
    form = compressed(Material(content=made.getvalue(), modality=Modality.IMAGE, mime="image/gif"), 1)
    first = opened(form).convert("RGB").getpixel((100, 50))
    assert first[0] > 200 > 60 > first[2]


WRONG = {
    "a web page": b"<html>404 not found</html>" * 9,
    "nothing": b"",
    "half an image": None,
    "a bomb": None,
    "too many pixels": None,
}


def wrong(name: str) -> bytes:
    """Bytes that are said to be a PNG."""
    content = WRONG[name]
    if content is not None:
        return content
    if name == "half an image":
        whole = drawn("PNG")
        return whole[: len(whole) // 2]
    image_of = pytest.importorskip("PIL.Image")
    made = io.BytesIO()
    image_of.new("1", (12_000, 12_000) if name == "a bomb" else (8_100, 8_100)).save(made, "PNG")
    return made.getvalue()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a web page", NoFormReason.MISMATCH),
        ("nothing", NoFormReason.EMPTY),
        ("half an image", NoFormReason.MISMATCH),
        ("a bomb", NoFormReason.TOO_LARGE),
        ("too many pixels", NoFormReason.TOO_LARGE),
    ],
)
def test_what_is_no_image_has_no_thumbnail(name: str, reason: NoFormReason) -> None:
    """Bytes that are not what the content type says, broken or far too large ones give a reason, not an error."""
    short = compressed(Material(content=wrong(name), modality=Modality.IMAGE, mime="image/png"), 1)
    assert isinstance(short, NoForm) and short.reason is reason and short.found


def test_another_kind_of_image_is_shown_and_told() -> None:
    """A JPEG that is said to be a PNG has its thumbnail, and its line says what the bytes are."""
    material = Material(
        content=drawn("JPEG"), modality=Modality.IMAGE, mime="image/png", width=640, height=480, name="a.png"
    )
    assert opened(compressed(material, 1)).size == (256, 192)
    line = compressed(material, 3)
    assert isinstance(line, Form)
    assert (
        line.content.decode()
        == f"[image/png: image/jpeg by its bytes, {len(material.content):,} bytes, 640×480, a.png]"
    )


def test_a_caption_is_handed_in() -> None:
    """Level 2 is the caption in one line; without one there is none."""
    content = drawn("PNG", 64, 64)
    short = compressed(Material(content=content, modality=Modality.IMAGE, caption="A chart:\n  sales by month."), 2)
    assert short == Form(b"A chart: sales by month.", Method.CAPTION)
    none = compressed(Material(content=content, modality=Modality.IMAGE), 2)
    assert none == NoForm(NoFormReason.NOT_GIVEN, "nobody handed in a caption")


def test_a_tiny_image_has_no_shorter_form() -> None:
    """An image smaller than its thumbnail would be stays as it is."""
    short = compressed(Material(content=drawn("PNG", 2, 2), modality=Modality.IMAGE, mime="image/png"), 1)
    assert isinstance(short, NoForm) and short.reason is NoFormReason.NO_SHORTER


def test_without_pillow_there_is_no_thumbnail() -> None:
    """Where the extra is missing the reason names it; the line is made all the same."""
    code = (
        "import sys; sys.modules['PIL'] = None\n"
        "from vmstore.core.page import Modality\n"
        "from vmstore.vm.compressors.form import Material\n"
        "from vmstore.vm.compressors.registry import compressed\n"
        "png = Material(content=b'\\x89PNG\\r\\n\\x1a\\n' + b'x' * 99, modality=Modality.IMAGE, mime='image/png')\n"
        "print(compressed(png, 1).found, compressed(png, 3).content.decode())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "thumbnails need Pillow: pip install 'vmstore[images]' [image/png: 107 bytes]\n"


@given(
    st.binary(max_size=200), st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF1234WEBP", b"BM"])
)
def test_broken_images_break_nothing(rest: bytes, sign: bytes) -> None:
    """Whatever follows the first bytes of an image, a form or a reason comes back, and the same again."""
    material = Material(content=sign + rest, modality=Modality.IMAGE, mime="image/png")
    short = compressed(material, 1)
    assert isinstance(short, Form | NoForm) and short == compressed(material, 1)


# Sound and film


@pytest.mark.parametrize("modality", [Modality.AUDIO, Modality.VIDEO])
def test_sound_and_film_have_what_was_handed_in(modality: Modality) -> None:
    """Level 1 is the transcript, level 2 its key points, level 3 a line with length and topics."""
    content = b"RIFF1234WAVE" + bytes(range(256)) * 4_000
    material = Material(content=content, modality=modality, mime="audio/wav", transcript=TRANSCRIPT, duration_ms=95_000)
    whole, points, line = (compressed(material, level) for level in (1, 2, 3))
    assert whole == Form(TRANSCRIPT.encode(), Method.TRANSCRIPT)
    assert isinstance(points, Form) and points.content.startswith(b"- ") and b"weather" not in points.content
    assert isinstance(line, Form)
    assert line.content.decode().startswith("[audio/wav: 1,024,012 bytes, 1:35, cache, limit, ")
    assert [form.tokens for form in (whole, points, line)] == sorted([form.tokens for form in (whole, points, line)])[
        ::-1
    ]
    assert whole.tokens < estimate(content, modality)


@pytest.mark.parametrize("level", [1, 2])
def test_nobody_listens_here(level: int) -> None:
    """Without a transcript sound has its line alone, and the reason says what is missing."""
    short = compressed(Material(content=b"x" * 9_999, modality=Modality.AUDIO, mime="audio/mpeg"), level)
    assert short == NoForm(NoFormReason.NOT_GIVEN, "nobody handed in a transcript")


def test_a_transcript_longer_than_its_sound_is_no_shorter_form() -> None:
    """Where the words take more than the sound would, there is no shorter form."""
    short = compressed(Material(content=b"x" * 3_000, modality=Modality.AUDIO, transcript=TRANSCRIPT), 1)
    assert short == NoForm(NoFormReason.NO_SHORTER, "no shorter form")


def test_types_and_lengths_are_read() -> None:
    """The first bytes give a type away, and a duration reads as clocks show it."""
    texts = [
        type_by_bytes(sign + b"    ")
        for sign in (b"%PDF-1.7", b"OggS", b"RIFF1234AVI ", b"1234ftypmp42", b"RIFF1234XXXX", b"")
    ]
    assert texts == ["application/pdf", "audio/ogg", "video/x-msvideo", "video/mp4", None, None]
    assert [length(ms) for ms in (0, 59_999, 187_000, 3_720_000)] == ["0:00", "0:59", "3:07", "1:02:00"]
