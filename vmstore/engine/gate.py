"""The one gate: checks mutations against the rules, seals them and appends them to the log.

A batch collects mutations of one session, checked one by one against the head as it will be;
nothing is written until the batch is committed, and then all of it or none.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from vmstore.core.clock import Clock, IdSource
from vmstore.core.mutation import AnyMutation, CellRef, Open, Redact, body
from vmstore.core.page import Origin
from vmstore.engine.doors import Doors, Passing
from vmstore.engine.fields import sound
from vmstore.engine.head import Head, Nothing
from vmstore.engine.known import NO_CONTENT, Known, Sealed
from vmstore.engine.lookups import ViewLookups, load_head
from vmstore.engine.opening import Opening
from vmstore.engine.rules import Place, broken
from vmstore.engine.sealing import Sealing
from vmstore.errors import ConflictError, InputError, RefusedError, UnknownError
from vmstore.log.commit import NO_REQUEST, Commit, genesis, seal
from vmstore.log.port import Append, Log
from vmstore.views.lane import Lane
from vmstore.views.projection import Projection

__all__ = ["Batch", "Engine", "Opening", "Written"]
HEADS_MAX = 64
UNSETTLED_MAX = 32_768  # mutations of all heads that the views may not hold; some 250 B each
FOLDED_MIN = 4_096  # mutations folded by a call that finds more than that


class Engine:
    """The only caller of `Log.append`."""

    def __init__(
        self, log: Log, projection: Projection, clock: Clock, ids: IdSource, known: Known | None = None
    ) -> None:
        self.log = log
        self.projection = projection
        self.clock = clock
        self.ids = ids
        self._heads: OrderedDict[int, Head] = OrderedDict()
        self._unsettled = self._unsettled_commits = 0
        self._opened: dict[str, int] = {}  # sessions opened here that the views may not hold; 0 hidden ones
        self._end = 0  # as of which the views and those are all the sessions there are
        self.known = known or Known()
        self.doors = Doors(log, lambda: projection.db)

    def follow(self) -> int:
        """Brings the views to the end of the log; heads then forget what the views hold."""
        reached = self.projection.catch_up()
        if reached < self._end:  # they are held where they were
            return reached
        self._end = reached
        self._opened.clear()
        for session, head in self._heads.items() if self._unsettled else ():
            if head.recent.mutations:
                head.settle(ViewLookups(self.projection.db, session))
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

    def head(self, session: int) -> Head:
        """A session's head, loaded from the views where it is not at hand or another process wrote since."""
        head = self._heads.get(session)
        if head is None or self.log.head(session, head.known) is not None:
            head = self._load(session)
            self._keep(head)
        self._heads.move_to_end(session)
        return head

    def _load(self, session: int) -> Head:
        self.follow()
        with self.projection.moment_held() as ordinal:  # others may fold meanwhile; the views stand still
            head = load_head(self.projection.db, session)
        if head is None:
            raise UnknownError(f"the log holds no session {session}")
        before = self._heads.get(session)
        self.known.load(Lane(self.projection.db, session), before.position if before else 0)
        head.known = ordinal
        return head

    def _keep(self, head: Head) -> None:
        self._heads[head.session] = head
        if len(self._heads) > HEADS_MAX:
            self._heads.popitem(last=False)

    def batch(self, session: int) -> Batch:
        """A batch of mutations for a session that exists."""
        base = self.head(session)
        batch = Batch(self, base.copy(), base)
        if (door := self.doors.of(session, base.redaction, base.position, self.follow)) is not None:
            batch.passing = Passing(door)
        return batch

    def begin(self, opening: Opening, at: int) -> Batch:
        """A batch that opens a session with its first mutation."""
        uid = self.ids.salt()
        head = Head(uid, Nothing(uid))
        head.hash = genesis(uid)
        if opening.parent:
            self.follow()
        parent = self._uid(opening.parent) if opening.parent else None
        if opening.origin is Origin.FORK:
            head.hash = self._hash_at(opening.parent, opening.parent_position)
            head.stand(opening.parent_position)
        batch = Batch(self, head)
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
        if opening.redaction is not None:
            batch.add(Redact(policy=opening.redaction))
        if opening.origin is Origin.FORK or opening.redaction is not None:
            batch.end(at)
        batch.passing = None if door is None else Passing(door)
        return batch

    def _uid(self, session: int) -> bytes:
        found = self.projection.db.execute("SELECT uid FROM sessions WHERE session = ?", (session,)).get
        assert isinstance(found, bytes), "a parent is a session of this store"
        return found

    def _hash_at(self, session: int, position: int) -> bytes:
        """The hash of the commit that ends at a position, which a fork starts from."""
        owner = ViewLookups(self.projection.db, session).lane.owner(position)
        row = self.projection.db.execute(
            "SELECT last, ordinal FROM commits WHERE session = ? AND last >= ? ORDER BY last LIMIT 1",
            (owner, position),
        ).fetchone()
        if row is None or row[0] != position:
            raise RefusedError(
                f"position {position} is no commit end, so nothing can fork there (rule fork_stands_on_a_commit_end); "
                + (f"the next one is {row[0]}" if row else "the session ends before it")
            )
        return self.log.tail(row[1] - 1, 1)[0].hash

    def fork(self, parent: int, position: int, name: str, at: int, **told: Any) -> int:
        """Forks a session at a commit end, in one commit; the child's key in this log."""
        opening = Opening(name, origin=Origin.FORK, parent=parent, parent_position=position, **told)
        return self.begin(opening, at).commit(at)[-1].session

    def sealed(self, session: int, content: bytes, digest: bytes) -> Sealed | None:
        """Where a content already sealed for a session lies, its cell looked at once."""
        place = self.known.find(session, digest)
        if place is None or place.commitment is not None:
            return place
        owner = Lane(self.projection.db, session).owner(place.position)
        row = self.projection.db.execute(
            "SELECT ordinal, cell, cells FROM commits WHERE session = ? AND first = ?", (owner, place.position)
        ).fetchone()
        if row is None or place.cell >= row[2]:
            return None
        commitment = self.log.tail(row[0] - 1, 1)[0].commitment(place.cell)
        cell = self.log.cells([row[1] + place.cell]).get(row[1] + place.cell)
        if cell is None or cell.content != content or not cell.keeps(commitment):
            return None
        place = place._replace(commitment=commitment)
        self.known.checked(session, digest, place)
        return place

    def append(self, batches: Sequence[Batch], *, dense: bool = False) -> list[list[Commit] | Exception]:
        """Writes batches of different sessions with one flush and takes their heads; what came of each.

        New ones have different names, and were begun at one end of the log.
        """
        told, before = list[Append](), 0
        for batch in batches:
            seen = None if batch.seen is None else batch.seen + before
            told.append(Append(batch.commits, batch.head.session, batch.expected, batch.head.known, seen, dense))
            before += len(batch.commits)
        try:
            found = self.log.together(told)
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
        head.session, head.known = stored[-1].session, stored[-1].ordinal
        if batch.base is not None:
            batch.base.take(head)
            head = batch.base
        if not isinstance(head.lookups, Nothing) or not head.recent.start:  # else it has a past to be looked up
            self._keep(head)
        if batch.passing is not None:
            batch.passing.door.settle(head.position)
            if batch.opening is None or batch.opening.origin is not Origin.FORK:  # a fork's knows nothing of its past
                self.doors.keep(head.session, batch.passing.door)
        for commit in batch.written:
            self.known.note(head.session, commit.position, commit.digests, commit.commitments)
        if stored[0].ordinal == self._end + 1:
            self._end = stored[-1].ordinal
        if batch.opening is not None:
            self._opened[batch.opening.name] = 0 if batch.opening.hidden else head.session
        self._unsettled += sum(commit.count for commit in stored)
        self._unsettled_commits += len(stored)

    def relieve(self, added: int) -> None:
        """Lets the views follow a piece where heads remember more than is good; for whoever appended mutations.

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


class Written(NamedTuple):
    """The contents of a commit that ended: where it begins, and its cells' digests and commitments."""

    position: int
    digests: list[bytes]
    commitments: list[bytes]


class Batch:
    """Mutations of one session on their way to the log: one commit, or several ended in between."""

    def __init__(self, engine: Engine, head: Head, base: Head | None = None) -> None:
        self.head = head
        self.base = base  # what the head is a copy of
        self.expected = head.position if head.session else 0
        self.seen: int | None = None  # what a new session's name was checked against
        self.opening: Opening | None = None
        self.passing: Passing | None = None  # what masks or refuses, where the session does
        self.written: list[Written] = []
        self._engine = engine
        self.commits: list[Commit] = []
        self._sealed: dict[bytes, CellRef] = {}  # cells of this batch by the digests of their contents
        self._begin()

    def _begin(self) -> None:
        """Begins the next commit."""
        self._first = self.head.position + 1
        self._wires: list[bytes] = []
        self._request = NO_REQUEST
        self._sealing = self.head.recent.sealing = Sealing(self._engine.ids)
        self.place = Place()
        if self.passing is not None:
            self.passing.begin()

    @property
    def position(self) -> int:
        """The position the next mutation will have."""
        return self.head.position + 1

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
        return not self._wires and not self.commits

    def cell(self, content: bytes) -> CellRef:
        """Seals bytes; bytes this session sealed before are named, not written again."""
        if not isinstance(content, bytes):
            raise InputError(f"content to be sealed is of type {type(content).__name__}; pass bytes")
        known, told = self._engine.known, content
        if self.passing is not None:
            content = self.passing.content(told)
        digest = known.digest(content)
        ref = self._sealed.get(digest)
        if ref is None:
            if known.find(self.head.session, digest) is not None:
                ref = self._before(content, digest)
            if ref is None:
                ref = self._seal(content, digest)
            self._sealed[digest] = ref
        if self.passing is not None:
            self.passing.note(ref, told, content)
        return ref

    def _before(self, content: bytes, digest: bytes) -> CellRef | None:
        """The cell of a content that the session sealed before this batch, looked at where that was not done yet."""
        place = self._engine.sealed(self.head.session, content, digest)
        if place is None:
            return None
        assert place.commitment is not None, "it was looked at"
        ref = (place.position, place.cell)
        self.head.recent.named[ref] = place.commitment
        return ref

    def _seal(self, content: bytes, digest: bytes) -> int:
        index = self._sealing.add(content, digest)
        self.place.cells = index + 1
        return index

    def request(self, request_id: str, payload: bytes) -> None:
        """Gives the commit under way a request id, with a digest of what was asked."""
        self._request = self._seal(request_id.encode() + b"\n" + payload.hex().encode(), NO_CONTENT)

    def add(self, mutation: AnyMutation) -> int:
        """Takes a mutation in, with a record of what was masked in it; its position. RefusedError names the rule."""
        return self.take(mutation) if self.passing is None else self.passing.add(mutation, self.take, self.position)

    def take(self, mutation: AnyMutation) -> int:
        """Checks a mutation and takes it in as it is; its position."""
        head, place = self.head, self.place
        raw = sound(mutation)
        reason = broken(head, mutation, place, sound=raw is not None)
        if reason is not None:
            raise RefusedError(f"{mutation.kind} at position {self.position} refused: {reason[1]} (rule {reason[0]})")
        assert raw is not None, "fields that no rule objects to are sound"
        head.apply(mutation)
        self._wires.append(raw)
        place.nth += 1
        place.before = mutation
        return head.position

    def end(self, at: int) -> None:
        """Ends a commit: what follows goes into the next one."""
        if self._wires:
            self._end(at)
            self._lies_before()
            self._begin()

    def _end(self, at: int) -> None:
        cells = self._sealing.cells()
        commitments = self._sealing.commitments
        commit = seal(
            self.head.hash,
            self._first,
            len(self._wires),
            at,
            self._engine.clock.now() - at,
            body(self._wires),
            cells,
            self._request,
            b"".join(commitments),
        )
        self.commits.append(commit)
        self.head.hash = commit.hash
        self.head.recent.end(self._first, commit.commitments)
        self.written.append(Written(self._first, self._sealing.digests, commitments))

    def _lies_before(self) -> None:
        """Cells of a commit that ended are named by its position from now on."""
        for index, digest in enumerate(self._sealing.digests):
            if digest is not NO_CONTENT:
                ref = self._sealed[digest] = (self._first, index)
                self.head.recent.named[ref] = self._sealing.commitments[index]

    def commit(self, at: int, *, dense: bool = False) -> list[Commit]:
        """Ends the last commit and writes all of them, durable, or none; `dense` where nobody waits."""
        self.close(at)
        (told,) = self._engine.append([self], dense=dense)
        if isinstance(told, Exception):
            raise told
        self._engine.relieve(sum(commit.count for commit in told))
        return told

    def close(self, at: int) -> None:
        """Ends the last commit, so that nothing is left to do but write."""
        if self._wires:
            self._end(at)
        if not self.commits:
            raise ConflictError("a batch with no mutation cannot be committed")
