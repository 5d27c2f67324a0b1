"""Rules for how long contents are kept, and what is due by them at a time; nothing is written here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from vmstore.core.address import page_name
from vmstore.core.decision import Holder
from vmstore.core.page import Origin
from vmstore.erasure.erase import Erasable, pages_where
from vmstore.erasure.plan import ErasureRequest
from vmstore.erasure.relations import Owned
from vmstore.errors import InputError
from vmstore.views.branch import NEVER, Branch
from vmstore.views.projectors.decisions import holders
from vmstore.views.reads.annotations import tagged

HOLD = "hold"  # the tag of a page that no rule takes
BY_HAND = frozenset((Holder.HAND, Holder.PLAN, Holder.PREFERENCE))
UNITS_US = {"h": 3_600_000_000, "d": 86_400_000_000, "w": 604_800_000_000, "y": 31_536_000_000_000}
_SPAN = re.compile(r"([1-9]\d{0,5})([hdwy])")


class RetentionRule(msgspec.Struct, frozen=True):
    """How long contents are kept, in microseconds: sessions after they were last used, or pages since they were made.

    `where` is a condition on PAGES and makes it a rule for pages; without it whole sessions go. With
    `user`, only sessions of that user are looked at.
    """

    name: str
    keep: int
    where: str | None = None
    user: str | None = None


class SparedPage(msgspec.Struct, frozen=True):
    """A session or page that a rule spares, and why."""

    rule: str
    session: str
    page: str | None
    why: str


class DueErasures(NamedTuple):
    """Contents that are due: cells for the eraser, names for people, and what is spared."""

    wanted: ErasureRequest
    sessions: list[str]
    pages: list[str]
    spared: list[SparedPage]


def span(text: str) -> int:
    """A time like `90d`, `12h`, `6w` or `2y` in microseconds; InputError where it is none."""
    found = _SPAN.fullmatch(text.strip()) if isinstance(text, str) else None
    if found is None:
        raise InputError(
            f"{text!r:.40} is no time to keep something; give a number and h, d, w or y, like 90d", code="not-a-period"
        )
    return int(found[1]) * UNITS_US[found[2]]


def words(keep: int) -> str:
    """A time to keep something as `span` reads it, in the largest unit that is exact."""
    unit = next(unit for unit in ("y", "w", "d", "h") if keep % UNITS_US[unit] == 0)
    return f"{keep // UNITS_US[unit]}{unit}"


def due(store: Erasable, rules: Iterable[RetentionRule], now: int) -> DueErasures:
    """The contents that rules take at a time; expects the views at the log's end.

    A session goes when it and every fork of it were last used before, and no page of it is held: tagged
    `hold`, or pinned by hand. A page goes when it was made before and is not held.
    """
    looking = _Looking(store)
    for rule in rules:
        if rule.where is None:
            looking.sessions(rule, now - rule.keep)
        else:
            looking.pages(rule, now - rule.keep)
    wanted = ErasureRequest(frozenset(looking.owned), frozenset(looking.keys))
    names = [looking.name(key) for key in sorted(looking.keys)]
    pages = [f"{looking.name(session)}/{page_name(page)}" for session, page in sorted(looking.owned)]
    return DueErasures(wanted, names, pages, looking.spared)


class _Looking:
    """One look at a namespace by its rules."""

    def __init__(self, store: Erasable) -> None:
        self._store = store
        self._db = store._ns.views
        self.keys: set[int] = set()
        self.owned: set[Owned] = set()
        self.spared: list[SparedPage] = []
        self._held: dict[int, set[Owned]] = {}

    def name(self, session: int) -> str:
        """A session's name."""
        return str(self._db.execute("SELECT name FROM sessions WHERE session = ?", (session,)).get)

    def sessions(self, rule: RetentionRule, before: int) -> None:
        """Takes the sessions that were last used before a time."""
        rows: list[Any] = self._db.execute(_USED, (rule.user, rule.user)).fetchall()
        for session, used in rows:
            if used >= before:
                continue
            busy = [fork for fork in self._forks(session) if self._used(fork) >= before]
            pages = sorted(page for fork in (session, *self._forks(session)) for _, page in self.held(fork))
            if busy:
                self.spared.append(
                    SparedPage(rule.name, self.name(session), None, f"its fork {self.name(busy[0])} is used")
                )
            elif pages:
                self.spared.append(
                    SparedPage(rule.name, self.name(session), page_name(pages[0]), "somebody holds the page")
                )
            else:
                self.keys.add(session)

    def pages(self, rule: RetentionRule, before: int) -> None:
        """Takes the pages for which a condition holds and that were made before a time."""
        of_user = {session for (session,) in self._db.execute(_OF_USER, (rule.user, rule.user))}
        assert rule.where is not None, "a rule without a condition is about sessions"
        for name, page in pages_where(self._store, rule.where):
            lane = self._store.session(name)._lane()
            number = int(str(page)[1:])
            session = lane.owner(number)
            made: Any = self._db.execute(_MADE, (session, number)).get
            if session not in of_user or made >= before:
                continue
            if any((session, number) in self.held(fork) for fork in (session, *self._forks(session))):
                self.spared.append(SparedPage(rule.name, name, page_name(number), "somebody holds the page"))
            else:
                self.owned.add((session, number))

    def held(self, session: int) -> set[Owned]:
        """The pages that somebody holds in a session, by who made them."""
        if session not in self._held:
            lane = Branch(self._db, session)
            pages = [page for stretch in lane.stretches for (page,) in self._db.execute(_PINNED, (stretch.session,))]
            pinned = {page for page, by in holders(lane, NEVER, pages).items() if BY_HAND.intersection(by)}
            self._held[session] = {(lane.owner(page), page) for page in pinned | tagged(lane, NEVER, HOLD)}
        return self._held[session]

    def _forks(self, session: int) -> list[int]:
        return [fork for (fork,) in self._db.execute(_FORKS, (session, int(Origin.FORK)))]

    def _used(self, session: int) -> int:
        used: Any = self._db.execute("SELECT max(at) FROM commits WHERE session = ?", (session,)).get
        return int(used)


_OF_USER = """WITH RECURSIVE whose(session, user, parent) AS (
  SELECT session, user, parent FROM sessions
  UNION SELECT w.session, s.user, s.parent FROM whose w JOIN sessions s ON s.session = w.parent WHERE w.user IS NULL)
SELECT DISTINCT session FROM whose WHERE ? IS NULL OR user = ?"""
_USED = f"""SELECT s.session, max(c.at) FROM sessions s JOIN commits c ON c.session = s.session
  WHERE s.hidden = 0 AND s.session IN ({_OF_USER}) GROUP BY s.session ORDER BY s.session"""
_FORKS = """WITH RECURSIVE theirs(session) AS (
  SELECT session FROM sessions WHERE parent = ?1 AND origin = ?2
  UNION SELECT s.session FROM theirs JOIN sessions s ON s.parent = theirs.session WHERE s.origin = ?2)
SELECT session FROM theirs"""
_MADE = "SELECT at FROM pages WHERE session = ? AND page = ?"
_PINNED = "SELECT DISTINCT page FROM pins WHERE session = ?"
