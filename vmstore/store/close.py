"""The end of a session: that it was completed or abandoned, and why."""

from __future__ import annotations

from vmstore.core.asof import Head
from vmstore.core.mutation import Close
from vmstore.core.page import Standing
from vmstore.errors import InputError, UnknownError
from vmstore.namespace.namespace import Namespace
from vmstore.store.host import SessionHost
from vmstore.views.reads.resolve_asof import basis
from vmstore.views.reads.turn_tiers import written_at

HOUR_US = 3_600_000_000
ENDINGS = (Standing.COMPLETED, Standing.ABANDONED)
REASON_CHARS_MAX = 200


def is_idle(session: SessionHost, hours: float) -> bool:
    """Whether nothing was written in a session for so many hours."""
    with session._ns.asking():
        lane = session._lane()
        last = written_at(lane, basis(lane, Head()).position)
    return last > 0 and session._ns.clock.now() - last >= hours * HOUR_US


def idle_reason(hours: float) -> str:
    """The reason that is logged where nobody ended a session."""
    return f"nothing was said for {hours:g} hours"


def close(namespace: Namespace, session: int, status: str, reason: str | None, at: int | None) -> None:
    """Writes that a session ended; InputError where that is how it stands already."""
    ends = Standing.of(status) if isinstance(status, str) else None
    if ends not in ENDINGS:
        words = " or ".join(ending.word for ending in ENDINGS)
        raise UnknownError(f"a session does not end {status!r:.40}; it is {words}", code="no-status")
    if reason is not None and (not isinstance(reason, str) or not 0 < len(reason.strip()) <= REASON_CHARS_MAX):
        raise InputError(
            f"{reason!r:.60} is no reason: a text of 1 to {REASON_CHARS_MAX} characters is", code="not-a-text"
        )
    batch = namespace.engine.batch(session)
    namespace.follow()
    info = namespace.session_info(session)
    if info.status == ends.word:
        raise InputError(
            f"session {info.session!r} is {ends.word} already; a later message takes it up again", code="closed-already"
        )
    reason_cell = None if reason is None else batch.cell(reason.encode("utf-8", "backslashreplace"))
    batch.add(Close(int(ends), reason_cell))
    batch.commit(namespace.clock.now() if at is None else at)
