"""The one gate: checks mutations against the rules, seals them and appends them to the log.

A batch collects mutations of one session, checked one by one against the head as it will be;
nothing is written until the batch is committed, and then all of it or none.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, TypeVar

import apsw
import msgspec

from vmstore.core.clock import Clock, IdSource
from vmstore.core.mutation import CellRef, Open, Redact
from vmstore.core.page import Origin
from vmstore.engine.batch import Batch
from vmstore.engine.dedup import KnownContents, SealedContent
from vmstore.engine.head import EmptyLookups, GateHead, NewSession
from vmstore.engine.lookups import ViewLookups, fork_hash, load_head, parent_uid
from vmstore.engine.named_cells import BatchContents
from vmstore.engine.redaction import BatchRedaction, Redactors
from vmstore.engine.system_session import RegionGuard, check_name, let
from vmstore.errors import OvertakenError, UnknownError
from vmstore.log.commit import Commit, genesis
from vmstore.log.port import Append, Log
from vmstore.views.branch import Branch
from vmstore.views.projection import Projection


def lost(db: apsw.Connection, session: int, refs: Iterable[CellRef]) -> bool:
    """Whether any of some cells that a session inherits was erased; the views are at the log's end."""
    lane = Branch(db, session)
    return any(
        db.execute(_LOST, (lane.owner(ref[0]), ref[0], ref[1])).fetchone() is not None
        for ref in refs
        if not isinstance(ref, int)
    )


_LOST = """SELECT 1 FROM commits c JOIN erased e ON e.cell = c.cell + ?3
  WHERE c.session = ?1 AND c.last = (SELECT min(last) FROM commits WHERE session = ?1 AND last >= ?2)"""


HEADS_MAX = 64
UNSETTLED_MAX = 131_072  # mutations of all heads that the views may not hold; some 250 B each
NEAR_MAX = 1_024  # mutations that a head has at hand though the views hold them
FOLDED_MIN = 4_096  # mutations folded by a call that finds more than that


T = TypeVar("T")


class Arrival(NamedTuple):
    """Commits of another log that go on where a session stands here: its key, 0 of a new one, and its position."""

    commits: Sequence[Commit]
    session: int
    position: int


class Ingested(NamedTuple):
    """Result of an ingest: the session's key in this log, and the number of new commits."""

    session: int
    commits: int


class Engine:
    """The gate: what is decided here comes in by `append`, what was committed elsewhere by `ingest`.

    Nobody else writes to the log; a rule of `tools/tidy.py` holds that.
    """

    def __init__(
        self, log: Log, projection: Projection, clock: Clock, ids: IdSource, known: KnownContents | None = None
    ) -> None:
        self.log = log
        self.projection = projection
        self.clock = clock
        self.ids = ids
        self._heads: OrderedDict[int, GateHead] = OrderedDict()
        self._unsettled = self._unsettled_commits = 0
        self._opened: dict[str, int] = {}  # sessions opened here that the views may not hold; 0 hidden ones
        self._erased = 0  # the last erasure that what is known takes into account
        self._end = 0  # as of which the views and those are all the sessions there are
        self.known = known or KnownContents()
        self.warden: RegionGuard | None = None  # who is asked before anything is written through a handle on a region
        self.doors = Redactors(log, lambda: projection.db)

    def follow(self) -> int:
        """Brings the views to the end of the log; heads then forget what the views hold."""
        reached = self.projection.catch_up()
        if reached < self._end:  # they are held where they were
            return reached
        if reached > self._end and (erased := self.projection.last_erasure) != self._erased:
            self._erased = erased
            self.known.reload()
        self._end = reached
        self._opened.clear()
        for session, head in self._heads.items() if self._unsettled else ():
            if head.recent.mutations:
                near = head.recent
                if isinstance(head.lookups, ViewLookups) and head.lookups.near.mutations:
                    near = head.lookups.near
                    near.extend(head.recent)
                head.settle(ViewLookups(self.projection.db, session, near=near.newest(NEAR_MAX)))
        self._unsettled = self._unsettled_commits = 0
        return reached

    def opened(self, name: str) -> int | None:
        """The key of a session that was opened here since the views followed."""
        return self._opened.get(name) or None

    def _taken(self, name: str) -> bool:
        """Whether a session has a name, as of `self._end`; the views need not hold what was written here alone."""
        if self.log.ordinal != self._end:
            self.follow()
        sql = "SELECT 1 FROM sessions WHERE name = ?"
        return name in self._opened or self.projection.db.execute(sql, (name,)).fetchone() is not None

    def head(self, session: int, near: GateHead | None = None) -> GateHead:
        """A session's head, loaded from the views where it is not at hand or another process wrote since.

        `near` is one of the past that it forked from, which is loaded faster from there.
        """
        head = self._heads.get(session)
        if head is None or self.log.head(session, head.known) is not None:
            head = self._load(session, near)
            self._keep(head)
        self._heads.move_to_end(session)
        assert head.session == session, "a head is kept under its own session"
        return head

    def _load(self, session: int, near: GateHead | None) -> GateHead:
        self.follow()
        with self.projection.moment_held() as ordinal:  # others may fold meanwhile; the views stand still
            head = load_head(self.projection.db, session, near)
        if head is None:
            raise UnknownError(f"the log holds no session {session}", code="no-session")
        before = self._heads.get(session)
        self.known.load(Branch(self.projection.db, session), before.position if before else 0)
        head.known = ordinal
        return head

    def _keep(self, head: GateHead) -> None:
        assert head.session, "the log gave the session its key"
        self._heads[head.session] = head
        if len(self._heads) > HEADS_MAX:
            self._heads.popitem(last=False)

    def batch(self, session: int) -> Batch:
        """A batch of mutations for a session that exists."""
        base = self.head(session)
        door = self.doors.of(session, base.redaction, base.position, self.follow)
        return Batch(self, base.copy(), base, None if door is None else BatchRedaction(door))

    def batch_by_hand(self, session: int) -> Batch:
        """A batch of mutations of somebody's own, which is looked at closely: it was made by no writer of ours.

        Its writer works through a `HandBatch`.
        """
        batch = self.batch(session)
        batch.written_by_hand(BatchContents(batch, self.log, self.projection, self.follow, self.known.looked))
        return batch

    def begin(self, opening: NewSession, at: int, *, redacted: bool = False) -> Batch:
        """A batch that opens a session with its first mutation.

        What follows is `redacted` already where it was sealed for another session before, and its records follow too.
        """
        check_name(opening.name, opening.hidden)
        uid = self.ids.salt()
        head = GateHead(uid, EmptyLookups(uid))
        head.hash = genesis(uid)
        if opening.parent:
            self.follow()
        parent = parent_uid(self.projection.db, opening.parent) if opening.parent else None
        if opening.origin is Origin.FORK:
            head.hash = fork_hash(self.projection.db, self.log, opening.parent, opening.parent_position)
            head.stand(opening.parent_position)
            head.begins = opening.parent_position
        batch = Batch(self, head)
        assert batch.expected == 0, "the log is to hold nothing of a session that begins, a fork's past included"
        batch.place.name_taken = self._taken(opening.name)
        batch.seen, batch.opening = self._end, opening
        door = self.doors.begin(opening)
        meta = opening.meta if door is None else door.value(opening.meta, "what the session begins with")
        batch.add(
            Open(
                uid=uid,
                name=batch.cell(opening.name.encode()),
                origin=opening.origin,
                parent=parent,
                parent_position=opening.parent_position,
                meta=batch.cell(msgspec.json.encode(meta)) if meta else None,
                source=None if opening.source is None else batch.cell(opening.source.encode("utf-8", "replace")),
                key=None if opening.key is None else batch.cell(opening.key),
                hidden=int(opening.hidden),
                spawned_by=opening.spawned_by,
            )
        )
        for commitment in opening.lost:
            batch.lost(commitment)
        if opening.redaction is not None:
            batch.add(Redact(policy=opening.redaction))
        if opening.origin is Origin.FORK or opening.redaction is not None:
            batch.end(at)
        batch.redact(None if redacted else door)
        return batch

    def fork(self, parent: int, position: int, name: str, at: int, **fields: Any) -> int:
        """Forks a session at a commit end, in one commit; the child's key in this log."""
        opening = NewSession(name, origin=Origin.FORK, parent=parent, parent_position=position, **fields)
        return self.begin(opening, at).commit(at)[-1].session

    def sealed(self, session: int, content: bytes, digest: bytes) -> SealedContent | None:
        """The place of a content that the session sealed before, its cell checked once.

        One in an archive is not named again: what is written from now on can be read without it.
        """
        place = self.known.find(session, digest)
        if place is None or place.commitment is not None:
            return place
        owner = Branch(self.projection.db, session).owner(place.position)
        row = self.projection.db.execute(
            "SELECT ordinal, cell, cells FROM commits WHERE session = ? AND first = ?", (owner, place.position)
        ).fetchone()
        if row is None or place.cell >= row[2]:
            return None
        commitment = self.log.tail(row[0] - 1, 1)[0].commitment(place.cell)
        cell = self.log.cells([row[1] + place.cell], archived=False).get(row[1] + place.cell)
        if cell is None or cell.content != content or not cell.keeps(commitment):
            return None
        place = msgspec.structs.replace(place, commitment=commitment)
        self.known.checked(session, digest, place)
        return place

    def append(self, batches: Sequence[Batch], *, dense: bool = False) -> list[list[Commit] | Exception]:
        """Writes batches of different sessions with one flush and takes their heads; what came of each.

        New ones have different names, and were begun at one end of the log. Who names what a fork
        inherits writes alone: nothing erases that in between.
        """
        inherited = any(batch.inherited for batch in batches)
        if self.warden is None and not inherited:
            return self._append(batches, dense)
        with self.log.deciding():  # so that nothing is taken back or erased between the look and the write
            if self.warden is not None:
                let(self.warden, [batch.head for batch in batches])
            if inherited:
                self.follow()
            erased = [lost(self.projection.db, batch.head.session, batch.inherited) for batch in batches]
            whole = [batch for batch, gone in zip(batches, erased, strict=True) if not gone]
            stored = iter(self._append(whole, dense) if whole else ())
            error = OvertakenError(
                "a content that was named was erased meanwhile; decide again", code="erased-meanwhile"
            )
            return [error if gone else next(stored) for gone in erased]

    def _append(self, batches: Sequence[Batch], dense: bool) -> list[list[Commit] | Exception]:
        appends, before = list[Append](), 0
        for batch in batches:
            assert batch.commits, "a batch is closed before it is written"
            seen = None if batch.seen is None else batch.seen + before
            appends.append(
                Append(batch.commits, batch.head.session, batch.expected, batch.head.known, seen, dense, batch.head.tip)
            )
            before += len(batch.commits)
        try:
            found = self.log.together(appends)
        except BaseException:
            for batch in batches:
                self._heads.pop(batch.head.session, None)
            raise
        for batch, outcome in zip(batches, found, strict=True):
            if isinstance(outcome, Exception):  # unknown, never absent: read it again
                self._heads.pop(batch.head.session, None)
            else:
                self._take(batch, outcome)
        return found

    def _take(self, batch: Batch, stored: Sequence[Commit]) -> None:
        """Takes a batch's head as its session's."""
        head = batch.head
        assert len(stored) == len(batch.commits), "the log stores all commits of a batch, or none"
        assert stored[-1].ordinal - stored[0].ordinal == len(stored) - 1, "and nothing of another session between them"
        assert stored[-1].hash == head.hash, "the log ends where the head stands"
        head.session, head.known, head.tip = stored[-1].session, stored[-1].ordinal, stored[-1].ordinal
        if batch.base is not None:
            batch.base.take(head)
            head = batch.base
        if not isinstance(head.lookups, EmptyLookups) or not head.recent.start:  # else it has a past to be looked up
            self._keep(head)
        if batch.redaction is not None:
            batch.redaction.door.settle(head.position)
            if batch.opening is None or batch.opening.origin is not Origin.FORK:  # a fork's knows nothing of its past
                self.doors.keep(head.session, batch.redaction.door)
        batch.settle()
        for commit in batch.written:
            self.known.note(head.session, commit.position, commit.digests, commit.commitments)
        if stored[0].ordinal == self._end + 1:
            self._end = stored[-1].ordinal
        if batch.opening is not None:
            self._opened[batch.opening.name] = 0 if batch.opening.hidden else head.session
        self._unsettled += sum(commit.count for commit in stored)
        self._unsettled_commits += len(stored)

    def ingest(self, lacking: Callable[[], Sequence[Arrival]]) -> list[Ingested]:
        """Writes commits of another log as they are, each session's whole or not at all; what became of each session.

        The caller has proven them. `lacking` compares them with views that are at the end of the log,
        and names the sessions in the same order each time: where another writer was first it is asked
        again. Raises what the warden raises before anything is written.
        """
        counts: Counter[int] = Counter()  # by place in the order, as an attempt may write a part of them

        def write() -> list[Ingested]:
            with nullcontext() if self.warden is None else self.log.alone():  # no grant is taken back meanwhile
                if self.warden is not None:
                    self.warden.let((), charter=False)
                seen, keys = self.follow(), list[int]()
                for nth, (commits, key, position) in enumerate(lacking()):
                    if commits:
                        stored = self.log.append(commits, key, position, after=seen, seen=seen, dense=True)
                        counts[nth] += len(stored)
                        seen, key = stored[-1].ordinal, stored[-1].session
                    keys.append(key)
            return [Ingested(key, counts[nth]) for nth, key in enumerate(keys)]

        ingested = self.retried(write)
        self.follow()
        for key, count in ingested:
            if count and key in self._heads:
                self.head(key)
        return ingested

    def mirror(self, runs: Sequence[Sequence[Commit]], seen: int) -> int:
        """Writes the next commits of a log that this one is the beginning of; the ordinal reached.

        Each run is of one session, with its cells, and the caller has proven it; `seen` is where this log ends.
        Ordinals and the keys of sessions stay what they are there. Raises OvertakenError where somebody else wrote
        here. As many runs as can share a flush; the views follow when they are asked.
        """
        appends, begun = list[Append](), set[int]()
        for run in runs:
            assert run[0].ordinal == seen + sum(len(each.commits) for each in appends) + 1, (
                "a mirror leaves nothing out"
            )
            session = run[0].session
            if session in begun:  # the log looks its key up by its first commit, which has to be there
                seen, appends = self._mirrored(appends, seen), []
                begun.clear()
            if run[0].ordinal == session:
                begun.add(session)
                appends.append(Append(run, 0, 0, dense=True))
            else:
                appends.append(Append(run, session, run[0].first - 1, dense=True))
        return self._mirrored(appends, seen)

    def _mirrored(self, appends: Sequence[Append], seen: int) -> int:
        at, placed = seen, list[Append]()
        for append in appends:
            placed.append(append._replace(after=seen, seen=at))
            at += len(append.commits)
        for outcome in self.log.together(placed):
            if isinstance(outcome, Exception):
                raise outcome
        return at

    def retried(self, write: Callable[[], T]) -> T:
        """Decides and writes; where another writer was first, once more while all others wait.

        Deciding again takes longer than the next write of the winner, so without that wait a slow
        writer would starve.
        """
        try:
            return write()
        except OvertakenError:
            with self.log.alone():
                return write()

    def relieve(self, added: int) -> None:
        """Lets the views follow a piece where heads remember too much; for callers that appended mutations.

        A piece is twice what was added and more, so that a writer who never asks waits a little, some
        times in a row, and never for long.
        """
        if self._unsettled <= UNSETTLED_MAX:
            return
        commits = 1 + self._unsettled_commits * max(FOLDED_MIN, 2 * added) // self._unsettled
        upto = self.projection.ordinal + commits
        if upto < self.log.ordinal:
            self.projection.catch_up(upto=upto)
        else:
            self.follow()
