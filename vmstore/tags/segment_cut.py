"""Where a segment ends: where the topic changes, and where a new sitting begins."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from vmstore.core.tags import TagMethod
from vmstore.tags.tagger import GENERAL, FoundTag

SITTING_US = 4 * 3_600 * 1_000_000
"""A longer pause begins another sitting, and with it another segment."""


_DATED = re.compile(r"\s*\[Session(?: from|:| of)?\s*([^\]\n]{4,40})\]", re.IGNORECASE)


def session_date(text: str) -> str:
    """The date that a message names at its head, as `[Session from 2026/03/17]` does; empty where it names none."""
    match = _DATED.match(text)
    return "" if match is None else " ".join(match[1].split())


def ends(open_tags: Collection[str], found: Sequence[FoundTag], pause_us: int) -> bool:
    """Whether a message begins another segment: it has tags of its own, and none that the open one has.

    What goes on with a tag or is about nothing belongs to the open one, but never over a long pause.
    """
    if pause_us >= SITTING_US:
        return True
    own = {tag.tag for tag in found if tag.method is not TagMethod.INHERITED} - {GENERAL}
    return bool(own and open_tags and not own & set(open_tags))
