"""A choice among many sessions: those that are wanted, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from vmstore.errors import InputError
from vmstore.namespace.results import SessionOverview

UNKNOWN = -(1 << 62)


class SessionChoice(NamedTuple):
    """An order, a limit, and what the sessions have in common; None where that is all the same."""

    order_by: str = "newest"
    limit: int | None = None
    matching: str | None = None
    model: str | None = None
    since: int | None = None
    outcome: str | None = None

    def of(self, sessions: Iterable[SessionOverview]) -> list[SessionOverview]:
        """Those of some sessions that are wanted, in order; equals stand by name."""
        if self.order_by not in ORDERS:
            raise InputError(
                f"sessions have no order {self.order_by!r}; the orders are {', '.join(ORDERS)}", code="unknown-order"
            )
        if self.limit is not None and self.limit < 0:
            raise InputError(f"limit {self.limit} is no number of sessions from 0 up", code="not-a-limit")
        found = sorted(
            (one for one in sessions if self._fits(one)), key=lambda one: (ORDERS[self.order_by](one), one.session)
        )
        return found if self.limit is None else found[: self.limit]

    def _fits(self, one: SessionOverview) -> bool:
        if self.since is not None and (one.last_at is None or one.last_at < self.since):
            return False
        if self.outcome is not None and (one.outcome or "").casefold() != self.outcome.casefold():
            return False
        if self.model is not None and self.model.casefold() not in (one.model or "").casefold():
            return False
        if self.matching is None:
            return True
        text = " ".join(filter(None, (one.session, one.title, one.first_line, one.source))).casefold()
        return all(word in text for word in self.matching.casefold().split())


ORDERS: dict[str, Callable[[SessionOverview], Any]] = {
    "newest": lambda one: -(UNKNOWN if one.last_at is None else one.last_at),
    "oldest": lambda one: -UNKNOWN if one.began_at is None else one.began_at,
    "name": lambda one: one.session,
    "turns": lambda one: -one.turns,
    "calls": lambda one: -one.calls,
    "tokens": lambda one: -one.tokens,
    "outcome": lambda one: (one.outcome is None, one.outcome or "", -(one.reward or 0)),
    "cost": lambda one: -((one.cost or 0) + (one.cost_estimated or 0)),
}
