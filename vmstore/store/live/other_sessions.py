"""What a user's other sessions hold as claims and summaries, ranked by its words as the pre-pass ranks a session's own.

It is kept in memory, by user, and follows the log; an erasure anywhere has all of it read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vmstore.core.address import Reference, page_name
from vmstore.core.erasure import Gone, gone
from vmstore.core.page import PageType, Standing
from vmstore.namespace.namespace import Namespace
from vmstore.views.branch import NEVER, Lane
from vmstore.views.stored_cells import read_cells
from vmstore.vm.recall.postings import Postings

FEW = 8  # copied for one message at most
CUT = 0.4  # of the best score: what has less is not copied
TERMS_MIN = 2  # of what is asked, where it asks with more than that


class Elsewhere:
    """The claims and summaries of all sessions of one user."""

    def __init__(self, ns: Namespace, user: str) -> None:
        self._ns = ns
        self._user = user
        self._forget(-1)

    def _forget(self, erased: int) -> None:
        self._erased = erased
        self._ends: dict[int, int] = {}  # of each session the position it was read to
        self._postings = Postings()
        self._places: list[tuple[int, int, str]] = [(0, 0, "")]  # session, page, and the session's name

    def fitting(self, key: int, asked: dict[str, float], least: int = TERMS_MIN) -> list[str]:
        """The addresses of those that answer some terms best and that hold, but for those of a session itself."""
        with self._ns.asking():
            self._follow()
            own = {stretch.session for stretch in Lane(self._ns.views, key).upto(NEVER)}
            found = self._postings.matches(asked, lambda number: self._places[number][0] not in own)
            ranked = sorted(found.items(), key=lambda item: (-item[1].score, -item[0]))
            least = min(least, len(asked))
            best = ranked[0][1].score if ranked else 0.0
            near = [n for n, match in ranked if match.score >= CUT * best and len(set(match.terms)) >= least]
            return [self._address(number) for number in near if self._holds(number)][:FEW]

    def _address(self, number: int) -> str:
        _, page, name = self._places[number]
        return str(Reference(namespace=self._ns.name, session=name, page=page_name(page)))

    def _holds(self, number: int) -> bool:
        """Whether nobody took the place of a page, or took it back."""
        session, page, _ = self._places[number]
        status: Any = self._ns.views.execute(_STATUS, (session, page)).get
        return status not in (Standing.ABANDONED, Standing.SUPERSEDED)

    def _follow(self) -> None:
        if (erased := self._ns.projection.last_erasure) != self._erased:
            self._forget(erased)
        for session, end, name in list(self._ns.views.execute(_SESSIONS, (self._user,))):
            before = self._ends.get(session, 0)
            if end > before:
                self._read(session, name, before)
                self._ends[session] = end

    def _read(self, session: int, name: str, after: int) -> None:
        kinds = (int(PageType.CLAIM), int(PageType.SUMMARY))
        rows = list(self._ns.views.execute(_PAGES, (session, after, *kinds)))
        for page, text in self._texts(rows):
            self._postings.add(len(self._places), text)
            self._places.append((session, page, name))

    def _texts(self, rows: list[Any]) -> Iterator[tuple[int, str]]:
        contents = read_cells(self._ns.log, self._ns.views, {cell: sealed for _, cell, sealed in rows}, gone)
        for page, cell, _ in rows:
            if not isinstance(contents[cell], Gone):
                yield page, contents[cell].decode("utf-8", "replace")


_SESSIONS = "SELECT session, position, name FROM sessions WHERE user = ? AND hidden = 0 ORDER BY session"
# A copy has its origin in its labels; what it is a copy of is found where it was made.
_PAGES = """SELECT page, cell, commitment FROM pages WHERE session = ? AND page > ? AND type IN (?, ?)
  AND cell IS NOT NULL AND (labels IS NULL OR labels NOT LIKE '%"origin"%') ORDER BY page"""
_STATUS = """SELECT status FROM notes WHERE session = ? AND page = ? AND status IS NOT NULL
  ORDER BY position DESC LIMIT 1"""
