"""A session's commits in order, as they are in the log: its parents' up to the forks first."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from vmstore.core.erasure import ErasedContent
from vmstore.core.mutation import (
    AnyMutation,
    CellRef,
    Create,
    Mark,
    Message,
    Pack,
    Settings,
    decode,
)
from vmstore.core.page import PageType, Role
from vmstore.log.commit import Commit
from vmstore.log.port import Log
from vmstore.views.branch import NEVER, Branch
from vmstore.views.cell_resolver import CellResolver
from vmstore.views.log_reader import LogReader

READ_AT_ONCE = 256  # commits
NOTHING = ErasedContent(b"{}")  # what settings, names and notes that were erased are read as


class LoggedCommit(msgspec.Struct, frozen=True):
    """One commit: its mutations by position, and when it happened."""

    commit: Commit
    mutations: list[tuple[int, AnyMutation]]

    @property
    def at(self) -> int:
        """The time of the commit, in microseconds since 1970."""
        return self.commit.at


class SessionLog:
    """Reads what a session is made of; the views are at the log's end."""

    def __init__(self, log: Log, lane: Branch) -> None:
        self._reader = LogReader(log, lane.db)
        self._lane = lane
        self._cellar = CellResolver(log, lane.db)
        self._within: Commit | None = None

    def after(self, position: int, upto: int = NEVER) -> Iterator[LoggedCommit]:
        """The commits that hold anything after a position, up to another, the oldest first."""
        for stretch in reversed(self._lane.upto(upto)):
            low = max(position, stretch.low)
            while commits := list(self._reader.commits(stretch.session, low, stretch.high, limit=READ_AT_ONCE)):
                read = [(commit, decode(commit.body)) for commit in commits]
                self._cellar.want(
                    commit.cell + ref for commit, body in read for mutation in body for ref in _asked(mutation)
                )
                for commit, body in read:
                    self._within = commit
                    inside = enumerate(body, commit.first)
                    yield LoggedCommit(commit, [(at, m) for at, m in inside if low < at <= stretch.high])
                    low = commit.first + commit.count - 1
                self._cellar.settle()

    def cell(self, position: int, ref: CellRef) -> bytes:
        """The bytes a mutation of the commit under way names; CorruptError where they are not what they were."""
        assert self._within is not None and self._within.first <= position, "a cell is read as its commit is met"
        return self.sealed(self._within, ref)

    def sealed(self, commit: Commit, ref: CellRef) -> bytes:
        """The bytes that a commit names; an empty JSON object where they were erased."""
        found = self._cellar.content(commit, ref)
        return NOTHING if found is None else found


def _asked(mutation: AnyMutation) -> Iterator[int]:
    """The cells of a mutation that a fold of a session reads, except those that few mutations name."""
    refs: tuple[CellRef | None, ...] = ()
    match mutation:
        case Create():
            refs = mutation.labels, mutation.content if mutation.type == PageType.CLAIM else None
        case Message() if mutation.role == Role.ASSISTANT:
            refs = (mutation.envelope,)
        case Pack():
            refs = (mutation.rest,)
        case Mark():
            refs = mutation.name, mutation.note
        case Settings():
            refs = (mutation.told,)
    return (ref for ref in refs if isinstance(ref, int))
