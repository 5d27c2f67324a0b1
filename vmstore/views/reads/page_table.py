"""The page table as the views tell it: every page of a session, its last version, and what L0 shows of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vmstore.core.page import Tier
from vmstore.views.branch import Branch
from vmstore.views.projectors.residency import resident_at

Row = tuple[int, int, int, int, int, int]
"""Page, version, level, tier, tokens, position of the content."""


def page_table(lane: Branch, position: int) -> Iterator[Row]:
    """The rows of a session at a position, by page."""
    shown = {r.page: (r.level, r.content) for r in resident_at(lane, position)}
    full: dict[int, tuple[int, int, int]] = {}
    tokens: dict[int, int] = {}
    for stretch in reversed(lane.upto(position)):
        rows: Any = lane.db.execute(_CONTENTS, (stretch.session, stretch.high))
        for page, version, level, count, content in rows:
            tokens[content] = count
            if level == 0:
                full[page] = version, count, content
    for page, (version, count, content) in sorted(full.items()):
        here = shown.get(page)
        if here is None:
            yield page, version, 0, int(Tier.L2), count, content
        else:
            yield page, version, here[0], int(Tier.L0), tokens[here[1]], here[1]


_CONTENTS = """SELECT page, version, level, tokens, position FROM versions
  WHERE session = ? AND position <= ? ORDER BY position"""
