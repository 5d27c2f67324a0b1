"""Provider traffic of each call of a session: its request, its messages, its response, and its cost."""

from __future__ import annotations

from typing import Any, Unpack

from vmstore.core.asof import Moment, When, one_moment
from vmstore.namespace.costs import CostShare, call_costs, cost_shares
from vmstore.namespace.results import Response
from vmstore.store.host import SessionHost
from vmstore.views.reads.resolve_asof import packed


class Wire:
    """Requests and responses as they were sent and came: `session.wire`."""

    def __init__(self, session: SessionHost) -> None:
        self._session = session

    def messages(self, at: When | None = None, **moment: Unpack[Moment]) -> list[Any]:
        """The chat messages of a call's request."""
        return self._session.context(at, **moment).messages()

    def request(self, at: When | None = None, **moment: Unpack[Moment]) -> dict[str, Any]:
        """A recorded call's request, equal in every field to what was sent."""
        return self._session.context(at, **moment).request()

    def response(self, at: When | None = None, **moment: Unpack[Moment]) -> Response:
        """The response to a call: equal in every field to the one passed in, or the part that is known."""
        from vmstore.store.reads.responses import response_of

        with self._session._ns.asking():
            lane = self._session._lane()
            return response_of(self._session._ns.log, lane, packed(lane, one_moment(at, moment)))

    def costs(self, by: str = "turn") -> list[CostShare]:
        """Usage and cost of the calls, in order, by turn, call, day or model: as recorded, else estimated.

        Estimates follow `Store.prices` and are never part of what was recorded.
        """
        ns = self._session._ns
        with ns.asking():
            return cost_shares(call_costs(self._session._lane(), ns.log, ns.price_list), by)
