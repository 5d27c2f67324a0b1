"""The turns and calls of a session as answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from vmstore.core.decision import Load
from vmstore.core.erasure import gone
from vmstore.core.page import Fidelity, Status
from vmstore.core.text.json_text import as_text
from vmstore.log.port import Log
from vmstore.namespace.costs import cost_of
from vmstore.namespace.results import CallInfo, TurnInfo
from vmstore.prices.price_list import PriceList
from vmstore.views.branch import Branch
from vmstore.views.compactions import compactions_at
from vmstore.views.projectors.calls import CallRow, calls_of
from vmstore.views.projectors.decisions import budget_at, budgets
from vmstore.views.projectors.pages import object_of
from vmstore.views.reads.faults import TurnCounts, moves_of
from vmstore.views.reads.prefix_cache import invalidated
from vmstore.views.reads.reasons import word_of
from vmstore.views.reads.resolve_asof import last
from vmstore.views.reads.turn_tiers import TurnTier, turn_tiers
from vmstore.views.stored_cells import read_cells

STILL = TurnCounts(0, 0, 0, None)


def turns_in(lane: Branch, now_us: int) -> list[TurnInfo]:
    """The turns in order: the calls each made, how often pages were asked for and left, and how near it is."""
    counts = Counter(call.turn for call in calls_of(lane))
    position = last(lane).position
    moved, tiers = moves_of(lane, position), turn_tiers(lane, position, now_us)
    rows = [
        row
        for stretch in lane.stretches
        for row in lane.db.execute(
            "SELECT turn, position, at FROM turns WHERE session = ? AND position <= ?",
            (stretch.session, stretch.high),
        )
    ]
    return [_turn(row, counts[row[0]], moved.get(row[0], STILL), tiers.get(row[0])) for row in sorted(rows)]


def _turn(row: tuple[int, int, int], calls: int, moved: TurnCounts, tier: TurnTier | None) -> TurnInfo:
    load = word_of(Load, moved.load)
    near = () if tier is None else (tier.tokens, tier.tier.word, tier.critical)
    return TurnInfo(*row, calls, moved.faults, moved.evictions, moved.searches, load, *near)


def calls_in(lane: Branch, log: Log, prices: PriceList) -> list[CallInfo]:
    """The calls in order, with how each ended."""
    rows = list(calls_of(lane))
    asides = read_cells(log, lane.db, {c.aside: c.aside_commitment for c in rows if c.aside is not None}, gone)
    voided = invalidated(lane, rows[-1].position) if rows else {}
    replaced = Counter[int]()
    for made in compactions_at(lane, rows[-1].position) if rows else ():
        replaced[made.position] += len(made.left)
    chosen = budgets(lane)
    return [
        _call(
            call,
            asides,
            prices,
            budget=budget_at(chosen, call.position, call.factor_ppm),
            voided=voided.get(call.position, 0),
            compacted=replaced[call.position],
        )
        for call in rows
    ]


def _call(
    call: CallRow, asides: Mapping[int, bytes], prices: PriceList, *, budget: int | None, voided: int, compacted: int
) -> CallInfo:
    aside = object_of(asides[call.aside]) if call.aside is not None else {}
    model = call.model or as_text(aside.get("model"))
    cost, estimated = cost_of(call, model, prices)
    return CallInfo(
        call=call.call,
        turn=call.turn,
        position=call.position,
        at=call.at,
        model=model,
        status=Status(call.status).word,
        fidelity=Fidelity(call.fidelity).word,
        pages=call.leaves,
        tokens=call.sent,
        tokens_reported=call.tokens_in,
        tokens_cached=call.tokens_cached,
        tokens_out=call.tokens_out,
        cost=cost,
        latency_ms=None if call.latency is None else call.latency / 1000,
        stop=as_text(aside.get("stop")),
        error=as_text(aside.get("error")),
        budget=budget,
        invalidated=voided,
        compacted=compacted,
        tokens_written=call.tokens_written,
        cost_estimated=estimated,
        component=as_text(aside.get("component")),
    )
