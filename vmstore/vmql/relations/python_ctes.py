"""What only Python can make of the views for a statement: rows that its SQL is handed as JSON.

Each is made for all sessions a statement sees, when its SQL reads it. The first value of a row is
the session where many are asked of, else 0.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from vmstore.prices.price_list import added
from vmstore.views.compactions import compactions_at
from vmstore.views.projectors.lineage import depths
from vmstore.views.reads.faults import kept, moves_of
from vmstore.views.reads.page_calls import seen, turns_of
from vmstore.views.reads.prefix_cache import invalidated
from vmstore.views.reads.turn_tiers import turn_tiers, written_at
from vmstore.vmql.relations.relation import ScopedSession

Row = tuple[Any, ...]


def _seen(own: ScopedSession) -> Iterator[Row]:
    """How many calls saw each page, and the turn of the last."""
    calls = seen(own.lane, own.high)
    last = {page: max(some.stop for some in calls[page]) - 1 for page in calls}
    turns = turns_of(own.lane, set(last.values()))
    yield from ((page, sum(map(len, calls[page])), turns[last[page]]) for page in calls)


def _moved(own: ScopedSession) -> Iterator[Row]:
    """What happened in each turn: faults, evictions, searches, how full the prompt became."""
    for turn, counts in moves_of(own.lane, own.high, own.low).items():
        yield (turn, *counts)


def _voided(own: ScopedSession) -> Iterator[Row]:
    """The tokens that each call's changes voided of the request before."""
    for position, tokens in invalidated(own.lane, own.high).items():
        if position > own.low:
            yield position, tokens


def _compacted(own: ScopedSession) -> Iterator[Row]:
    """The pages that summaries replaced with each call."""
    counts = Counter[int]()
    for made in compactions_at(own.lane, own.high):
        counts[made.position] += len(made.left)
    yield from ((position, pages) for position, pages in counts.items() if position > own.low)


def _tiers(own: ScopedSession) -> Iterator[Row]:
    """How near each turn is; of a past moment as it was when that was written last."""
    now = written_at(own.lane, own.high) if own.now is None else own.now
    for turn, (tokens, tier, critical) in turn_tiers(own.lane, own.high, now).items():
        yield turn, tokens, int(tier), int(critical)


def _session_tiers(own: ScopedSession) -> Iterator[Row]:
    """The tokens of all turns of a session, and the tier of the nearest."""
    if turns := list(_tiers(own)):
        yield own.session, sum(row[1] for row in turns), min(row[2] for row in turns)


def _spent(own: ScopedSession) -> Iterator[Row]:
    """What the calls that a session made itself cost, as recorded and as estimated."""
    assert own.spent is not None, "a scope hands it in"
    calls = own.spent(own.lane.alone(), own.low, own.high)
    yield own.session, added(cost for _, cost, _ in calls), added(estimated for _, _, estimated in calls)


def _saved(own: ScopedSession) -> Iterator[Row]:
    """The tokens of the calls of tools that a session made itself, and of their shorter forms."""
    assert own.saved is not None, "a scope hands it in"
    if counted := own.saved(own.lane, own.name, own.low, own.high):
        yield own.session, *counted


def _turn_spent(own: ScopedSession) -> Iterator[Row]:
    """What the calls made in each turn cost, as recorded and as estimated."""
    assert own.spent is not None, "a scope hands it in"
    turns: dict[int, list[tuple[float | None, float | None]]] = {}
    for turn, *cost in own.spent(own.lane, own.low, own.high):
        turns.setdefault(turn, []).append((cost[0], cost[1]))
    for turn, costs in turns.items():
        yield turn, added(cost for cost, _ in costs), added(estimated for _, estimated in costs)


def _kept(own: ScopedSession) -> Iterator[Row]:
    """The stays that a decision began or somebody held: why, and whether."""
    if own.lane.db.execute("SELECT EXISTS (SELECT 1 FROM decisions)").get:
        yield from kept(own.lane, own.high)


def _derived(own: ScopedSession) -> Iterator[Row]:
    """How many steps of derivation each page is from the farthest it was made from."""
    yield from depths(own.lane, own.high).items()


HANDED: dict[str, tuple[str, Callable[[ScopedSession], Iterator[Row]]]] = {
    "seen": ("session page calls turn after", _seen),
    "moved": ("session turn faults evictions searches load", _moved),
    "voided": ("session position tokens", _voided),
    "compacted": ("session position pages", _compacted),
    "kept": ("session page f reason pinned", _kept),
    "derived": ("session page depth", _derived),
    "tiers": ("session turn tokens tier critical", _tiers),
    "session_tiers": ("many session tokens tier", _session_tiers),
    "saved": ("many session whole short", _saved),
    "spent": ("many session cost cost_estimated", _spent),
    "turn_spent": ("session turn cost cost_estimated", _turn_spent),
}
"""The columns of each by its name, and what makes its rows, without the first."""


def handed(name: str, lanes: list[ScopedSession], *, many: bool) -> str:
    """Rows by name, as JSON."""
    _, rows = HANDED[name]
    return json.dumps([(own.session if many else 0, *row) for own in lanes for row in rows(own)])
