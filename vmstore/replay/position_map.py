"""Maps recorded positions to those of a run, where other decisions move everything after them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from vmstore.core import mutation as m

_PAGE = ("page",)
_NAMES: dict[type, tuple[str, ...]] = {
    m.Update: _PAGE,
    m.Annotate: _PAGE,
    m.Redact: _PAGE,
    m.Compress: _PAGE,
    m.Reference: _PAGE,
    m.Recall: _PAGE,
    m.Pin: _PAGE,
    m.Unpin: _PAGE,
    m.Evict: _PAGE,
    m.Delete: _PAGE,
    m.Flush: _PAGE,
    m.Embed: ("page", "content"),
    m.Fact: _PAGE,
    m.Tag: _PAGE,
    m.Link: ("source", "target"),
    m.Unlink: ("source", "target"),
    m.Cite: ("page", "by"),
    m.Create: ("message",),
    m.Segment: ("summary",),
    m.Search: ("found",),
    m.ToolRun: ("call", "result", "reasoning", "read", "created", "modified"),
    m.GuardTrip: ("calls", "warning"),
    m.Promote: ("page", "calls"),
}
"""The fields of a stimulus that name positions; those of `links` and `envelopes` stand in pairs."""


class PositionMap:
    """Recorded positions and the run's own, each from the other."""

    def __init__(self) -> None:
        self._own: dict[int, int] = {}
        self._recorded: dict[int, int] = {}
        self._same = True  # nothing has moved so far

    def put(self, recorded: int, own: int) -> None:
        """Maps a recorded position to one of the run."""
        self._same = self._same and recorded == own
        self._own[recorded] = own
        self._recorded[own] = recorded

    def own(self, recorded: int) -> int:
        """The run's position of something recorded; 0 stays what it is."""
        return self._own[recorded] if recorded else 0

    def recorded(self, own: int) -> int:
        """The recorded position of something of the run; 0 where it was not recorded."""
        return self._recorded.get(own, 0)

    def moved(self, mutation: m.AnyMutation) -> m.AnyMutation:
        """A stimulus with the positions of the run."""
        if self._same:
            return mutation
        if isinstance(mutation, m.Mark) and mutation.back_to:
            return msgspec.structs.replace(mutation, back_to=self._upto(mutation.back_to))
        return _mapped(mutation, self.own)

    def _upto(self, recorded: int) -> int:
        """The run's position of the last thing that was recorded up to a position."""
        return max((own for position, own in self._own.items() if position <= recorded), default=0)


def _mapped(mutation: m.AnyMutation, place: Callable[[int], int]) -> m.AnyMutation:
    fields = _NAMES.get(type(mutation), ())
    moved: dict[str, Any] = {}
    for name in fields:
        value = getattr(mutation, name)
        if value:
            moved[name] = tuple(map(place, value)) if isinstance(value, tuple) else place(value)
    if isinstance(mutation, m.Create) and mutation.links:
        moved["links"] = tuple((kind, place(page)) for kind, page in mutation.links)
    if isinstance(mutation, m.Turn) and mutation.alike:
        moved["alike"] = tuple((place(page), share) for page, share in mutation.alike)
    if isinstance(mutation, m.Pack) and mutation.envelopes:
        moved["envelopes"] = tuple((place(message), ref) for message, ref in mutation.envelopes)
    if isinstance(mutation, m.Search) and mutation.contests:
        moved["contests"] = tuple(
            one._replace(losers=tuple((score, place(page)) for score, page in one.losers)) for one in mutation.contests
        )
    return msgspec.structs.replace(mutation, **moved) if moved else mutation
