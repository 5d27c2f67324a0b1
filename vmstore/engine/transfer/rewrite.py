"""Rewrites the sessions of another log in this one: the same mutations with this log's ids, salts and hashes.

What was erased stays so. A cell without bytes stands for each that lost them, and the erasures name
those; where the record of one is not among what is rewritten, one more erasure ends the session.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import apsw
import msgspec

from vmstore.cells.cell import Cell
from vmstore.core.asof import Position
from vmstore.core.erasure import ErasureReason
from vmstore.core.mutation import (
    WHOLE,
    AnyMutation,
    CellRef,
    Compress,
    Create,
    Embed,
    Erase,
    Known,
    Open,
    Pack,
    Unknown,
    Update,
    decode,
    sealed_again,
)
from vmstore.core.page import Fidelity, Origin
from vmstore.engine.batch import Batch
from vmstore.engine.engine import Engine, Ingested
from vmstore.engine.head import GateHead, NewSession
from vmstore.engine.lookups import ViewLookups
from vmstore.engine.redaction import resized
from vmstore.engine.rules.field_types import WORDS
from vmstore.engine.transfer.ingest import CommitCollector, ForeignSession, sealed_at
from vmstore.errors import CorruptError, ErasedError, InputError
from vmstore.log.commit import Commit
from vmstore.views.projectors.residency import resident_at
from vmstore.views.reads.resolve_asof import basis

Hide = Callable[[bytes], bytes]
"""What is to be seen of the bytes of a cell."""


def rewrite_session(
    engine: Engine, gathering: CommitCollector, foreign: ForeignSession, opening: NewSession, hide: Hide | None = None
) -> Ingested:
    """Writes a proven session's mutations as a new session that `opening` begins, with this log's ids and salts.

    Where only what `hide` leaves is written, request ids are left out too: their digests let guesses be tried.
    """
    commits = gathering.commits(foreign.session)
    batch = engine.begin(opening, commits[0].at, redacted=True)
    if opening.origin is Origin.FORK:
        inherit(engine, batch.head, opening)
    telling = _Telling(batch, gathering, foreign, hide)
    for commit in commits:
        telling.commit(commit)
    telling.end(commits[-1].at)
    stored = batch.commit(commits[-1].at, dense=True)
    engine.follow()
    return Ingested(stored[-1].session, len(commits))


class _Telling:
    """A session on its way into a batch."""

    def __init__(self, batch: Batch, gathering: CommitCollector, foreign: ForeignSession, hide: Hide | None) -> None:
        self._batch = batch
        self._log = gathering.log
        self._lane = gathering.lane(foreign)
        self._foreign = foreign
        self._hide = hide
        self._ends: list[tuple[int, int]] = []  # the first and last position of each commit
        self._lost: dict[tuple[int, int], bytes] = {}  # what was erased: its commit's first position, its index
        self._named: set[CellRef] = set()  # what erasures name of it in the new session
        self._sizes: dict[CellRef | None, tuple[int, int]] = {}  # of a commit's cells, in the source and here

    def commit(self, commit: Commit) -> None:
        """Rewrites a commit that was read with its cells."""
        assert len(commit.cells) == commit.cell_count, "what was erased of it is found among its cells"
        self._sizes.clear()
        self._ends.append((commit.first, commit.last))
        for index, cell in enumerate(commit.cells):
            if cell.erased:
                self._lost[commit.first, index] = commit.commitment(index)
                self._batch.lost(commit.commitment(index))
        if commit.request >= 0 and self._hide is None and not commit.cells[commit.request].erased:
            request_id, _, payload = commit.cells[commit.request].content.rpartition(b"\n")
            self._batch.request(request_id.decode(), bytes.fromhex(payload.decode()))
        for mutation in decode(commit.body):
            if not isinstance(mutation, Open):
                self._batch.add(self._again(mutation, commit))
        self._batch.end(commit.at)

    def end(self, at: int) -> None:
        """Names what was erased by a record that is not among what was rewritten."""
        left = tuple(ref for ref in self._batch.erased if ref not in self._named)
        if left:
            self._batch.add(Erase(ErasureReason.RESTORED, left))
            self._batch.end(at)

    def _again(self, mutation: AnyMutation, commit: Commit) -> AnyMutation:
        if isinstance(mutation, Erase):
            return self._erase(mutation)
        if isinstance(mutation, Embed) and self._hide is not None:  # what was hidden may be in a vector
            mutation = msgspec.structs.replace(mutation, vectors=None)
        rewritten: Any = sealed_again(_writable(mutation, self._foreign), lambda ref: self._cell(commit, ref))
        if isinstance(rewritten, Pack):  # the leaves of its root name the session that made each page
            totals = self._batch.head.foresee(rewritten.entered, rewritten.left)
            return msgspec.structs.replace(_listed(rewritten), root=totals.root, tokens=totals.tokens)
        sizes = self._sizes.get(rewritten.content) if isinstance(rewritten, Create | Update | Compress) else None
        return rewritten if sizes is None else resized(rewritten, *sizes)

    def _cell(self, commit: Commit, ref: CellRef) -> CellRef:
        """A cell of the source as it is written here."""
        number, commitment = sealed_at(self._log, self._lane, commit, ref)
        cell = commit.cells[ref] if isinstance(ref, int) else self._log.cells([number]).get(number)
        if cell is not None and cell.erased:
            return self._batch.lost(commitment)
        if cell is None or not cell.keeps(commitment):
            raise CorruptError(
                f"cell {number} is missing or does not match its commitment; run `vmstore verify`", code="cell-damaged"
            )
        shown = cell.content if self._hide is None else self._hide(cell.content)
        made = self._batch.cell(shown)
        self._sizes[made] = len(cell.content), len(shown)
        return made

    def _erase(self, mutation: Erase) -> Erase:
        """An erasure that names the cells as they are written here."""
        singles = set()
        for position, index in mutation.cells:
            first, last = self._ends[max(bisect_right(self._ends, (position + 1,)) - 1, 0)]
            if first <= position <= last:
                singles.add((first, index))
        whole = bisect_right(self._ends, mutation.upto, key=lambda ends: ends[1])
        before = self._ends[whole - 1][0] if whole else 0
        gone = [cell for place, cell in self._lost.items() if place in singles or place[0] <= before]
        cells = tuple(ref for cell in gone if isinstance(ref := self._batch.lost(cell), tuple))
        if not cells:
            raise ErasedError(
                f"session {self._foreign.name!r} records an erasure of nothing that it has", code="nothing-erased"
            )
        self._named.update(cells)
        return Erase(mutation.reason, cells)


def _listed(pack: Pack) -> Pack:
    """A pack without what an earlier version let in: words there are none of, two skeletons of one message."""
    shape = pack.shape if pack.shape in WORDS[Pack]["shape"] else None
    renderer = pack.renderer if pack.renderer in WORDS[Pack]["renderer"] else WHOLE
    if pack.sent is not None:  # its request named pages as they were numbered there
        pack = msgspec.structs.replace(pack, fidelity=Fidelity.DERIVED, sent=None)
    return msgspec.structs.replace(pack, shape=shape, renderer=renderer, envelopes=tuple(dict(pack.envelopes).items()))


class _Inherited(ViewLookups):
    """The parent of a fork, looked up before the fork is in the views."""

    def __init__(self, db: apsw.Connection, parent: int, position: int, uid: bytes) -> None:
        super().__init__(db, parent)
        self.upto = position
        self._own = uid

    def uid(self, page: int) -> bytes:
        """The uid of the session that created a page: the fork's own beyond the fork point."""
        return self._own if page > self.upto else super().uid(page)


def inherit(engine: Engine, head: GateHead, opening: NewSession) -> None:
    """Gives the head of a fork what its parent's views hold up to the fork point."""
    db, position = engine.projection.db, opening.parent_position
    lookups = _Inherited(db, opening.parent, position, head.uid)
    head.lookups = lookups
    moment = basis(lookups.lane, Position(position))
    head.turn, head.call = moment.turn, moment.call
    head.restore(resident[:4] for resident in resident_at(lookups.lane, position))


def _writable(mutation: AnyMutation, foreign: ForeignSession) -> Known:
    if isinstance(mutation, Unknown):
        raise InputError(
            f"session {foreign.name!r} holds a {mutation.kind}, which this version cannot write;"
            " import it with --exact",
            code="unknown-kind",
        )
    return mutation


def opening_of(
    gathering: CommitCollector, foreign: ForeignSession, keys: dict[bytes, int], name: str, source: str
) -> NewSession:
    """The opening of a foreign session as a new one here; `keys` maps foreign uids to this log's sessions."""
    commit = gathering.commits(foreign.session)[0]
    opened = decode(commit.body)[0]
    assert isinstance(opened, Open), "a session begins with its open"
    lost = tuple(commit.commitment(index) for index, cell in enumerate(commit.cells) if cell.erased)
    meta = b"{}"
    if opened.meta is not None and not _cell(commit, opened.meta).erased:
        meta = _cell(commit, opened.meta).content
    return NewSession(
        name,
        msgspec.json.decode(meta),
        origin=Origin(opened.origin),
        parent=keys.get(opened.parent or b"", 0),
        parent_position=opened.parent_position,
        source=source,
        spawned_by=opened.spawned_by,
        lost=lost,
    )


def _cell(commit: Commit, ref: CellRef) -> Cell:
    assert isinstance(ref, int), "what a session begins with lies in its first commit"
    return commit.cells[ref]
