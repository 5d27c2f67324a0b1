"""The fold: commits become rows. Catch-up, recovery, rebuild and verify are this and nothing else.

Rows are collected over a batch and written at its end; what later commits need of earlier ones
is kept at hand, and read from the tables where it is not.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from vmstore.core.mutation import AnyMutation, Open
from vmstore.core.page import Origin
from vmstore.log.commit import Commit, genesis
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.cell_resolver import CellResolver
from vmstore.views.dispatch import Dispatcher, Moment, hash_at, parent_of, uncollected
from vmstore.views.erased_cells import Erasures
from vmstore.views.projector import Projector
from vmstore.views.projectors.residency import ResidencyProjector
from vmstore.views.projectors.sessions import SessionsProjector
from vmstore.views.reads.resolve_asof import moment_at

SESSIONS_MAX = 4096
STAYS_MAX = 200_000


class Fold:
    """A set of projectors at work on one log, with what they keep at hand."""

    def __init__(
        self, log: Log, db: apsw.Connection, projectors: Sequence[type[Projector]], erasures: Erasures
    ) -> None:
        self._log = log
        self._db = db
        self.cellar = CellResolver(log, db, erasures)
        self._projectors = [projector(db) for projector in projectors]
        assert isinstance(self._projectors[0], SessionsProjector), (
            "the others read a fork's lane, which this one writes first"
        )
        self._sessions = next(p for p in self._projectors if isinstance(p, SessionsProjector))
        self._residency = next(p for p in self._projectors if isinstance(p, ResidencyProjector))
        self._spilled = False  # whether names had to be written before the batch was through

    def batch(self, read: Sequence[tuple[Commit, Sequence[AnyMutation]]]) -> None:
        """Folds commits in the order of the log, each with what it holds, and writes their rows."""
        with uncollected():
            self._batch(read)
        if len(self._sessions.at_hand) > SESSIONS_MAX or self._residency.size > STAYS_MAX:
            self.forget()

    def _batch(self, read: Sequence[tuple[Commit, Sequence[AnyMutation]]]) -> None:
        self.cellar.read(read)
        walk = Dispatcher(self._projectors, self._before, self.cellar, self._spill)
        for commit, mutations in read:
            first = mutations[0]
            if type(first) is Open and first.origin == Origin.FORK:
                self._flush()  # what a fork inherits is read from the tables
            walk.through(commit, mutations)
            if self._spilled:
                self._flush()
                self._let_go()
        self._flush()
        assert not any(any(p.rows.values()) for p in self._projectors), (
            "the position that is stored next covers all rows"
        )
        self.cellar.settle()

    def _spill(self) -> None:
        """Writes rows that hold many names; what is kept at hand is let go of after the commit."""
        self._spilled = True
        self._flush()

    def _flush(self) -> None:
        for projector in self._projectors:
            projector.flush()

    def forget(self) -> None:
        """Drops everything in memory, rows not yet written included."""
        self.cellar.forget()
        self._let_go()

    def _let_go(self) -> None:
        self._spilled = False
        for projector in self._projectors:
            projector.forget()

    def _before(self, commit: Commit, first: AnyMutation) -> Moment:
        """The moment before a commit; a fork inherits its parent's."""
        if isinstance(first, Open):
            if first.origin != Origin.FORK:
                return 0, 0, genesis(first.uid)
            lane = Branch(self._db, parent_of(self._db, first))
            return *moment_at(lane, first.parent_position), hash_at(self._log, lane, first.parent_position)
        standing = self._sessions.at_hand.get(commit.session) or self._sessions.standing(commit.session)
        if standing is None or standing.hash is None:
            raise ValueError("it belongs to a session that no commit opens")
        return standing.turns, standing.calls, standing.hash


def fork_moment(db: apsw.Connection, opening: Open) -> tuple[int, int]:
    """The turn and call a fork begins from."""
    return moment_at(Branch(db, parent_of(db, opening)), opening.parent_position)
