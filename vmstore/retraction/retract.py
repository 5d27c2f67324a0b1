"""Retracts what came of a cause: everything that stands on it is marked superseded, with the reason.

The plan is made first and changes nothing. Marking is one commit a session, so what a kill leaves
undone the same retraction does when it is asked for again; nothing is deleted, and every moment
before it answers as it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import msgspec

from vmstore.core.address import page_name
from vmstore.core.mutation import Annotate
from vmstore.core.page import PageType, Standing
from vmstore.core.text.page_line import page_line
from vmstore.errors import InputError, OvertakenError, UnknownError
from vmstore.live.regeneration import Renewal, renewals
from vmstore.live.runtime import Runtime
from vmstore.log.port import Log
from vmstore.namespace.namespace import Namespace
from vmstore.retraction.causes import RetractionCause, made_by
from vmstore.retraction.closure import AffectedPages, fallout
from vmstore.retraction.conflicts import JudgedPages, PageDispute, disputes, judged
from vmstore.retraction.results import Conflict, RegeneratedPage, RetractedPage, RetractedSession, Retraction
from vmstore.views.branch import Branch
from vmstore.views.reads.page_calls import seen
from vmstore.views.reads.page_lines import page_lines

T = TypeVar("T")
REASON_CHARS_MAX = 200
RETRACTED, REASON, THROUGH = "retracted", "retracted.reason", "retracted.through"  # anchors of what is marked
ITSELF = "itself"


class Retractable(Protocol):
    """The part of a store that retraction needs: its namespace, and its sessions by name."""

    _ns: Namespace

    def session(self, name: str) -> Any: ...


@runtime_checkable
class Renewable(Protocol):
    """A session whose pages can be rebuilt, which a live one is."""

    def look(self, see: Callable[[Runtime], T]) -> T: ...

    def _renew(self, position: int, marks: Iterable[tuple[int, bytes]], renewals: Iterable[Renewal]) -> list[int]: ...


class RetractionRequest(NamedTuple):
    """A request to retract."""

    store: Retractable
    cause: RetractionCause
    reason: str | None
    rebuild: bool

    @property
    def ns(self) -> Namespace:
        """The namespace."""
        return self.store._ns


class SessionRetraction(NamedTuple):
    """The plan for one session."""

    name: str
    fallen: AffectedPages
    judged: JudgedPages
    live: Renewable | None = None  # what rebuilds pages
    renewals: Sequence[Renewal] = ()

    def because(self, page: int) -> str:
        """The reason why a page is affected: `itself`, or the step that leads to it."""
        roots = self.fallen.roots
        step = roots[page] if page in roots else self.fallen.pages[page][0]
        return ITSELF if step is None else f"{step.kind} {page_name(step.on)}"


def retract(
    store: Retractable,
    *,
    page: str | None = None,
    session: str | None = None,
    actor: str | None = None,
    tool: str | None = None,
    in_session: str | None = None,
    reason: str | None = None,
    rebuild: bool = False,
    dry_run: bool = False,
) -> Retraction:
    """Marks everything that stands on a page, a session, an actor or a tool superseded, in every session that sees it.

    An actor is whom pages name, a role, or the user or the agent of a session; a tool stands for its
    results; `in_session` looks for those in one session alone, and follows what came of them
    everywhere. With `rebuild`, claims and summaries of live sessions that what is left makes too are
    rebuilt, in the place of those that are marked. A `dry_run` says what would be done, conflicts
    named, and writes nothing. Another writer who is first makes it decide again. Raises UnknownError
    where the cause made nothing.
    """
    cause = RetractionCause(page, session, actor, tool, in_session).checked()
    if reason is not None:
        _check(reason)
    asked, ns = RetractionRequest(store, cause, reason, rebuild), store._ns
    with ns.lock:
        if dry_run:
            return _report(asked, _plan(asked), done=False)
        ns.engine  # noqa: B018 (refuses before anything is looked for where the handle is for reading)
        try:
            return _do(asked)
        except _OvertakenError as overtaken:
            with ns.log.alone():
                return msgspec.structs.replace(merged(overtaken.retraction, _do(asked)), again=1)


class _OvertakenError(OvertakenError):
    """Another writer was first somewhere; what was marked before that."""

    def __init__(self, error: OvertakenError, retraction: Retraction) -> None:
        super().__init__(str(error))
        self.retraction = retraction


def _plan(asked: RetractionRequest) -> list[SessionRetraction]:
    """The plan, session by session: affected pages, those to mark, and those that can be rebuilt."""
    ns = asked.ns
    with ns.asking():
        fallen = fallout(ns, made_by(ns, asked.cause))
        parts = [SessionRetraction(_name(ns, session.lane.session), session, judged(session)) for session in fallen]
    return [_renewed(asked, part) for part in parts] if asked.rebuild else parts


def _renewed(asked: RetractionRequest, part: SessionRetraction) -> SessionRetraction:
    live = asked.store.session(part.name) if part.judged.marked else None
    if not isinstance(live, Renewable):
        return part
    found = live.look(lambda runtime: renewals(runtime, part.fallen.lane, part.judged.marked, part.fallen.pages))
    return part._replace(live=live, renewals=found)


def _do(asked: RetractionRequest) -> Retraction:
    """Marks what is to be marked, a commit a session, as it was planned or not at all."""
    parts = _plan(asked)
    retraction = _report(asked, parts, done=True)
    done: list[RetractedSession] = []
    for part, session in zip(parts, retraction.sessions, strict=True):
        try:
            made = _mark(asked, part)
        except OvertakenError as error:
            raise _OvertakenError(error, msgspec.structs.replace(retraction, sessions=done)) from error
        names = [
            msgspec.structs.replace(old, page=page_name(new)) for old, new in zip(session.rebuilt, made, strict=True)
        ]
        done.append(msgspec.structs.replace(session, rebuilt=names))
    return msgspec.structs.replace(retraction, sessions=done)


def _mark(asked: RetractionRequest, part: SessionRetraction) -> list[int]:
    """Marks the pages of one session, and writes those rebuilt, as one commit; the new pages."""
    if not part.judged.marked:
        return []
    if part.live is not None and part.renewals:
        return part.live._renew(part.fallen.position, [*_marks(asked, part)], part.renewals)
    batch = asked.ns.engine.batch(part.fallen.lane.session)
    if batch.head.position != part.fallen.position:
        raise OvertakenError(f"session {part.name!r} moved on while it was looked at")
    for page, anchors in _marks(asked, part):
        batch.add(Annotate(page, status=Standing.SUPERSEDED, anchors=batch.cell(anchors)))
    batch.commit(asked.ns.clock.now())
    return []


def _marks(asked: RetractionRequest, part: SessionRetraction) -> Iterator[tuple[int, bytes]]:
    """Each page that is marked, with the anchors of its retraction."""
    for page in part.judged.marked:
        yield page, msgspec.json.encode(_anchors(asked.cause, asked.reason, part.because(page)))


def _anchors(cause: RetractionCause, reason: str | None, through: str) -> dict[str, str]:
    """The anchors of a marked page that describe its retraction, by name."""
    anchors = {RETRACTED: str(cause)}
    anchors |= {} if reason is None else {REASON: reason}
    return anchors if through == ITSELF else anchors | {THROUGH: through}


# ---- the report


def _report(asked: RetractionRequest, parts: Sequence[SessionRetraction], *, done: bool) -> Retraction:
    """The plan in names and words."""
    ns = asked.ns
    with ns.asking():
        conflicts = [
            Conflict(conflict.kind, part.name, page_name(conflict.page) if conflict.page else None, conflict.about)
            for part in parts
            for conflict in (*disputes(part.fallen, part.judged), *(_not_rebuilt(part) if asked.rebuild else ()))
        ]
        sessions = [_session(ns, part) for part in parts]
        return Retraction(str(asked.cause), asked.reason, done, 0, sessions, conflicts)


def _not_rebuilt(part: SessionRetraction) -> Iterator[PageDispute]:
    """The marked pages that were made from others and cannot be rebuilt."""
    made = {renewal.replaces for renewal in part.renewals}
    why = "its session was recorded" if part.live is None else "what is left does not make it, or a model wrote it"
    for page in part.judged.marked:
        if page not in part.fallen.roots and page not in made:
            yield PageDispute("not_rebuilt", page, f"cannot be rebuilt: {why}")


def _session(ns: Namespace, part: SessionRetraction) -> RetractedSession:
    lane, position = part.fallen.lane, part.fallen.position
    marked = part.judged.marked
    calls = sorted({call for ranges in seen(lane, position, marked).values() for few in ranges for call in few})
    texts = preview_of(lane, ns.log, marked)
    born = {page: (PageType(type_).word, hint) for page, type_, hint in lane.rows(_BORN, marked)}
    pages = [RetractedPage(page_name(page), *born[page], part.because(page), texts.get(page, "")) for page in marked]
    ends = (calls[0], calls[-1]) if calls else (None, None)
    regenerated = [
        RegeneratedPage(None, renewal.type.word, page_name(renewal.replaces), page_line(renewal.content))
        for renewal in part.renewals
    ]
    return RetractedSession(part.name, pages, regenerated, len(part.judged.already), len(calls), *ends)


def preview_of(lane: Branch, log: Log, pages: Sequence[int]) -> dict[int, str]:
    """The beginning of the text of each page; of one whose content was erased nothing."""
    try:
        return page_lines(lane, log, pages)
    except UnknownError:
        if len(pages) < 2:
            return {}
        half = len(pages) // 2
        return preview_of(lane, log, pages[:half]) | preview_of(lane, log, pages[half:])


def merged(first: Retraction, second: Retraction) -> Retraction:
    """Joins the results of two passes."""
    sessions = {session.session: session for session in first.sessions}
    for session in second.sessions:
        before = sessions.get(session.session)
        if before is not None:
            new = [page for page in session.pages if page not in before.pages]
            session = msgspec.structs.replace(
                before, pages=before.pages + new, rebuilt=before.rebuilt + session.rebuilt
            )
        sessions[session.session] = session
    conflicts = list(
        dict.fromkeys((*first.conflicts, *(session for session in second.conflicts if session.kind != "already")))
    )
    return msgspec.structs.replace(first, sessions=list(sessions.values()), conflicts=conflicts)


def _name(ns: Namespace, session: int) -> str:
    return str(ns.views.execute("SELECT name FROM sessions WHERE session = ?", (session,)).get)


def _check(reason: str) -> None:
    if not isinstance(reason, str) or not reason.isprintable() or not 0 < len(reason) <= REASON_CHARS_MAX:
        raise InputError(
            f"{reason!r:.60} is no reason: a text of 1 to {REASON_CHARS_MAX} printable characters is", code="not-a-text"
        )


_BORN = "SELECT page, type, hint FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"
