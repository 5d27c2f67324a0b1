"""A live call's request is made again from the log, and held against the digest that its pack states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.errors import CorruptError
from vmstore.store.reads import sent_request

Made = Callable[..., dict[str, Any]]


@pytest.mark.parametrize("change", ["a word", "a field", "the order of keys"])
def test_a_request_that_is_not_what_was_sent_is_damage(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where this code would write another request than was sent, in any respect, it gives none and says so."""
    right: Made = sent_request.request_of

    def wrong(*arguments: Any) -> dict[str, Any]:
        body = right(*arguments)
        if change == "a word":
            body["messages"][-1] = {**body["messages"][-1], "content": "Is it?"}
        elif change == "a field":
            body["n"] = 1
        else:
            body = dict(reversed(body.items()))
        return body

    with vmstore.memory_store() as store:
        session = store.live_session("s", l0_tokens_max=8_000, system="You are brief.")
        session.user("Is this it?")
        request = session.pack().request
        assert session.wire.request(call=1) == request
        monkeypatch.setattr(sent_request, "request_of", wrong)
        with refused("request-differs", CorruptError, "call 1"):
            session.wire.request(call=1)
