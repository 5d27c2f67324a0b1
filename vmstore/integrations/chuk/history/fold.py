"""The state of a memory, folded from its session: of all of it, or of what was before a moment."""

from __future__ import annotations

from typing import Any

import msgspec

from vmstore.core.page import Modality
from vmstore.integrations.chuk.history.journal import Logged, PageJournal
from vmstore.integrations.chuk.history.state import ENTER, MemoryState, PageStep
from vmstore.integrations.chuk.models.enums import Actor, CompressionLevel, MutationType, StorageTier
from vmstore.integrations.chuk.models.page import MemoryPage, moment
from vmstore.store.reads.context import Context
from vmstore.views.reads.annotations import anchored

BRINGS = (MutationType.CREATE, MutationType.UPDATE, MutationType.COMPRESS, MutationType.FAULT_IN)
USES = (MutationType.CREATE, MutationType.FAULT_IN, ENTER)


class SessionFold:
    """Applies the steps of a session to a state, and has a journal know the pages as they stand in the log."""

    def __init__(self, journal: PageJournal, state: MemoryState) -> None:
        self._journal = journal
        self._state = state
        self._session = journal.session
        self._ids = {logged.number: page_id for page_id, logged in journal.pages.items()}

    def run(self, upto: int | None = None) -> None:
        """Takes in what was written up to a position, or all of it."""
        session = self._session
        position = session.info().position if upto is None else upto
        turns = [turn for turn in session.turns() if turn.position <= position]
        with session._ns.asking():
            rows = list(anchored(session._lane(), position))
        for at, number, anchors in rows:
            while turns and turns[0].position < at:
                self._state.begin_turn(turns.pop(0).turn)
            if "step" in anchors:
                self._take(at, number, anchors)
        for turn in turns:
            self._state.begin_turn(turn.turn)
        self._journal.position = self._journal.changed = position

    def follow(self, after: int) -> None:
        """Takes in what was written after a position, but for turns: as it was masked, and not as it was handed in."""
        with self._session._ns.asking():
            rows = list(anchored(self._session._lane(), self._journal.position, after))
        for at, number, anchors in rows:
            if "step" in anchors:
                self._take(at, number, anchors)

    def _take(self, at: int, number: int, anchors: dict[str, Any]) -> None:
        detail, kind = anchors["step"], anchors["step"]["kind"]
        if kind == MutationType.CREATE:
            self._ids[number] = anchors["page_id"]
        page_id = self._ids[number]
        logged = self._logged(number, page_id, anchors)
        page = self._page(at, page_id, anchors) if kind in BRINGS else None
        before = detail.get("before")
        self._state.apply(
            PageStep(
                kind,
                page_id,
                StorageTier(anchors["tier"]),
                None if before is None else StorageTier(before),
                Actor(detail["actor"]),
                detail.get("cause"),
                detail["turn"],
                detail["at"],
                f"p{number}@{at}",
                CompressionLevel(detail.get("level", 0)),
                detail.get("tokens", 0),
                detail.get("importance"),
                detail.get("artifact_id"),
                anchors.get("hint"),
                page,
            )
        )
        self._use(page_id, kind, detail["at"])
        logged.has_left = kind == MutationType.EVICT or (logged.has_left and kind not in (MutationType.FAULT_IN, ENTER))

    def _logged(self, number: int, page_id: str, anchors: dict[str, Any]) -> Logged:
        """A page as the journal knows it, with the content that a step has it show."""
        detail, kind = anchors["step"], anchors["step"]["kind"]
        if kind == MutationType.CREATE:
            base = MemoryPage(page_id=page_id, session_id=self._journal.session_id, **anchors["fields"])
            self._journal.pages[page_id] = Logged(number, 1, base, Modality[anchors["logged_as"].upper()])
        logged = self._journal.pages[page_id]
        if kind == MutationType.UPDATE:
            logged.version, logged.contents, logged.forms = logged.version + 1, {}, {}
            logged.base = logged.base.model_copy(update={"size_tokens": detail.get("size_tokens")})
        if (content := detail.get("content")) is not None:
            level = detail.get("level", 0)
            logged.contents[level], logged.forms[level] = content, detail["form"]
        return logged

    def _page(self, at: int, page_id: str, anchors: dict[str, Any]) -> MemoryPage | None:
        """The page as a step shows it; None where it stands so already."""
        detail = anchors["step"]
        level, kind = CompressionLevel(detail.get("level", 0)), detail["kind"]
        known = self._state.pages.get(page_id)
        if kind == MutationType.FAULT_IN and known is not None and known.compression_level == level:
            return None
        changes: dict[str, Any] = {
            "compression_level": level,
            "storage_tier": StorageTier(anchors["tier"]),
            "size_tokens": detail.get("size_tokens"),
        }
        if "form" in detail:
            changes |= self._journal.content(page_id, level, at)
        return self._journal.pages[page_id].base.model_copy(update=changes, deep=True)

    def _use(self, page_id: str, kind: str, at_us: int) -> None:
        """Counts a use at the time it had, which the state does not know of what is long ago."""
        entry, page = self._state.page_table.lookup(page_id), self._state.pages.get(page_id)
        if kind == MutationType.FAULT_IN and entry is not None:
            entry.access_count += 1
        for known in (entry, page):
            if known is not None and kind in USES:
                known.last_accessed = moment(at_us)


class ContextRequest(msgspec.Struct, frozen=True):
    """The parts of a request beside its pages."""

    mode: str
    model: str
    system_prompt: str
    token_budget: int | None
    faults: int
    session_id: str


def request_of(context: Context) -> ContextRequest:
    """The parts of a call's request beside its pages."""
    call = context._call
    assert call.rest is not None, "every pack of a memory has the rest of its request, its own or the one before"
    return msgspec.json.decode(context._read({call.rest: call.rest_commitment})[call.rest], type=ContextRequest)
