"""Lookups that heads make in the views."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw

from vmstore.core.mutation import AnyMutation, CellRef, Open
from vmstore.engine.head import GateHead
from vmstore.engine.unprojected_tail import OPAQUE, TailContent, UnprojectedTail
from vmstore.errors import RefusedError
from vmstore.log.port import Log
from vmstore.views.branch import NEVER, Branch
from vmstore.views.log_reader import commit_at
from vmstore.views.projectors.decisions import in_force
from vmstore.views.projectors.redactions import policy_at
from vmstore.views.projectors.residency import ResidentRow, resident_at
from vmstore.views.reads.context import contents

assert ResidentRow._fields[:4] == ("page", "content", "level", "rank"), "the beginning of a resident is its `Residence`"


class ViewLookups:
    """Answers from the views, along a session's chain of forks.

    Lives until its head is settled again, and nothing it found changes before that, so it asks once.
    """

    def __init__(
        self, db: apsw.Connection, session: int, upto: int = NEVER, near: UnprojectedTail | None = None
    ) -> None:
        self.db = db
        self.near = UnprojectedTail(NEVER) if near is None else near  # the last that the views hold, at hand
        self.lane = Branch(db, session)
        self.upto = upto
        self._versions: dict[int, int] = {}
        self._messages: set[int] = set()
        self._contents: dict[int, TailContent] = {}  # of the working set, looked up at once
        self._cells: dict[int, int] = {}
        self._uids: dict[int, bytes] = {}

    def prepare(self, residents: Iterable[ResidentRow]) -> None:
        """Looks up what a working set shows, all of it at once."""
        pages = {resident.content: resident.page for resident in residents}
        found = contents(self.lane, pages)
        for position, page in pages.items():
            *_, version, level, tokens, _, _, commitment = found[position]
            self._contents[position] = TailContent(page, version, level, tokens, commitment or OPAQUE)

    def inherited(self) -> ViewLookups:
        """The same, blind to what the session itself wrote: a fork as it began."""
        self.upto = self.lane.stretches[0].low
        return self

    def content(self, position: int) -> TailContent | None:
        """The content made at a position."""
        if position > self.upto:
            return None
        if position > self.near.start:
            return self.near.content(position)
        if position in self._contents:
            return self._contents[position]
        row = self.db.execute(
            "SELECT page, version, level, tokens, commitment FROM versions WHERE session = ? AND position = ?",
            (self.lane.owner(position), position),
        ).fetchone()
        return None if row is None else TailContent(row[0], row[1], row[2], row[3], row[4] or OPAQUE)

    def version(self, page: int) -> int | None:
        """The last version of a page."""
        if (found := self.near.version(page)) is not None:
            return found
        if page in self._versions:
            return self._versions[page]
        for stretch in self.lane.upto(self.upto):
            found = self.db.execute(
                "SELECT max(version) FROM versions WHERE session = ? AND page = ? AND position <= ?",
                (stretch.session, page, stretch.high),
            ).get
            if found is not None:
                self._versions[page] = int(found)
                return self._versions[page]
        return None

    def message(self, message: int) -> bool:
        """Whether there is such a message."""
        if message > self.upto or message in self._messages:
            return message <= self.upto
        if message > self.near.start:
            return self.near.message(message)
        row = self.db.execute(
            "SELECT 1 FROM messages WHERE session = ? AND message = ?", (self.lane.owner(message), message)
        ).fetchone()
        if row is not None:
            self._messages.add(message)
        return row is not None

    def made(self, position: int) -> AnyMutation | None:
        """The mutation at a position, where it is at hand."""
        return self.near.made(position)

    def skeleton(self, message: int) -> CellRef | None:
        """The cell of a message's skeleton, where it is cached."""
        return self.near.skeleton(message)

    def lies(self, position: int) -> CellRef | None:
        """The cell of the content made at a position, where it is cached."""
        return self.near.lies(position)

    def cells(self, position: int) -> int:
        """How many cells the commit that holds a position brought."""
        if position not in self._cells:
            found = self.db.execute(
                "SELECT cells FROM commits WHERE session = ? AND last >= ? ORDER BY last LIMIT 1",
                (self.lane.owner(position), position),
            ).get
            self._cells[position] = 0 if found is None else int(found)
        return self._cells[position]

    def uid(self, page: int) -> bytes:
        """The uid of the session that created a page."""
        owner = self.lane.owner(page)
        if owner not in self._uids:
            found = self.db.execute("SELECT uid FROM sessions WHERE session = ?", (owner,)).get
            assert isinstance(found, bytes), "a lane's sessions are in the view"
            self._uids[owner] = found
        return self._uids[owner]


def load_head(db: apsw.Connection, session: int, near: GateHead | None = None) -> GateHead | None:
    """A session's head as the views hold it; None where they hold no such session.

    What it has in its working set as one `near` it has is taken from that: a head of a past of its own.
    """
    sql = "SELECT uid, position, hash, turns, calls, hidden FROM sessions WHERE session = ?"
    row = db.execute(sql, (session,)).fetchone()
    if row is None:
        return None
    lookups = ViewLookups(db, session)
    head = GateHead(row[0], lookups)
    head.session, head.opened = session, True
    head.begins = lookups.lane.stretches[0].low
    head.tip = db.execute(_TIP, (session,)).get or 0
    position, head.hash, head.turn, head.call = row[1:5]
    head.charter = row[5] == Open.CHARTER
    head.redaction = policy_at(lookups.lane)
    head.live = in_force(lookups.lane, NEVER) is not None
    head.stand(position)
    residents = resident_at(lookups.lane, head.position)
    if near is not None:
        head.stand_as(near)
    entered = [resident for resident in residents if head.residence(resident.page) != resident[:4]]
    left = {residence[0] for residence in head.order} - {resident.page for resident in residents}
    lookups.prepare(entered)
    head.enter((resident[:4] for resident in entered), sorted(left))
    return head


def parent_uid(db: apsw.Connection, session: int) -> bytes:
    """The uid of a session that another one comes of; RefusedError where nothing may come of it."""
    sql = "SELECT uid, hidden FROM sessions WHERE session = ?"
    found: Any = db.execute(sql, (session,)).fetchone()
    if found[1] == Open.CHARTER:
        raise RefusedError(
            "nothing can come of the namespace's own session (rule charter_stands_apart)", code="charter_stands_apart"
        )
    return bytes(found[0])


def fork_hash(db: apsw.Connection, log: Log, session: int, position: int) -> bytes:
    """The hash of the commit that ends at a position, which a fork starts from; RefusedError where none does."""
    owner = ViewLookups(db, session).lane.owner(position)
    row = db.execute(
        "SELECT last, ordinal FROM commits WHERE session = ? AND last >= ? ORDER BY last LIMIT 1",
        (owner, position),
    ).fetchone()
    if row is None or row[0] != position:
        raise RefusedError(
            f"position {position} is no commit end, so nothing can fork there (rule fork_stands_on_a_commit_end); "
            + (f"the next one is {row[0]}" if row else "the session ends before it"),
            code="fork_stands_on_a_commit_end",
        )
    return commit_at(log, row[1]).hash


_TIP = "SELECT ordinal FROM commits WHERE session = ? ORDER BY last DESC LIMIT 1"
