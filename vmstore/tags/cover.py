"""Which tags together cover every turn: the fewest a greedy choice finds."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from vmstore.tags.tagger import GENERAL


def covering(turns: Mapping[str, Collection[int]]) -> list[str]:
    """Tags that stand in every turn in which any does, that of most turns not yet covered first; `_general` last."""
    open_turns = {turn for some in turns.values() for turn in some}
    left = {tag: set(some) for tag, some in turns.items()}
    chosen: list[str] = []
    while open_turns:
        best = min(left, key=lambda tag: _order(tag, len(left[tag] & open_turns)))
        chosen.append(best)
        open_turns -= left.pop(best)
    return chosen


def _order(tag: str, covers: int) -> tuple[bool, bool, int, str]:
    return not covers, tag == GENERAL, -covers, tag
