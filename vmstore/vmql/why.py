"""Why a page is in a context, or is not: the chain of what happened to it, each link with its reason.

Where the log holds no decision, as in a session that was recorded or imported, it says so, and
says what is known: which request had the page first, which no longer had it, what came instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vmstore.core.asof import Position
from vmstore.core.page import Level, LinkKind, PageType, Role
from vmstore.views.context import Shown, contents
from vmstore.views.lane import Lane
from vmstore.views.moment import moment_at
from vmstore.views.residency import residents_at
from vmstore.vmql.scope import OneSession
from vmstore.vmql.world import Seen

Row = tuple[Any, ...]
SHOWN_MAX = 5  # of the pages that came instead
UNDECIDED = "the log holds no decision here"
_TYPE = Shown._fields.index("type") - Shown._fields.index("message")
_TOKENS = Shown._fields.index("tokens") - Shown._fields.index("message")


def chain(scope: OneSession, page: int, seen: Seen) -> Iterator[Row]:
    """What brought a page into a context, what kept it, or what put it out: oldest first, the answer last."""
    at = seen.basis
    here = (at.position, at.turn, at.call)
    if page > at.position:
        turn, call = moment_at(scope.lane, page)
        made = f"it was made at position {page}, in turn {turn}, after call {at.call}"
        yield (page, turn, call, "create", page, made)
        yield (*here, "out", page, f"not in the context of call {at.call}: it was not there yet")
        return
    entered = None
    for event in scope.world.session(scope.name).history(f"p{page}", Position(at.position)):
        if event.event == "enter":
            entered = event
        yield (event.position, event.turn, event.call, event.event, page, _reason(scope.lane, page, event))
        if event.event == "leave":
            yield from _instead(scope.lane, page, event)
    if page in seen.page_ids:
        assert entered is not None, "what is in a context entered it"
        kept = at.call - entered.call
        since = f"unbroken since call {entered.call}" if kept else "since this very call"
        yield (*here, "in", page, f"in the context of call {at.call}, {since}: no request since left it out")
    elif entered is None:
        yield (
            *here,
            "out",
            page,
            f"not in the context of call {at.call}: no request up to it had the page; {UNDECIDED}",
        )
    else:
        yield (*here, "out", page, f"not in the context of call {at.call}: no request since it left had it again")


def _reason(lane: Lane, page: int, event: Any) -> str:
    """What the log says about an event, or what is known."""
    if event.event == "enter":
        return f"the request of call {event.call} had it; {UNDECIDED}"
    if event.event == "leave":
        return f"the request of call {event.call} no longer had it; {UNDECIDED}"
    if event.event == "shown":
        return f"shown {Level(event.level).word}, version {event.version}, from this call on"
    if event.event == "create":
        role = lane.db.execute("SELECT role FROM pages WHERE session = ? AND page = ?", (lane.owner(page), page)).get
        made = f"made by {Role(role).word} in turn {event.turn}, {event.tokens} tokens"
        return f"{made}; {event.detail}" if event.detail else made
    if event.event == "compress":
        return f"a form of {event.tokens} tokens was made of it: {event.method}, level {Level(event.level).word}"
    if event.event == "update":
        return f"its content changed: version {event.version}, {event.tokens} tokens"
    return str(event.detail)


def _instead(lane: Lane, page: int, event: Any) -> Iterator[Row]:
    """What entered with the pack that left a page out: those made from it, then the largest."""
    came = [
        (other, content) for _, other, since, content in residents_at(lane, event.position) if since == event.position
    ]
    what = contents(lane, [content for _, content in came])
    derived = _made_from(lane, page, event.position)

    def weight(one: tuple[int, int]) -> tuple[bool, int, int]:
        return one[0] not in derived, -what[one[1]][_TOKENS], one[0]

    for other, content in sorted(came, key=weight)[:SHOWN_MAX]:
        told = f"entered at the same pack: {PageType(what[content][_TYPE]).word}, {what[content][_TOKENS]} tokens"
        told += f"; made from p{page}" if other in derived else ""
        yield (event.position, event.turn, event.call, "enter", other, told)
    if len(came) > SHOWN_MAX:
        more = f"{len(came) - SHOWN_MAX} more pages entered at the same pack"
        yield (event.position, event.turn, event.call, "enter", None, more)


def _made_from(lane: Lane, page: int, position: int) -> set[int]:
    found: set[int] = set()
    for stretch in lane.upto(position):
        rows = lane.db.execute(_DERIVED, (stretch.session, page, stretch.high))
        found.update(source for (source,) in rows)
    return found


_DERIVED = f"""SELECT source FROM links WHERE session = ? AND target = ? AND position <= ?
  AND kind IN ({int(LinkKind.DERIVES)}, {int(LinkKind.REPRESENTS)}, {int(LinkKind.SUPERSEDES)})"""
