"""The responses of a session's calls: as they were handed in, or what is known of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import apsw

from vmstore.core.asof import Call
from vmstore.core.erasure import ErasedContent, gone
from vmstore.core.page import Fidelity, Role, Status
from vmstore.core.text.skeleton import fill, loads
from vmstore.errors import ErasedError, UnknownError
from vmstore.log.port import Log
from vmstore.namespace.results import Response
from vmstore.providers.body import give_body, messages_of, named_in_full
from vmstore.views.branch import Branch
from vmstore.views.projectors.calls import CallRow
from vmstore.views.projectors.pages import object_of
from vmstore.views.reads.resolve_asof import packed
from vmstore.views.stored_cells import read_cells

STREAM, MESSAGES = "stream", "messages"  # rules


class ReplyMessage(NamedTuple):
    """A message of a reply: who speaks, its skeleton, the contents that fill it as they were first."""

    role: Role
    skeleton: bytes
    contents: list[bytes]

    @property
    def value(self) -> Any:
        """The message; what was erased says so in its place."""
        if isinstance(self.skeleton, ErasedContent):
            return {"role": self.role.word, "content": self.skeleton.decode()}
        return fill(loads(self.skeleton), self.contents)


class ReplyRow(NamedTuple):
    """A reply: the call it answers, where both stand, the cell of what it keeps beside its messages."""

    call: int
    packed: int
    replied: int
    aside: int | None
    commitment: bytes | None


def response_of(log: Log, lane: Branch, call: CallRow) -> Response:
    """The response of a call that a lane sees; UnknownError where none came, or it is not known yet."""
    if call.replied is None:
        raise UnknownError(f"call {call.call} is open: no response to it is known yet", code="no-response")
    status = Status(call.status)
    if status is Status.GAP:
        raise UnknownError(f"call {call.call} could not be recorded: no response to it is known", code="no-response")
    ended = _ended(call)
    aside = _aside_of(log, lane.db, ended)
    messages = _said(log, lane, ended)
    body, missing = None, None
    try:
        body = _body(log, lane, ended, aside, messages)
    except ErasedError as error:
        missing = str(error)
    beside = aside.get("response")
    beside = beside if isinstance(beside, dict) else {}
    raised = beside.get("exception")
    exact = "body" in aside or isinstance(raised, str) or (status is Status.ABORTED and not messages)
    derived = STREAM if aside.get("assembled") else None if exact else MESSAGES
    return Response(
        call=call.call,
        status=status.word,
        fidelity=(Fidelity.DERIVED if derived else Fidelity.RECORDED).word,
        rule=derived,
        body=body,
        messages=[message.value for message in messages],
        model=aside.get("model"),
        stop=aside.get("stop"),
        error=aside.get("error"),
        exception=raised,
        status_code=beside.get("status_code"),
        beside=beside,
        erased=missing,
    )


def body_of(log: Log, lane: Branch, ended: ReplyRow) -> Any:
    """The body of a response; None where none is held whole."""
    try:
        return _body(log, lane, ended, _aside_of(log, lane.db, ended), None)
    except ErasedError:
        return None


def _ended(call: CallRow) -> ReplyRow:
    assert call.replied is not None, "it was answered"
    return ReplyRow(call.call, call.position, call.replied, call.aside, call.aside_commitment)


def _aside_of(log: Log, db: apsw.Connection, ended: ReplyRow) -> dict[str, Any]:
    """The fields of the reply's cell."""
    if ended.aside is None:
        return {}
    (content,) = read_cells(log, db, {ended.aside: ended.commitment}, gone).values()
    return {"error": content.decode(), "body": content} if isinstance(content, ErasedContent) else object_of(content)


def _body(
    log: Log, lane: Branch, ended: ReplyRow, aside: dict[str, Any], messages_said: list[ReplyMessage] | None
) -> Any:
    """The body with its holes filled; ErasedError where anything of it was erased."""
    body = aside.get("body")
    if body is None:
        return None
    if not isinstance(body, ErasedContent):
        body = named_in_full(body, lambda number: _before(log, lane, number))
    count = messages_of(body)
    messages = (_said(log, lane, ended) if messages_said is None else messages_said)[-count:] if count else []
    gone_ones = [
        content
        for each in messages
        for content in (each.skeleton, *each.contents)
        if isinstance(content, ErasedContent)
    ]
    if isinstance(body, ErasedContent) or gone_ones:
        raise ErasedError(f"something of the response to call {ended.call} was erased; nothing can bring it back")
    if len(messages) < count:
        return None
    return give_body(body, [(loads(content.skeleton), content.contents) for content in messages])


def _before(log: Log, lane: Branch, number: int) -> Any:
    """The body of an earlier call's response with its holes, which holds what a later one names."""
    body = _aside_of(log, lane.db, _ended(packed(lane, Call(number)))).get("body")
    if not isinstance(body, dict):
        raise ErasedError(f"the response to call {number}, which a later one names, is not held any more")
    return body


def _said(log: Log, lane: Branch, ended: ReplyRow) -> list[ReplyMessage]:
    """The messages that came with a call's replies, in order."""
    session = lane.owner(ended.replied)
    rows: list[Any] = lane.db.execute(_MESSAGES, (session, ended.packed, ended.replied, ended.call)).fetchall()
    pages: dict[int, list[tuple[int | None, bytes | None]]] = {}
    made: list[Any] = lane.db.execute(_PAGES, (session, rows[0][0], ended.replied)).fetchall() if rows else []
    for message, cell, commitment in made:
        pages.setdefault(message, []).append((cell, commitment))
    sealed = {cell: commitment for _, _, cell, commitment in rows}
    sealed |= {cell: commitment for row in rows for cell, commitment in pages.get(row[0], ()) if cell is not None}
    cells = read_cells(log, lane.db, sealed, gone)
    return [
        ReplyMessage(Role(role), cells[cell], [b"" if at is None else cells[at] for at, _ in pages.get(message, ())])
        for message, role, cell, _ in rows
    ]


_MESSAGES = """SELECT message, role, cell, commitment FROM messages
  WHERE session = ? AND message > ? AND message < ? AND reply_to = ? ORDER BY message"""
_PAGES = """SELECT message, cell, commitment FROM pages
  WHERE session = ? AND page > ? AND page < ? AND message > 0 ORDER BY message, part, page"""
