"""Sessions that go on from another: the link to it in their opening, and what they bring over from it as copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vmstore.core.address import Address, page_name
from vmstore.core.page import Modality, Origin, PageType, Standing
from vmstore.core.text.token_estimate import estimate
from vmstore.engine.head import NewSession
from vmstore.errors import ConflictError, InputError, UnknownError
from vmstore.live.runtime import Act
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.results import SessionInfo
from vmstore.store.live.copy_page import Copy, copied, take
from vmstore.store.recall.segments import segments_at
from vmstore.store.session import Session
from vmstore.store.work.plans import AgentPlan, Plans, content_of, go_on, open_plans
from vmstore.views.branch import NEVER, Branch
from vmstore.views.projectors.redactions import policy_at
from vmstore.views.reads.annotations import PageNotes, notes_of
from vmstore.work.plan import TAG as PLAN
from vmstore.work.plan import encoded

SUMMARIES, CLAIMS = 3, 20  # brought over, the newest
SHARE = 4  # of the new budget a quarter


def continuation(
    ns: Namespace, earlier: Session | None, opening: NewSession, tokens: int
) -> tuple[NewSession, Callable[[Act], None]]:
    """The opening of a session that goes on from an earlier one, or with its user's plans, and what writes its pages.

    It has the earlier one's user, agent and redaction unless it is given others; another user than its own is refused.
    """
    copies = [] if earlier is None else _brought(earlier, earlier._lane(), tokens // SHARE)
    if earlier is not None:
        opening = _opening(earlier, opening)
    plans = _plans(ns, opening.meta.get("user"), earlier, tokens // SHARE)

    def bring(act: Act) -> None:
        take(act, copies)
        for plan in plans:
            go_on(act, plan, ns.name)

    return opening, bring


def _opening(earlier: Session, opening: NewSession) -> NewSession:
    info = earlier.info()
    if info.session == opening.name:
        raise InputError(f"session {opening.name!r} cannot continue itself; give the new one another name")
    owner = {word: text for word in ("user", "agent") if (text := getattr(info, word)) is not None} | opening.meta
    if owner.get("user") != info.user:
        raise ConflictError(
            f"session {info.session!r} is of user {info.user!r}, and only that user's sessions continue it; "
            "leave user out",
            code="other-user",
        )
    return opening._replace(
        meta=owner,
        origin=Origin.CONTINUE,
        parent=earlier._key,
        parent_position=info.position,
        redaction=opening.redaction or policy_at(earlier._lane()),
    )


def continues(info: SessionInfo, earlier: str) -> None:
    """Refuses an existing session that does not go on from the one named."""
    if (info.origin, info.parent) != (Origin.CONTINUE.word, earlier):
        raise ConflictError(
            f"session {info.session!r} exists and does not continue {earlier!r}; leave continues out, or open another",
            code="not-continued",
        )


def _brought(earlier: Session, lane: Branch, room: int) -> list[Copy]:
    """Copies of what sums up an earlier session last, then of its newest claims that hold, as far as there is room."""
    ns: Namespace = earlier._ns
    with ns.asking():
        segments = [segment for segment in segments_at(lane, earlier.name, NEVER) if segment.number is not None]
        summaries = [segment.summary for segment in reversed(segments) if segment.summary is not None]
        pages = [*summaries[:SUMMARIES], *_claims(lane)]
    copies = []
    for page in dict.fromkeys(pages):
        try:
            copy = copied(ns, earlier, Address(namespace=ns.name, session=earlier.name, page=page))
        except UnknownError:  # what was erased
            continue
        if copy.page.tokens <= room:
            room -= copy.page.tokens
            copies.append(copy)
    return copies


def _claims(lane: Branch) -> list[str]:
    """The newest claims that nobody took back, facts aside: these are the user's in every session."""
    rows: list[Any] = [
        page
        for stretch in lane.upto(NEVER)
        for (page,) in lane.db.execute(_CLAIMS, (int(PageType.CLAIM), stretch.session, stretch.low, stretch.high))
    ]
    notes = notes_of(lane, NEVER, rows)
    held = [page for page in rows if page not in notes or _holds(notes[page])]
    return [page_name(page) for page in sorted(held, reverse=True)[:CLAIMS]]


def _holds(note: PageNotes) -> bool:
    """Whether a claim holds and is no plan, which goes on as one."""
    return note.status not in (Standing.ABANDONED, Standing.SUPERSEDED) and PLAN not in note.tags


def _plans(ns: Namespace, user: str | None, earlier: Session | None, room: int) -> list[AgentPlan]:
    """The active plans a new session goes on with: of the one it continues, else of all its user's, that fit."""
    if user is not None:
        plans = [plan for plan in open_plans(ns, user) if earlier is None or plan.session == earlier.name]
    else:
        plans = [] if earlier is None else Plans(earlier).all(status=Standing.ACTIVE.word)
    found = []
    for plan in plans:
        size = estimate(encoded(content_of(plan)), Modality.STRUCTURED)
        if size <= room:
            room -= size
            found.append(plan)
    return found


_CLAIMS = """SELECT page FROM pages WHERE type = ? AND session = ? AND page > ? AND page <= ?
  AND page NOT IN (SELECT f.page FROM facts f WHERE f.session = pages.session)"""
