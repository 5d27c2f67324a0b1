"""FAULTS and MOVES: pages that were asked for, that came and went, as a statement sees sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from vmstore.core.decision import Denial
from vmstore.core.page import Tier
from vmstore.views.branch import Branch
from vmstore.views.reads.context_changes import moves_at
from vmstore.views.reads.faults import faults_at
from vmstore.views.reads.reasons import use_of, word_of
from vmstore.views.reads.resolve_asof import moment_at


class FaultScope(NamedTuple):
    """A session as a statement sees it: what it wrote above `low` up to `high`.

    Rows above `since` up to `until` are wanted. `now` is the time of the question, None where it is of a past moment.
    """

    lane: Branch
    name: str
    session: int
    low: int
    high: int
    since: int
    until: int
    now: int | None = None


def named(own: FaultScope) -> Callable[[int], str]:
    """Tells the session that wrote a position of another's past, by name."""
    names: dict[int, str] = {own.session: own.name}

    def name(position: int) -> str:
        session = own.lane.owner(position)
        if session not in names:
            names[session] = own.lane.db.execute("SELECT name FROM sessions WHERE session = ?", (session,)).get
        return names[session]

    return name


def faults_of(lanes: Iterable[FaultScope]) -> Iterator[tuple[Any, ...]]:
    """The rows of FAULTS: each page asked for, or come back, by the session in which it was."""
    for own in lanes:
        name = named(own)
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
                )


def moves_of(lanes: Iterable[FaultScope]) -> Iterator[tuple[Any, ...]]:
    """The rows of MOVES: each change of the prompt, by the session whose pack says it."""
    for own in lanes:
        name = named(own)
        moments: dict[int, tuple[str, int, int]] = {}  # of packs, which move many pages
        for move in moves_at(own.lane, own.until):
            if move.position > max(own.low, own.since):
                if move.position not in moments:
                    moments[move.position] = name(move.position), *moment_at(own.lane, move.position)
                tiers = int(Tier.L2 if move.came else Tier.L0), int(Tier.L2 if move.left else Tier.L0)
                shown = (move.level_before, move.level_after, move.tokens, move.cause, move.reason)
                yield (move.position, *moments[move.position], move.page, *tiers, *shown)
