"""The words of a text: runs of letters and digits, in one case. Every comparison of texts by words reads them so."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W_]+")
WORD_CHARS = 200  # what is longer is cut: a line of base64 is one word


def words(text: str) -> list[str]:
    """The words of a text in order, as often as they stand in it."""
    return [word[:WORD_CHARS] for word in _WORD.findall(text.casefold())]


def readable(content: bytes) -> str | None:
    """The text of a content; None where it is none."""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
