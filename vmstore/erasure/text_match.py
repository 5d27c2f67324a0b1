"""Texts found again: contents that are equal to one of some texts, or quote one whole."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b

QUOTED_CHARS_MIN = 16  # a shorter text is found by chance, so only what is equal to it counts
FEW = 8


class TextMatcher:
    """Texts to be found again in contents."""

    def __init__(self, contents: Iterable[bytes]) -> None:
        self._equal: set[bytes] = set()
        self._quoted: set[bytes] = set()
        for content in contents:
            if content:
                self._equal.add(_digest(content))
                self._quoted.update(_forms(content))
        self._begin: dict[bytes, list[bytes]] = {}
        for form in self._quoted:
            self._begin.setdefault(form[:QUOTED_CHARS_MIN], []).append(form)

    def __bool__(self) -> bool:
        return bool(self._equal)

    def equal(self, content: bytes) -> bool:
        """Whether a content is one of the texts."""
        return _digest(content) in self._equal

    def quoted(self, content: bytes) -> bool:
        """Whether a content holds one of the texts whole, as it is or as JSON writes it."""
        if len(self._quoted) <= FEW:
            return any(form in content for form in self._quoted)
        begin = self._begin
        for at in range(len(content) - QUOTED_CHARS_MIN + 1):
            forms = begin.get(content[at : at + QUOTED_CHARS_MIN])
            if forms and any(content.startswith(form, at) for form in forms):
                return True
        return False


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


def _forms(content: bytes) -> list[bytes]:
    """A text as it may stand in another: as it is, and escaped as JSON does."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return [content] if len(content) >= QUOTED_CHARS_MIN else []
    if len(text) < QUOTED_CHARS_MIN:
        return []
    escaped = (json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode() for ascii_only in (False, True))
    return [content, *escaped]
