"""Packs: what the model is to see at its next call, logged as it is, and ready to send."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vmstore.capture.skeleton import dumps
from vmstore.core.mutation import CellRef, Pack
from vmstore.core.page import Fidelity
from vmstore.live.runtime import Act
from vmstore.live.spoken import Spoken, partial
from vmstore.vm.state import State

RENDERER = 2  # vm@1: messages and a developer message made of the pages


def pack(act: Act) -> int:
    """Lets the kernel decide a last time, then logs the prompt as it is; the number of the call."""
    act.react()
    state = act.state
    assert state.settings is not None, "a live session has settings"
    entered, left = state.residences()
    moved = [*left, *(residence[0] for residence in entered)]
    told = envelopes(state, act.spoken, act.cell, moved)
    totals = act.batch.head.foresee(entered, left)
    rest = None
    if state.settings.model != act.spoken.model:
        rest = act.cell(dumps({"model": state.settings.model}))
    call = state.call + 1
    act.end(
        Pack(
            call,
            Fidelity.DERIVED,
            totals.leaves,
            totals.tokens,
            totals.root,
            tuple(entered),
            tuple(left),
            rest,
            told,
            renderer=RENDERER,
        )
    )
    return call


def envelopes(
    state: State, spoken: Spoken, seal: Callable[[bytes], CellRef], moved: Iterable[int]
) -> tuple[tuple[int, CellRef], ...]:
    """The skeletons of messages of which other parts are shown than were: holes for those alone."""
    changed = []
    for message in sorted({state.pages[page].message for page in moved}):
        if not message:
            continue
        said = spoken.messages[message]
        here = [state.here[page] for page in said.parts if page in state.here]
        if not here:
            continue
        here.sort(key=lambda held: held.rank)
        shown = {said.parts.index(held.page): at for at, held in enumerate(here)}
        plain = {said.parts.index(held.page) for held in here if held.level}
        skeleton = partial(said.skeleton, shown, plain)
        if skeleton != said.packed:
            changed.append((message, seal(skeleton)))
    return tuple(changed)
