"""The calls view: every request to the model, how it ended and what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import apsw
import msgspec

from vmstore.core.page import Origin, Status
from vmstore.core.text.json_text import plain
from vmstore.views.branch import NEVER, Branch, BranchRange
from vmstore.views.projector import PlacedMutation, Projector, columns
from vmstore.views.projectors.pages import object_of

if TYPE_CHECKING:
    from vmstore.core.mutation import Configure, Open, Pack, Reply


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
    renderer: int
    sent_tokens: int | None
    voided: int | None
    status: int
    final: int
    tokens_in: int | None
    tokens_cached: int | None
    tokens_out: int | None
    cost: int | None
    latency: int | None
    tokens_written: int | None
    aside: int | None
    aside_commitment: bytes | None
    replied: int | None

    @property
    def sent(self) -> int:
        """Tokens of what was sent, as far as that was counted."""
        return self.sent_tokens or self.tokens


class CallSettings(msgspec.Struct):
    """Values a pack may leave out because they still hold: shape, model and other fields, the token factor."""

    shape: int | None = None
    model: str | None = None
    rest: int | None = None
    commitment: bytes | None = None
    factor_ppm: int = 1_000_000


class CallsProjector(Projector):
    """One row a call, from its pack, completed by its last reply; `settings` holds the token factor.

    `rest` is the cell of the request's other fields as they held at the call, `tokens` those of its
    pages, `sent_tokens` of the request as it was sent, where that was counted, `voided`
    those of the request before that it has otherwise, where they were compared. `replies` holds what a
    call's own row cannot: the replies before its last, and a fork's to the call it began at.
    """

    name = "calls"
    schema: ClassVar = {
        "calls": """session INTEGER, call INTEGER, turn INTEGER, position INTEGER, at INTEGER, fidelity INTEGER,
            shape INTEGER, model TEXT, rest INTEGER, rest_commitment BLOB, leaves INTEGER, tokens INTEGER,
            root BLOB, factor_ppm INTEGER, renderer INTEGER, sent_tokens INTEGER, voided INTEGER,
            status INTEGER, final INTEGER, tokens_in INTEGER, tokens_cached INTEGER, tokens_out INTEGER,
            cost INTEGER, latency INTEGER, tokens_written INTEGER, aside INTEGER,
            aside_commitment BLOB, replied INTEGER, PRIMARY KEY(session, call)""",
        "replies": """session INTEGER, position INTEGER, call INTEGER, status INTEGER, final INTEGER,
            tokens_in INTEGER, tokens_cached INTEGER, tokens_out INTEGER, cost INTEGER, latency INTEGER,
            tokens_written INTEGER, aside INTEGER, aside_commitment BLOB, PRIMARY KEY(session, position)""",
        "settings": """session INTEGER, position INTEGER, estimator INTEGER, factor_ppm INTEGER,
            PRIMARY KEY(session, position)""",
    }
    indexes = ("CREATE INDEX calls_position ON calls(session, position)",)

    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self._inforce: dict[int, CallSettings] = {}
        self._made: dict[tuple[int, int], list[Any]] = {}  # calls the table does not hold yet
        self._replies: list[tuple[Any, ...]] = []  # to calls it holds

    def in_force(self, placed: PlacedMutation) -> CallSettings:
        """The request settings of a session before a mutation."""
        found = self._inforce.get(placed.session)
        if found is None:
            lane = Branch(self.db, placed.session)
            settings = before(lane, placed.position) or (None, None, None, None)
            found = self._inforce[placed.session] = CallSettings(*settings, factor(lane, placed.position))
        return found

    def on_open(self, placed: PlacedMutation, m: Open) -> None:
        """A session without a parent starts with no settings."""
        if m.origin != Origin.FORK:
            self._inforce[placed.session] = CallSettings()

    def on_configure(self, placed: PlacedMutation, m: Configure) -> None:
        """Notes the factor from here on."""
        self.in_force(placed).factor_ppm = m.factor_ppm
        self.rows["settings"].append((placed.session, placed.position, m.estimator, m.factor_ppm))

    def on_pack(self, placed: PlacedMutation, m: Pack) -> None:
        """Adds the call; what the pack leaves unsaid holds from the call before."""
        now = self.in_force(placed)
        if m.rest is not None:
            now.rest, now.commitment = placed.sealed(m.rest)
            now.model = plain(object_of(placed.content(m.rest)).get("model"))
        if m.shape is not None:
            now.shape = m.shape
        self._made[placed.session, m.call] = [
            placed.session,
            m.call,
            placed.turn,
            placed.position,
            placed.at,
            m.fidelity,
            now.shape,
            now.model,
            now.rest,
            now.commitment,
            m.leaves,
            m.tokens,
            m.root,
            now.factor_ppm,
            m.renderer,
            m.sent_tokens or None,
            m.voided,
            *_OPEN,
        ]

    def on_reply(self, placed: PlacedMutation, m: Reply) -> None:
        """Completes the call."""
        values = (m.status, m.final, m.tokens_in, m.tokens_cached, m.tokens_out, m.cost, m.latency)
        ended = (*values, m.tokens_written, *placed.sealed(m.aside), placed.position)
        assert len(ended) == len(_ENDED), "it replaces as much of the row as a reply says"
        made = self._made.get((placed.session, m.call))
        if made is None:
            self._replies.append((*ended, placed.session, m.call))
            return
        self._replaced(placed.session, m.call, made[-len(ended) :])
        made[-len(ended) :] = ended

    def _replaced(self, session: int, call: int, ended: Sequence[Any]) -> None:
        """Keeps a reply that is not the last."""
        *values, position = ended
        if position is not None:
            self.rows["replies"].append((session, position, call, *values))

    def flush(self) -> None:
        """Writes the calls made, and the replies to those made before."""
        self.rows["calls"].extend(map(tuple, self._made.values()))
        self._made.clear()
        replies, self._replies = self._replies, []
        last: dict[tuple[int, int], tuple[Any, ...]] = {}
        for *ended, session, call in replies:
            before = last.get((session, call)) or self.db.execute(_ENDS, (session, call)).fetchone()
            if before is None:  # the call is the parent's
                self._replaced(session, call, ended)
                continue
            self._replaced(session, call, before)
            last[session, call] = tuple(ended)
        super().flush()
        self.db.executemany(_REPLY, [(*ended, *of) for of, ended in last.items()])

    def forget(self) -> None:
        """Drops what is in force too."""
        super().forget()
        self._inforce.clear()
        self._made.clear()
        self._replies.clear()


_ENDED = (
    *("status", "final", "tokens_in", "tokens_cached", "tokens_out", "cost", "latency", "tokens_written"),
    *("aside", "aside_commitment", "replied"),
)
_OPEN = (int(Status.OPEN), 0, *[None] * (len(_ENDED) - 2))
assert columns(CallsProjector.schema["calls"]) == CallRow.__struct_fields__, (
    "a row of the table becomes a struct by place"
)
assert CallRow.__struct_fields__[-len(_ENDED) :] == _ENDED, "a reply is written over the end of its call's row"
assert columns(CallsProjector.schema["replies"])[3:] == _ENDED[:-1], (
    "a reply that is not the last keeps all but its position"
)
assert len(_OPEN) == len(_ENDED), "a call without a reply has a value for each field of one"
_ENDS = f"SELECT {', '.join(_ENDED)} FROM calls WHERE session = ? AND call = ?"
_REPLY = f"UPDATE calls SET {', '.join(f'{name} = ?' for name in _ENDED)} WHERE session = ? AND call = ?"


def calls_of(lane: Branch, position: int = NEVER) -> Iterator[CallRow]:
    """Every call a lane sees up to a position; a reply that came after a fork is none of the fork's."""
    stretches = lane.upto(position)
    others = _others(stretches, lane.db) if len(stretches) > 1 or position < NEVER else {}
    for stretch in reversed(stretches):
        rows = lane.db.execute(
            "SELECT * FROM calls WHERE session = ? AND position <= ? ORDER BY call",
            (stretch.session, stretch.high),
        )
        for row in rows:
            yield _seen(CallRow(*row), stretch.high, others)


def last_call(lane: Branch, position: int) -> CallRow | None:
    """The last call packed at or before a position."""
    stretch = lane.at(position)
    row = lane.db.execute(_LAST, (stretch.session, min(position, stretch.high))).fetchone()
    if row is None and stretch.call:  # the one in force where the stretch begins
        number = stretch.call
        stretch = next(s for s in lane.stretches if number > s.call)
        row = lane.db.execute(
            "SELECT * FROM calls WHERE session = ? AND call = ?", (stretch.session, number)
        ).fetchone()
    if row is None:
        return None
    inherited = stretch.session != lane.session
    others = _others(lane.stretches, lane.db, stretch.session, row[1]) if inherited else {}
    return _seen(CallRow(*row), stretch.high, others)


_NUMBERED = "SELECT * FROM calls WHERE session = ? AND call = ?"
_LAST = """SELECT * FROM calls INDEXED BY calls_position WHERE session = ? AND position <= ?
  ORDER BY position DESC LIMIT 1"""


Others = Mapping[int, tuple[Any, ...]]
"""By call, the last reply that a lane sees of those the call's own row does not hold."""


def _others(stretches: Sequence[BranchRange], db: apsw.Connection, writer: int = 0, call: int | None = None) -> Others:
    """Those of every call, or of one by its writer; a call of the lane's own session needs none at its head.

    Besides its writer only a fork that began at a call can answer it.
    """
    found: dict[int, tuple[Any, ...]] = {}
    for stretch in reversed(stretches):
        if call is None or call == stretch.call or stretch.session == writer:
            for number, *ended in db.execute(_REPLIES, (stretch.session, stretch.high, call, call)):
                found[number] = tuple(ended)
    return found


_REPLIES = f"""SELECT call, {", ".join(_ENDED[:-1])}, position FROM replies
  WHERE session = ? AND position <= ? AND (? IS NULL OR call = ?) ORDER BY position"""


def _seen(call: CallRow, high: int, others: Others) -> CallRow:
    """A call as a lane sees it, whose writer it sees up to a position: as its last reply says, else open."""
    other = others.get(call.call)
    own = call.replied if call.replied is not None and call.replied <= high else None
    if own is not None and (other is None or other[-1] < own):
        return call
    if call.replied is None and other is None:
        return call
    return msgspec.structs.replace(call, **dict(zip(_ENDED, other or _OPEN, strict=True)))


def before(lane: Branch, position: int) -> tuple[int | None, str | None, int | None, bytes | None] | None:
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


def factor(lane: Branch, position: int) -> int:
    """The token factor in force at a position, in parts per million."""
    for stretch in lane.upto(position):
        found = lane.db.execute(
            "SELECT factor_ppm FROM settings WHERE session = ? AND position <= ? ORDER BY position DESC LIMIT 1",
            (stretch.session, stretch.high),
        ).get
        if found is not None:
            return int(found)
    return 1_000_000
