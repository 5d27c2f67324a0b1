"""Tiers of turns: hot, warm or cold by fixed limits, and turns kept verbatim."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise, takewhile
from typing import Any, NamedTuple

from vmstore.core.decision import Cite, Reference, Search, Use
from vmstore.core.page import LinkKind, Standing, WordEnum
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import moment_at
from vmstore.views.reads.spoken_turns import newest_turns, spoken_so_far

HOT_TURNS, HOT_TOKENS, HOT_WITH_CURRENT = 5, 1_500, 2_000
WARM_TURNS, WARM_TOKENS = 50, 15_000
GAP_US = 86_400_000_000  # after which a session is over without being closed
PROMOTED_FOR = 3  # turns that a reference brings an older turn near for


class MemoryTier(WordEnum):
    """A tier of memory: in the prompt by itself, looked up in its session, or searched among all sessions."""

    HOT = 0
    WARM = 1
    COLD = 2


class TurnTier(NamedTuple):
    """The tokens of a turn's messages, as hot and warm count them, its tier, and whether it is kept to the word."""

    tokens: int
    tier: MemoryTier
    critical: bool


def fitting(tokens: Sequence[int], most: int, room: int) -> int:
    """How many of the newest turns are near: so many at most, and none from the first that takes too many tokens."""
    return sum(1 for _ in takewhile(lambda taken: taken <= room, accumulate(tokens[:most])))


def turn_tiers(lane: Branch, position: int, now_us: int) -> dict[int, TurnTier]:
    """Each turn of a session in which something was said, by its number, as it stands at a position."""
    spoken = spoken_so_far(lane, position)
    if not spoken.turns:
        return {}
    tokens = [after - before for before, after in pairwise([*spoken.before, spoken.total])]
    newest = tokens[::-1]
    over = is_over(lane, position, newest_turns(lane, position, 0, 1)[0][-1].at_us, now_us)
    hot = 0 if over else fitting(newest, HOT_TURNS, HOT_TOKENS)
    warm = fitting(newest[hot:], WARM_TURNS, WARM_TOKENS)
    oldest = spoken.turns[-hot - warm] if warm else 0
    promoted, kept = promoted_turns(lane, position, oldest), critical_turns(lane, position)
    first_hot, first_warm = len(tokens) - hot, len(tokens) - hot - warm
    tiers: dict[int, TurnTier] = {}
    for place, turn in enumerate(spoken.turns):
        near = place >= first_warm or turn in promoted
        tier = MemoryTier.HOT if place >= first_hot else MemoryTier.WARM if near else MemoryTier.COLD
        tiers[turn] = TurnTier(tokens[place], tier, turn in kept)
    return tiers


def is_over(lane: Branch, position: int, last_us: int, now_us: int) -> bool:
    """Whether a session ended: somebody closed it, or nothing was said in it for a day."""
    for stretch in lane.upto(position):
        status = lane.db.execute(_STANDS, (stretch.session, stretch.high)).get
        if status is not None:
            return status != Standing.ACTIVE or now_us - last_us > GAP_US
    return now_us - last_us > GAP_US


def critical_turns(lane: Branch, position: int) -> frozenset[int]:
    """The first turn, and those with a page that a fact about who somebody is was taken from."""
    turns = {1}
    for stretch in lane.upto(position):
        rows: Any = lane.db.execute(_ANCHORS, (stretch.session, stretch.low, stretch.high))
        turns |= {moment_at(lane, page)[0] for (page,) in rows}
    return frozenset(turns)


def promoted_turns(lane: Branch, position: int, before: int) -> frozenset[int]:
    """The turns older than one that were searched, cited or used in the last few turns."""
    since = max(0, moment_at(lane, position)[0] - PROMOTED_FOR)
    turns = set[int]()
    for stretch in lane.upto(position):
        for page, at in lane.db.execute(_REFERRED, (stretch.session, stretch.low, stretch.high, since)):
            turn = moment_at(lane, page)[0]
            if 0 < turn < before and moment_at(lane, at)[0] > since:
                turns.add(turn)
    return frozenset(turns)


def written_at(lane: Branch, position: int) -> int:
    """The time of the last write a session held at a position: the time of a question about that moment."""
    written: int | None = lane.db.execute(_WRITTEN, (lane.owner(position), position)).get
    return written or 0


_STANDS = "SELECT status FROM closings WHERE session = ? AND position <= ? ORDER BY position DESC LIMIT 1"
_ANCHORS = f"""SELECT l.target FROM facts f JOIN links l ON l.session = f.session AND l.source = f.page
  AND l.kind = {int(LinkKind.DERIVES)}
  WHERE f.session = ? AND f.position > ? AND f.position <= ? AND f.strength > 0"""
_REFERRED = f"""SELECT page, position FROM decisions WHERE session = ?1 AND page > 0
  AND position > max(?2, coalesce((SELECT position FROM turns WHERE session = ?1 AND turn = ?4), 0)) AND position <= ?3
  AND (kind IN ({Search.NUMBER}, {Cite.NUMBER}) OR (kind = {Reference.NUMBER} AND word <> {int(Use.SIGNAL)}))"""
_WRITTEN = "SELECT max(at_max) FROM commits WHERE session = ? AND first <= ?"
