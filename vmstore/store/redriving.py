"""Re-drives a recorded session into a live one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vmstore.errors import ConflictError, InputError
from vmstore.live.configuring import configure
from vmstore.live.facts import Facts
from vmstore.live.redrive import Redrive, Uses
from vmstore.live.runtime import Act
from vmstore.store.live import Live
from vmstore.store.namespace import Namespace
from vmstore.views.lane import Lane


def redrive(ns: Namespace, source: Lane, live: Live, settings: dict[str, Any], tell: Callable[[int], None]) -> None:
    """Says everything of a session again to a live one that was told nothing yet."""
    if "l0_tokens_max" not in settings:
        raise InputError("a memory that manages itself needs a budget; give l0_tokens_max")

    def begin(act: Act) -> None:
        if act.spoken.messages:
            raise ConflictError(f"session {live.name!r} has something in it already; re-drive into a new one")
        configure(act, settings)

    ns.follow()
    runtime = live.runtime()
    runtime.act(begin, ns.clock.now())
    runtime.play(Redrive(Facts(ns.log, source), Uses(Facts(ns.log, source))).acts(), tell)
    ns.follow()
