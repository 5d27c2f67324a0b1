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
    for info in store.catalog.overview(limit=SESSIONS_MAX):
        if info.session not in known and info.calls:
            try:
                wire = store.session(info.session).wire
                request, response = wire.request(call=info.calls), wire.response(call=info.calls)
            except VmstoreError:
                continue
            yield info.session, _asked(request), response.body


def _asked(request: dict[str, Any]) -> dict[str, Any]:
    """A request without what the memory put in, as its client goes on with it."""
    key = MESSAGES[shape_of(request)]
    listed = request.get(key)
    if not isinstance(listed, list):
        return request
    return {**request, key: [message for message in listed if not is_own(message)]}
