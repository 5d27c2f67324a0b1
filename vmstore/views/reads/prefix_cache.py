"""Prefix cache: the part of the request before that each call's changes invalidate."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from vmstore.errors import CorruptError
from vmstore.views.branch import Branch
from vmstore.views.projectors.residency import stays
from vmstore.views.reads.context import ShownPage, contents

Place = tuple[int, int, int]
"""A page's place in a request: rank, page, position of the content."""

_TOKENS = ShownPage._fields.index("tokens") - ShownPage._fields.index("message")
assert _TOKENS > 0, "`contents` gives a page's fields from its message on"


def invalidated(lane: Branch, position: int) -> dict[int, int]:
    """Tokens of the request before that each call's changes invalidate, by the pack's position.

    Of other calls it is worked out by the pages they were sent.
    """
    compared: dict[int, int] = {}
    for stretch in lane.upto(position):
        rows: Any = lane.db.execute(_COMPARED, (stretch.session, stretch.high))
        compared.update(rows)
    voided = {**_by_pages(lane, position), **compared}
    return {pack: tokens for pack, tokens in voided.items() if tokens}


_COMPARED = "SELECT position, voided FROM calls WHERE session = ? AND position <= ? AND voided IS NOT NULL"


def _by_pages(lane: Branch, position: int) -> dict[int, int]:
    """Estimated tokens of the request before, from the first place on where a pack changed it, by the pack's position.

    Packs up to a position that changed nothing but the end are left out. Costs one pass over the
    stays of the session, and for each pack what stands behind its first change.
    """
    came: dict[int, list[Place]] = {}
    left: dict[int, list[Place]] = {}
    found = stays(lane, position)
    for (f, page), (t, content, _, rank) in found.items():
        came.setdefault(f, []).append((rank, page, content))
        if t is not None:
            left.setdefault(t, []).append((rank, page, content))
    shown = {content for _, content, _, _ in found.values()}
    known = contents(lane, shown)
    if unknown := shown.difference(known):
        raise CorruptError(
            f"the views show a content of position {min(unknown)}, and no page has it; run `vmstore rebuild`",
            code="content-missing",
        )
    order: list[Place] = []
    voided: dict[int, int] = {}
    reworded = _reworded(lane, position)
    for pack in sorted(came.keys() | left.keys() | reworded.keys()):
        entered, gone = came.get(pack, ()), left.get(pack, ())
        at = bisect_left(order, min(*entered, *gone, (1 << 63, 0, 0), (1 << 63, 0, 0))[:1])
        if pack in reworded:
            messages = reworded[pack]
            at = min(at, next((n for n, place in enumerate(order) if known[place[2]][0] in messages), at))
        assert 0 <= at <= len(order), "a pack changes the order within it, or adds at its end"
        before = order[at:]
        order[at:] = sorted({*before}.difference(gone).union(entered))
        same = _alike(before, order, at)
        if pack in reworded:
            same = next((n for n in range(same) if known[before[n][2]][0] in reworded[pack]), same)
        assert same <= len(before), "only what was there before can have stayed"
        lost = sum(known[content][_TOKENS] for _, _, content in before[same:])
        if lost:
            voided[pack] = lost
    return voided


def _reworded(lane: Branch, position: int) -> dict[int, set[int]]:
    """The messages whose skeleton a pack changed, by its position: other fields, or the same in another order."""
    found: dict[int, set[int]] = {}
    for stretch in lane.upto(position):
        rows: Any = lane.db.execute(_SKELETONS, (stretch.session, stretch.high))
        for pack, message in rows:
            found.setdefault(pack, set()).add(message)
    return found


_SKELETONS = "SELECT position, message FROM skeletons WHERE session = ? AND position <= ?"


def _alike(before: Sequence[Place], order: Sequence[Place], at: int) -> int:
    """How many places stayed what they were, from a place on; a rank alone is not seen by any model."""
    same = 0
    while same < len(before) and at + same < len(order) and before[same][1:] == order[at + same][1:]:
        same += 1
    return same
