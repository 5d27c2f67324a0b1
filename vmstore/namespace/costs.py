"""Costs of calls: as their source recorded them, and, where it recorded nothing, by a list of prices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

import apsw
import msgspec

from vmstore.core.erasure import gone
from vmstore.core.text.json_text import as_text
from vmstore.core.times import moment_of
from vmstore.errors import InputError
from vmstore.log.port import Log
from vmstore.prices.price_list import PriceList, added
from vmstore.views.branch import NEVER, Branch
from vmstore.views.projectors.calls import CallRow, calls_of
from vmstore.views.projectors.pages import object_of
from vmstore.views.stored_cells import read_cells


class CostShare(msgspec.Struct, frozen=True):
    """Usage and cost, in dollars, of some calls of a session: of one turn, call, day or model, as `of` says.

    `cost` is what the source recorded, `cost_estimated` what the calls cost by a list of prices that it recorded
    nothing for; None where there is no such call. `unpriced` calls have neither. Tokens are the provider's counts.
    """

    of: str
    calls: int
    tokens_in: int
    tokens_cached: int
    tokens_written: int
    tokens_out: int
    cost: float | None
    cost_estimated: float | None
    unpriced: int


class CallCost(NamedTuple):
    """Cost of one call in dollars: recorded or estimated, never both."""

    row: CallRow
    model: str | None
    cost: float | None
    estimated: float | None


def call_costs(lane: Branch, log: Log, prices: PriceList, position: int = NEVER, low: int = 0) -> Iterator[CallCost]:
    """Cost of each call up to a position, or of those after another."""
    rows = [row for row in calls_of(lane, position) if row.position > low]
    unnamed = {row.aside: row.aside_commitment for row in rows if row.model is None and row.aside is not None}
    asides = read_cells(log, lane.db, unnamed, gone)
    for row in rows:
        model = row.model or (as_text(object_of(asides[row.aside]).get("model")) if row.aside in asides else None)
        yield CallCost(row, model, *cost_of(row, model, prices))


def cost_of(row: CallRow, model: str | None, prices: PriceList) -> tuple[float | None, float | None]:
    """Cost of a call as recorded, or else as estimated."""
    if row.cost is not None:
        return row.cost / 1e9, None
    return None, prices.estimate(model, row.tokens_in, row.tokens_cached, row.tokens_written, row.tokens_out)


def session_costs(
    views: apsw.Connection, log: Log, prices: PriceList, keys: Collection[int]
) -> dict[int, tuple[float | None, float | None]]:
    """Costs of the calls that sessions made themselves, as recorded and as estimated, by their keys."""
    known: dict[int, list[float | None]] = {key: [None, None] for key in keys}
    for key, cost in views.execute(_RECORDED):
        if key in known:
            known[key][0] = cost / 1e9
    for key in _unsaid(views) & known.keys():
        lane = Branch(views, key).alone()
        known[key][1] = added(one.estimated for one in call_costs(lane, log, prices))
    return {key: (cost, estimated) for key, (cost, estimated) in known.items()}


def _unsaid(views: apsw.Connection) -> set[int]:
    """The sessions with calls that can be estimated."""
    return {key for (key,) in views.execute(_UNSAID)}


_RECORDED = "SELECT session, sum(cost) FROM calls WHERE cost IS NOT NULL GROUP BY session"
_UNSAID = """SELECT DISTINCT session FROM calls
  WHERE cost IS NULL AND tokens_in IS NOT NULL AND tokens_out IS NOT NULL"""


_KEYS: dict[str, Callable[[CallCost], str]] = {
    "turn": lambda one: str(one.row.turn),
    "call": lambda one: str(one.row.call),
    "day": lambda one: f"{moment_of(one.row.at):%Y-%m-%d}",
    "model": lambda one: one.model or "unknown",
}


def cost_shares(costs: Iterable[CallCost], by: str) -> list[CostShare]:
    """Costs by turn, call, day or model, in the order of the first call of each."""
    if by not in _KEYS:
        raise InputError(f"costs are not known by {by!r}; ask by {', '.join(_KEYS)}", code="unknown-order")
    groups: dict[str, list[CallCost]] = {}
    for one in costs:
        groups.setdefault(_KEYS[by](one), []).append(one)
    return [_share(of, group) for of, group in groups.items()]


def _share(of: str, group: list[CallCost]) -> CostShare:
    rows = [one.row for one in group]
    return CostShare(
        of,
        len(group),
        sum(row.tokens_in or 0 for row in rows),
        sum(row.tokens_cached or 0 for row in rows),
        sum(row.tokens_written or 0 for row in rows),
        sum(row.tokens_out or 0 for row in rows),
        added(one.cost for one in group),
        added(one.estimated for one in group),
        sum(one.cost is None and one.estimated is None for one in group),
    )
