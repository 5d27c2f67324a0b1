"""The sessions view: one row a session, with its counts and where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import apsw
import msgspec

from vmstore.core.page import Fidelity, Origin, PageType, Standing, WordEnum
from vmstore.core.text.json_text import plain
from vmstore.views.branch import Branch, holder_of
from vmstore.views.projector import PlacedMutation, Projector, columns, put
from vmstore.views.projectors.pages import object_of
from vmstore.views.projectors.redactions import policy_at

if TYPE_CHECKING:
    from vmstore.core.mutation import Open

NUMBER_MAX = 2**63 - 1  # that a table holds
UNKNOWN_TIMES = "unknown"  # what the meta of a session says under `times` whose source held none
NAMED = "hidden <> 1"
"""Which sessions can be named: an import under way cannot, the namespace's own session can."""


class SessionFidelity(WordEnum):
    """Whether the requests of all calls of a session were in its source, of none, or of some."""

    RECORDED = 0
    DERIVED = 1
    PARTLY = 2


class SessionRow(msgspec.Struct):
    """A session's row: who it is, its counts and where it stands."""

    session: int
    uid: bytes
    name: str | None
    origin: int
    parent: int | None
    fork_position: int
    spawned_by: int | None
    user: str | None
    agent: str | None
    title: str | None
    source: str | None
    key: bytes | None
    turn_before: int
    call_before: int
    hidden: int
    opened_at: int
    position: int = 0
    hash: bytes | None = None
    turns: int = 0
    calls: int = 0
    pages: int = 0
    messages: int = 0
    raw: int = 0
    mutations: int = 0
    commits: int = 0
    tokens: int = 0
    records: int = 0
    derived: int = 0
    redactions: int = 0
    redaction: int = 0
    status: int = 0
    timed: int = 1


class SessionsProjector(Projector):
    """Sessions: names, origins, counts. `hidden` is 1 for unfinished imports and 2 for the namespace's own session.

    What was forked, spawned or continued from a user's session is of that user too, unless it names another.

    A row of `closings` says how a session stands from a position on: that it ended, or was taken up again.
    """

    name = "sessions"
    version = 2
    schema: ClassVar = {
        "sessions": """session INTEGER PRIMARY KEY, uid BLOB, name TEXT, origin INTEGER, parent INTEGER,
            fork_position INTEGER, spawned_by INTEGER, user TEXT, agent TEXT, title TEXT, source TEXT, key BLOB,
            turn_before INTEGER, call_before INTEGER,
            hidden INTEGER, opened_at INTEGER, position INTEGER, hash BLOB, turns INTEGER, calls INTEGER,
            pages INTEGER, messages INTEGER, raw INTEGER, mutations INTEGER, commits INTEGER, tokens INTEGER,
            records INTEGER, derived INTEGER, redactions INTEGER, redaction INTEGER, status INTEGER,
            timed INTEGER""",
        "closings": """session INTEGER, position INTEGER, status INTEGER, at INTEGER, reason TEXT,
            PRIMARY KEY(session, position)""",
    }
    indexes = (
        "CREATE INDEX sessions_name ON sessions(name)",
        "CREATE INDEX sessions_uid ON sessions(uid)",
        "CREATE INDEX sessions_user ON sessions(user) WHERE user IS NOT NULL",
        "CREATE INDEX sessions_agent ON sessions(agent) WHERE agent IS NOT NULL",
        "CREATE INDEX sessions_source ON sessions(source) WHERE source IS NOT NULL",
    )

    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self.at_hand: dict[int, SessionRow] = {}
        self._opened: dict[bytes, int] = {}  # sessions the table does not hold yet, by uid
        self._moved: dict[int, SessionRow] = {}  # those it holds as they stood before

    def standing(self, session: int) -> SessionRow | None:
        """The row of a session, or None where no commit opened it."""
        found = self.at_hand.get(session)
        if found is None:
            for row in self.db.execute("SELECT * FROM sessions WHERE session = ?", (session,)):
                found = self.at_hand[session] = SessionRow(*row)
        return found

    def key(self, uid: bytes | None) -> int | None:
        """The session that a uid opened."""
        if uid is None:
            return None
        opened: Any = self._opened.get(uid)
        found: int | None = opened or self.db.execute("SELECT session FROM sessions WHERE uid = ?", (uid,)).get
        return found

    def on_commit(self, placed: PlacedMutation, mutations: Sequence[Any]) -> None:
        """Opens the row where the commit opens a session, then adds the commit's counts."""
        from vmstore.core.mutation import Close, Create, Mark, Message, Open, Pack, Redact, Turn

        commit, first = placed.commit, mutations[0]
        opens = type(first) is Open
        standing = self._open(placed, first) if opens else self.at_hand[commit.session]
        assert standing.session == commit.session, "a session is at hand under its own key"
        if standing.uid not in self._opened:
            self._moved[commit.session] = standing
        standing.position, standing.hash = commit.first + commit.count - 1, commit.hash
        standing.mutations += len(mutations)
        standing.commits += 1
        for position, m in enumerate(mutations, commit.first):
            kind = type(m)
            if kind is Create:
                standing.pages += 1
                standing.tokens = min(standing.tokens + m.tokens, NUMBER_MAX)
                standing.raw += m.type == PageType.RAW
            elif kind is Message:
                standing.messages += 1
                if standing.status:
                    self._stand(placed, standing, position, Standing.ACTIVE)
            elif kind is Pack:
                standing.calls = max(standing.calls, m.call)
                standing.derived += m.fidelity == Fidelity.DERIVED
            elif kind is Turn:
                standing.turns = max(standing.turns, m.number)
            elif kind is Redact:
                standing.redactions = min(standing.redactions + m.count, NUMBER_MAX)
                standing.redaction = standing.redaction if m.policy is None else m.policy
            elif kind is Mark:
                standing.records = max(standing.records, m.records)
                if m.reason == Mark.COMPLETE:
                    standing.hidden = 0
            elif kind is Close:
                self._stand(placed, standing, position, m.status, placed.text(m.reason))
        if opens and standing.origin == Origin.FORK:
            self.flush()  # a lane is read from the table

    def _stand(
        self, placed: PlacedMutation, standing: SessionRow, position: int, status: int, reason: str | None = None
    ) -> None:
        standing.status = status
        self.rows["closings"].append((standing.session, position, status, placed.at, reason))

    def _open(self, placed: PlacedMutation, m: Open) -> SessionRow:
        parent = self.key(m.parent)
        if parent is None and m.origin == Origin.FORK:
            parent = holder_of(self.db, m.parent_position)
        meta = object_of(placed.content(m.meta))
        standing = SessionRow(
            session=placed.session,
            uid=m.uid,
            name=placed.text(m.name) or erased_name(m.uid),
            origin=m.origin,
            parent=parent,
            fork_position=m.parent_position,
            spawned_by=m.spawned_by,
            user=plain(meta.get("user")) or self._owner(parent),
            agent=plain(meta.get("agent")),
            title=plain(meta.get("title")),
            source=placed.text(m.source),
            key=placed.content(m.key),
            turn_before=placed.turn,
            call_before=placed.call,
            hidden=m.hidden,
            opened_at=placed.at,
            turns=placed.turn,
            calls=placed.call,
            timed=int(meta.get("times") != UNKNOWN_TIMES),
        )
        if m.origin == Origin.FORK and parent is not None:
            lane = Branch(self.db, parent)
            standing.derived = int(_any_derived(lane, m.parent_position))
            standing.redaction = policy_at(lane, m.parent_position)
        self.at_hand[placed.session] = standing
        self._opened[m.uid] = placed.session
        return standing

    def _owner(self, parent: int | None) -> str | None:
        """The user of the session that another came from."""
        came_from = None if parent is None else self.standing(parent)
        return None if came_from is None else came_from.user

    def flush(self) -> None:
        """Writes the sessions that opened or moved on."""
        opened = [msgspec.structs.astuple(self.at_hand[session]) for session in self._opened.values()]
        if opened:
            put(self.db, "INSERT INTO sessions", opened)
        self.db.executemany(_MOVE, (_moved(standing) for standing in self._moved.values()))
        self._opened.clear()
        self._moved.clear()
        super().flush()

    def forget(self) -> None:
        """Drops every session."""
        super().forget()
        self.at_hand.clear()
        self._opened.clear()
        self._moved.clear()


_MOVING = SessionRow.__struct_fields__[SessionRow.__struct_fields__.index("position") :]
assert columns(SessionsProjector.schema["sessions"]) == SessionRow.__struct_fields__, (
    "a row of the table becomes a struct by place"
)
_MOVE = f"UPDATE sessions SET hidden = ?, {', '.join(f'{name} = ?' for name in _MOVING)} WHERE session = ?"


assert _MOVE.count("?") == len(_MOVING) + 2, "`_moved` gives what is set, and the session it is set for"
assert "hidden" not in _MOVING, "it is set apart, before the counts"


def erased_name(uid: bytes) -> str:
    """The name shown for a session whose name was erased."""
    return f"erased-{uid.hex()[:12]}"


def _moved(standing: SessionRow) -> tuple[Any, ...]:
    return (standing.hidden, *msgspec.structs.astuple(standing)[-len(_MOVING) :], standing.session)


def _any_derived(lane: Branch, position: int) -> bool:
    """Whether a lane holds a derived call up to a position."""
    return any(
        lane.db.execute(
            "SELECT 1 FROM calls WHERE session = ? AND position <= ? AND fidelity = ? LIMIT 1",
            (stretch.session, stretch.high, Fidelity.DERIVED),
        ).fetchone()
        for stretch in lane.upto(position)
    )
