"""The commits view: which commit holds a position, and when it happened."""

from __future__ import annotations

from typing import Any, ClassVar

import apsw

from vmstore.log.commit import NO_REQUEST
from vmstore.views.lane import Lane
from vmstore.views.projector import Fact, Projector


class Commits(Projector):
    """A session's commits by last position, with the running maxima of both clocks."""

    name = "commits"
    schema: ClassVar = {
        "commits": """session INTEGER, last INTEGER, first INTEGER, ordinal INTEGER, cell INTEGER, cells INTEGER,
            at INTEGER, at_max INTEGER, logged_at INTEGER, logged_max INTEGER, request TEXT,
            PRIMARY KEY(session, last)"""
    }
    indexes = ("CREATE INDEX commits_request ON commits(session, request) WHERE request IS NOT NULL",)

    def on_commit(self, db: apsw.Connection, fact: Fact, mutations: list[Any]) -> None:
        """Adds the commit's row."""
        commit = fact.commit
        before = _before(Lane(db, commit.session), commit.first) or (commit.at, commit.logged_at)
        request = None if commit.request == NO_REQUEST else fact.text(commit.request)
        db.execute(
            "INSERT INTO commits VALUES(?,?,?,?,?,?,?,?,?,?,?)",
            (
                commit.session,
                commit.last,
                commit.first,
                commit.ordinal,
                commit.cell,
                commit.cell_count,
                commit.at,
                max(before[0], commit.at),
                commit.logged_at,
                max(before[1], commit.logged_at),
                request,
            ),
        )


def _before(lane: Lane, position: int) -> Any:
    """The running maxima before a position, a fork's inherited ones included."""
    for stretch in lane.upto(position - 1):
        row = lane.db.execute(
            "SELECT at_max, logged_max FROM commits WHERE session = ? AND last <= ? ORDER BY last DESC LIMIT 1",
            (stretch.session, stretch.high),
        ).fetchone()
        if row is not None:
            return row
    return None
