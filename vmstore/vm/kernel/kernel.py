"""Runs decisions: stimuli are folded, what follows is decided, and decisions are folded too.

The live runtime, a re-driven import and a replay run this one loop; they differ in where the
stimuli come from, in who makes shorter forms, and in where mutations are written.
"""

from __future__ import annotations

from collections.abc import Callable

from vmstore.core.mutation import AnyMutation, Compress
from vmstore.vm.kernel.decide import Stimulus, decide
from vmstore.vm.kernel.eviction import Compression
from vmstore.vm.kernel.state import State

Write = Callable[[AnyMutation], int]
"""Writes a mutation where it belongs; the position it got."""

Perform = Callable[[Compression], Compress]
"""Makes a shorter form of a page at the level asked for, or at a higher one; runs at the door."""

Note = Callable[[int, AnyMutation], None]
"""Called with every mutation and its position, right after it was folded."""


class Kernel:
    """One commit under way: tell it what happened, let it react, and pack."""

    def __init__(self, state: State, write: Write, perform: Perform, note: Note | None = None) -> None:
        self.state = state
        self._write = write
        self._perform = perform
        self._note = note
        self._pending: list[Stimulus] = []
        self._idle = False

    def tell(self, mutation: AnyMutation) -> int:
        """Writes a stimulus and folds it; its position."""
        position = self._take(mutation)
        self._pending.append((position, mutation))
        self._idle = False
        return position

    def react(self) -> None:
        """Decides what follows from the stimuli since the last time; nothing where there were none.

        The first time it decides in any case: a commit may be a look at the prompt before it is packed.
        """
        if self._idle:
            return
        decisions = self._pending
        self._idle = True
        decided = decide(self.state, decisions)
        while decided.requests:
            for request in dict.fromkeys(decided.requests):
                self._take(self._perform(request))
            decided = decide(self.state, decisions)
        settings = self.state.settings
        if (
            decided.mutations or settings is None or not settings.batches
        ):  # else the next stimulus is decided on with these, as a replay does
            self._pending = []
        for mutation in decided.mutations:
            self._take(mutation)

    def _take(self, mutation: AnyMutation) -> int:
        position = self._write(mutation)
        self.state.apply(position, mutation)
        if self._note is not None:
            self._note(position, mutation)
        return position
