"""Shorter forms of images: a thumbnail, the caption that was handed in, one line.

The thumbnail needs Pillow (extra `images`). It is the same bytes for the same image and the same Pillow;
what was made once is recorded, so a replay never makes it again.
"""

from __future__ import annotations

import io
import warnings

from vmstore.core.page import Method
from vmstore.vm.compressors.form import Form, Material, NoForm, NoFormReason, text_form
from vmstore.vm.compressors.reference_line import reference, type_by_bytes
from vmstore.vm.recall.text_pieces import without_controls

SIDE_MAX = 256  # pixels of a thumbnail's longer side
QUALITY = 60
PIXELS_MAX = 64_000_000  # a small file can unfold into more than fits into memory
CAPTION_CHARS_MAX = 1_000
TYPES = {"image/png": "PNG", "image/jpeg": "JPEG", "image/gif": "GIF", "image/webp": "WEBP", "image/bmp": "BMP"}


def thumbnail(material: Material) -> Form | NoForm:
    """Level 1: the image in 256 pixels at most, as JPEG; of a moving one its first picture."""
    if not material.content:
        return NoForm(NoFormReason.EMPTY, "the page has no content")
    found = type_by_bytes(material.content)
    if found not in TYPES:
        what = "are of no image known here" if found is None else f"are {found}"
        return NoForm(NoFormReason.MISMATCH, f"said to be {material.mime[:80]}, and its bytes {what}")
    return _drawn(material.content, found)


def caption(material: Material) -> Form | NoForm:
    """Level 2: the caption that the caller passed in."""
    text = " ".join(without_controls(material.caption[: 2 * CAPTION_CHARS_MAX]).split())
    if not text:
        return NoForm(NoFormReason.NOT_GIVEN, "nobody handed in a caption")
    return text_form(text[:CAPTION_CHARS_MAX], Method.CAPTION)


def line(material: Material) -> Form | NoForm:
    """Level 3: type, size and name."""
    return reference(material) if material.content else NoForm(NoFormReason.EMPTY, "the page has no content")


def _drawn(content: bytes, mime: str) -> Form | NoForm:
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError:
        return NoForm(NoFormReason.NO_LIBRARY, "thumbnails need Pillow: pip install 'vmstore[images]'")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(content), formats=[TYPES[mime]])
        with image:
            if image.width * image.height > PIXELS_MAX:
                found = f"{image.width:,}×{image.height:,} pixels, and at most {PIXELS_MAX:,} are opened"
                return NoForm(NoFormReason.TOO_LARGE, found)
            image.draft("RGB", (SIDE_MAX, SIDE_MAX))  # a JPEG is read no larger than needed
            small = ImageOps.exif_transpose(image)
            small.thumbnail((SIDE_MAX, SIDE_MAX))
            shown = small.convert("RGBA")
            plain = Image.new("RGB", shown.size, "white")
            plain.paste(shown, mask=shown.getchannel("A"))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        return NoForm(NoFormReason.TOO_LARGE, str(error)[:200])
    except UnidentifiedImageError:  # which names an object by where it lies in memory
        return NoForm(NoFormReason.MISMATCH, f"said by its first bytes to be {mime}, and what follows is none")
    except (OSError, ValueError, SyntaxError, EOFError, IndexError, KeyError, TypeError, MemoryError) as error:
        # What a broken file raises depends on where it is broken.
        return NoForm(
            NoFormReason.MISMATCH, f"said by its first bytes to be {mime}, and cannot be read: {error!s:.120}"
        )
    made = io.BytesIO()
    plain.save(made, "JPEG", quality=QUALITY, optimize=True)
    return Form(made.getvalue(), Method.THUMBNAIL)
