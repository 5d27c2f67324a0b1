"""Comparing a changed part with its page: an update, or a shorter form of the same page.

The rules are in `specs/capture.md` with examples. They read the two texts only, so the same
change is always named the same.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from vmstore.core.page import Level, Method

NOTE_CHARS_MAX = 240  # a replacement no longer than this is a note, not an abstract
FULL_CHARS_MIN = 100  # shorter texts are edited, not compressed
OMISSION = re.compile(r"\b(omitted|truncated|elided|cleared|removed|trimmed|pruned|collapsed)\b", re.IGNORECASE)
SUMMARY = re.compile(r"<summary>|\bsummar(y|ised|ized)\b|\bcompacted\b|\bcontext checkpoint\b", re.IGNORECASE)


class ShorterForm(NamedTuple):
    """A shorter representation: at which level, made how."""

    level: Level
    method: Method


def shorter(old: bytes, new: bytes) -> ShorterForm | None:
    """The way in which `new` shortens `old`, or None where it is another content."""
    before, after = old.decode("utf-8", "replace"), new.decode("utf-8", "replace")
    if len(after) <= NOTE_CHARS_MAX and OMISSION.search(after) and not OMISSION.search(before[:NOTE_CHARS_MAX]):
        return ShorterForm(Level.REFERENCE, Method.REPLACED)
    if len(before) < FULL_CHARS_MIN or len(after) >= 0.9 * len(before):
        return None
    if after and _kept(before, after) >= 0.6 * len(after):
        return ShorterForm(Level.REDUCED, Method.CLIPPED)
    if len(after) > 0.5 * len(before):
        return None
    if len(after) <= NOTE_CHARS_MAX:
        return ShorterForm(Level.REFERENCE, Method.REPLACED)
    return ShorterForm(Level.ABSTRACT, Method.SHORTENED)


def alike(old: bytes, new: bytes) -> bool:
    """Whether two contents share enough of beginning and end to be one page edited."""
    before, after = old.decode("utf-8", "replace"), new.decode("utf-8", "replace")
    return _kept(before, after) >= 0.3 * max(1, min(len(before), len(after)))


def reads_like_a_summary(content: bytes) -> bool:
    """Whether a text says of itself that it sums up what went before."""
    return SUMMARY.search(content[:2000].decode("utf-8", "replace")) is not None


def _kept(before: str, after: str) -> int:
    """Characters of `after` that are the beginning or the end of `before`."""
    head = _common(before, after)
    rest = min(len(before), len(after)) - head
    return head + _common(before[::-1][:rest], after[::-1][:rest])


def _common(a: str, b: str) -> int:
    """Characters two texts begin with alike."""
    end = min(len(a), len(b))
    return next((i for i in range(end) if a[i] != b[i]), end)
