"""The last level of what is no text: what kind of thing it is and how large, in one line."""

from __future__ import annotations

from vmstore.core.page import Method
from vmstore.vm.compressors.form import Form, Material, text_form
from vmstore.vm.recall.text_pieces import without_controls

NAME_CHARS_MAX = 80

_SIGNS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)
_CONTAINERS = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}


def reference(material: Material, more: str = "") -> Form:
    """One line for a page: its type as said, what its bytes are where that differs, size, length, name."""
    mime = without_controls(material.mime.partition(";")[0].strip())[:NAME_CHARS_MAX] or "unknown type"
    parts = [f"{len(material.content):,} bytes"]
    found = type_by_bytes(material.content)
    if found is not None and found != mime:
        parts.insert(0, f"{found} by its bytes")
    if material.width and material.height:
        parts.append(f"{material.width}×{material.height}")
    if material.duration_ms:
        parts.append(length(material.duration_ms))
    if name := " ".join(without_controls(material.name[: 2 * NAME_CHARS_MAX]).split()):
        parts.append(name[:NAME_CHARS_MAX])
    if more:
        parts.append(more)
    return text_form(f"[{mime}: {', '.join(parts)}]", Method.REFERENCE)


def type_by_bytes(content: bytes) -> str | None:
    """The content type the first bytes give away; None where they give none."""
    if content[:4] == b"RIFF":
        return _CONTAINERS.get(content[8:12])
    if content[4:8] == b"ftyp":
        return "video/mp4"
    return next((mime for sign, mime in _SIGNS if content.startswith(sign)), None)


def length(duration_ms: int) -> str:
    """A duration as clocks show it: `3:07`, `1:02:00`."""
    minutes, seconds = divmod(duration_ms // 1_000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
