"""Finds the conversations in a store that a request may continue, as a proxy before this one left them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vmstore.errors import VmstoreError
from vmstore.providers import shape_of
from vmstore.providers.request import MESSAGES
from vmstore.proxy.window import is_own

SESSIONS_MAX = 64  # the newest; who continues an older one begins a new session, with its history


def past_calls(store: Any, known: frozenset[str]) -> Iterator[tuple[str, dict[str, Any], Any]]:
    """The last call of each of the newest sessions, but for those of names that are known.

    A session without a recorded request is passed over: imported from a derived source, or one that
    manages its memory.
    """
    for name in _newest(store):
        if name not in known:
            try:
                session = store.session(name)
                calls = session.info().calls
                request, response = session.wire.request(call=calls), session.wire.response(call=calls)
            except VmstoreError:
                continue
            yield name, _asked(request), response.body


def _newest(store: Any) -> list[str]:
    """The names of the newest sessions with a call, the last written to first; of each nothing else is read."""
    with store._ns.asking():
        return [name for (name,) in store._ns.views.execute(_NEWEST, (SESSIONS_MAX,))]


_NEWEST = """SELECT s.name FROM sessions s WHERE s.hidden = 0 AND s.calls > 0 ORDER BY
  (SELECT c.ordinal FROM commits c WHERE c.session = s.session ORDER BY c.last DESC LIMIT 1) DESC LIMIT ?"""


def _asked(request: dict[str, Any]) -> dict[str, Any]:
    """A request without what the memory put in, as its client goes on with it."""
    key = MESSAGES[shape_of(request)]
    listed = request.get(key)
    if not isinstance(listed, list):
        return request
    return {**request, key: [message for message in listed if not is_own(message)]}
