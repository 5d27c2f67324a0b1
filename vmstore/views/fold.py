"""The fold: commits become rows. Catch-up, recovery, rebuild and verify are this and nothing else.

A commit is folded only where it follows the one before it in its session and matches its hash.
Rows are collected over a batch and written at its end; what later commits need of earlier ones
is kept at hand, and read from the tables where it is not.
"""

from __future__ import annotations

import gc
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

from vmstore.core.mutation import MUTATION_NAMES, AnyMutation, Mutation, Open, Pack, Turn, decode
from vmstore.core.page import Origin
from vmstore.errors import CorruptError
from vmstore.log.commit import Commit, genesis, relink
from vmstore.log.port import Log
from vmstore.views.cellar import Cellar
from vmstore.views.lane import Lane
from vmstore.views.moment import moment_at
from vmstore.views.projector import Fact, Projector
from vmstore.views.residency import Residency
from vmstore.views.sessions import Sessions

SESSIONS_MAX = 4096
STAYS_MAX = 200_000
Handler = Callable[[Fact, Any], None]
Moment = tuple[int, int, bytes]
"""Where a session stands: turn, call, and the hash its next commit follows."""


class Fold:
    """A set of projectors at work on one log, with what they keep at hand."""

    def __init__(self, log: Log, db: apsw.Connection, projectors: Sequence[type[Projector]]) -> None:
        self._log = log
        self._db = db
        self.cellar = Cellar(log, db)
        self._projectors = [projector(db) for projector in projectors]
        self._sessions = next(p for p in self._projectors if isinstance(p, Sessions))
        self._residency = next(p for p in self._projectors if isinstance(p, Residency))

    def batch(self, commits: Iterable[Commit]) -> None:
        """Folds commits in the order of the log and writes their rows."""
        with uncollected():
            self._batch(commits)
        if len(self._sessions.at_hand) > SESSIONS_MAX or self._residency.size > STAYS_MAX:
            self.forget()

    def _batch(self, commits: Iterable[Commit]) -> None:
        decoded = [(commit, _decoded(commit)) for commit in commits]
        self.cellar.read(decoded)
        whole, handlers = self._handlers()
        for commit, mutations in decoded:
            first = mutations[0]
            if type(first) is Open and first.origin == Origin.FORK:
                self._flush()  # what a fork inherits is read from the tables
            self._commit(commit, mutations, whole, handlers)
        self._flush()
        self.cellar.settle()

    def _handlers(self) -> tuple[list[Handler], dict[type, tuple[Handler, ...]]]:
        """The handlers of whole commits, and of each kind of mutation."""
        whole: list[Handler] = [p.on_commit for p in self._projectors if type(p).on_commit is not Projector.on_commit]
        names = {kind: "on_" + MUTATION_NAMES[kind.NUMBER] for kind in Mutation.__subclasses__()}
        return whole, {
            kind: tuple(getattr(p, name) for p in self._projectors if hasattr(p, name)) for kind, name in names.items()
        }

    def _flush(self) -> None:
        for projector in self._projectors:
            projector.flush()

    def forget(self) -> None:
        """Lets go of all that is at hand, rows not yet written included."""
        self.cellar.forget()
        for projector in self._projectors:
            projector.forget()

    def _commit(
        self,
        commit: Commit,
        mutations: Sequence[AnyMutation],
        whole: Sequence[Handler],
        handlers: dict[type, tuple[Handler, ...]],
    ) -> None:
        try:
            turn, call, previous = self._before(commit.session, mutations[0])
            sound = relink(previous, commit) == commit.hash
        except (ValueError, struct.error) as error:
            raise CorruptError(f"commit {commit.ordinal} cannot be read ({error}); run `vmstore verify`") from error
        if not sound:
            raise CorruptError(f"commit {commit.ordinal} does not match its hash; run `vmstore verify`")
        self.cellar.note(commit)
        fact = Fact(commit, turn, call, self.cellar)
        for see in whole:
            see(fact, mutations)
        position = commit.first
        for mutation in mutations:
            kind = type(mutation)
            if kind is Turn:
                fact.turn = mutation.number  # type: ignore[union-attr]
            elif kind is Pack:
                fact.call = mutation.call  # type: ignore[union-attr]
            fact.position = position
            position += 1
            for handler in handlers.get(kind, ()):
                handler(fact, mutation)

    def _before(self, session: int, first: AnyMutation) -> Moment:
        """What is in force before a commit; a fork goes on with its parent's."""
        if isinstance(first, Open):
            if first.origin != Origin.FORK:
                return 0, 0, genesis(first.uid)
            turn, call = fork_moment(self._db, first)
            return turn, call, self._fork_hash(first)
        standing = self._sessions.at_hand.get(session) or self._sessions.standing(session)
        if standing is None or standing.hash is None:
            raise ValueError("it belongs to a session that no commit opens")
        return standing.turns, standing.calls, standing.hash

    def _fork_hash(self, opening: Open) -> bytes:
        parent, position = _parent(self._db, opening), opening.parent_position
        ordinal: Any = self._db.execute(
            "SELECT ordinal FROM commits WHERE session = ? AND last = ?",
            (Lane(self._db, parent).owner(position), position),
        ).get
        if ordinal is None:
            raise ValueError(f"it forks at position {position}, where no commit ends")
        return self._log.tail(ordinal - 1, 1)[0].hash


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


def _decoded(commit: Commit) -> list[AnyMutation]:
    try:
        mutations = decode(commit.body)
    except ValueError as error:
        raise CorruptError(f"commit {commit.ordinal} cannot be read ({error}); run `vmstore verify`") from error
    if not mutations:
        raise CorruptError(f"commit {commit.ordinal} cannot be read (it holds nothing); run `vmstore verify`")
    return mutations


def _parent(db: apsw.Connection, opening: Open) -> int:
    parent: Any = db.execute("SELECT session FROM sessions WHERE uid = ?", (opening.parent,)).get
    if parent is None:
        raise ValueError("it forks from a session that is not there")
    return int(parent)


def fork_moment(db: apsw.Connection, opening: Open) -> tuple[int, int]:
    """The turn and call a fork goes on from."""
    return moment_at(Lane(db, _parent(db, opening)), opening.parent_position)
