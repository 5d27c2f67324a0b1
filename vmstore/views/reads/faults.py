"""The faults of a session: pages that were asked for, or, where no kernel is at work, those that came back.

A kernel's faults are known from the mutations that answer them. Before one is at work a page that is
in the prompt again after it had left is all there is to see.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from vmstore.core.decision import Cause, Evict, FaultIn, Pressure, Search
from vmstore.core.mutation_kind import MUTATION_NAMES
from vmstore.core.page import Tier
from vmstore.views.branch import Branch
from vmstore.views.projectors.decisions import (
    ANSWERS,
    MOVES,
    Decision,
    HeldInterval,
    decided,
    decisions_at,
    holds,
    live_since,
)
from vmstore.views.projectors.residency import leavings, returns, stays
from vmstore.views.reads.context import ShownPage, contents
from vmstore.views.reads.reasons import reason_of
from vmstore.views.reads.resolve_asof import moment_at

_LEVEL = ShownPage._fields.index("level") - ShownPage._fields.index("message")
_TOKENS = ShownPage._fields.index("tokens") - ShownPage._fields.index("message")


class FaultRow(NamedTuple):
    """A page that was asked for, or that came back; 0 where no page has the name asked for.

    `asked` is the reference that is answered, None where nobody is known to have asked; `denied` the
    number of the reason, None where the page came. `out_since` is what had put it out, None where it
    was in the prompt or had never been there.
    """

    position: int
    page: int
    out_since: int | None
    asked: Decision | None = None
    denied: int | None = None
    tier: int | None = None
    level: int | None = None
    tokens: int | None = None


def faults_at(lane: Branch, position: int) -> list[FaultRow]:
    """Every fault up to a position, in order."""
    live = live_since(lane, position)
    came = [back_at for back_at in returns(lane, position) if live is None or back_at.position < live]
    what = contents(lane, [back_at.content for back_at in came])
    found = []
    for back in came:
        shown = what[back.content]
        fields = (back.position, back.page, back.out_since, None, None, int(Tier.L2), shown[_LEVEL], shown[_TOKENS])
        found.append(FaultRow(*fields))
    answers = list(decided(lane, position, ANSWERS))
    asked = decisions_at(lane, {answer.cause for answer in answers if answer.cause})
    out = _Out(lane, position, {answer.page for answer in answers})
    for answer in answers:
        here = (answer.position, answer.page, out.since(answer.page, answer.position), asked.get(answer.cause or 0))
        if answer.kind == FaultIn.NUMBER:
            found.append(FaultRow(*here, None, answer.word, answer.level, answer.tokens))
        else:
            found.append(FaultRow(*here, answer.word))
    return sorted(found, key=lambda fault: fault.position)


class _Out:
    """Since when pages were out of the prompt, as packs and decisions tell it."""

    def __init__(self, lane: Branch, position: int, pages: set[int]) -> None:
        self._moved: dict[int, list[tuple[int, bool]]] = {page: [] for page in pages}
        here = stays(lane, position, pages) if pages else {}
        for (f, page), (t, *_) in here.items():
            self._moved[page].append((f, True))
            if t is not None and (t, page) not in here:
                self._moved[page].append((t, False))
        for decision in decided(lane, position, MOVES) if pages else ():
            if decision.page in self._moved:
                self._moved[decision.page].append((decision.position, not gone(decision)))
        for moved in self._moved.values():
            moved.sort()

    def since(self, page: int, position: int) -> int | None:
        """The eviction that put a page out, where it is out before a position."""
        found: int | None = None
        for at, came in self._moved[page]:
            if at >= position:
                break
            found = None if came else found or at
        return found


def gone(decision: Decision) -> bool:
    """Whether a decision put its page out of the prompt."""
    return decision.kind == Evict.NUMBER and decision.level is None


def evictions_at(lane: Branch, position: int) -> list[int]:
    """Positions at which pages left the prompt up to a position: as decided, or as packs show it without a kernel."""
    live = live_since(lane, position)
    left = [at for at in leavings(lane, position) if live is None or at < live]
    evictions = (decision for decision in decided(lane, position, (Evict.NUMBER,)) if gone(decision))
    return sorted(
        left + [decision.position for decision in evictions if decision.word != Cause.THOUGHT]
    )  # which no context had


def kept(lane: Branch, position: int) -> Iterator[tuple[int, int, str | None, bool]]:
    """Page, beginning, reason and whether it was held, of each stay that a decision began or somebody held."""
    here = stays(lane, position)
    packs = packs_of(lane, position, (f for f, _ in here))
    moved, asked = moves(lane, position)
    intervals: dict[int, list[HeldInterval]] = {}
    for hold in holds(lane, position):
        intervals.setdefault(hold.page, []).append(hold)
    for (f, page), (t, *_) in here.items():
        let_in = before(moved.get(page, ()), packs, f)
        pinned = any((t is None or hold.f < t) and (hold.t is None or hold.t > f) for hold in intervals.get(page, ()))
        if let_in is not None or pinned:
            yield (
                page,
                f,
                None if let_in is None else f"{MUTATION_NAMES[let_in.kind]}: {reason_of(let_in, asked.get)}",
                pinned,
            )


def packs_of(lane: Branch, position: int, more: Iterable[int]) -> list[int]:
    """The positions of the packs up to a position, with those of some stays, in order."""
    packs = {at for s in lane.upto(position) for (at,) in lane.db.execute(_PACKS, (s.session, s.high))}
    return sorted(packs.union(more))


def moves(lane: Branch, position: int) -> tuple[dict[int, list[Decision]], dict[int, Decision]]:
    """Decisions about each page's place up to a position, in order, and the references that requested it."""
    moved: dict[int, list[Decision]] = {}
    for decision in decided(lane, position, MOVES):
        moved.setdefault(decision.page, []).append(decision)
    return moved, decisions_at(
        lane, {decision.cause for listed in moved.values() for decision in listed if decision.cause}
    )


def before(moved: Sequence[Decision], packs: Sequence[int], pack: int) -> Decision | None:
    """The last of a page's moves between a pack and the one before it, where it left the page in the prompt."""
    shown_there = shown_by(moved, packs, pack)
    return None if shown_there is None or gone(shown_there) else shown_there


def shown_by(moved: Sequence[Decision], packs: Sequence[int], pack: int) -> Decision | None:
    """The last of a page's moves between a pack and the one before it: what the pack shows of it."""
    last = bisect_left(moved, pack, key=attrgetter("position")) - 1
    at = bisect_left(packs, pack)
    return None if last < 0 or (at and moved[last].position < packs[at - 1]) else moved[last]


class TurnCounts(NamedTuple):
    """How often in a turn a page was asked for, a page left, and the agent searched; how full its prompt became.

    `load` is the number of the fullest class the prompt came to, None where it stayed in the one it had.
    """

    faults: int
    evictions: int
    searches: int
    load: int | None


def moves_of(lane: Branch, position: int, low: int = 0) -> dict[int, TurnCounts]:
    """Counts of each turn that has any, above `low` and up to a position."""
    asked = Counter(_turns(lane, low, (event.position for event in faults_at(lane, position))))
    left = Counter(_turns(lane, low, evictions_at(lane, position)))
    decisions = list(decided(lane, position, (Search.NUMBER, Pressure.NUMBER)))
    searches = dict.fromkeys(
        event.position for event in decisions if event.kind == Search.NUMBER
    )  # a row for each page found
    searched = Counter(_turns(lane, low, searches))
    loads: dict[int, int] = {}
    full = [event for event in decisions if event.kind == Pressure.NUMBER and event.position > low]
    for event, turn in zip(full, _turns(lane, low, [event.position for event in full]), strict=True):
        loads[turn] = max(loads.get(turn, 0), event.word or 0)
    turns = sorted({*asked, *left, *searched, *loads})
    return {turn: TurnCounts(asked[turn], left[turn], searched[turn], loads.get(turn)) for turn in turns}


def _turns(lane: Branch, low: int, positions: Iterable[int]) -> Iterator[int]:
    known: dict[int, int] = {}
    for position in positions:
        if position > low:
            if position not in known:
                known[position] = moment_at(lane, position)[0]
            yield known[position]


_PACKS = "SELECT position FROM calls WHERE session = ? AND position <= ?"
