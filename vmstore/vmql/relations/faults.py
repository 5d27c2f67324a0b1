"""FAULTS and MOVES: pages that were asked for, that came and went, as a statement sees sessions."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

from vmstore.core.decision import Denial
from vmstore.core.page import Tier
from vmstore.views.branch import Branch
from vmstore.views.projectors.residency import MoveWay
from vmstore.views.reads.context_changes import EVERY_WAY, Move, moves_at
from vmstore.views.reads.faults import faults_at
from vmstore.views.reads.reasons import use_of, word_of
from vmstore.views.reads.resolve_asof import moment_at
from vmstore.views.reads.tools import NO_TOOL, tools_at
from vmstore.vmql.relations.relation import ScopedSession


def faults_of(lanes: Iterable[ScopedSession], wanted: Container[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of FAULTS: each page asked for, or come back, by the session in which it was."""
    for own in lanes:
        name, tools = own.writers(), tools_at(own.lane, own.until) if "tool" in wanted else {}
        for fault in faults_at(own.lane, own.until):
            if fault.position > max(own.low, own.since):
                asked = fault.asked
                reason = None if asked is None else use_of(asked.word, asked.reason, asked.signal)
                level = None if asked is None else asked.level
                fields = (reason, level, fault.level, fault.tier, fault.out_since, fault.tokens)
                denied = (int(fault.denied is None), word_of(Denial, fault.denied))
                yield (
                    fault.position,
                    name(fault.position),
                    *moment_at(own.lane, fault.position),
                    fault.page or None,
                    *fields,
                    *denied,
                    tools.get(fault.page, NO_TOOL).tool,
                    _calls_since(own.lane, fault.out_since, fault.position) if "away_calls" in wanted else None,
                )


def _calls_since(lane: Branch, since: int | None, position: int) -> int | None:
    """How many calls passed since a position."""
    return None if since is None else moment_at(lane, position)[1] - moment_at(lane, since)[1]


_LOOKED_UP = ("session", "turn", "call", "tool", "away_calls")
"""What is looked up for each move; most questions want none of it."""
_IN, _OUT = int(Tier.L0), int(Tier.L2)


def moves_of(
    lanes: Iterable[ScopedSession], wanted: Container[str], ways: Container[MoveWay] = EVERY_WAY
) -> Iterator[tuple[Any, ...]]:
    """The rows of MOVES: each change of the prompt that goes one of some ways, by the session whose pack says it."""
    looked_up = any(name in wanted for name in _LOOKED_UP)
    ways = EVERY_WAY if "away_calls" in wanted else ways  # it is told by where each page left
    for own in lanes:
        first, beside = max(own.low, own.since), _beside(own, wanted) if looked_up else None
        for move in moves_at(own.lane, own.until, wanted, ways):
            position, page, before, after, *shown = move
            session, turn, call, *tool = _NONE if beside is None else beside(move, position > first)
            if position > first:
                tiers = _OUT if before is None else _IN, _OUT if after is None else _IN
                yield (position, session, turn, call, page, *tiers, before, after, *shown, *tool)


_NONE = (None,) * 5


def _beside(own: ScopedSession, wanted: Container[str]) -> Callable[[Move, bool], tuple[Any, ...]]:
    """Tells of each move in turn session, turn and call, the tool of its page, and for how many calls that was out."""
    name, tools = own.writers(), tools_at(own.lane, own.until) if "tool" in wanted else {}
    moments: dict[int, tuple[str, int, int]] = {}  # of packs, which move many pages
    left: dict[int, int] = {}  # the pack that a page left with last

    def beside(move: Move, asked: bool) -> tuple[Any, ...]:
        since = left.pop(move.page, None) if move.level_before is None else None
        if move.level_after is None:
            left[move.page] = move.position
        if not asked:
            return _NONE
        if move.position not in moments:
            moments[move.position] = name(move.position), *moment_at(own.lane, move.position)
        away = _calls_since(own.lane, since, move.position) if "away_calls" in wanted else None
        return (*moments[move.position], tools.get(move.page, NO_TOOL).tool, away)

    return beside
