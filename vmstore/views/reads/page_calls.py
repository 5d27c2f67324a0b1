"""The calls that saw a page, from its stays in L0, and pages seen together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from vmstore.views.branch import Branch
from vmstore.views.projectors.residency import stays
from vmstore.views.reads.resolve_asof import moment_at

WHOLE_MIN = 5_000  # positions looked up one by one before all calls are read


class SharedCalls(NamedTuple):
    """How often a page was seen with another: by `shared` calls together, by `calls` it alone or not."""

    page: int
    shared: int
    calls: int


def seen(lane: Branch, position: int, pages: Iterable[int] | None = None) -> dict[int, list[range]]:
    """The calls up to a position that saw each page, or each of some, as ranges; a page none saw is left out."""
    found = stays(lane, position, pages)
    if not found:
        return {}
    ends = {t for t, *_ in found.values() if t is not None}
    numbers = _numbers(lane, position, {f for f, _ in found} | ends)
    after = moment_at(lane, position)[1] + 1
    calls: dict[int, list[range]] = {}
    for (f, page), (t, *_) in sorted(found.items()):
        calls.setdefault(page, []).append(range(numbers[f], after if t is None else numbers[t]))
    return calls


def _numbers(lane: Branch, position: int, packs: set[int]) -> dict[int, int]:
    """The call that was packed at each position."""
    if len(packs) < WHOLE_MIN:
        return dict(lane.rows(_PACKED, packs))
    found: dict[int, int] = {}
    for stretch in lane.upto(position):
        found.update(lane.db.execute(_CALLS, (stretch.session, stretch.high)))
    return found


def turns_of(lane: Branch, calls: Iterable[int]) -> dict[int, int]:
    """The turn each call was made in."""
    groups: dict[int, list[int]] = {}
    for call in calls:
        groups.setdefault(next(s.session for s in lane.stretches if call > s.call), []).append(call)
    found: dict[int, int] = {}
    for session, wanted in groups.items():
        found.update(lane.db.execute(_TURNS, (session, f"[{','.join(map(str, wanted))}]")))
    return found


def company(lane: Branch, position: int, page: int) -> tuple[int, list[SharedCalls]]:
    """How many calls saw a page up to a position, and every page that any of them saw too, nearest first.

    Near is by the share of calls that saw both among those that saw either. One pass over the stays
    of the session: costs what they are, whatever the page.
    """
    calls = seen(lane, position)
    own = calls.pop(page, [])
    found = []
    for other, theirs in calls.items():
        shared = _overlap(own, theirs)
        if shared:
            found.append(SharedCalls(other, shared, sum(map(len, theirs))))
    total = sum(map(len, own))
    return total, sorted(found, key=lambda one: (-one.shared / (total + one.calls - one.shared), one.page))


def _overlap(ranges: list[range], other: list[range]) -> int:
    """How many numbers two rows of ranges, each in order, have in common."""
    common, i, j = 0, 0, 0
    while i < len(ranges) and j < len(other):
        common += max(0, min(ranges[i].stop, other[j].stop) - max(ranges[i].start, other[j].start))
        if ranges[i].stop < other[j].stop:
            i += 1
        else:
            j += 1
    return common


_PACKED = "SELECT position, call FROM calls WHERE session = ? AND position IN (SELECT value FROM json_each(?))"
_CALLS = "SELECT position, call FROM calls WHERE session = ? AND position <= ?"
_TURNS = "SELECT call, turn FROM calls WHERE session = ? AND call IN (SELECT value FROM json_each(?))"
