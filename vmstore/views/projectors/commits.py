"""The commits view: which commit holds a position, and when it happened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import apsw

from vmstore.core.page import Origin
from vmstore.log.commit import NO_REQUEST
from vmstore.views.branch import Branch
from vmstore.views.projector import PlacedMutation, Projector


class CommitsProjector(Projector):
    """A session's commits by last position, with the running maxima of both clocks."""

    name = "commits"
    schema: ClassVar = {
        "commits": """session INTEGER, last INTEGER, first INTEGER, ordinal INTEGER, cell INTEGER, cells INTEGER,
            at INTEGER, at_max INTEGER, logged_at INTEGER, logged_max INTEGER, request TEXT,
            PRIMARY KEY(session, last)"""
    }
    indexes = ("CREATE INDEX commits_request ON commits(session, request) WHERE request IS NOT NULL",)

    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self._maxima: dict[int, tuple[int, int]] = {}  # of both clocks, by session

    def on_commit(self, placed: PlacedMutation, mutations: Sequence[Any]) -> None:
        """Adds the commit's row."""
        from vmstore.core.mutation import Open

        commit = placed.commit
        session, at, logged_at = commit.session, commit.at, commit.at + commit.lag
        first = mutations[0]
        known = self._maxima.get(session)
        if known is None and not (type(first) is Open and first.origin != Origin.FORK):
            known = _before(Branch(self.db, session), commit.first)
        at_max, logged_max = known or (at, logged_at)
        self._maxima[session] = at_max, logged_max = max(at_max, at), max(logged_max, logged_at)
        request = None if commit.request == NO_REQUEST else placed.text(commit.request)
        self.rows["commits"].append(
            (
                session,
                commit.first + commit.count - 1,
                commit.first,
                commit.ordinal,
                commit.cell,
                commit.cell_count,
                at,
                at_max,
                logged_at,
                logged_max,
                request,
            )
        )

    def forget(self) -> None:
        """Drops the maxima too."""
        super().forget()
        self._maxima.clear()


def _before(lane: Branch, position: int) -> Any:
    """The running maxima before a position, a fork's inherited ones included."""
    for stretch in lane.upto(position - 1):
        row = lane.db.execute(
            "SELECT at_max, logged_max FROM commits WHERE session = ? AND last <= ? ORDER BY last DESC LIMIT 1",
            (stretch.session, stretch.high),
        ).fetchone()
        if row is not None:
            return row
    return None
