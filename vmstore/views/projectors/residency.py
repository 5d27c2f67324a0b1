"""The residency view: which pages were in L0 from when to when, at which level and rank.

Closed residencies lie in `spans`, clustered by the bit length of their duration, so that a
moment is found by one short range in each class whatever the length of the log; open ones lie
in `residents`. A fork takes a copy of what it inherits at its first pack, and not before.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from enum import Enum
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import apsw
import msgspec

from vmstore.core.page import Origin
from vmstore.views.branch import Branch
from vmstore.views.projector import PlacedMutation, Projector

if TYPE_CHECKING:
    from vmstore.core.mutation import Open, Pack


class ResidentRow(NamedTuple):
    """A page in L0: the position of its content, level and rank, and since when it stayed."""

    page: int
    content: int
    level: int
    rank: int
    since: int


Stay = tuple[int, int, int, int, int]
"""An open stay of a page: from which position, content, level, rank, since when unbroken."""

NOT_STARTED = -1


class OpenStays(msgspec.Struct):
    """The open stays of one session by page, and how they differ from the table's.

    Of those that began up to `stored` the table holds a row; -1 before the session's first pack.
    """

    stays: dict[int, Stay]
    stored: int = NOT_STARTED
    new: set[int] = msgspec.field(default_factory=set)
    gone: list[int] = msgspec.field(default_factory=list)


class ResidencyProjector(Projector):
    """Intervals [f, t) of pages in L0; `since` is where an unbroken stay began."""

    name = "residency"
    schema: ClassVar = {
        "spans": """session INTEGER, k INTEGER, f INTEGER, t INTEGER, page INTEGER, content INTEGER, level INTEGER,
            rank INTEGER, since INTEGER, PRIMARY KEY(session, k, f, t, page)""",
        "classes": "session INTEGER, k INTEGER, PRIMARY KEY(session, k)",
        "residents": """session INTEGER, page INTEGER, f INTEGER, content INTEGER, level INTEGER, rank INTEGER,
            since INTEGER, PRIMARY KEY(session, page)""",
        "starts": "session INTEGER PRIMARY KEY, position INTEGER",
    }
    indexes = ("CREATE INDEX spans_page ON spans(session, page)",)

    inserts: ClassVar = {"residents": "INSERT OR REPLACE", "classes": "INSERT OR IGNORE"}

    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self._here: dict[int, OpenStays] = {}
        self._moved: dict[int, OpenStays] = {}
        self._classes: set[tuple[int, int]] = set()
        self._spans = self.rows["spans"]
        self.size = 0  # open stays at hand

    def on_open(self, placed: PlacedMutation, m: Open) -> None:
        """A session that inherits nothing starts with nothing."""
        if m.origin != Origin.FORK:
            self._here[placed.session] = OpenStays({})

    def on_pack(self, placed: PlacedMutation, m: Pack) -> None:
        """Closes what left or changed and opens what entered."""
        session, position = placed.session, placed.position
        here = self._here.get(session) or self._load(session, position)
        if here.stored == NOT_STARTED:
            self._start(here, session, position)
        self._moved[session] = here
        stays, new = here.stays, here.new
        for page in m.left:
            stay = stays.pop(page, None)
            if stay is not None:
                self._close(here, session, page, stay, position)
                new.discard(page)
        for page, content, level, rank in m.entered:
            stay = stays.get(page)
            since = position if stay is None else self._close(here, session, page, stay, position)
            stays[page] = (position, content, level, rank, since)
            new.add(page)
        self.size += len(m.entered) - len(m.left)

    def _start(self, here: OpenStays, session: int, position: int) -> None:
        assert here.stored == NOT_STARTED, "a session packs for the first time once"
        self.rows["starts"].append((session, position))
        here.stored = 0

    def _load(self, session: int, position: int) -> OpenStays:
        """The open stays of a session; a fork takes a copy of what it inherits, at its first pack."""
        here = self._here[session] = OpenStays({})
        if self.db.execute("SELECT 1 FROM starts WHERE session = ?", (session,)).get:
            for page, *stay in self.db.execute(_OPEN, (session,)):
                here.stays[page] = tuple(stay)
            here.stored = position
        else:
            self._start(here, session, position)
            for f, r in _resident(self.db, Branch(self.db, session), position - 1):
                here.stays[r.page] = (f, r.content, r.level, r.rank, r.since)
            here.new.update(here.stays)
        self.size += len(here.stays)
        return here

    def _close(self, here: OpenStays, session: int, page: int, stay: Stay, position: int) -> int:
        """Ends a stay at a position; where it was unbroken since."""
        f, content, level, rank, since = stay
        if f <= here.stored:
            here.gone.append(page)
        k = (position - f).bit_length()
        if (session, k) not in self._classes:
            self._classes.add((session, k))
            self.rows["classes"].append((session, k))
        self._spans.append((session, k, f, position, page, content, level, rank, since))
        return since

    def flush(self) -> None:
        """Writes the stays that ended, and what began of those that did not."""
        for session, here in self._moved.items():
            assert here.stored != NOT_STARTED, "what moved began with a pack"
            assert here.new <= here.stays.keys(), "what is written as open was not closed since"
            gone = [(session, page) for page in here.gone if page not in here.stays]
            self.db.executemany("DELETE FROM residents WHERE session = ? AND page = ?", gone)
            self.rows["residents"] += [(session, page, *here.stays[page]) for page in here.new]
            here.stored = max((here.stays[page][0] for page in here.new), default=here.stored)
            here.new.clear()
            here.gone.clear()
        self._moved.clear()
        super().flush()

    def forget(self) -> None:
        """Drops every open stay."""
        super().forget()
        self._here.clear()
        self._moved.clear()
        self._classes.clear()
        self.size = 0


_OPEN = "SELECT page, f, content, level, rank, since FROM residents WHERE session = ?"


class Return(NamedTuple):
    """A page that came back to L0 at a position, out of it since another; the content it showed."""

    position: int
    page: int
    out_since: int
    content: int


def returns(lane: Branch, position: int) -> list[Return]:
    """Every time a page came back to L0 after it had left, up to a position, in order."""
    return [Return(*row) for row in lane.db.execute(_RETURNS, _seen_by(lane, position))]


def leavings(lane: Branch, position: int) -> list[int]:
    """The positions at which pages left L0, up to a position; one entry a page and departure."""
    return [left for (left,) in lane.db.execute(_LEAVINGS, _seen_by(lane, position))]


class MoveWay(Enum):
    """The ways of a move: into the prompt, out of it, or within."""

    CAME = "came"
    LEFT = "left"
    STAYED = "stayed"


Change = tuple[int, int, int | None, int | None]
"""A pack, a page that it moves, and the positions of the content that was shown before and is after; None for none."""


def changes(lane: Branch, position: int, ways: Container[MoveWay]) -> list[Change]:
    """The moves by each pack up to a position that go some ways, in no order."""
    lanes = _seen_by(lane, position)
    return [row for way, sql in _CHANGES.items() if way in ways for row in lane.db.execute(sql, lanes)]


def _seen_by(lane: Branch, position: int) -> dict[str, str]:
    """The stretches of a lane, as the statements over its stays take them."""
    stretches = ",".join(f"[{stretch.session},{stretch.high}]" for stretch in lane.upto(position))
    return {"lanes": f"[{stretches}]"}


def last_entries(lane: Branch, position: int) -> dict[int, int]:
    """The last position at which each page entered L0 or changed there, up to a position."""
    return {page: f for f, page in sorted(stays(lane, position))}


def entered_after(lane: Branch, position: int, after: int) -> set[int]:
    """The pages that entered L0 or changed there after a position and up to another, found by that."""
    found: set[int] = set()
    for stretch in lane.upto(position):
        begun = {"s": stretch.session, "p": after, "q": stretch.high}
        found.update(page for (page,) in lane.db.execute(_ENTERED, begun))
    return found


def stays(
    lane: Branch, position: int, pages: Iterable[int] | None = None
) -> dict[tuple[int, int], tuple[int | None, int, int, int]]:
    """Every stay begun up to a position, or those of some pages, by its beginning and page.

    Each with its end, its content, since when it was unbroken and its rank. What a session inherits it may
    hold again in rows of its own, which know its end there.
    """
    found: dict[tuple[int, int], tuple[int | None, int, int, int]] = {}
    about = {} if pages is None else {"pages": f"[{','.join(map(str, pages))}]"}
    sql = _BEGUN if pages is None else _BEGUN_OF
    for stretch in lane.upto(position):
        for f, page, t, *rest in lane.db.execute(sql, {"s": stretch.session, "q": stretch.high, **about}):
            ended = t if t is not None and t <= stretch.high else None
            if found.get((f, page), (None,))[0] is None:
                found[f, page] = (ended, *rest)
    return found


def residents_at(lane: Branch, position: int) -> list[tuple[int, int, int, int]]:
    """Rank, page, since when it stayed and position of the content of each page in L0 at a position, in order."""
    knows = knower(lane, position)
    return sorted(lane.db.execute(_ORDER, knows), key=itemgetter(0)) if knows else []


def resident_at(lane: Branch, position: int) -> list[ResidentRow]:
    """The pages in L0 at a position, in order."""
    return sorted((r for _, r in _resident(lane.db, lane, position)), key=lambda r: r.rank)


def _resident(db: apsw.Connection, lane: Branch, position: int) -> Iterator[tuple[int, ResidentRow]]:
    """(from, resident) of every page in L0 at a position."""
    knows = knower(lane, position)
    for f, *rest in db.execute(_AT, knows) if knows else ():
        yield f, ResidentRow(*rest)


def knower(lane: Branch, position: int) -> dict[str, int] | None:
    """The session whose rows state the contents of L0 at a position, and that position; None before the first pack."""
    for stretch in lane.upto(position):
        start = lane.db.execute("SELECT position FROM starts WHERE session = ?", (stretch.session,)).get
        if start is not None and start <= stretch.high:
            return {"s": stretch.session, "q": stretch.high}
    return None


def _at(columns: str) -> str:
    """The query for the residencies that hold at a position: one short range of each class, and what is open."""
    return f"""SELECT {columns}
  FROM classes CROSS JOIN spans ON spans.session = :s AND spans.k = classes.k
   AND spans.f > :q - (1 << classes.k) AND spans.f <= :q AND spans.t > :q
 WHERE classes.session = :s
UNION ALL SELECT {columns} FROM residents WHERE session = :s AND f <= :q"""


_BEGUN = """SELECT f, page, t, content, since, rank FROM spans WHERE session = :s AND f <= :q
  UNION ALL SELECT f, page, NULL, content, since, rank FROM residents WHERE session = :s AND f <= :q"""
_BEGUN_OF = """SELECT f, page, t, content, since, rank FROM json_each(:pages) one
  CROSS JOIN spans INDEXED BY spans_page ON session = :s AND page = one.value AND f <= :q
  UNION ALL SELECT f, page, NULL, content, since, rank FROM json_each(:pages) one
  CROSS JOIN residents ON session = :s AND page = one.value AND f <= :q"""
_ENTERED = """SELECT page FROM classes CROSS JOIN spans
   ON spans.session = :s AND spans.k = classes.k AND spans.f > :p AND spans.f <= :q WHERE classes.session = :s
  UNION SELECT page FROM residents WHERE session = :s AND f > :p AND f <= :q"""
_AT = _at("f, page, content, level, rank, since")
_ORDER = _at("rank, page, since, content")


def _in_turn(beside: str) -> str:
    """The stays of each page in turn, with values of the one before or the one after."""
    of = "ON x.session = l.session AND x.f <= l.high"
    return f"""WITH l(session, high) AS MATERIALIZED (SELECT value ->> 0, value ->> 1 FROM json_each(:lanes)),
 run AS (SELECT page, f, t, content, since, rank, {beside} FROM (
  SELECT page, f, max(t) AS t, content, since, rank FROM (
   SELECT x.page AS page, x.f AS f, iif(x.t <= l.high, x.t, NULL) AS t, x.content AS content, x.since AS since,
    x.rank AS rank FROM l CROSS JOIN spans x {of}
   UNION ALL SELECT x.page, x.f, NULL, x.content, x.since, x.rank FROM l CROSS JOIN residents x {of}) GROUP BY page, f)
  WINDOW w AS (PARTITION BY page ORDER BY f))"""


_GONE, _NEXT = _in_turn("lag(t) OVER w AS gone"), _in_turn("lead(f) OVER w AS next")
_WAS = _in_turn("lag(t) OVER w AS gone, lag(content) OVER w AS was, lag(rank) OVER w AS stood")
_RETURNS = f"{_GONE} SELECT f, page, gone, content FROM run WHERE f = since AND gone IS NOT NULL ORDER BY f, page"
_LEAVINGS = f"{_NEXT} SELECT t FROM run WHERE t IS NOT NULL AND next IS NOT t ORDER BY t"
_CHANGES = {
    MoveWay.CAME: f"{_GONE} SELECT f, page, NULL, content FROM run WHERE gone IS NOT f",
    MoveWay.LEFT: f"{_NEXT} SELECT t, page, content, NULL FROM run WHERE t IS NOT NULL AND next IS NOT t",
    MoveWay.STAYED: f"{_WAS} SELECT f, page, was, content FROM run WHERE gone IS f AND (was, stood) <> (content, rank)",
}
