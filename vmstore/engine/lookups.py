"""What heads ask of the views."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from vmstore.engine.head import OPAQUE, Content, Head
from vmstore.views.context import contents
from vmstore.views.lane import NEVER, Lane
from vmstore.views.residency import Resident, resident_at


class ViewLookups:
    """Answers from the views, along a session's chain of forks."""

    def __init__(self, db: apsw.Connection, session: int) -> None:
        self.db = db
        self.lane = Lane(db, session)
        self.upto = NEVER
        self._contents: dict[int, Content] = {}  # of the working set, looked up at once
        self._uids: dict[int, bytes] = {}

    def prepare(self, residents: Iterable[Resident]) -> None:
        """Looks up what a working set shows, all of it at once."""
        pages = {resident.content: resident.page for resident in residents}
        found = contents(self.lane, pages)
        for position, page in pages.items():
            *_, version, level, tokens, _, _, commitment = found[position]
            self._contents[position] = Content(page, version, level, tokens, commitment or OPAQUE)

    def inherited(self) -> ViewLookups:
        """The same, blind to what the session itself wrote: a fork as it began."""
        self.upto = self.lane.stretches[0].low
        return self

    def content(self, position: int) -> Content | None:
        """The content made at a position."""
        if position > self.upto:
            return None
        if position in self._contents:
            return self._contents[position]
        row = self.db.execute(
            "SELECT page, version, level, tokens, commitment FROM versions WHERE session = ? AND position = ?",
            (self.lane.owner(position), position),
        ).fetchone()
        return None if row is None else Content(row[0], row[1], row[2], row[3], row[4] or OPAQUE)

    def version(self, page: int) -> int | None:
        """The last version of a page."""
        for stretch in self.lane.upto(self.upto):
            found = self.db.execute(
                "SELECT max(version) FROM versions WHERE session = ? AND page = ? AND position <= ?",
                (stretch.session, page, stretch.high),
            ).get
            if found is not None:
                return int(found)
        return None

    def message(self, message: int) -> bool:
        """Whether there is such a message."""
        if message > self.upto:
            return False
        row = self.db.execute(
            "SELECT 1 FROM messages WHERE session = ? AND message = ?", (self.lane.owner(message), message)
        ).fetchone()
        return row is not None

    def cells(self, position: int) -> int:
        """How many cells the commit that holds a position brought."""
        found = self.db.execute(
            "SELECT cells FROM commits WHERE session = ? AND last >= ? ORDER BY last LIMIT 1",
            (self.lane.owner(position), position),
        ).get
        return 0 if found is None else int(found)

    def uid(self, page: int) -> bytes:
        """The uid of the session that created a page."""
        owner = self.lane.owner(page)
        if owner not in self._uids:
            found = self.db.execute("SELECT uid FROM sessions WHERE session = ?", (owner,)).get
            assert isinstance(found, bytes), "a lane's sessions are in the view"
            self._uids[owner] = found
        return self._uids[owner]


def load_head(db: apsw.Connection, session: int, hash_: bytes, position: int) -> Head:
    """A session's head as the views hold it."""
    uid, turns, calls = db.execute("SELECT uid, turns, calls FROM sessions WHERE session = ?", (session,)).get
    lookups = ViewLookups(db, session)
    head = Head(uid, lookups)
    head.session, head.position, head.hash, head.opened = session, position, hash_, True
    head.turn, head.call = turns, calls
    residents = resident_at(lookups.lane, position)
    lookups.prepare(residents)
    head.restore(r[:4] for r in residents)
    return head
