"""The stretches of a session about one thing, and those before and after in the sessions it hangs together with."""

from __future__ import annotations

from typing import Unpack

from vmstore.core.aliases import FormerMethod
from vmstore.core.asof import Moment, When, one_moment
from vmstore.store.host import SessionHost
from vmstore.store.recall.segments import SegmentInfo, ancestors_of, descendants_of, segments_at
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import basis


class SegmentMemory(FormerMethod):
    """The segments of a session: `session.memory.segments`."""

    _former = "SessionMemory.segments"

    def __init__(self, session: SessionHost) -> None:
        self._session = session

    def all(self, at: When | None = None, **moment: Unpack[Moment]) -> list[SegmentInfo]:
        """The stretches of the session about one thing, in order, said or summed up; then the summaries of tags."""
        with self._session._ns.asking():
            lane, position = self._place(at, moment)
            return segments_at(lane, self._session.name, position)

    def ancestors(
        self, segment: int | None = None, at: When | None = None, **moment: Unpack[Moment]
    ) -> list[SegmentInfo]:
        """The segments before one, by default before the last, oldest first.

        Those of the sessions that this one goes on from are among them.
        """
        with self._session._ns.asking():
            lane, position = self._place(at, moment)
            return ancestors_of(self._session._ns, lane, self._session.name, position, segment)

    def descendants(
        self, segment: int | None = None, at: When | None = None, **moment: Unpack[Moment]
    ) -> list[SegmentInfo]:
        """The segments after one, by default after the first, in order.

        Those of the sessions that go on from this one are among them.
        """
        with self._session._ns.asking():
            lane, position = self._place(at, moment)
            return descendants_of(self._session._ns, lane, self._session.name, position, segment)

    def _place(self, at: When | None, moment: Moment) -> tuple[Branch, int]:
        """The session as a branch, and the position that is asked about."""
        lane = self._session._lane()
        return lane, basis(lane, one_moment(at, moment)).position
