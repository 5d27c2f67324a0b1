"""The cut: commits of a stretch of the log become columns. It follows the log as the views do.

What was in force before the stretch is asked of the views, which must be ahead of it.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from vmstore.columns.schema import FIELDS, MUTATIONS, NULL, RESIDENCIES, TABLES
from vmstore.core.mutation import MUTATION_NAMES, AnyMutation, Create, Open, Pack, Turn, Unknown, Update
from vmstore.core.page import Origin
from vmstore.errors import CorruptError
from vmstore.log.commit import Commit, genesis
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.cell_resolver import CellResolver
from vmstore.views.dispatch import Dispatcher, Moment, decoded, hash_at, parent_of, uncollected
from vmstore.views.projector import PlacedMutation
from vmstore.views.reads.resolve_asof import moment_at

READ = 256  # commits at a time
Column = npt.NDArray[np.int64]
Columns = dict[str, Column]


class SegmentWriter:
    """Commits after an ordinal as columns; follows the log further whenever it is asked to.

    `ordinal` is the last commit in it, `last` that commit's hash, `chain` SHA-256 over the hashes
    of all of them.
    """

    def __init__(self, log: Log, views: apsw.Connection, after: int) -> None:
        self.after = after
        self.ordinal = after
        self.last = b""
        self.chain = hashlib.sha256()
        self.mutations = 0
        self._log = log
        self._views = views
        self._standing: dict[int, Moment] = {}
        self._shift = 0  # a mutation's row is its position and this
        self._commits = array("q")  # ordinal, session, first, count, at, logged_at
        self._moments = array("q")  # row, turn, call: from that row on
        self._kinds = array("q")
        self._rows = {kind: array("q") for kind in FIELDS}  # of each kind
        self._fields = {kind: array("q") for kind in FIELDS}  # what stands in them
        self._moves = array("q")  # row, page, content, level, rank
        for kind, fields in FIELDS.items():
            if fields and not hasattr(self, name := f"on_{MUTATION_NAMES[kind.NUMBER]}"):
                setattr(self, name, self._taking(kind))
        self._pack = self._taking(Pack)

    def follow(self, upto: int, *, mutations_max: int | None = None) -> None:
        """Cuts on, up to an ordinal or until so many mutations are in it; a commit is never divided."""
        walk = Dispatcher([self], self._before, CellResolver(self._log, self._views))
        try:
            with uncollected():
                while self.ordinal < upto:
                    batch = self._log.tail(self.ordinal, min(READ, upto - self.ordinal))
                    if not batch:
                        raise CorruptError(
                            f"the log ends at ordinal {self.ordinal}; run `vmstore verify`", code="log-cut"
                        )
                    for commit in batch:
                        if mutations_max is not None and 0 < self.mutations > mutations_max - commit.count:
                            return
                        self._commit(walk, commit)
        except OverflowError as error:
            raise CorruptError(
                f"commit {self.ordinal + 1} cannot be cut ({error}); run `vmstore verify`", code="commit-damaged"
            ) from error

    def _commit(self, walk: Dispatcher, commit: Commit) -> None:
        placed = walk.through(commit, decoded(commit))
        self._standing[commit.session] = placed.turn, placed.call, commit.hash
        self.ordinal, self.last = commit.ordinal, commit.hash
        self.chain.update(commit.hash)
        self.mutations = len(self._kinds)

    def _before(self, commit: Commit, first: AnyMutation) -> Moment:
        """The moment before a commit: from this writer, or from the views."""
        standing = self._standing.get(commit.session)
        if standing is not None:
            return standing
        session, position = commit.session, commit.first - 1
        if isinstance(first, Open):
            if first.origin != Origin.FORK:
                return 0, 0, genesis(first.uid)
            session, position = parent_of(self._views, first), first.parent_position
        lane = Branch(self._views, session)
        return *moment_at(lane, position), hash_at(self._log, lane, position)

    # ---- the handlers

    def on_commit(self, placed: PlacedMutation, mutations: Sequence[Any]) -> None:
        """Takes down where the commit stands, and of which kinds its mutations are."""
        c, row = placed.commit, len(self._kinds)
        self._shift = row - c.first
        self._commits.extend((c.ordinal, c.session, c.first, len(mutations), c.at, c.logged_at))
        self._moments.extend((row, placed.turn, placed.call))
        self._kinds.extend([m.number if type(m) is Unknown else m.NUMBER for m in mutations])

    def on_turn(self, placed: PlacedMutation, m: Turn) -> None:
        """Takes down from where on the turn is in force."""
        self._moments.extend((self._shift + placed.position, placed.turn, placed.call))

    def on_pack(self, placed: PlacedMutation, m: Pack) -> None:
        """Takes down the call, what it brought in and what it let go."""
        row, move = self._shift + placed.position, self._moves.extend
        self._moments.extend((row, placed.turn, placed.call))
        self._pack(placed, m)
        for page in m.left:
            move((row, page, NULL, NULL, NULL))
        for page, content, level, rank in m.entered:
            move((row, page, content, level, rank))

    def _taking(self, kind: type) -> Callable[[PlacedMutation, Any], None]:
        """A handler that takes down the fields of a kind."""
        row, extend = self._rows[kind].append, self._fields[kind].extend
        names = [field for field, _ in FIELDS[kind]]
        read: Callable[[Any], tuple[Any, ...]] = (
            attrgetter(*names) if names[1:] else lambda m: (getattr(m, names[0]),)  # which gives no tuple for one
        )

        def take(placed: PlacedMutation, m: Any) -> None:
            row(self._shift + placed.position)
            values = read(m)
            extend([NULL if value is None else value for value in values] if None in values else values)

        return take

    # ---- the columns

    def table(self, name: str) -> Columns:
        """The columns of a table, NULL where a row has no value."""
        places = self._places()
        if name == RESIDENCIES:
            row, page, content, level, rank = _rows(self._moves, 5).T
            fields = {column: values[row] for column, values in places.items()}
            return {**fields, "page": page, "content": content, "level": level, "rank": rank}
        found = self._filled(places, TABLES[name])
        if name == MUTATIONS:
            return found
        rows = np.flatnonzero(found["version"] != NULL)
        return {column: values[rows] for column, values in found.items()}

    def _places(self) -> Columns:
        """The place of each mutation."""
        commits, moments = _rows(self._commits, 6), _rows(self._moments, 3)
        rows = len(self._kinds)
        ordinal, session, first, count, at, logged_at = commits.T
        starts = np.cumsum(count) - count
        lasts = np.diff(moments[:, 0], append=rows)
        return {
            "ordinal": np.repeat(ordinal, count),
            "session": np.repeat(session, count),
            "position": np.arange(rows) + np.repeat(first - starts, count),
            "turn": np.repeat(moments[:, 1], lasts),
            "call": np.repeat(moments[:, 2], lasts),
            "at": np.repeat(at, count),
            "logged_at": np.repeat(logged_at, count),
        }

    def _filled(self, places: Columns, columns: Sequence[str]) -> Columns:
        """Columns of every mutation, with the fields of its kind that stand in them."""
        given = places | {"kind": np.array(self._kinds, dtype=np.int64)}
        found = {column: given[column] if column in given else np.full(len(self._kinds), NULL) for column in columns}
        for kind, fields in FIELDS.items():
            rows = np.array(self._rows[kind], dtype=np.int64)
            for (_, column), values in zip(fields, _rows(self._fields[kind], max(len(fields), 1)).T, strict=False):
                if column in found:
                    found[column][rows] = values
            if kind is Create:
                found["page"][rows] = found["position"][rows]
                found["version"][rows] = 1
            if kind in (Create, Update):
                found["level"][rows] = 0
        return found


def _rows(flat: array[int], width: int) -> Column:
    return np.array(flat, dtype=np.int64).reshape(-1, width)
