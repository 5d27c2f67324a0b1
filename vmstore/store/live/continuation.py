"""Sessions that go on from another: the link to it in their opening, and what they bring over from it as copies."""

from __future__ import annotations

from typing import Any

from vmstore.core.address import Address, page_name
from vmstore.core.page import Origin, PageType, Standing
from vmstore.engine.head import NewSession
from vmstore.errors import ConflictError, InputError, UnknownError
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.results import SessionInfo
from vmstore.store.live.copy_page import Copy, copied
from vmstore.store.recall.segments import segments_at
from vmstore.store.session import Session
from vmstore.views.branch import NEVER, Branch
from vmstore.views.projectors.redactions import policy_at
from vmstore.views.reads.annotations import notes_of

SUMMARIES, CLAIMS = 3, 20  # brought over, the newest
SHARE = 4  # of the new budget a quarter


def continuation(earlier: Session, opening: NewSession, tokens: int) -> tuple[NewSession, list[Copy]]:
    """The opening of a session that goes on from an earlier one, and the pages it begins with.

    It has the earlier one's user, agent and redaction unless it is given others; another user than its own is refused.
    """
    info, lane = earlier.info(), earlier._lane()
    if info.session == opening.name:
        raise InputError(f"session {opening.name!r} cannot continue itself; give the new one another name")
    owner = {word: text for word in ("user", "agent") if (text := getattr(info, word)) is not None} | opening.meta
    if owner.get("user") != info.user:
        raise ConflictError(
            f"session {info.session!r} is of user {info.user!r}, and only that user's sessions continue it; "
            "leave user out",
            code="other-user",
        )
    opened = opening._replace(
        meta=owner,
        origin=Origin.CONTINUE,
        parent=earlier._key,
        parent_position=info.position,
        redaction=opening.redaction or policy_at(lane),
    )
    return opened, _brought(earlier, lane, tokens // SHARE)


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
    out = (Standing.ABANDONED, Standing.SUPERSEDED)
    held = [page for page in rows if page not in notes or notes[page].status not in out]
    return [page_name(page) for page in sorted(held, reverse=True)[:CLAIMS]]


_CLAIMS = """SELECT page FROM pages WHERE type = ? AND session = ? AND page > ? AND page <= ?
  AND page NOT IN (SELECT f.page FROM facts f WHERE f.session = pages.session)"""
