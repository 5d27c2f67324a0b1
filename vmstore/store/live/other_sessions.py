"""Ranks claims and summaries of a user's other sessions for a message, as the pre-pass ranks a session's own.

It is kept in memory, by user, and follows the log; an erasure anywhere has all of it read again.
What is found follows from the log alone, not from when it was read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from vmstore.core.address import Address, page_name
from vmstore.core.erasure import ErasedContent, gone
from vmstore.core.page import PageType, Standing
from vmstore.namespace.namespace import Namespace
from vmstore.views.branch import NEVER, Branch
from vmstore.views.stored_cells import read_cells
from vmstore.vm.recall.postings import Postings

FEW = 8  # copied for one message at most
CUT = 0.4  # of the best score: what has less is not copied
Place = tuple[int, int]  # session, page
TERMS_MIN = 2  # of what is asked, where it asks with more than that


class OtherSessions:
    """The claims and summaries of all sessions of one user."""

    def __init__(self, ns: Namespace, user: str) -> None:
        self._ns = ns
        self._user = user
        self._forget(-1)

    def _forget(self, erased: int) -> None:
        self._erased = erased
        self._ends: dict[int, int] = {}  # of each session the position it was read to
        self._names: dict[int, str] = {}  # of each session that is there
        self._postings = Postings()
        self._places: list[Place] = [(0, 0)]
        self._numbers: dict[Place, int] = {}

    def fitting(self, key: int, asked: dict[str, float], least: int = TERMS_MIN) -> list[str]:
        """The addresses of those that answer some terms best and that hold, but for those of a session itself."""
        with self._ns.asking():
            self._follow()
            own = {stretch.session for stretch in Branch(self._ns.views, key).upto(NEVER)}
            found = self._postings.matches(asked, lambda number: self._places[number][0] not in own)
            ranked = sorted(found.items(), key=lambda item: (item[1].score, self._places[item[0]]), reverse=True)
            least = min(least, len(asked))
            best = ranked[0][1].score if ranked else 0.0
            near = [n for n, match in ranked if match.score >= CUT * best and len(set(match.terms)) >= least]
            return [self._address(number) for number in near if self._holds(number)][:FEW]

    def _address(self, number: int) -> str:
        session, page = self._places[number]
        return str(Address(namespace=self._ns.name, session=self._names[session], page=page_name(page)))

    def _holds(self, number: int) -> bool:
        """Whether nobody took the place of a page, or took it back."""
        status: Any = self._ns.views.execute(_STATUS, self._places[number]).get
        return status not in (Standing.ABANDONED, Standing.SUPERSEDED)

    def _follow(self) -> None:
        if (erased := self._ns.projection.last_erasure) != self._erased:
            self._forget(erased)
        rows = list(self._ns.views.execute(_SESSIONS, (self._user,)))
        self._names = {session: name for session, _, name in rows}
        for session in self._ends.keys() - self._names.keys():
            del self._ends[session]
            self._postings.drop(number for number, place in enumerate(self._places) if place[0] == session)
        for session, end, _ in rows:
            before = self._ends.get(session, 0)
            if end > before:
                self._read(session, before)
                self._ends[session] = end

    def _read(self, session: int, after: int) -> None:
        """Reads what came to a session after a position, and what says something else since."""
        kinds = (int(PageType.CLAIM), int(PageType.SUMMARY))
        rows = [row for sql in (_PAGES, _CHANGES) for row in self._ns.views.execute(sql, (session, after, *kinds))]
        for page, text in self._texts({row[0]: row for row in rows}.values()):
            number = self._numbers.setdefault((session, page), len(self._places))
            if number == len(self._places):
                self._places.append((session, page))
            self._postings.add(number, text)

    def _texts(self, rows: Collection[Any]) -> Iterator[tuple[int, str]]:
        contents = read_cells(self._ns.log, self._ns.views, {cell: sealed for _, cell, sealed in rows}, gone)
        for page, cell, _ in rows:
            if not isinstance(contents[cell], ErasedContent):
                yield page, contents[cell].decode("utf-8", "replace")


_SESSIONS = "SELECT session, position, name FROM sessions WHERE user = ? AND hidden = 0 ORDER BY session"
# A copy has its origin in its labels; what it is a copy of is found where it was made.
_PAGES = """SELECT page, cell, commitment FROM pages WHERE session = ? AND page > ? AND type IN (?, ?)
  AND cell IS NOT NULL AND (labels IS NULL OR labels NOT LIKE '%"origin"%') ORDER BY page"""
_CHANGES = """SELECT page, changes.cell, changes.commitment FROM changes JOIN pages USING (session, page)
  WHERE session = ? AND position > ? AND type IN (?, ?) AND level = 0
  AND changes.cell IS NOT NULL AND (labels IS NULL OR labels NOT LIKE '%"origin"%') ORDER BY position"""
_STATUS = """SELECT status FROM notes WHERE session = ? AND page = ? AND status IS NOT NULL
  ORDER BY position DESC LIMIT 1"""
