"""The calls of sessions as the rules of `vmstore.work` take them, and the guards over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from vmstore.core.address import page_name
from vmstore.core.asof import AsOf, Head
from vmstore.core.erasure import gone
from vmstore.namespace.namespace import Namespace
from vmstore.store.host import SessionHost
from vmstore.store.work.results import GuardInfo
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import basis
from vmstore.views.reads.tools import AnsweredCall, answered_calls, failed_calls
from vmstore.views.stored_cells import read_cells
from vmstore.work.failure import reason_of
from vmstore.work.past_call import PastCall, answer_of
from vmstore.work.watch import Alarm, CallWatch

BYTES_MAX = 32 << 20  # of what a session said, in which a word is looked for


def past_calls(session: SessionHost, when: AsOf | None = None, *, after: int = 0) -> list[PastCall]:
    """The calls of a session that were answered by a moment, in the order of their answers."""
    with session._ns.asking():
        return calls_in(session._ns, session.name, session._lane(), when, after)


def calls_in(ns: Namespace, name: str, lane: Branch, when: AsOf | None = None, after: int = 0) -> list[PastCall]:
    """The calls of a session by its name and lane, for a caller within `asking`."""
    position = basis(lane, when or Head()).position
    return [_past(name, call) for call in answered_calls(lane, ns.log, after, position)]


def past_failures(session: SessionHost, limit: int) -> list[PastCall]:
    """The last failed calls of a session, so many at most, in the order of their answers."""
    with session._ns.asking():
        lane = session._lane()
        position = basis(lane, Head()).position
        return [_past(session.name, call) for call in failed_calls(lane, session._ns.log, position, limit)]


def _past(name: str, call: AnsweredCall) -> PastCall:
    return PastCall(
        name,
        call.call,
        call.turn,
        call.tool,
        call.arguments,
        call.failed,
        reason_of(call.answer) if call.failed else "",
        call.tokens,
        answer_of(call.answer) if call.answer else None,
        call.read,
        call.at_us,
    )


def user_sessions(ns: Namespace, user: str) -> list[tuple[int, str]]:
    """The sessions of a user by key and name, in the order they were opened."""
    with ns.asking():
        return list(ns.views.execute(_SESSIONS, (user,)))


def watched(calls: Iterable[PastCall], watch: CallWatch) -> list[Alarm]:
    """The alarms that calls raise, in order."""
    return [alarm for call in calls for alarm in watch.take(call)]


def room_of(session: SessionHost) -> int | None:
    """The tokens that the prompt of a live session has for pages; None of a recorded one."""
    look: Callable[..., int | None] | None = getattr(session, "look", None)
    if look is None:
        return None
    return look(lambda runtime: None if runtime.state.settings is None else runtime.state.room)


class UnsaidBefore:
    """The words that nothing in a session says before a call: neither its pages nor what it was instructed."""

    def __init__(self, session: SessionHost) -> None:
        self._session = session

    def __call__(self, call: PastCall, words: Sequence[str]) -> list[str]:
        """Looks once through the contents before a call, up to a limit; beyond that no word is claimed to be unsaid."""
        unsaid, ns = {word: word.encode("utf-8", "replace") for word in words}, self._session._ns
        with ns.asking():
            left = BYTES_MAX
            for cells, size in _before(self._session._lane(), call.page):
                left -= size
                if left < 0 or not unsaid:
                    return []
                for content in read_cells(ns.log, ns.views, cells, gone).values():
                    unsaid = {word: wanted for word, wanted in unsaid.items() if wanted not in content}
        return list(unsaid)


def _before(lane: Branch, page: int) -> Iterator[tuple[dict[int, bytes | None], int]]:
    """The cells of contents before a page's message, some at a time, the newest first; and their size."""
    message = lane.db.execute(_MESSAGE, (lane.owner(page), page)).get or page
    for stretch in lane.upto(message - 1):
        rows = list(lane.db.execute(_CONTENTS, (stretch.session, stretch.low, stretch.high)))
        for at in range(0, len(rows), 64):
            part = rows[at : at + 64]
            yield {cell: sealed for cell, sealed, _ in part}, sum(size for *_, size in part)


def guard_info(session: str, alarm: Alarm, warning: int = 0) -> GuardInfo:
    """An alarm as it is answered."""
    return GuardInfo(
        session,
        alarm.type.word,
        alarm.call.tool,
        alarm.times,
        page_name(alarm.call.page),
        [page_name(call.page) for call in alarm.calls if call.session == session],
        alarm.text,
        page_name(warning) if warning else None,
    )


_SESSIONS = "SELECT session, name FROM sessions WHERE user = ? AND hidden = 0 ORDER BY opened_at, session"
_MESSAGE = "SELECT message FROM pages WHERE session = ? AND page = ?"
_CONTENTS = """SELECT cell, commitment, size FROM pages WHERE session = ? AND page > ? AND page <= ?
 AND cell IS NOT NULL AND modality IN (0, 4) ORDER BY page DESC"""
