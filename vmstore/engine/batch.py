"""A batch: mutations of one session, checked one by one against the head as it will be, written whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from vmstore.cells.cell import ERASED, SALT_BYTES, Cell, commit
from vmstore.core import clock
from vmstore.core.clock import Clock, IdSource
from vmstore.core.mutation import AnyMutation, CellRef, body
from vmstore.engine.dedup import NO_CONTENT, KnownContents, SealedContent
from vmstore.engine.head import GateHead, NewSession
from vmstore.engine.redaction import BatchRedaction
from vmstore.engine.rules.cell_contents import LiveContents
from vmstore.engine.rules.field_types import sound
from vmstore.engine.rules.rules import ENDS, MutationPlace
from vmstore.engine.rules.rules_by_kind import NO_PLANS, KindPlan, broken, plans_within
from vmstore.engine.system_session import RESERVED, WATCHED, commands_write_it
from vmstore.errors import ConflictError, InputError, RefusedError
from vmstore.log.commit import NO_REQUEST, Commit, seal

if TYPE_CHECKING:
    from vmstore.redact.redactor import Redactor


assert clock.SALT_BYTES == SALT_BYTES, "what is drawn as a salt is as long as a cell takes it"


class CommitCells:
    """Contents in order, each with its digest; an index gives the commitment."""

    def __init__(self, ids: IdSource) -> None:
        self._ids = ids
        self.contents: list[bytes] = []
        self.digests: list[bytes] = []
        self._salts: list[bytes] = []
        self._commitments: list[bytes] = []

    def __getitem__(self, index: int) -> bytes:
        return self.commitments[index]

    @property
    def commitments(self) -> list[bytes]:
        """The commitment of each cell."""
        new = self.contents[len(self._salts) :]
        if new:
            assert len(self.contents) == len(self.digests), "a cell is known again by the digest at its index"
            salts = self._ids.salts(len(new))
            assert len(salts) == len(new), "each content has a salt of its own"
            self._salts += salts
            self._commitments += map(commit, salts, new)
        return self._commitments

    def cells(self) -> tuple[Cell, ...]:
        """The cells, sealed."""
        sealed = len(self.commitments)
        assert sealed == len(self._salts) == len(self.contents), "each cell has the salt and bytes it was sealed with"
        return tuple(map(Cell, self._salts, self.contents)) if sealed else ()


LOST = b"vmstore lost "


class BatchHost(Protocol):
    """The part of the engine that a batch calls."""

    clock: Clock
    ids: IdSource
    known: KnownContents

    def sealed(self, session: int, content: bytes, digest: bytes) -> SealedContent | None:
        """The cell a content was sealed in before."""
        ...

    def append(self, batches: Sequence[Batch], *, dense: bool = False) -> list[list[Commit] | Exception]:
        """Writes batches; what came of each."""
        ...

    def relieve(self, added: int) -> None:
        """Lets the views follow a piece."""
        ...


class CommittedContents(NamedTuple):
    """The contents of a commit that ended: where it begins, and its cells' digests and commitments."""

    position: int
    digests: list[bytes]
    commitments: list[bytes]


class Batch:
    """Mutations of one session on their way to the log: one commit, or several ended in between."""

    def __init__(
        self, engine: BatchHost, head: GateHead, base: GateHead | None = None, redaction: BatchRedaction | None = None
    ) -> None:
        self.head = head
        self.base = base  # what the head is a copy of
        self.expected = head.position if head.session else 0
        self.seen: int | None = None  # what a new session's name was checked against
        self.opening: NewSession | None = None
        self._redaction = redaction  # what masks or refuses, where the session does
        self.written: list[CommittedContents] = []
        self.inherited: list[CellRef] = []  # cells of the past it forked from that it names
        self._engine = engine
        self.commits: list[Commit] = []
        self.erased: list[tuple[int, int]] = []  # cells without bytes of commits that ended, which an erasure names
        self._spent = ""  # why nothing more can be done with it
        self._sealed: dict[bytes, CellRef] = {}  # cells of this batch by the digests of their contents
        self._contents: LiveContents | None = None  # what looks at the cells that are named
        self._begin()

    def written_by_hand(self, contents: LiveContents) -> None:
        """Has everything that is added looked at, the contents of cells too, and kinds refused that commands write."""
        self._contents = contents
        self.place.contents = self.place.by_hand = contents
        self._plans = self._plans_after(None)

    @property
    def redaction(self) -> BatchRedaction | None:
        """The redaction applied to cells before they are sealed; None where the session has none."""
        return self._redaction

    def redact(self, door: Redactor | None) -> None:
        """Masks or refuses by `door` what is sealed from here on."""
        self._redaction = None if door is None else BatchRedaction(door)

    def _begin(self) -> None:
        """Begins the next commit."""
        self.first = self.head.position + 1
        self._wires: list[bytes] = []
        self._request = NO_REQUEST
        self._lost: set[int] = set()  # cells of this commit without bytes
        self._sealing = self.head.recent.sealing = CommitCells(self._engine.ids)
        self.place = MutationPlace(contents=self._contents, by_hand=self._contents)
        self._plans = self._plans_after(None)
        if self._redaction is not None:
            self._redaction.begin()

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
            raise InputError(f"content to be sealed is of type {type(content).__name__}; pass bytes", code="not-bytes")
        if self._spent:
            self._check()
        known, redaction = self._engine.known, self._redaction
        masked = content if redaction is None else redaction.content(content)
        digest = known.digest(masked)
        ref = self._sealed.get(digest)
        if ref is None:
            if known.find(self.head.session, digest) is not None:
                ref = self._before(masked, digest)
            if ref is None:
                ref = self._seal(masked, digest)
            self._sealed[digest] = ref
            if self._contents is not None and type(ref) is not int:
                self._contents.note(ref, masked)
        if redaction is not None:
            redaction.note(ref, content, masked)
        assert type(ref) is not int or ref < self.place.cells, (
            "an index is of the commit under way, never of one before"
        )
        return ref

    def _before(self, content: bytes, digest: bytes) -> CellRef | None:
        """The cell of a content that the session sealed before this batch, looked at where that was not done yet."""
        place = self._engine.sealed(self.head.session, content, digest)
        if place is None:
            return None
        assert place.commitment is not None, "it was looked at"
        ref = (place.position, place.cell)
        self.head.recent.named[ref] = place.commitment
        if place.position <= self.head.begins:
            self.inherited.append(ref)
        return ref

    def pending_content(self, index: int) -> bytes | None:
        """The content of a cell of the commit under way; None of one without bytes."""
        return self._sealing.contents[index] if index not in self._lost else None

    def _seal(self, content: bytes, digest: bytes) -> int:
        if self._spent:
            self._check()
        sealing = self._sealing
        sealing.contents.append(content)
        sealing.digests.append(digest)
        self.place.cells = count = len(sealing.contents)
        return count - 1

    def lost(self, commitment: bytes) -> CellRef:
        """A cell without bytes, for one that was sealed as `commitment` elsewhere and was erased.

        It is named again where it is lost again. An erasure of this session is to follow that names it.
        """
        digest = self._engine.known.digest(LOST + commitment)
        if digest not in self._sealed:
            index = self._sealed[digest] = self._seal(commitment, digest)
            self._lost.add(index)
        return self._sealed[digest]

    def settle(self) -> None:
        """Has what was looked at in it known to later ones: it is durable."""
        if self._contents is not None:
            self._contents.settle()

    def request(self, request_id: str, payload: bytes) -> None:
        """Gives the commit under way a request id, with a digest of what was asked."""
        self._request = self._seal(request_id.encode() + b"\n" + payload.hex().encode(), NO_CONTENT)

    def add(self, mutation: AnyMutation) -> int:
        """Takes a mutation in, with a record of what was masked in it; its position. RefusedError names the rule."""
        if self._contents is not None and type(mutation) in WATCHED:
            reason = commands_write_it(mutation, self._contents.live)
            if reason is not None:
                what = f"{mutation.kind} at position {self.position} refused: {reason} (rule {RESERVED})"
                raise RefusedError(what, code=RESERVED)
        if self._redaction is not None:
            return self._redaction.add(mutation, self.take, self.position)
        return self.take(mutation)

    def take(self, mutation: AnyMutation) -> int:
        """Checks a mutation and takes it in as it is; its position."""
        plan = self._plans[type(mutation)]
        if plan is None:
            return self._judge(mutation)
        sound, checks, fold, ends = plan
        head, place, raw = self.head, self.place, sound(mutation)
        if raw is None:
            return self._judge(mutation)
        for check in checks:
            if check(head, mutation, place) is not None:
                return self._judge(mutation)
        self._wires.append(raw)
        place.before = mutation
        head.recent.mutations.append(mutation)  # as `GateHead.apply`, with its fold at hand
        position = head.position = head.position + 1
        if fold is not None:
            fold(head, mutation)
        if ends:
            self._plans = NO_PLANS
        return position

    def _judge(self, mutation: AnyMutation) -> int:
        """The same with every rule asked that can refuse it where it stands; RefusedError names the first that does."""
        self._check()
        head, place = self.head, self.place
        raw = sound(mutation)
        reason = broken(head, mutation, place, sound=raw is not None)
        if reason is not None:
            what = f"{mutation.kind} at position {self.position} refused: {reason[1]} (rule {reason[0]})"
            raise RefusedError(what, code=reason[0])
        assert raw is not None, "fields that no rule objects to are sound"
        head.apply(mutation)
        self._wires.append(raw)
        place.before = mutation
        self._plans = self._plans_after(mutation)
        return head.position

    def _plans_after(self, before: AnyMutation | None) -> Mapping[type, KindPlan | None]:
        """Plans for the kinds that may follow a mutation, or begin a commit; None for a kind that needs all checks."""
        if not self.head.opened or isinstance(before, ENDS):
            return NO_PLANS
        return plans_within(self.head.charter, self._contents is not None)

    def end(self, at: int) -> None:
        """Ends a commit: what follows goes into the next one."""
        if self._wires:
            self._end(at)
            self._lies_before()
            self._begin()

    def _end(self, at: int) -> None:
        assert self.head.position == self.first + len(self._wires) - 1, (
            "the body holds every mutation that the head took"
        )
        cells = self._sealing.cells()
        assert len(cells) == self.place.cells, "the rules saw the cells that are sealed now"
        if self._lost:
            cells = tuple(ERASED if index in self._lost else cell for index, cell in enumerate(cells))
            self.erased += [(self.first, index) for index in sorted(self._lost)]
        commitments = self._sealing.commitments
        commit = seal(
            self.head.hash,
            self.first,
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
        self.head.recent.end(self.first, commit.commitments)
        self.written.append(CommittedContents(self.first, self._sealing.digests, commitments))

    def _lies_before(self) -> None:
        """Cells of a commit that ended are named by its position from now on."""
        assert self.commits[-1].first == self.first, "it is the commit that ended last"
        for index, digest in enumerate(self._sealing.digests):
            if digest is not NO_CONTENT:
                ref = self._sealed[digest] = (self.first, index)
                self.head.recent.named[ref] = self._sealing.commitments[index]

    def commit(self, at: int, *, dense: bool = False) -> list[Commit]:
        """Ends the last commit and writes all of them, durable, or none; `dense` where nobody waits."""
        self.close(at)
        (outcome,) = self._engine.append([self], dense=dense)
        if isinstance(outcome, Exception):
            raise outcome
        self._engine.relieve(sum(commit.count for commit in outcome))
        return outcome

    def close(self, at: int) -> None:
        """Ends the last commit, so that nothing is left to do but write, once."""
        self._check()
        if self._wires:
            self._end(at)
        if not self.commits:
            raise ConflictError("a batch with no mutation cannot be committed", code="empty-batch")
        assert self.commits[-1].hash == self.head.hash, "the head stands at the end of what is written"
        self.spend("was committed")

    def spend(self, why: str) -> None:
        """Refuses from now on whatever would be added or committed."""
        self._spent = self._spent or why
        self._plans = NO_PLANS

    @property
    def spent(self) -> bool:
        """Whether it was committed, or its block ended."""
        return bool(self._spent)

    def _check(self) -> None:
        if self._spent:
            raise ConflictError(
                f"this batch {self._spent}, and is not taken again; begin another one", code="batch-ended"
            )


class HandBatch:
    """A batch as `Session.batch` hands it out: mutations of one session of somebody's own.

    Nothing of it leads past the checks and the redaction of what is added.
    """

    __slots__ = ("_batch",)

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    @property
    def position(self) -> int:
        """The position the next mutation will have."""
        return self._batch.position

    @property
    def head(self) -> GateHead:
        """A copy of the session's head after this batch; changing the copy changes nothing."""
        return self._batch.head.copy()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
        return self._batch.empty

    @property
    def redacts(self) -> bool:
        """Whether what is sealed may differ from what was handed in: the session masks secrets."""
        return self._batch.redaction is not None

    @property
    def spent(self) -> bool:
        """Whether it was committed, or its block ended."""
        return self._batch.spent

    def cell(self, content: bytes) -> CellRef:
        """Seals bytes; bytes this session sealed before are named, not written again."""
        return self._batch.cell(content)

    def request(self, request_id: str, payload: bytes) -> None:
        """Gives the commit under way a request id, with a digest of what was asked."""
        if (redaction := self._batch.redaction) is not None:
            redaction.door.clean(request_id, "the request id")
        self._batch.request(request_id, payload)

    def add(self, mutation: AnyMutation) -> int:
        """Takes a mutation in, with a record of what was masked in it; its position. RefusedError names the rule."""
        return self._batch.add(mutation)

    def end(self, at: int) -> None:
        """Ends a commit: what follows goes into the next one."""
        self._batch.end(at)

    def commit(self, at: int) -> list[Commit]:
        """Ends the last commit and writes all of them, durable, or none."""
        return self._batch.commit(at)
