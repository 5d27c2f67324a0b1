"""Moments of a live session to come back to: named, listed, forked at, and gone back to in the same session."""

from __future__ import annotations

from vmstore.core.address import page_name
from vmstore.core.asof import AsOf, Position
from vmstore.errors import InputError, UnknownError
from vmstore.live.rewind import RewoundState
from vmstore.live.runtime import Act, Runtime
from vmstore.namespace.namespace import Namespace
from vmstore.views.branch import Branch
from vmstore.views.projectors.lineage import held
from vmstore.views.reads.annotations import notes_of
from vmstore.views.reads.resolve_asof import basis, end_of, moment_at
from vmstore.views.reads.tags import depths


class Checkpoint(Position, frozen=True):
    """A moment of a session that somebody named; `at=` of every question, of `fork` and `rewind` takes it."""

    name: str
    turn: int
    call: int
    at: int

    def __str__(self) -> str:
        return f"checkpoint {self.name!r}"


def checkpoint_at(lane: Branch, position: int, name: str) -> Checkpoint:
    """The checkpoint that stands at a position."""
    turn, call = moment_at(lane, position)
    at: int = lane.db.execute(_AT, (lane.at(position).session, position)).get
    return Checkpoint(position, name, turn, call, at)


def target(act: Act, lane: Branch, to: str | AsOf) -> tuple[int, str]:
    """The position a session is to be set back to, and what that moment is called."""
    if isinstance(to, str):
        known = {name: position for position, name in act.spoken.checkpoints}
        if to not in known:
            raise UnknownError(
                f"there is no checkpoint {to!r}; {Namespace.nearest(to, list(known))}", code="no-checkpoint"
            )
        return known[to], to
    position = basis(lane, to).position
    if end_of(lane, position) != position:
        raise InputError(
            f"{to} is within a commit, and a session goes back to the end of one; the next is position "
            f"{end_of(lane, position)}: name it, or the page by `moment_of`",
            code="within-a-commit",
        )
    return position, to.name if isinstance(to, Checkpoint) else str(to)


def then(namespace: Namespace, act: Act, lane: Branch, position: int) -> RewoundState:
    """The state of a session at a position, beside its state now."""
    namespace.follow()
    runtime = Runtime(namespace.reader, lane, past=True)
    runtime.stand(position)
    if runtime.state.settings is None:
        raise InputError(
            f"at {page_name(position)} the session had no budget yet; go back to a moment after that, or fork"
        )
    older = [page for page in act.spoken.pages if page <= position]
    now = act.state.position
    notes, notes_now = (notes_of(lane, at, older) for at in (position, now))
    linked = held(lane, position), held(lane, now)
    return RewoundState(position, runtime, notes, notes_now, *linked, depths(lane, position), depths(lane, now))


_AT = "SELECT at FROM commits WHERE session = ? AND last >= ? ORDER BY last LIMIT 1"
