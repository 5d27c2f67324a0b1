"""The request of a call: as it was sent, or, where no source held it, its messages as they were derived."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from vmstore.core.asof import Call
from vmstore.core.page import Fidelity
from vmstore.errors import UnknownError
from vmstore.store.session import Session


def request(session: Session, call: int, *, render: bool = False) -> dict[str, Any]:
    """The request of a call with its fidelity; with `render` the VM:CONTEXT text besides.

    `response` is what came back, as `Session.response` answers it. `request` is None where the source
    held no such thing: `why` then says so, and `messages` is what there is.
    """
    context = session.context(Call(call))
    found: dict[str, Any] = {
        "session": session.name,
        "call": context.basis.call,
        "turn": context.basis.turn,
        "position": context.basis.position,
        "fidelity": context.fidelity,
        "model": context.model,
        "tokens": context.tokens,
        "tokens_reported": context.tokens_reported,
        "request": None,
        "messages": None,
    }
    if context.fidelity == Fidelity.RECORDED.word:
        try:
            found["request"], found["messages"] = context._both()
        except UnknownError as error:  # nobody held it, or something of it was erased: its messages are what there is
            found["why"] = str(error)
    else:
        found["why"] = (
            "derived: this file doesn't contain the raw request, so the context was rebuilt from the transcript"
        )
    if found["request"] is None:
        found["messages"] = context.messages()
    found["response"] = _response(session, context.basis.call)
    if render:
        found["text"] = context.text()
    return found


def _response(session: Session, call: int) -> dict[str, Any]:
    """What came back for a call; where nothing is known of it, why."""
    try:
        found: dict[str, Any] = to_builtins(session.wire.response(Call(call)))
    except UnknownError as error:
        return {"why": str(error)}
    return found
