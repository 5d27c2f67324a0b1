"""Evidence of where an answer came from: pages of its call's prompt, by what it repeats and what was new."""

from __future__ import annotations

import msgspec

from vmstore.core.address import page_name
from vmstore.core.erasure import gone
from vmstore.core.page import Modality, PageType, Role
from vmstore.errors import InputError
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.projectors.calls import CallRow, last_call
from vmstore.views.reads.context import ShownPage, shown_at
from vmstore.views.reads.page_lines import lines_of
from vmstore.views.reads.resolve_asof import call_position, last
from vmstore.views.stored_cells import read_cells
from vmstore.vm.protocol.tool_calls import arguments_in, tool_called
from vmstore.vm.recall.evidence import CHARS_MAX, SeenPage, ranked

_FITTING = (Modality.TEXT, Modality.STRUCTURED)
_INSTRUCTING = (Role.SYSTEM, Role.DEVELOPER)  # what always stands there tells nothing


class SourceEvidence(msgspec.Struct, frozen=True):
    """A page that an answer may have come from, which nobody logged: evidence, and no link.

    `rank` counts from 1; `score` is comparable within one answer. `new` says that the call before did not have the
    page, `shared` what both have: runs of words, names, words, the rarest first. `call` is the call that answered.
    """

    rank: int
    page: str
    role: str
    type: str
    call: int
    new: bool
    score: float
    shared: list[str]
    text: str


def evidence_of(lane: Branch, log: Log, page: int, limit: int | None = 3) -> list[SourceEvidence]:
    """Ranks the pages that a page of the model's may have come from; none where no call answered with it."""
    if limit is not None and limit < 1:
        raise InputError(f"limit {limit} is no number of pages from 1 up", code="not-a-limit")
    number = _answering(lane, page)
    call = None if number is None else last_call(lane, call_position(lane, number, last(lane)))
    if call is None:
        return []
    shown = {one.page: one for one in shown_at(lane, call) if _fits(one)}
    cells = {one.cell: one.commitment for one in shown.values() if one.cell is not None and one.commitment is not None}
    contents = read_cells(log, lane.db, cells, gone)
    own = next(iter(lane.rows(_CONTENT, [page])))
    said = _text(read_cells(log, lane.db, {own[1]: own[2]}, gone)[own[1]]) if own[1] is not None else ""
    seen = [_seen(one, contents[one.cell], call) for one in shown.values() if one.cell is not None]
    found = ranked(arguments_in(said) if tool_called(said) else said, seen)
    best = found[:limit]
    lines = lines_of(lane, log, {one.page: contents[shown[one.page].cell or 0] for one in best})
    return [
        SourceEvidence(
            rank=rank,
            page=page_name(one.page),
            role=Role(shown[one.page].role).word,
            type=PageType(shown[one.page].type).word,
            call=call.call,
            new=shown[one.page].since == call.position,
            score=round(one.score, 3),
            shared=list(one.shared),
            text=lines[one.page],
        )
        for rank, one in enumerate(best, 1)
    ]


def _fits(one: ShownPage) -> bool:
    """Whether a page can be what an answer came from: a text, and not what always stands before the conversation."""
    return one.cell is not None and one.modality in _FITTING and one.role not in _INSTRUCTING


def _answering(lane: Branch, page: int) -> int | None:
    """The call that a page of the model's answers."""
    row = next(iter(lane.rows(_PAGE, [page])), None)
    if row is None or row[0] != Role.ASSISTANT:
        return None
    replied = next((call for (call,) in lane.rows(_REPLY, [row[1]] if row[1] else []) if call), None)
    return replied or row[2] or None


def _seen(one: ShownPage, content: bytes, call: CallRow) -> SeenPage:
    text = _text(content)
    asks = one.role == Role.ASSISTANT and bool(tool_called(text))
    words = arguments_in(text) if asks else text
    return SeenPage(one.page, words, Role(one.role), asks, one.since == call.position)


def _text(content: bytes) -> str:
    return content[: CHARS_MAX * 4].decode("utf-8", "replace")[:CHARS_MAX]


_PAGE = "SELECT role, message, call FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"
_REPLY = "SELECT reply_to FROM messages WHERE session = ? AND message IN (SELECT value FROM json_each(?))"
_CONTENT = "SELECT page, cell, commitment FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"
