"""Sizes of pictures, read from their first bytes: PNG, JPEG, GIF and WebP, also in a `data:` URL."""

from __future__ import annotations

import base64
import binascii

HEAD_BYTES = 1 << 18  # of a picture, looked through for its size: before it photographs tell of the camera
JPEG_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})  # the segments that begin a picture
JPEG_BARE = frozenset({0x01, *range(0xD0, 0xDA)})  # those without a length

assert JPEG_SIZES.isdisjoint(JPEG_BARE), "a segment that says the size has a length"

Size = tuple[int, int]


def size_of(content: bytes) -> Size | None:
    """Width and height in pixels; None where the bytes are of no picture known here, or do not say."""
    head = content[:HEAD_BYTES]
    if head.startswith(b"data:"):
        head = _decoded(head)
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return _positive(_number(head, 16, 4, "big"), _number(head, 20, 4, "big"))
    if head.startswith((b"GIF87a", b"GIF89a")):
        return _positive(_number(head, 6, 2), _number(head, 8, 2))
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return _webp(head)
    return _jpeg(head) if head.startswith(b"\xff\xd8") else None


def _decoded(url: bytes) -> bytes:
    """The bytes in a URL, as far as it is here."""
    header, _, data = url.partition(b",")
    try:
        return base64.b64decode(data[: len(data) // 4 * 4]) if header.endswith(b";base64") else b""
    except binascii.Error:
        return b""


def _webp(head: bytes) -> Size | None:
    kind = head[12:16]
    if kind == b"VP8X":
        return _positive(_number(head, 24, 3) + 1, _number(head, 27, 3) + 1) if len(head) >= 30 else None
    if kind == b"VP8L":
        bits = _number(head, 21, 4)
        return _positive((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1) if len(head) >= 25 else None
    return _positive(_number(head, 26, 2) & 0x3FFF, _number(head, 28, 2) & 0x3FFF) if kind == b"VP8 " else None


def _jpeg(head: bytes) -> Size | None:
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        kind = head[at + 1]
        if kind in JPEG_SIZES:
            return _positive(_number(head, at + 7, 2, "big"), _number(head, at + 5, 2, "big"))
        at += 1 if kind == 0xFF else 2 if kind in JPEG_BARE else 2 + max(2, _number(head, at + 2, 2, "big"))
    return None


def _number(head: bytes, at: int, length: int, order: str = "little") -> int:
    return int.from_bytes(head[at : at + length], "big" if order == "big" else "little")


def _positive(width: int, height: int) -> Size | None:
    return (width, height) if width > 0 and height > 0 else None
