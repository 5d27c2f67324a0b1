"""Sinks of a run: memory, numbers alone, or a session of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from vmstore.core import mutation as m
from vmstore.replay.stimuli import At, RecordedForm

Place = Callable[[int], int]
"""The run's position of something recorded."""


class ReplayForm(NamedTuple):
    """A shorter form that a run made itself: its level, its content and how it came to be."""

    level: int
    method: int
    lossy: int
    content: bytes
    tokens: int


class Sink(Protocol):
    """Takes the mutations of a run."""

    def stand(self, position: int) -> None:
        """Continues from a position up to which everything is as it was recorded."""
        ...

    def write(self, mutation: m.AnyMutation) -> int:
        """Takes the next mutation; its position."""
        ...

    def sealed(self, position: int, mutation: m.AnyMutation, own: Place) -> m.AnyMutation:
        """A mutation recorded at a position with its cells as they are named here."""
        ...

    def settings(self, values: bytes) -> m.CellRef:
        """A cell with settings."""
        ...

    def copied(self, form: RecordedForm) -> m.CellRef:
        """A cell with a form that was recorded, which may be later than here."""
        ...

    def made(self, form: ReplayForm) -> m.CellRef:
        """A cell with a form of the run's own."""
        ...

    def packed(self, pack: m.Pack) -> m.Pack:
        """A pack with its root."""
        ...

    def end(self, at: int) -> None:
        """Ends a commit."""
        ...


class MemorySink:
    """Counts positions, and keeps what the last commit held."""

    def __init__(self) -> None:
        self.position = 0
        self.commit: list[At] = []
        self._ended = False

    def stand(self, position: int) -> None:
        """Continues from a position up to which everything is as it was recorded."""
        self.position = position
        self.commit = []

    def write(self, mutation: m.AnyMutation) -> int:
        """Takes the next mutation; its position."""
        if self._ended:
            self.commit, self._ended = [], False
        self.position = self._placed(mutation)
        self.commit.append((self.position, mutation))
        return self.position

    def _placed(self, mutation: m.AnyMutation) -> int:
        return self.position + 1

    def sealed(self, position: int, mutation: m.AnyMutation, own: Place) -> m.AnyMutation:
        """The mutation as it was: nobody reads its cells."""
        return mutation

    def settings(self, values: bytes) -> m.CellRef:
        """No cell."""
        return 0

    def copied(self, form: RecordedForm) -> m.CellRef:
        """The cell it was recorded in."""
        return form.made.content

    def made(self, form: ReplayForm) -> m.CellRef:
        """No cell."""
        return 0

    def packed(self, pack: m.Pack) -> m.Pack:
        """The pack without a root."""
        return msgspec.structs.replace(pack, root=b"")

    def end(self, at: int) -> None:
        """Ends a commit; it can be looked at until the next one begins."""
        if self._ended:
            self.commit = []
        self._ended = True
