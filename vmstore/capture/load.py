"""Loads a conversation from the store: what a writer needs to go on where another stopped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vmstore.capture.conversation import OPAQUE_HINT, Conversation
from vmstore.capture.held import Held, HeldPage, Kin, digest
from vmstore.capture.skeleton import fill, loads
from vmstore.core.page import Role, Slot, Status
from vmstore.engine.gate import Engine
from vmstore.views.calls import CallRow, before, calls_of, factor
from vmstore.views.context import envelopes_at, read_cells
from vmstore.views.lane import NEVER, Lane
from vmstore.views.residency import resident_at


def reader(engine: Engine, lane: Lane) -> Any:
    """Reads the content made at a position."""

    def read(position: int) -> bytes:
        engine.follow()
        row = engine.projection.db.execute(
            "SELECT cell, commitment FROM versions WHERE session = ? AND position = ?", (lane.owner(position), position)
        ).fetchone()
        return b"" if row is None or row[0] is None else read_cells(engine.log, {row[0]: row[1]})[row[0]]

    return read


def load(engine: Engine, session: int) -> Conversation:
    """A session's conversation as the log left it."""
    engine.follow()
    with engine.projection.moment_held():  # others may fold meanwhile
        lane = Lane(engine.projection.db, session)
        conversation = Conversation(reader(engine, lane))
        skeletons = _messages(engine, lane, conversation)
        contents = _pages(engine, lane, conversation)
        _context(lane, conversation)
        for held in conversation.messages:
            conversation.know(held)
        for held in conversation.context:
            shown = [contents[page.position] for page in held.pages]
            held.take(fill(loads(skeletons[held.message]), shown))
        _state(engine, lane, conversation)
    return conversation


def _messages(engine: Engine, lane: Lane, conversation: Conversation) -> dict[int, bytes]:
    rows = [
        row
        for stretch in reversed(lane.upto(NEVER))
        for row in lane.db.execute(
            "SELECT message, role, slot FROM messages WHERE session = ? AND message <= ? ORDER BY message",
            (stretch.session, stretch.high),
        )
    ]
    cells = envelopes_at(lane, (row[0] for row in rows), NEVER)
    contents = read_cells(engine.log, dict(cells.values()))
    skeletons = {message: contents[sealed.cell] for message, sealed in cells.items()}
    conversation.messages = [Held(m, Role(role), Slot(slot), skeletons[m]) for m, role, slot in rows]
    return skeletons


def _pages(engine: Engine, lane: Lane, conversation: Conversation) -> dict[int, bytes]:
    """Every page of every message with the contents of its last version; all contents by position."""
    held = {h.message: h for h in conversation.messages}
    contents: dict[int, bytes] = {}
    for page, message, hint, is_, versions in _versions(engine, lane):
        contents.update((version[0], version[4]) for version in versions)
        if hint == OPAQUE_HINT and not message:
            conversation.opaque_page, conversation.opaque = page, versions[0][3]
        if hint:
            conversation.hints.setdefault(hint, []).append(page)
        if message not in held:
            continue
        state = HeldPage(page, digest(versions[0][4]), is_)
        for position, level, version, _, content in versions[1:]:
            state.version = version
            state.show(digest(content), position, level)
        held[message].pages.append(state)
        if is_.asks:
            conversation.calls[is_.asks] = page
    return contents


def _versions(engine: Engine, lane: Lane) -> Iterable[tuple[int, int, str | None, Kin, list[Any]]]:
    pages: dict[int, Any] = {}
    versions: dict[int, list[Any]] = {}
    for stretch in reversed(lane.upto(NEVER)):
        args = (stretch.session, stretch.high)
        for page, message, hint, modality, labels in lane.db.execute(
            "SELECT page, message, hint, modality, labels FROM pages WHERE session = ? AND page <= ? ORDER BY page",
            args,
        ):
            told = loads(labels.encode()) if labels else {}
            pages[page] = (message, hint, Kin(modality, told.get("asks"), told.get("answers")))
        for page, *row in lane.db.execute(
            "SELECT page, position, level, version, tokens, cell, commitment FROM versions"
            " WHERE session = ? AND position <= ? ORDER BY position",
            args,
        ):
            versions.setdefault(page, []).append(row)
    cells = {row[4]: row[5] for rows in versions.values() for row in rows if row[4] is not None}
    contents = read_cells(engine.log, cells)
    for page, (message, hint, is_) in pages.items():
        rows = [(*row[:4], contents[row[4]] if row[4] is not None else b"") for row in versions[page]]
        yield page, message, hint, is_, rows


def _context(lane: Lane, conversation: Conversation) -> None:
    """The messages of the last pack; every message shows what it showed when it was last packed."""
    shown = _last_shown(lane)
    now: dict[int, Held] = {}
    ranks = {r.page: r.rank for r in resident_at(lane, NEVER - 1)}
    for held in conversation.messages:
        ends = [shown[page.page][0] for page in held.pages if page.page in shown]
        if ends:
            kept = [page for page in held.pages if page.page in shown and shown[page.page][0] == max(ends)]
            held.pages = sorted(kept, key=lambda page: ranks.get(page.page, shown[page.page][2]))
        for page in held.pages:
            _, content, _ = shown.get(page.page, (0, 0, 0))
            for known, (position, _) in page.contents.items():
                if position == content:
                    page.show_again(known)
        if held.pages and held.pages[0].page in ranks:
            now[ranks[held.pages[0].page]] = held
    conversation.context = [now[rank] for rank in sorted(now)]


def _last_shown(lane: Lane) -> dict[int, tuple[int, int, int]]:
    """Of each page that was ever packed: until when, showing which content, at which rank."""
    found: dict[int, tuple[int, int, int]] = {}
    for stretch in lane.stretches:
        for page, t, content, rank in lane.db.execute(
            "SELECT page, max(t), content, rank FROM spans WHERE session = ? AND f <= ? GROUP BY page",
            (stretch.session, stretch.high),
        ):
            if page not in found or found[page][0] < t:
                found[page] = (t, content, rank)
    for resident in resident_at(lane, NEVER - 1):
        found[resident.page] = (NEVER, resident.content, resident.rank)
    return found


def _state(engine: Engine, lane: Lane, conversation: Conversation) -> None:
    """Literals, factor, and whether the next human message opens a turn."""
    told = before(lane, NEVER - 1)
    if told is not None:
        conversation.shape = told[0]
        if told[2] is not None:
            conversation.rest = read_cells(engine.log, {told[2]: told[3]})[told[2]]
    conversation.factor_ppm = factor(lane, NEVER - 1)
    calls = list(calls_of(lane))
    if conversation.opaque is None and any(call.tokens_in for call in calls):
        conversation.opaque = 0  # usage was reported, so what the source omits is settled
    conversation.final = _final(lane, conversation, calls)
    replies = _answers(lane)
    conversation.answers = [held for held in conversation.messages if held.message in replies]


def _final(lane: Lane, conversation: Conversation, calls: list[CallRow]) -> bool:
    """Whether the last that was said ended the turn: an answer did, a turn that opened did not."""
    turned = [
        (row[0], False)
        for stretch in lane.upto(NEVER)
        for row in lane.db.execute(
            "SELECT max(position) FROM turns WHERE session = ? AND position <= ?", (stretch.session, stretch.high)
        )
        if row[0] is not None
    ]
    ended = [(call.replied, bool(call.final)) for call in calls if call.status == Status.OK and call.replied]
    asked = set(conversation.calls.values())
    told = _unasked(lane)
    said = [
        (held.message, not asked & {page.page for page in held.pages})
        for held in conversation.messages
        if held.message in told
    ]
    return max([(0, True), *turned, *ended, *said])[1]


def _unasked(lane: Lane) -> set[int]:
    """The model's messages that answer no call of this session: a history handed over."""
    return {
        row[0]
        for stretch in lane.upto(NEVER)
        for row in lane.db.execute(
            "SELECT message FROM messages WHERE session = ? AND message <= ? AND role = ? AND reply_to IS NULL",
            (stretch.session, stretch.high, Role.ASSISTANT),
        )
    }


def _answers(lane: Lane) -> set[int]:
    """The messages of the last answer there was."""
    for stretch in lane.stretches:
        found = {
            row[0]
            for row in lane.db.execute(
                "SELECT message FROM messages WHERE session = ?1 AND message <= ?2 AND reply_to ="
                " (SELECT max(reply_to) FROM messages WHERE session = ?1 AND message <= ?2)",
                (stretch.session, stretch.high),
            )
        }
        if found:
            return found
    return set()
