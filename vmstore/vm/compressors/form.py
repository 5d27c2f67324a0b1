"""Input and output of a compressor: the material, and a shorter form or the reason for none."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from vmstore.core.page import Method, Mime, Modality, WordEnum
from vmstore.core.text.token_estimate import estimate


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """A page as it was accepted: its bytes, and what was handed in with it.

    `name` is a hint or a file's name, `duration_ms` of sound and film, `width` and `height` in
    pixels; 0 and the empty text where nobody said.
    """

    content: bytes
    modality: Modality = Modality.TEXT
    mime: str = Mime.TEXT.type
    name: str = ""
    width: int = 0
    height: int = 0
    duration_ms: int = 0
    caption: str = ""
    transcript: str = ""


class Form(msgspec.Struct, frozen=True):
    """A shorter representation; its content type follows from its method."""

    content: bytes
    method: Method
    lossy: bool = True

    @property
    def modality(self) -> Modality:
        """The modality it is read and counted in, whatever its page has."""
        return MADE_OF.get(self.method, Modality.TEXT)

    @property
    def mime(self) -> str:
        """The content type of its bytes."""
        return MIMES.get(self.method, Mime.TEXT).type

    @property
    def tokens(self) -> int:
        """Its estimated tokens."""
        return estimate(self.content, self.modality)

    def ratio(self, material: Material) -> int:
        """Its estimated tokens against those of the whole page, in parts per million."""
        whole = estimate(material.content, material.modality)
        return self.tokens * 1_000_000 // whole if whole else 1_000_000

    def shorter_than(self, content: bytes, modality: Modality) -> bool:
        """Whether it has fewer bytes than another content, and no more estimated tokens."""
        return len(self.content) < len(content) and self.tokens <= estimate(content, modality)


MADE_OF = {Method.THUMBNAIL: Modality.IMAGE, Method.SAMPLES: Modality.STRUCTURED, Method.SCHEMA: Modality.STRUCTURED}
MIMES = {Method.THUMBNAIL: Mime.JPEG, Method.SAMPLES: Mime.JSON, Method.SCHEMA: Mime.JSON}


class NoFormReason(WordEnum):
    """Reasons for no form."""

    NO_SHORTER = 0  # what would be made is no shorter than what there is
    EMPTY = 1  # the page has no content
    NO_TEXT = 2  # the bytes are no text
    MISMATCH = 3  # the bytes are not what the content type says
    TOO_LARGE = 4  # larger than what is opened here
    NOT_GIVEN = 5  # it needs a caption or a transcript, and none was handed in
    NO_LIBRARY = 6  # the extra that makes it is not installed
    NOT_ALLOWED = 7  # pages of this type are not compressed so far


class NoForm(msgspec.Struct, frozen=True):
    """There is no form: the reason, and what was found in words."""

    reason: NoFormReason
    found: str = ""


NO_SHORTER = NoForm(NoFormReason.NO_SHORTER, "no shorter form")


class Compressor(NamedTuple):
    """Makes one level of one modality. `make` reads its material and nothing else."""

    method: Method
    make: Callable[[Material], Form | NoForm]


def text_form(text: str, method: Method) -> Form:
    """A form that is a text; a sign that UTF-8 cannot write is written as its escape."""
    return Form(text.encode("utf-8", "backslashreplace"), method)
