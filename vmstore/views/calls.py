"""The calls view: every request to the model, how it ended and what it cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import ClassVar

import apsw
import msgspec

from vmstore.core.mutation import Configure, Pack, Reply
from vmstore.core.page import Status
from vmstore.views.lane import Lane
from vmstore.views.projector import Fact, Projector, plain


class CallRow(msgspec.Struct, frozen=True):
    """One call as the calls view holds it."""

    session: int
    call: int
    turn: int
    position: int
    at: int
    fidelity: int
    shape: int | None
    model: str | None
    rest: int | None
    rest_commitment: bytes | None
    leaves: int
    tokens: int
    root: bytes
    factor_ppm: int
    status: int
    final: int
    tokens_in: int | None
    tokens_cached: int | None
    tokens_out: int | None
    cost: int | None
    latency: int | None
    aside: int | None
    aside_commitment: bytes | None
    replied: int | None


class Calls(Projector):
    """One row a call, from its pack, completed by its reply; `settings` holds the token factor.

    `rest` is the cell of the request's other fields as they held at the call.
    """

    name = "calls"
    schema: ClassVar = {
        "calls": """session INTEGER, call INTEGER, turn INTEGER, position INTEGER, at INTEGER, fidelity INTEGER,
            shape INTEGER, model TEXT, rest INTEGER, rest_commitment BLOB, leaves INTEGER, tokens INTEGER,
            root BLOB, factor_ppm INTEGER,
            status INTEGER, final INTEGER, tokens_in INTEGER, tokens_cached INTEGER, tokens_out INTEGER,
            cost INTEGER, latency INTEGER, aside INTEGER,
            aside_commitment BLOB, replied INTEGER, PRIMARY KEY(session, call)""",
        "settings": """session INTEGER, position INTEGER, estimator INTEGER, factor_ppm INTEGER,
            PRIMARY KEY(session, position)""",
    }
    indexes = ("CREATE INDEX calls_position ON calls(session, position)",)

    def on_configure(self, db: apsw.Connection, fact: Fact, m: Configure) -> None:
        """Notes the factor from here on."""
        db.execute("INSERT INTO settings VALUES(?,?,?,?)", (fact.session, fact.position, m.estimator, m.factor_ppm))

    def on_pack(self, db: apsw.Connection, fact: Fact, m: Pack) -> None:
        """Adds the call; what the pack leaves unsaid holds from the call before."""
        lane = Lane(db, fact.session)
        shape, model, rest, commitment = before(lane, fact.position) or (None, None, None, None)
        if m.rest is not None:
            rest, commitment = fact.number(m.rest), fact.commitment(m.rest)
            model = plain(json.loads(fact.content(m.rest) or b"{}").get("model"))
        if m.shape is not None:
            shape = m.shape
        db.execute(
            "INSERT INTO calls VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL)",
            (
                fact.session,
                m.call,
                fact.turn,
                fact.position,
                fact.commit.at,
                m.fidelity,
                shape,
                model,
                rest,
                commitment,
                m.leaves,
                m.tokens,
                m.root,
                factor(lane, fact.position),
                int(Status.OPEN),
            ),
        )

    def on_reply(self, db: apsw.Connection, fact: Fact, m: Reply) -> None:
        """Completes the call."""
        db.execute(
            """UPDATE calls SET status = ?, final = ?, tokens_in = ?, tokens_cached = ?, tokens_out = ?, cost = ?,
               latency = ?, aside = ?, aside_commitment = ?, replied = ? WHERE session = ? AND call = ?""",
            (
                m.status,
                m.final,
                m.tokens_in,
                m.tokens_cached,
                m.tokens_out,
                m.cost,
                m.latency,
                fact.number(m.aside),
                None if m.aside is None else fact.commitment(m.aside),
                fact.position,
                fact.session,
                m.call,
            ),
        )


def calls_of(lane: Lane) -> Iterator[CallRow]:
    """Every call a lane sees; a reply that came after a fork is none of the fork's."""
    for stretch in reversed(lane.stretches):
        rows = lane.db.execute(
            "SELECT * FROM calls WHERE session = ? AND position <= ? ORDER BY call",
            (stretch.session, stretch.high),
        )
        for row in rows:
            yield _seen(CallRow(*row), stretch.high)


def call_at(lane: Lane, position: int) -> CallRow:
    """The call packed at a position."""
    owner = lane.owner(position)
    row = lane.db.execute(
        "SELECT * FROM calls INDEXED BY calls_position WHERE session = ? AND position = ?", (owner, position)
    ).fetchone()
    assert row is not None, "a pack's position has its call"
    high = next(stretch.high for stretch in lane.stretches if stretch.session == owner)
    return _seen(CallRow(*row), high)


def _seen(call: CallRow, high: int) -> CallRow:
    """A call as it is seen up to a position: open where its reply came later."""
    if call.replied is None or call.replied <= high:
        return call
    unknown = dict.fromkeys(("tokens_in", "tokens_cached", "tokens_out", "cost", "latency", "aside", "replied"))
    return msgspec.structs.replace(call, status=int(Status.OPEN), final=0, **unknown)


def before(lane: Lane, position: int) -> tuple[int | None, str | None, int | None, bytes | None] | None:
    """Shape, model and rest (cell and commitment) of the last call before a position."""
    for stretch in lane.upto(position - 1):
        row = lane.db.execute(
            "SELECT shape, model, rest, rest_commitment FROM calls WHERE session = ? AND position <= ?"
            " ORDER BY position DESC LIMIT 1",
            (stretch.session, stretch.high),
        ).fetchone()
        if row is not None:
            return row[0], row[1], row[2], row[3]
    return None


def factor(lane: Lane, position: int) -> int:
    """The token factor in force at a position, in parts per million."""
    for stretch in lane.upto(position):
        found = lane.db.execute(
            "SELECT factor_ppm FROM settings WHERE session = ? AND position <= ? ORDER BY position DESC LIMIT 1",
            (stretch.session, stretch.high),
        ).get
        if found is not None:
            return int(found)
    return 1_000_000
