"""The decisions view: what a kernel was asked about pages and what it decided, with the reasons; who holds them."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import apsw

from vmstore.core.decision import (
    Cite,
    Evict,
    FaultDenied,
    FaultIn,
    Pin,
    Prefetch,
    Pressure,
    Recall,
    Reference,
    Search,
    Segment,
    Settings,
    Unpin,
    Why,
)
from vmstore.core.page import Origin
from vmstore.views.branch import Branch
from vmstore.views.projector import PlacedMutation, Projector, columns
from vmstore.views.projectors.pages import object_of, strict_object_of

if TYPE_CHECKING:
    from vmstore.core.mutation import Delete, Open

ASKS = frozenset((Reference.NUMBER, Cite.NUMBER, Recall.NUMBER))
PINS = frozenset((Pin.NUMBER, Unpin.NUMBER))
ANSWERS = frozenset((FaultIn.NUMBER, FaultDenied.NUMBER))
MOVES = frozenset((FaultIn.NUMBER, Prefetch.NUMBER, Evict.NUMBER))
BUDGET = "l0_tokens_max"  # the setting that says what the prompt may hold


class Decision(NamedTuple):
    """A kernel's mutation about a page; the page is 0 where none has the name that was asked for.

    `kind` is its number; `cause` the position that brought it about; `word` the number of the word
    its kind tells: what a reference is the sign of, why a fault is denied, what makes a page give
    way, who holds it, in which tier it was, whether it was corrected, which place a search found it
    at, which segment it stands for, how full the prompt is. `reason` and `signal` are a reference's; a search's
    `reason` is how it was asked.
    """

    position: int
    kind: int
    page: int
    content: int | None = None
    level: int | None = None
    tokens: int | None = None
    cause: int | None = None
    word: int | None = None
    reason: int | None = None
    signal: int | None = None
    score: int | None = None
    why: Why | None = None


class DecisionsProjector(Projector):
    """One row for each page a kernel's mutation names; one a pin or unpin by page; one a change of the settings.

    `prompts` holds how assembled prompts were chosen; `choices` all settings in force from a position on, so that one
    row tells them; a fork begins with a row of its parent's.
    """

    name = "decisions"
    schema: ClassVar = {
        "decisions": """session INTEGER, position INTEGER, kind INTEGER, page INTEGER, content INTEGER, level INTEGER,
            tokens INTEGER, cause INTEGER, word INTEGER, reason INTEGER, signal INTEGER, score INTEGER, why TEXT,
            PRIMARY KEY(session, position, page)""",
        "pins": """session INTEGER, page INTEGER, holder INTEGER, position INTEGER, held INTEGER,
            PRIMARY KEY(session, page, holder, position)""",
        "choices": "session INTEGER, position INTEGER, budget INTEGER, told TEXT, PRIMARY KEY(session, position)",
        "prompts": "session INTEGER, position INTEGER, contests TEXT, PRIMARY KEY(session, position)",
    }
    indexes = ("CREATE INDEX decisions_page ON decisions(session, page)",)

    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self._rows, self._pins, self._choices, self._prompts = (self.rows[table] for table in self.schema)
        self._settings: dict[int, str | None] = {}  # the settings in force, by session

    def on_open(self, placed: PlacedMutation, m: Open) -> None:
        """A fork works as its parent did; another session begins with no settings."""
        inherited = in_force(Branch(self.db, placed.session), m.parent_position) if m.origin == Origin.FORK else None
        self._settings[placed.session] = inherited
        if inherited is not None:
            self._choose(placed, inherited)

    def on_settings(self, placed: PlacedMutation, m: Settings) -> None:
        """Adds the settings that are in force from here on."""
        if placed.session not in self._settings:
            self._settings[placed.session] = in_force(Branch(self.db, placed.session), placed.position - 1)
        before = object_of(self._settings[placed.session])
        settings = self._settings[placed.session] = json.dumps(before | strict_object_of(placed.content(m.told)))
        self._choose(placed, settings)

    def _choose(self, placed: PlacedMutation, settings: str) -> None:
        budget = object_of(settings).get(BUDGET)
        counted = type(budget) is int and 0 <= budget < 1 << 40
        self._choices.append((placed.session, placed.position, budget if counted else None, settings))

    def on_reference(self, placed: PlacedMutation, m: Reference) -> None:
        """Adds what was used or wanted."""
        self._add(placed, m.NUMBER, m.page, level=m.level, word=m.use, reason=m.reason, signal=m.signal)

    def on_cite(self, placed: PlacedMutation, m: Cite) -> None:
        """Adds the citation, brought about by the page that cites."""
        self._add(placed, m.NUMBER, m.page, cause=m.by)

    def on_recall(self, placed: PlacedMutation, m: Recall) -> None:
        """Adds whether it was right."""
        self._add(placed, m.NUMBER, m.page, word=m.corrected)

    def on_delete(self, placed: PlacedMutation, m: Delete) -> None:
        """Adds that somebody took the page away."""
        self._add(placed, m.NUMBER, m.page)

    def on_search(self, placed: PlacedMutation, m: Search) -> None:
        """Adds each page the agent found, by its place; 0 where it found none; how it asked, and what it was given."""
        scores, about = dict(zip(m.found, m.scores, strict=False)), (m.tokens or None, m.recaller or None)
        for place, page in enumerate(dict.fromkeys(m.found or (0,)), 1):
            self._add(placed, m.NUMBER, page, word=place, tokens=about[0], reason=about[1], score=scores.get(page))
        if m.contests:
            self._prompts.append((placed.session, placed.position, json.dumps(m.contests, separators=(",", ":"))))

    def on_segment(self, placed: PlacedMutation, m: Segment) -> None:
        """Adds the page that stands for what ended."""
        self._add(placed, m.NUMBER, m.summary or 0, word=m.number)

    def on_pressure(self, placed: PlacedMutation, m: Pressure) -> None:
        """Adds how full the prompt is."""
        self._add(placed, m.NUMBER, 0, word=m.level, tokens=m.used)

    def on_fault_in(self, placed: PlacedMutation, m: FaultIn) -> None:
        """Adds what came."""
        self._came(placed, m, m.tier)

    def on_prefetch(self, placed: PlacedMutation, m: Prefetch) -> None:
        """Adds what came unasked."""
        self._came(placed, m, None)

    def _came(self, placed: PlacedMutation, m: FaultIn | Prefetch, word: int | None) -> None:
        shown = {"content": m.content, "level": m.level, "tokens": m.tokens}
        self._add(placed, m.NUMBER, m.page, **shown, cause=m.reference, word=word, why=m.why)

    def on_fault_denied(self, placed: PlacedMutation, m: FaultDenied) -> None:
        """Adds what did not come."""
        self._add(placed, m.NUMBER, m.page, cause=m.reference, word=m.because, why=m.why)

    def on_evict(self, placed: PlacedMutation, m: Evict) -> None:
        """Adds what gave way, brought about by the first of those that went together."""
        shown = {"content": m.content, "level": m.level, "tokens": m.tokens}
        self._add(placed, m.NUMBER, m.page, **shown, cause=m.first or None, word=m.cause, score=m.score, why=m.why)

    def on_pin(self, placed: PlacedMutation, m: Pin) -> None:
        """Adds who holds the page."""
        self._pinned(placed, m, None)

    def on_unpin(self, placed: PlacedMutation, m: Unpin) -> None:
        """Adds who holds it no more."""
        self._pinned(placed, m, m.why)

    def _pinned(self, placed: PlacedMutation, m: Pin | Unpin, why: Why | None) -> None:
        self._add(placed, m.NUMBER, m.page, word=m.holder, why=why)
        self._pins.append((placed.session, m.page, m.holder, placed.position, int(type(m) is Pin)))

    def _add(
        self,
        placed: PlacedMutation,
        kind: int,
        page: int,
        *,
        content: int | None = None,
        level: int | None = None,
        tokens: int | None = None,
        cause: int | None = None,
        word: int | None = None,
        reason: int | None = None,
        signal: int | None = None,
        score: int | None = None,
        why: Why | None = None,
    ) -> None:
        contest = None if why is None else json.dumps(why, separators=(",", ":"))
        about = (content, level, tokens, cause, word, reason, signal, score, contest)
        self._rows.append((placed.session, placed.position, kind, page, *about))

    def forget(self) -> None:
        """Drops the settings too."""
        super().forget()
        self._settings.clear()


def decisions_of(lane: Branch, page: int, position: int) -> list[Decision]:
    """Requests and decisions about a page up to a position, in order; the cost grows with their number."""
    return [
        _decision(row)
        for stretch in reversed(lane.upto(position))
        for row in lane.db.execute(_OF_PAGE, (stretch.session, page, stretch.high))
    ]


def decided(lane: Branch, position: int, kinds: Iterable[int]) -> Iterator[Decision]:
    """Requests and decisions of some kinds up to a position, in order."""
    listed = json.dumps(sorted(kinds))
    for stretch in reversed(lane.upto(position)):
        yield from map(_decision, lane.db.execute(_OF_KINDS, (stretch.session, stretch.high, listed)))


def decisions_at(lane: Branch, positions: Iterable[int]) -> dict[int, Decision]:
    """The decisions at some positions; those that hold none are left out."""
    return {row[0]: _decision(row) for row in lane.rows(_AT, positions)}


def _decision(row: Any) -> Decision:
    *fields, why = row
    return Decision._make((*fields, why_of(why)))


def why_of(text: str | None) -> Why | None:
    """A contest as the view keeps it."""
    if text is None:
        return None
    *fields, losers = json.loads(text)
    return Why._make((*fields, tuple(map(tuple, losers))))


def holders(lane: Branch, position: int, pages: Iterable[int]) -> dict[int, list[int]]:
    """The holders of pages at a position, in order; pages that nobody holds are left out."""
    listed = json.dumps(list(pages))
    last: dict[tuple[int, int], int] = {}
    for stretch in reversed(lane.upto(position)):
        for page, holder, is_held in lane.db.execute(_PINS, (listed, stretch.session, stretch.high)):
            last[page, holder] = is_held
    found: dict[int, list[int]] = {}
    for (page, holder), is_held in sorted(last.items()):
        if is_held:
            found.setdefault(page, []).append(holder)
    return found


def last_contest(lane: Branch, position: int) -> Decision | None:
    """The last decision up to a position by which pages gave way in a contest."""
    for stretch in lane.upto(position):
        row = lane.db.execute(_LAST_CONTEST, (stretch.session, stretch.high)).fetchone()
        if row is not None:
            return _decision(row)
    return None


class HeldInterval(NamedTuple):
    """A page held from a position to another, None where it still is."""

    page: int
    f: int
    t: int | None


def holds(lane: Branch, position: int) -> list[HeldInterval]:
    """Every time a page was held by somebody up to a position, by page."""
    found: list[HeldInterval] = []
    begun: dict[tuple[int, int], int] = {}
    for stretch in reversed(lane.upto(position)):
        for page, holder, at, is_held in lane.db.execute(_EVERY_PIN, (stretch.session, stretch.high)):
            if is_held:
                begun.setdefault((page, holder), at)
            elif (page, holder) in begun:
                found.append(HeldInterval(page, begun.pop((page, holder)), at))
    found += [HeldInterval(page, f, None) for (page, _), f in begun.items()]
    return sorted(found, key=lambda hold: hold[:2])


def in_force(lane: Branch, position: int) -> str | None:
    """The settings in force at a position as JSON; None where nobody gave any: no kernel is at work."""
    stretch = lane.at(position)
    found: str | None = lane.db.execute(_IN_FORCE, (stretch.session, min(position, stretch.high))).get
    return found


def settings_at(lane: Branch, position: int) -> dict[str, Any] | None:
    """The settings in force at a position; None where no kernel is at work."""
    text = in_force(lane, position)
    return None if text is None else object_of(text)


def budgets(lane: Branch) -> list[tuple[int, int | None]]:
    """The budget of the prompt in tokens of the model, from each position on, in order."""
    return [row for s in reversed(lane.stretches) for row in lane.db.execute(_BUDGETS, (s.session, s.high))]


def budget_at(chosen: Sequence[tuple[int, int | None]], position: int, factor_ppm: int) -> int | None:
    """The budget of the prompt at a position, in estimated tokens: the factor corrects the estimate."""
    at = bisect_right(chosen, position, key=itemgetter(0))
    budget = chosen[at - 1][1] if at else None
    return None if budget is None or factor_ppm <= 0 else budget * 1_000_000 // factor_ppm


def live_since(lane: Branch, position: int) -> int | None:
    """The position at which a kernel began to manage the session; None where none did up to a position."""
    for stretch in reversed(lane.upto(position)):
        found: int | None = lane.db.execute(_FIRST, (stretch.session, stretch.high)).get
        if found is not None:
            return found
    return None


_COLUMNS = (
    "d.position, d.kind, d.page, d.content, d.level, d.tokens, d.cause, d.word, d.reason, d.signal, d.score, d.why"
)
assert columns(DecisionsProjector.schema["decisions"]) == ("session", *Decision._fields), (
    "a row becomes a tuple by place"
)
assert _COLUMNS.replace("d.", "").split(", ") == [*Decision._fields], "whatever question it answers"
assert tuple(DecisionsProjector.schema) == ("decisions", "pins", "choices", "prompts"), (
    "the projector takes its tables in this order"
)
assert Why._fields[-1] == "losers", "`why_of` makes tuples of the last value again, which JSON has as lists"
_OF_PAGE = f"""SELECT {_COLUMNS} FROM decisions d INDEXED BY decisions_page
  WHERE d.session = ? AND d.page = ? AND d.position <= ? ORDER BY d.position"""
_OF_KINDS = f"""SELECT {_COLUMNS} FROM decisions d WHERE d.session = ? AND d.position <= ?
  AND d.kind IN (SELECT value FROM json_each(?)) ORDER BY d.position"""
_LAST_CONTEST = f"""SELECT {_COLUMNS} FROM decisions d WHERE d.session = ? AND d.position <= ?
  AND d.kind = {Evict.NUMBER} AND d.why IS NOT NULL ORDER BY d.position DESC LIMIT 1"""
_AT = f"""SELECT {_COLUMNS} FROM decisions d
  WHERE d.session = ? AND d.position IN (SELECT value FROM json_each(?))"""
_PINS = """SELECT p.page, p.holder, p.held FROM json_each(?) one
  CROSS JOIN pins p ON p.session = ? AND p.page = one.value AND p.position <= ? ORDER BY p.position"""
_EVERY_PIN = """SELECT page, holder, position, held FROM pins WHERE session = ? AND position <= ? ORDER BY position"""
_BUDGETS = "SELECT position, budget FROM choices WHERE session = ? AND position <= ? ORDER BY position"
_FIRST = "SELECT min(position) FROM choices WHERE session = ? AND position <= ?"
_IN_FORCE = "SELECT told FROM choices WHERE session = ? AND position <= ? ORDER BY position DESC LIMIT 1"
