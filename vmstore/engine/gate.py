"""The one gate: checks mutations against the rules, seals them and appends them to the log.

A batch collects mutations of one session, checked one by one against the head as it will be;
nothing is written until the batch is committed, and then all of it or none.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from vmstore.cells.cell import Cell
from vmstore.core.clock import Clock, IdSource
from vmstore.core.mutation import AnyMutation, CellRef, Compress, Create, Open, Update, encode
from vmstore.core.page import Origin
from vmstore.engine.head import Head, Nothing
from vmstore.engine.known import Known, Sealed
from vmstore.engine.lookups import ViewLookups, load_head
from vmstore.engine.rules import Place, broken
from vmstore.errors import ConflictError, InputError, RefusedError, UnknownError
from vmstore.log.commit import NO_REQUEST, Commit, genesis, seal
from vmstore.log.port import Log
from vmstore.views.lane import Lane
from vmstore.views.projection import Projection

HEADS_MAX = 64
UNSETTLED_MAX = 4096
_SEALED = (Create, Update, Compress)


class Opening(NamedTuple):
    """What a new session is told at its beginning."""

    name: str
    meta: dict[str, str] = {}  # noqa: RUF012 (never changed)
    origin: Origin = Origin.NEW
    parent: int = 0
    parent_position: int = 0
    source: str | None = None
    key: bytes | None = None
    hidden: bool = False
    spawned_by: int | None = None


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
        self.known = known or Known()

    def follow(self) -> int:
        """Brings the views to the end of the log; heads then forget what the views hold."""
        reached = self.projection.catch_up()
        for session, head in self._heads.items():
            if head.unsettled:
                head.settle(ViewLookups(self.projection.db, session))
        return reached

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
        self.known.load(Lane(self.projection.db, session))
        head.known = ordinal
        return head

    def _keep(self, head: Head) -> None:
        self._heads[head.session] = head
        if len(self._heads) > HEADS_MAX:
            self._heads.popitem(last=False)

    def batch(self, session: int) -> Batch:
        """A batch of mutations for a session that exists."""
        base = self.head(session)
        return Batch(self, base.copy(), base)

    def begin(self, opening: Opening, at: int) -> Batch:
        """A batch that opens a session with its first mutation."""
        uid = self.ids.salt()
        head = Head(uid, Nothing(uid))
        head.hash = genesis(uid)
        seen = self.follow()
        parent = self._uid(opening.parent) if opening.parent else None
        if opening.origin is Origin.FORK:
            head.hash = self._hash_at(opening.parent, opening.parent_position)
            head.position = opening.parent_position
        batch = Batch(self, head)
        batch.seen = seen
        taken = self.projection.db.execute("SELECT 1 FROM sessions WHERE name = ?", (opening.name,)).fetchone()
        batch.add(
            Open(
                uid=uid,
                name=batch.cell(opening.name.encode()),
                origin=opening.origin,
                parent=parent,
                parent_position=opening.parent_position,
                meta=batch.cell(msgspec.json.encode(opening.meta)) if opening.meta else None,
                source=None if opening.source is None else batch.cell(opening.source.encode("utf-8", "replace")),
                key=None if opening.key is None else batch.cell(opening.key),
                hidden=int(opening.hidden),
                spawned_by=opening.spawned_by,
            ),
            name_taken=taken is not None,
        )
        if opening.origin is Origin.FORK:
            batch.end(at)
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
        batch = self.begin(opening, at)
        try:
            return batch.commit(at)[-1].session
        finally:  # also where the views could not follow: what it inherits is read from them
            self._heads.pop(batch.head.session, None)

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
        return place._replace(commitment=commitment)

    def append(self, batch: Batch, commits: Sequence[Commit], *, dense: bool) -> list[Commit]:
        """Writes a batch's commits and takes its head as the session's."""
        head = batch.head
        try:
            stored = self.log.append(
                commits, head.session, batch.expected, after=head.known, seen=batch.seen, dense=dense
            )
        except BaseException:
            self._heads.pop(head.session, None)  # unknown, never absent: read it again
            raise
        head.session, head.known = stored[-1].session, stored[-1].ordinal
        if batch.base is not None:
            batch.base.take(head)
            head = batch.base
        self._keep(head)
        self.known.note(head.session, batch.sealed)
        if isinstance(head.lookups, Nothing) or head.unsettled > UNSETTLED_MAX:
            self.follow()
        return stored


class Batch:
    """Mutations of one session on their way to the log: one commit, or several ended in between."""

    def __init__(self, engine: Engine, head: Head, base: Head | None = None) -> None:
        self.head = head
        self.base = base  # what the head is a copy of
        self.expected = head.position if head.session else 0
        self.seen: int | None = None  # what a new session's name was checked against
        self.sealed: dict[bytes, Sealed] = {}
        self._engine = engine
        self._commits: list[Commit] = []
        self._mutations: list[AnyMutation] = []
        self._cells: list[Cell] = []
        self._commitments: list[bytes] = []
        self._named: dict[tuple[int, int], bytes] = {}
        self._request = NO_REQUEST
        self._first = head.position + 1

    @property
    def position(self) -> int:
        """The position the next mutation will have."""
        return self.head.position + 1

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
        return not self._mutations and not self._commits

    def cell(self, content: bytes) -> CellRef:
        """Seals bytes; bytes this session sealed before are named, not written again."""
        if not isinstance(content, bytes):
            raise InputError(f"content to be sealed is of type {type(content).__name__}; pass bytes")
        digest = self._engine.known.digest(content)
        place = self.sealed.get(digest)
        if place is None and self.head.session:
            place = self._engine.sealed(self.head.session, content, digest)
        if place is not None:
            if place.position == self._first:
                return place.cell
            assert place.commitment is not None, "it was looked at"
            self.sealed[digest] = place
            self._named[place[:2]] = place.commitment
            return place[:2]
        index = self._seal(content)
        self.sealed[digest] = Sealed(self._first, index, self._commitments[-1])
        return index

    def _seal(self, content: bytes) -> int:
        cell = Cell(self._engine.ids.salt(), content)
        self._cells.append(cell)
        self._commitments.append(cell.commitment)
        return len(self._cells) - 1

    def request(self, request_id: str, payload: bytes) -> None:
        """Gives the commit under way a request id, with a digest of what was asked."""
        self._request = self._seal(request_id.encode() + b"\n" + payload.hex().encode())

    def add(self, mutation: AnyMutation, *, name_taken: bool = False) -> int:
        """Checks a mutation and takes it in; its position. Raises RefusedError naming the rule."""
        head, mutations, position = self.head, self._mutations, self.head.position + 1
        place = Place(len(mutations), mutations[-1] if mutations else None, len(self._cells), name_taken)
        reason = broken(head, mutation, place)
        if reason is not None:
            raise RefusedError(f"{mutation.kind} at position {position} refused: {reason[1]} (rule {reason[0]})")
        if isinstance(mutation, _SEALED):
            head.hold(position, mutation, self._commitment(mutation.content))
        head.apply(position, mutation)
        mutations.append(mutation)
        return position

    def _commitment(self, ref: CellRef | None) -> bytes | None:
        if ref is None:
            return None
        return self._commitments[ref] if isinstance(ref, int) else self._named[ref]

    def end(self, at: int) -> None:
        """Ends a commit: what follows goes into the next one."""
        if not self._mutations:
            return
        body = encode(self._mutations)
        commit = seal(
            self.head.hash,
            self._first,
            len(self._mutations),
            at,
            self._engine.clock.now() - at,
            body,
            tuple(self._cells),
            self._request,
            b"".join(self._commitments),
        )
        self._commits.append(commit)
        self.head.hash = commit.hash
        self.head.end(self._first, len(self._cells))
        self._mutations, self._cells, self._commitments = [], [], []
        self._request, self._first = NO_REQUEST, self.head.position + 1

    def commit(self, at: int, *, dense: bool = False) -> list[Commit]:
        """Ends the last commit and writes all of them, durable, or none; `dense` where nobody waits."""
        self.end(at)
        if not self._commits:
            raise ConflictError("a batch with no mutation cannot be committed")
        return self._engine.append(self, self._commits, dense=dense)
