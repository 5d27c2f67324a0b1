"""The sessions view: one row a session, with its counts and where it stands."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import apsw

from vmstore.core.mutation import Create, Mark, Message, Open, Pack, Turn
from vmstore.core.page import Fidelity, Origin, PageType
from vmstore.views.lane import Lane
from vmstore.views.projector import Fact, Projector, plain


class Sessions(Projector):
    """Who exists: names, origins, counts. `hidden` ones are imports not yet complete."""

    name = "sessions"
    schema: ClassVar = {
        "sessions": """session INTEGER PRIMARY KEY, uid BLOB, name TEXT, origin INTEGER, parent INTEGER,
            fork_position INTEGER, spawned_by INTEGER, user TEXT, agent TEXT, title TEXT, source TEXT, key BLOB,
            hidden INTEGER, opened_at INTEGER, position INTEGER, hash BLOB, turns INTEGER, calls INTEGER,
            pages INTEGER, messages INTEGER, raw INTEGER, mutations INTEGER, commits INTEGER, tokens INTEGER,
            records INTEGER, derived INTEGER"""
    }
    indexes = (
        "CREATE INDEX sessions_name ON sessions(name)",
        "CREATE INDEX sessions_uid ON sessions(uid)",
        "CREATE INDEX sessions_source ON sessions(source)",
    )

    def on_commit(self, db: apsw.Connection, fact: Fact, mutations: list[Any]) -> None:
        """Opens the row where the commit opens a session, then adds the commit's counts."""
        if isinstance(mutations[0], Open):
            self._open(db, fact, mutations[0])
        pages = [m for m in mutations if isinstance(m, Create)]
        packs = [m for m in mutations if isinstance(m, Pack)]
        turns = [m.number for m in mutations if isinstance(m, Turn)]
        marks = [m for m in mutations if isinstance(m, Mark)]
        db.execute(
            """UPDATE sessions SET position = ?, hash = ?, turns = max(turns, ?), calls = max(calls, ?),
               pages = pages + ?, messages = messages + ?, raw = raw + ?, mutations = mutations + ?,
               commits = commits + 1, tokens = tokens + ?, records = max(records, ?), derived = derived + ?,
               hidden = CASE WHEN ? THEN 0 ELSE hidden END WHERE session = ?""",
            (
                fact.commit.last,
                fact.commit.hash,
                max(turns, default=0),
                max((m.call for m in packs), default=0),
                len(pages),
                sum(isinstance(m, Message) for m in mutations),
                sum(m.type == PageType.RAW for m in pages),
                len(mutations),
                sum(m.tokens for m in pages),
                max((m.records for m in marks), default=0),
                sum(m.fidelity == Fidelity.DERIVED for m in packs),
                any(m.reason == Mark.COMPLETE for m in marks),
                fact.session,
            ),
        )

    def _open(self, db: apsw.Connection, fact: Fact, mutation: Open) -> None:
        parent: Any = None
        if mutation.parent is not None:
            parent = db.execute("SELECT session FROM sessions WHERE uid = ?", (mutation.parent,)).get
        inherits = mutation.origin == Origin.FORK and _any_derived(Lane(db, parent), mutation.parent_position)
        meta = json.loads(fact.content(mutation.meta) or b"{}")
        db.execute(
            """INSERT INTO sessions VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,NULL,?,?,0,0,0,0,0,0,0,?)""",
            (
                fact.session,
                mutation.uid,
                fact.text(mutation.name),
                mutation.origin,
                parent,
                mutation.parent_position,
                mutation.spawned_by,
                plain(meta.get("user")),
                plain(meta.get("agent")),
                plain(meta.get("title")),
                fact.text(mutation.source),
                fact.content(mutation.key),
                mutation.hidden,
                fact.commit.at,
                fact.turn,
                fact.call,
                int(inherits),
            ),
        )


def _any_derived(lane: Lane, position: int) -> bool:
    """Whether a lane holds a derived call up to a position."""
    return any(
        lane.db.execute(
            "SELECT 1 FROM calls WHERE session = ? AND position <= ? AND fidelity = ? LIMIT 1",
            (stretch.session, stretch.high, Fidelity.DERIVED),
        ).fetchone()
        for stretch in lane.upto(position)
    )
