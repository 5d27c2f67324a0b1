"""A page as the kernel keeps it while a session runs: what policies weigh."""

from __future__ import annotations

import msgspec

from vmstore.core.page import IMPORTANCE, Modality, PageType


class Resident(msgspec.Struct, gc=False, array_like=True):
    """A page in the prompt, or one that was there; scores are made from these numbers alone.

    `used` is the session's count of references when the page was last used, being written among
    them, `uses` how often it was used since: it outlives eviction, because the log has it. `tokens`
    is what it takes at the `level` it is shown at. `importance`, `anchor` (the same of a claim
    and of a page with values by name, else 0) and `similarity` (to what the turn began with, as logged)
    are in parts per million. `created`, `entered` and `left` are
    turns, `left` -1 where it never left.
    """

    page: int
    tokens: int
    type: PageType = PageType.TRANSCRIPT
    modality: Modality = Modality.TEXT
    importance: int = IMPORTANCE
    level: int = 0
    created: int = 0
    entered: int = 0
    left: int = -1
    used: int = 0
    used_turn: int = 0
    uses: int = 0
    anchor: int = 0
    similarity: int = 0
