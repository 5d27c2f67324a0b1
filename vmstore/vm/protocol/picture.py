"""Pictures that providers take: what they are is read from their own bytes, not from what they are said to be."""

from __future__ import annotations

import base64
import binascii
from typing import Any, NamedTuple

from vmstore.core.page import Modality
from vmstore.vm.protocol.prompt_page import PromptPage
from vmstore.vm.protocol.tool_calls import object_of

PICTURE_BYTES_MAX = 1_000_000
SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


class Picture(NamedTuple):
    """An image in the message itself, its type read from its own bytes; or one that lies at `url`, without bytes."""

    mime: str
    content: bytes
    url: str = ""

    @property
    def base64(self) -> str:
        """Its bytes as requests carry them."""
        return base64.b64encode(self.content).decode("ascii")


def picture(leaf: PromptPage) -> Picture | None:
    """The page as an image, where it is one that providers take: by its bytes, not by its declared type."""
    content = leaf.content if leaf.modality is Modality.IMAGE else None
    if leaf.modality is Modality.IMAGE and (url := _url(object_of(leaf.text))):
        return Picture("", b"", url)
    if content is not None and content.startswith(b"data:"):
        try:
            content = base64.b64decode(content.partition(b",")[2], validate=True)
        except binascii.Error:
            return None
    if content is None or len(content) > PICTURE_BYTES_MAX:
        return None
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return Picture("image/webp", content)
    mime = next((mime for begins, mime in SIGNATURES.items() if content.startswith(begins)), None)
    return None if mime is None else Picture(mime, content)


def _url(part: dict[str, Any]) -> str:
    """The web address in a provider's image part; empty where there is none."""
    for key in ("image_url", "source"):
        inner = part.get(key)
        url = inner.get("url") if isinstance(inner, dict) else inner
        if isinstance(url, str) and url.startswith(("https://", "http://")):
            return url
    return ""
