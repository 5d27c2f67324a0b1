"""The walk along the log: each commit held against the chain, each mutation passed on with its moment.

Every follower of the log does it this way; they differ in who listens and in where they learn
what was in force before a commit.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import apsw

from vmstore.core.mutation import MUTATION_NAMES, AnyMutation, Mutation, Open, Pack, Turn, decode
from vmstore.errors import CorruptError
from vmstore.log.commit import Commit, follows
from vmstore.log.port import Log
from vmstore.views.branch import Branch, holder_of
from vmstore.views.cell_resolver import CellResolver
from vmstore.views.log_reader import LogReader
from vmstore.views.projector import PlacedMutation, Projector, check_handlers

GIVEN_MAX = 8 << 20  # bytes of names and labels that listeners may hold before they are written
Handler = Callable[[PlacedMutation, Any], None]
Moment = tuple[int, int, bytes]
"""Where a session stands: turn, call, and the hash its next commit follows."""


_checked: Callable[[type], None] = cache(check_handlers)  # of listeners that are no projectors too, once each


@cache
def _names() -> dict[str, type]:
    """The name of each kind's handler."""
    return {"on_" + MUTATION_NAMES[kind.NUMBER]: kind for kind in Mutation.__subclasses__()}


def _handled(listener: type) -> frozenset[str]:
    """The handlers of a class of listeners, by name; to look for the others by each batch costs more than they do."""
    return frozenset(name for name in _names() if hasattr(listener, name))


_followed: Callable[[type], frozenset[str]] = cache(_handled)


class Dispatcher:
    """Hands commits and their mutations to the handlers of its listeners.

    A handler is a listener's `on_<kind>(fact, mutation)`; its `on_commit(fact, mutations)` sees a
    commit first. `before` tells what is in force before a commit, given its first mutation; it
    raises ValueError where that cannot be. `spill` is called where listeners may hold many names.
    """

    def __init__(
        self,
        listeners: Sequence[Any],
        before: Callable[[Commit, AnyMutation], Moment],
        cellar: CellResolver,
        spill: Callable[[], None] | None = None,
    ) -> None:
        for kind in {type(listener) for listener in listeners}:
            _checked(kind)
        self._before = before
        self._cellar = cellar
        self._spill = spill
        self._whole: list[Handler] = [p.on_commit for p in listeners if type(p).on_commit is not Projector.on_commit]
        self._handlers: dict[type, list[Handler]] = {kind: [move] for kind, move in _MOVES.items()}
        for listener in listeners:
            for name in _followed(type(listener)) | (_names().keys() & vars(listener).keys()):
                self._handlers.setdefault(_names()[name], []).append(getattr(listener, name))

    def through(self, commit: Commit, mutations: Sequence[AnyMutation]) -> PlacedMutation:
        """Walks through one commit; the moment at its end. Raises CorruptError where it breaks the chain."""
        try:
            assert mutations, "`decoded` refuses a commit that holds nothing"
            turn, call, previous = self._before(commit, mutations[0])
        except ValueError as error:
            raise CorruptError(
                f"commit {commit.ordinal} cannot be read ({error}); run `vmstore verify`", code="commit-damaged"
            ) from error
        if not follows(previous, commit):
            raise CorruptError(
                f"commit {commit.ordinal} does not match its hash; run `vmstore verify`", code="commit-damaged"
            )
        self._cellar.note(commit)
        placed = PlacedMutation(commit, turn, call, self._cellar)
        for see in self._whole:
            see(placed, mutations)
        position = commit.first
        handlers, cellar, spill = self._handlers, self._cellar, self._spill
        for mutation in mutations:
            placed.position = position
            position += 1
            for handler in handlers.get(type(mutation), ()):
                handler(placed, mutation)
            if cellar.given > GIVEN_MAX and spill is not None:
                spill()
                cellar.given = 0
        return placed


def _turned(placed: PlacedMutation, m: Turn) -> None:
    """A turn begins with the mutation that says so."""
    placed.turn = m.number


def _called(placed: PlacedMutation, m: Pack) -> None:
    """A call is made by its pack."""
    placed.call = m.call


_MOVES: dict[type, Handler] = {Turn: _turned, Pack: _called}
"""What moves a fact on, before anybody sees it."""


def decoded(commit: Commit) -> list[AnyMutation]:
    """The mutations of a commit; raises CorruptError where there are none to read."""
    try:
        mutations = decode(commit.body)
    except ValueError as error:
        raise CorruptError(f"commit {commit.ordinal} cannot be read ({error}); run `vmstore verify`") from error
    if not mutations:
        raise CorruptError(
            f"commit {commit.ordinal} cannot be read (it holds nothing); run `vmstore verify`", code="commit-damaged"
        )
    return mutations


def parent_of(db: apsw.Connection, opening: Open) -> int:
    """The session that another begins from; raises ValueError where it is not there."""
    parent: Any = db.execute("SELECT session FROM sessions WHERE uid = ?", (opening.parent,)).get
    if parent is None:
        parent = holder_of(db, opening.parent_position)
    if parent is None:
        raise ValueError("it forks from a session that is not there")
    return int(parent)


def hash_at(log: Log, lane: Branch, position: int) -> bytes:
    """The hash of the commit that ends at a position of a lane; raises ValueError where none does."""
    commit = LogReader(log, lane.db).ending(lane.owner(position), position)
    if commit is None:
        raise ValueError(f"it follows position {position}, where no commit ends")
    return commit.hash


@contextmanager
def uncollected() -> Iterator[None]:
    """Keeps the collector from looking through a batch's rows again and again; they hold no cycles."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
