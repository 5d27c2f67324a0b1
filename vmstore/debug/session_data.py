"""The film of a session: all that a page needs to show any of its calls, as columns, made in one pass over the views.

Nothing of it is a content: those are asked for by the position that made them, as `stays.content` says.
"""

from __future__ import annotations

from typing import Any

import msgspec

from vmstore.core.address import page_name
from vmstore.core.page import Level, Modality, PageType, Role
from vmstore.core.text.token_estimate import ESTIMATOR
from vmstore.debug.events import SessionEvent, happened
from vmstore.debug.overview import parent_of
from vmstore.debug.rows import SessionRows
from vmstore.namespace.results import CallInfo
from vmstore.store.reads.calls import calls_in
from vmstore.store.session import Session
from vmstore.store.store import Store
from vmstore.views.branch import Branch
from vmstore.views.dispatch import uncollected
from vmstore.views.projectors.decisions import holds, settings_at
from vmstore.views.reads.context import ShownPage, contents
from vmstore.views.reads.page_lines import page_lines

ESTIMATORS = {ESTIMATOR: "chars4@1"}
_LEVEL, _TOKENS = (ShownPage._fields.index(name) - ShownPage._fields.index("message") for name in ("level", "tokens"))


class TurnColumns(msgspec.Struct):
    """The turns; `hint` is how what was said first begins."""

    turn: list[int] = []
    position: list[int] = []
    at: list[int] = []
    hint: list[int] = []


class CallColumns(msgspec.Struct):
    """The calls in order; a call's index is its place here. Tokens are estimated, `reported` the provider's."""

    call: list[int] = []
    turn: list[int] = []
    position: list[int] = []
    at: list[int] = []
    model: list[int] = []
    status: list[int] = []
    fidelity: list[int] = []
    tokens: list[int] = []
    reported: list[int | None] = []
    cached: list[int | None] = []
    out: list[int | None] = []
    cost: list[float | None] = []
    latency: list[float | None] = []
    budget: list[int | None] = []
    invalidated: list[int | None] = []
    cost_estimated: list[float | None] = []


class PageColumns(msgspec.Struct):
    """Every page, by the position that made it: `tokens` of its last full version, `tool` that it calls or answers."""

    page: list[str] = []
    number: list[int] = []
    hint: list[int] = []
    type: list[int] = []
    role: list[int] = []
    modality: list[int] = []
    turn: list[int] = []
    call: list[int] = []
    tokens: list[int] = []
    versions: list[int] = []
    pinned: list[int] = []
    tool: list[int] = []


class StayColumns(msgspec.Struct):
    """Which pages were in the prompt, from one call's index up to another's, with what was shown of them.

    The context of call index i are the stays with `from` <= i < `to`, in the order of `rank`.
    """

    page: list[int] = []
    content: list[int] = []
    level: list[int] = []
    tokens: list[int] = []
    rank: list[int] = []
    begin: list[int] = msgspec.field(name="from", default_factory=list)
    end: list[int] = msgspec.field(name="to", default_factory=list)


class EventColumns(msgspec.Struct):
    """What happened, in order; `call` and `turn` are the numbers in force then, `page` an index or -1."""

    position: list[int] = []
    call: list[int] = []
    turn: list[int] = []
    kind: list[int] = []
    page: list[int] = []
    why: list[int] = []


class NamedMoment(msgspec.Struct):
    """A moment somebody named."""

    name: str
    position: int
    call: int
    note: str | None = None


class WhatIfRow(msgspec.Struct, frozen=True):
    """Under which settings a film was decided again, and of which session."""

    policy: str | None
    budget: int | None
    of: str


class SessionData(msgspec.Struct):
    """A session as columns; hints, kinds, words and reasons are indexes into `words`, whose first is none."""

    session: str
    position: int
    fidelity: str
    budget: int | None
    policy: str | None
    parent: dict[str, Any] | None
    estimator: str
    whatif: WhatIfRow | None
    words: list[str]
    turns: TurnColumns
    calls: CallColumns
    pages: PageColumns
    stays: StayColumns
    events: EventColumns
    marks: list[NamedMoment]


class TextColumn:
    """A table of texts, each once; nothing to say is the first."""

    def __init__(self) -> None:
        self.texts = [""]
        self._at: dict[str | None, int] = {None: 0, "": 0}

    def __call__(self, text: str | None) -> int:
        """Where a text stands."""
        at = self._at.get(text)
        if at is None:
            assert text is not None, "None stands at 0"
            at = self._at[text] = len(self.texts)
            self.texts.append(text)
        return at


def film(store: Store, session: Session, whatif: WhatIfRow | None = None) -> SessionData:
    """The film of a session up to its last position, all of one moment."""
    ns = store._ns
    with ns.asking(), uncollected():
        info = session.info()
        lane = Branch(ns.views, ns.key(session.name) or 0)
        calls = calls_in(lane, ns.log, ns.price_list)
        rows = SessionRows(lane, ns.log, info.position)
        events = happened(lane, ns.log, rows)
        words = TextColumn()
        settings = settings_at(lane, info.position)
        hints = page_lines(lane, ns.log, rows.openers.values())
        return SessionData(
            session=info.session,
            position=info.position,
            fidelity=info.fidelity,
            budget=None if settings is None else settings.get("l0_tokens_max"),
            policy=None if settings is None else settings.get("policy"),
            parent=parent_of(lane, info),
            estimator=ESTIMATORS[ESTIMATOR],
            whatif=whatif,
            words=words.texts,
            turns=_turns(rows, hints, words),
            calls=_calls(calls, words),
            pages=_pages(lane, rows, words),
            stays=_stays(lane, rows, calls),
            events=_events(events, rows, words),
            marks=[
                NamedMoment(mark.name, mark.position, rows.call_at(mark.position), mark.note) for mark in rows.marks
            ],
        )


def _turns(rows: SessionRows, hints: dict[int, str], words: TextColumn) -> TurnColumns:
    return TurnColumns(
        [turn.turn for turn in rows.turns],
        [turn.position for turn in rows.turns],
        [turn.at for turn in rows.turns],
        [words(hints.get(rows.openers.get(turn.turn, 0))) for turn in rows.turns],
    )


def _calls(calls: list[CallInfo], words: TextColumn) -> CallColumns:
    return CallColumns(
        [call.call for call in calls],
        [call.turn for call in calls],
        [call.position for call in calls],
        [call.at for call in calls],
        [words(call.model) for call in calls],
        [words(call.status) for call in calls],
        [words(call.fidelity) for call in calls],
        [call.tokens for call in calls],
        [call.tokens_reported for call in calls],
        [call.tokens_cached for call in calls],
        [call.tokens_out for call in calls],
        [call.cost for call in calls],
        [call.latency_ms for call in calls],
        [call.budget for call in calls],
        [call.invalidated for call in calls],
        [call.cost_estimated for call in calls],
    )


def _pages(lane: Branch, rows: SessionRows, words: TextColumn) -> PageColumns:
    resident = {hold.page for hold in holds(lane, rows.position) if hold.t is None}
    types, roles, modalities = ({int(row): words(row.word) for row in of} for of in (PageType, Role, Modality))
    full = {row.page: (row.tokens, 1) for row in rows.pages}
    for change in rows.changes:
        if change.level == Level.FULL:
            full[change.page] = change.tokens, change.version
    return PageColumns(
        [page_name(row.page) for row in rows.pages],
        [row.page for row in rows.pages],
        [words(row.hint) for row in rows.pages],
        [types[row.type] for row in rows.pages],
        [roles[row.role] for row in rows.pages],
        [modalities[row.modality] for row in rows.pages],
        [row.turn for row in rows.pages],
        [row.call for row in rows.pages],
        [full[row.page][0] for row in rows.pages],
        [full[row.page][1] for row in rows.pages],
        [int(row.page in resident) for row in rows.pages],
        [words(rows.tools.get(row.page)) for row in rows.pages],
    )


def _stays(lane: Branch, rows: SessionRows, calls: list[CallInfo]) -> StayColumns:
    """The stays in the order they began, each call's by rank."""
    index = {call.position: at for at, call in enumerate(calls)}
    known = contents(lane, {stay.content for stay in rows.stays})
    return StayColumns(
        [rows.index[stay.page] for stay in rows.stays],
        [stay.content for stay in rows.stays],
        [known[stay.content][_LEVEL] for stay in rows.stays],
        [known[stay.content][_TOKENS] for stay in rows.stays],
        [stay.rank for stay in rows.stays],
        [index[stay.f] for stay in rows.stays],
        [len(calls) if stay.t is None else index[stay.t] for stay in rows.stays],
    )


def _events(events: list[SessionEvent], rows: SessionRows, words: TextColumn) -> EventColumns:
    positions = [event.position for event in events]
    calls, turns = rows.in_force(positions)
    kinds = {kind: words(kind) for kind in dict.fromkeys(event.kind for event in events)}
    return EventColumns(
        positions,
        calls,
        turns,
        [kinds[event.kind] for event in events],
        [rows.index.get(event.page, -1) for event in events],
        [words(event.why) for event in events],
    )
