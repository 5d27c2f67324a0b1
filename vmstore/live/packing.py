"""Packs: what the model is to see at its next call, logged as it is."""

from __future__ import annotations

from vmstore.capture.skeleton import dumps
from vmstore.core.mutation import PARTIAL, Pack
from vmstore.core.page import Fidelity
from vmstore.live.runtime import Act


def pack(act: Act) -> int:
    """Lets the kernel decide a last time, then logs the prompt as it is; the number of the call."""
    act.react()
    state = act.state
    assert state.settings is not None, "a live session has settings"
    entered, left = state.residences()
    totals = act.batch.head.foresee(entered, left)
    model = state.settings.model
    rest = None if model == act.spoken.model else act.cell(dumps({"model": model}))
    call = state.call + 1
    told = Pack(call, Fidelity.DERIVED, *totals, tuple(entered), tuple(left), rest, renderer=PARTIAL)
    act.end(told)
    return call
