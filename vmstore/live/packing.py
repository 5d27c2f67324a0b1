"""Packs: what the model is to see at its next call, logged as it is."""

from __future__ import annotations

from typing import Any

from vmstore.capture.skeleton import dumps
from vmstore.core.mutation import PARTIAL, Pack
from vmstore.core.page import Fidelity
from vmstore.live.configuring import configure
from vmstore.live.runtime import Act
from vmstore.vm.protocol.select import Selection
from vmstore.vm.window import membership


def pack(act: Act, told: dict[str, Any]) -> Selection | None:
    """Changes settings as told, lets the kernel decide a last time, then logs what the call is sent.

    How that was chosen; None where it is all of L0.
    """
    if told:
        configure(act, told)
    act.react()
    state = act.state
    assert state.settings is not None, "a live session has settings"
    now = membership(state)
    totals = act.batch.head.foresee(now.entered, now.left)
    model = state.settings.model
    rest = None if model == act.spoken.model else act.cell(dumps({"model": model}))
    act.end(
        Pack(state.call + 1, Fidelity.DERIVED, *totals, tuple(now.entered), tuple(now.left), rest, renderer=PARTIAL)
    )
    return now.choice
