"""A hand-off: the same memory goes on with another model, with the settings that model was given before."""

from __future__ import annotations

from typing import Any

import msgspec

from vmstore.errors import InputError, RefusedError
from vmstore.store.host import SessionHost
from vmstore.vm.protocol.abi import MemoryABI

KEPT = "model:"
"""What the name of a value begins with that keeps the settings of a model."""
OF_A_MODEL = ("window_tokens_max", "l0_tokens_max", "compress_level", "rules", "paging", "recall_tools")


class HandOff(msgspec.Struct, frozen=True):
    """A hand-off from a model to another: the settings that changed, and what the memory offers the new one."""

    before: str | None
    after: str
    call: int
    settings: dict[str, Any]
    abi: MemoryABI


def hand_off(session: SessionHost, model: str, settings: dict[str, Any], at_us: int | None) -> HandOff:
    """Goes on with another model: with the settings given, which are kept for it, else with those kept before.

    What a model was never given is as it was for the one before.
    """
    live: Any = session
    if not hasattr(live, "configure"):
        raise RefusedError(
            f"session {session.name!r} was recorded, so no memory is handed on; re-drive it with store.admin.redrive",
            code="recorded-session",
        )
    if not isinstance(model, str) or not model.strip():
        raise InputError(f"{model!r:.40} is no name of a model", code="not-a-name")
    unknown = next((name for name in settings if name not in OF_A_MODEL), None)
    if unknown is not None:
        raise InputError(
            f"{unknown!r:.40} is no setting of a model; they are {', '.join(OF_A_MODEL)}", code="no-setting"
        )
    before, name = live.settings, f"{KEPT}{model}"
    kept = live.values().get(name, {})
    wanted = {**kept, **settings}
    with live.turn():
        after = live.configure(model=model, **wanted, at_us=at_us)  # refused, nothing is kept
        if wanted != kept:
            live.keep(name, wanted, at_us=at_us)
    fields = ("model", *OF_A_MODEL)
    changed = {word: getattr(after, word) for word in fields if getattr(after, word) != getattr(before, word)}
    abi: MemoryABI = live.look(lambda runtime: live._now(runtime).abi)
    return HandOff(before.model, model, live.look(lambda runtime: runtime.state.call), changed, abi)
