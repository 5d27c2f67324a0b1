"""Brings a conversation to where its session stands, by folding what it has not seen of the log.

One that has seen nothing is loaded that way too.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

from vmstore.capture.conversation.catch_up import CatchUp, unlike
from vmstore.capture.conversation.conversation import Conversation
from vmstore.core.mutation import AnyMutation, Open
from vmstore.core.page import Origin
from vmstore.engine.engine import Engine
from vmstore.log.commit import Commit, genesis
from vmstore.log.port import Log
from vmstore.views.branch import NEVER, Branch
from vmstore.views.cell_resolver import CellResolver
from vmstore.views.dispatch import Dispatcher, decoded, hash_at, uncollected
from vmstore.views.log_reader import LogReader
from vmstore.views.stored_cells import read_cells


def reader(engine: Engine, lane: Branch) -> Callable[[int], bytes]:
    """Reads the content made at a position."""

    def read(position: int) -> bytes:
        engine.follow()
        row = engine.projection.db.execute(
            "SELECT cell, commitment FROM versions WHERE session = ? AND position = ?", (lane.owner(position), position)
        ).fetchone()
        return b"" if row is None or row[0] is None else _content(engine, *row)

    return read


def _content(engine: Engine, cell: int, commitment: bytes) -> bytes:
    return read_cells(engine.log, engine.projection.db, {cell: commitment}, unlike)[cell]


def load(engine: Engine, session: int) -> Conversation:
    """A session's conversation as the log left it."""
    conversation = Conversation()
    follow(engine, session, conversation, 0)
    return conversation


def follow(engine: Engine, session: int, conversation: Conversation, position: int) -> int:
    """Folds what a session's lane holds after the position its conversation stands at; where it stands then.

    Costs what there is to fold, and a look at the context. A conversation is of no use where this raises.
    """
    engine.follow()
    with engine.projection.moment_held(), uncollected():  # others may fold meanwhile
        lane = Branch(engine.projection.db, session)
        conversation.read = reader(engine, lane)
        unseen = CatchUp(conversation, position, hash_at(engine.log, lane, position) if position else b"")
        cellar = CellResolver(engine.log, lane.db, lane=lane)
        walk = Dispatcher([unseen], lambda commit, first: (0, 0, _before(first, unseen)), cellar)
        for commit in _commits(engine.log, lane, position):
            cellar.note(commit)
            walk.through(commit, decoded(commit))
        unseen.settle(engine.log, engine.projection.db)
    if unseen.position - position > COLLECTED_MIN and gc.isenabled():
        gc.collect()  # now, and not in a later call: the collector comes by when much is new, and looks at all of it
    return unseen.position


def _before(first: AnyMutation, unseen: CatchUp) -> bytes:
    """The hash that a commit of a lane follows."""
    return genesis(first.uid) if isinstance(first, Open) and first.origin != Origin.FORK else unseen.hash


def _commits(log: Log, lane: Branch, position: int) -> Iterator[Commit]:
    """The commits of a lane after a position, the oldest first."""
    written = LogReader(log, lane.db)
    for stretch in reversed([part for part in lane.upto(NEVER) if part.high > position]):
        yield from written.commits(stretch.session, position, stretch.high)


COLLECTED_MIN = 10_000  # mutations read at once
