"""The request of a call: as it was sent, or, where no source held it, its messages as they were derived."""

from __future__ import annotations

from typing import Any

from vmstore.core.asof import Call
from vmstore.core.page import Fidelity
from vmstore.errors import UnknownError
from vmstore.store.session import Session


def request(session: Session, call: int, *, render: bool = False) -> dict[str, Any]:
    """The request of a call with its fidelity; with `render` the VM:CONTEXT text besides.

    `request` is None where the source held no such thing: `why` then says so, and `messages` is
    what there is.
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
        "messages": context.messages(),
    }
    if context.fidelity == Fidelity.RECORDED.word:
        try:
            found["request"] = context.request()
        except UnknownError as error:  # a live session's call: its messages are all there is
            found["why"] = str(error)
    else:
        found["why"] = "derived: rebuilt by a rule from what the source holds; the request itself was not in it"
    if render:
        found["text"] = context.text()
    return found
