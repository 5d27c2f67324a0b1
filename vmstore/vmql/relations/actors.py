"""Who did what a mutation tells: the user, the model, a tool or the system, and which one of them.

Both follow from the mutation and from what the log holds of its session, so they need no field of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from vmstore.core.decision import POLICY_NAMES, Use
from vmstore.core.mutation import (
    AnyMutation,
    Cite,
    Compress,
    Create,
    Evict,
    FaultDenied,
    FaultIn,
    Message,
    Prefetch,
    Redact,
    Reference,
    Reply,
    ToolRun,
    Turn,
    Unknown,
    Unpin,
)
from vmstore.core.page import METHODS, LinkKind, Method, PageType, Role
from vmstore.core.redaction import RedactionSource
from vmstore.views.branch import NEVER, Branch
from vmstore.views.erased_cells import seen
from vmstore.views.projectors.pages import object_of
from vmstore.vmql.host import Host

USER, MODEL, TOOL, SYSTEM = "user", "model", "tool", "system"
_ROLES = {Role.USER: USER, Role.ASSISTANT: MODEL, Role.TOOL: TOOL}
_SAID = (PageType.TRANSCRIPT, PageType.ARTIFACT)  # pages that somebody said or handed in; others were made of them
_ASKED = {Use.FAULT: MODEL, Use.QUOTE: MODEL, Use.REUSE: MODEL, Use.TOOL: TOOL}
_DECIDED = (FaultIn, FaultDenied, Prefetch, Evict, Unpin)
KNOWN_MAX = 10_000  # names remembered

Actor = Callable[[int, int, int, AnyMutation], tuple[str | None, str | None]]
"""Who did a mutation, by its session, the call in force and its position."""


def actor_of(mutation: Any) -> str | None:
    """Who did it; None of a kind that this version does not know."""
    match mutation:
        case Unknown():
            return None
        case Turn():
            return USER
        case Reply() | Cite():
            return MODEL
        case ToolRun():
            return TOOL
        case Reference():
            return _ASKED.get(Use(mutation.use), SYSTEM) if mutation.use in tuple(Use) else SYSTEM
        case Message():
            return _ROLES.get(Role(mutation.role), SYSTEM)
        case Create() if mutation.type in _SAID:
            return _ROLES.get(Role(mutation.role), SYSTEM)
        case _:
            return SYSTEM


def namer(world: Host) -> Actor:
    """What tells the actors of a namespace's mutations."""

    @lru_cache(maxsize=KNOWN_MAX)
    def user(session: int) -> str | None:
        return _last(world.lane(session), "user")

    @lru_cache(maxsize=KNOWN_MAX)
    def model(session: int, call: int) -> str | None:
        for stretch in reversed(world.lane(session).upto(NEVER)):
            for name, aside in world.views.execute(_CALL, (stretch.session, call)):
                return name or _aside(world, aside)
        return None

    def named(session: int, call: int, position: int, mutation: AnyMutation) -> tuple[str | None, str | None]:
        """Who did what a mutation tells, and which of them; None where nobody is known."""
        who = actor_of(mutation)
        which: str | None = None
        with world.asking():
            if isinstance(mutation, Create) and (actor := _labelled(world, session, position)):
                which = actor
            elif who == USER:
                which = user(session)
            elif who == MODEL:
                which = model(session, call)
            elif who == TOOL:
                which = _tool(world, session, position if isinstance(mutation, Create) else _read_page(mutation))
        return who, which or _part(mutation)

    return named


def _part(mutation: Any) -> str | None:
    """The part of the system that did it, where the mutation says: a policy, a method, the detectors."""
    if isinstance(mutation, _DECIDED):
        return None if mutation.why is None else POLICY_NAMES.get(mutation.why.policy)
    if isinstance(mutation, Compress):
        return METHODS.get(Method(mutation.method)) if mutation.method in tuple(Method) else None
    if isinstance(mutation, Redact) and mutation.by in tuple(RedactionSource):
        return RedactionSource(mutation.by).word
    return None


def _last(lane: Branch, column: str) -> str | None:
    """What a session says of itself, or the one it was forked from."""
    for stretch in reversed(lane.stretches):
        value: str | None = lane.db.execute(f"SELECT {column} FROM sessions WHERE session = ?", (stretch.session,)).get
        if value:
            return value
    return None


def _labelled(world: Host, session: int, page: int) -> str | None:
    """Whom a page's labels name."""
    labels: Any = world.views.execute(_LABELS, (session, page)).get
    actor = object_of(labels).get("actor") if labels and '"actor"' in labels else None
    return actor if isinstance(actor, str) else None


def _read_page(mutation: Any) -> int:
    """The page that a tool read, of which nobody but its call says by which tool."""
    if isinstance(mutation, ToolRun):
        return mutation.result
    return mutation.page if isinstance(mutation, Reference) else 0


def _tool(world: Host, session: int, page: int) -> str | None:
    """The tool that answered with a page, as its call names it."""
    lane = world.lane(session)
    calls = [target for (target,) in lane.rows(_CALLED, [page])]
    cells = [cell for _, cell in lane.rows(_CELLS, calls) if cell is not None]
    for sealed in seen(world.log, world.views, cells).values():
        if not sealed.erased:
            return _name(object_of(sealed.content))
    return None


def _name(fields: dict[str, Any]) -> str | None:
    """The name of a tool in its call, beside its arguments or around them."""
    inner = [fields, *(value for value in fields.values() if isinstance(value, dict))]
    return next(
        (tool_call["name"] for tool_call in inner if isinstance(tool_call.get("name"), str) and tool_call["name"]), None
    )


def _aside(world: Host, cell: int | None) -> str | None:
    """The model that an answer names."""
    sealed = None if cell is None else seen(world.log, world.views, [cell]).get(cell)
    model = None if sealed is None or sealed.erased else object_of(sealed.content).get("model")
    return model if isinstance(model, str) else None


_CALL = "SELECT model, aside FROM calls WHERE session = ? AND call = ?"
_LABELS = "SELECT labels FROM pages WHERE session = ? AND page = ?"
_CALLED = f"""SELECT target FROM links WHERE session = ? AND kind = {int(LinkKind.CAUSED_BY)}
  AND source IN (SELECT value FROM json_each(?))"""
_CELLS = "SELECT page, cell FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"
