"""Looks into how a session's memory worked: its faults, the first moment something held, other decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from vmstore.core.asof import Moment, When, one_moment
from vmstore.namespace.results import Fault
from vmstore.store.host import SessionHost
from vmstore.store.reads.page_query import faults_of
from vmstore.store.reads.session_diff import SessionDiff, compared
from vmstore.views.reads.resolve_asof import basis

if TYPE_CHECKING:
    from vmstore.replay.check import ReplayCheck
    from vmstore.replay.whatif import Run
    from vmstore.store.breakpoints import Breakpoint
    from vmstore.vm.kernel.keywords import WhatIf


class Debug:
    """Faults, breakpoints and what-ifs: `session.debug`."""

    def __init__(self, session: SessionHost) -> None:
        self._session = session

    def faults(self, at: When | None = None, **moment: Unpack[Moment]) -> list[Fault]:
        """Every time a page was asked for up to a moment; without a kernel, every time one came back to the context."""
        with self._session._ns.asking():
            lane = self._session._lane()
            return faults_of(lane, basis(lane, one_moment(at, moment)).position)

    def compare(self, other: str) -> SessionDiff:
        """This session and another side by side, aligned by content: how far they are the same, and what differs.

        Ids of tool calls are left out of it, for each run has its own; counts and costs of both stand beside it.
        """
        return compared(self._session._ns, self._session.name, other)

    def first(self, where: str, *, after: int | None = None) -> Breakpoint | None:
        """The first moment, after a position where one is given, at which a predicate holds; None where it never does.

        `where` is a condition on a relation of VMQL, like `CALLS tokens > 8000`. Raises QueryError, which points at
        what is wrong with it, and UnknownError where the session has no such position.
        """
        from vmstore.store.breakpoints import first

        return first(self._session, where, after)

    def replay(
        self,
        *,
        policy: str | None = None,
        budget: int | None = None,
        keep: str | None = None,
        **settings: Unpack[WhatIf],
    ) -> Run:
        """Decides a live session again, given the same references; without other settings the run as it was recorded.

        `keep` stores it as a session of that name, which writes all contents again.
        """
        from vmstore.store.replay import replayed

        return replayed(self._session._ns, self._session._key, self._session.name, policy, budget, dict(settings), keep)

    def check(self) -> ReplayCheck:
        """Decides a live session again under its own settings and compares every decision with the recorded one."""
        from vmstore.store.replay import checked

        return checked(self._session._ns, self._session._key, self._session.name)
