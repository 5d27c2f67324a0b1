"""The context at a call: which pages the model saw, in order, checked against the pack's root."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, BinaryIO, NamedTuple

from vmstore.cells.cell import COMMITMENT_BYTES, ERASED
from vmstore.cells.merkle import Tree, leaf
from vmstore.errors import CorruptError, UnknownError
from vmstore.log.port import Log
from vmstore.views.calls import CallRow
from vmstore.views.lane import Lane
from vmstore.views.residency import Resident, resident_at


class Shown(NamedTuple):
    """One page as the model saw it."""

    order: int
    page: int
    message: int
    part: int
    role: int
    type: int
    modality: int
    mime: int
    version: int
    level: int
    tokens: int
    size: int
    cell: int | None
    commitment: bytes
    since: int


def shown_at(lane: Lane, call: CallRow) -> list[Shown]:
    """The pages of a call in order; raises CorruptError where they do not give the pack's root."""
    residents = resident_at(lane, call.position)
    pages = {row[0]: row for row in lane.rows(_PAGES, (r.page for r in residents))}
    contents = {row[0]: row for row in lane.rows(_CONTENTS, {r.content for r in residents})}
    shown = [_shown(order, r, pages[r.page], contents[r.content]) for order, r in enumerate(residents, 1)]
    if root_of(lane, shown) != call.root or len(shown) != call.leaves:
        raise CorruptError(
            f"the context at call {call.call} does not match the root its pack recorded; "
            "run `vmstore verify`, then `vmstore rebuild`"
        )
    return shown


def _shown(order: int, r: Resident, page: Sequence[Any], content: Sequence[Any]) -> Shown:
    _, message, part, role, type_, modality, mime = page
    _, version, level, tokens, size, cell, commitment = content
    return Shown(
        order,
        r.page,
        message,
        part,
        role,
        type_,
        modality,
        mime,
        version,
        level,
        tokens,
        size,
        cell,
        commitment or bytes(COMMITMENT_BYTES),
        r.since,
    )


def root_of(lane: Lane, shown: Iterable[Shown]) -> bytes:
    """The Merkle root over pages as shown."""
    uids: dict[int, bytes] = {}
    leaves = []
    for s in shown:
        owner = lane.owner(s.page)
        if owner not in uids:
            uids[owner] = lane.db.execute("SELECT uid FROM sessions WHERE session = ?", (owner,)).get
        leaves.append(leaf(uids[owner], s.page, s.version, s.level, s.commitment))
    return Tree(leaves).root


class Sealed(NamedTuple):
    """A cell and what it must hash to."""

    cell: int
    commitment: bytes


def envelopes_at(lane: Lane, messages: Iterable[int], position: int) -> dict[int, Sealed]:
    """The cell of each message's skeleton as it held at a position."""
    wanted = sorted(set(messages))
    listed = json.dumps(wanted)
    found: dict[int, tuple[int, Sealed]] = {}
    for stretch in lane.upto(position):
        for message, at, cell, commitment in lane.db.execute(_ENVELOPES, (stretch.session, listed, stretch.high)):
            if message not in found or at > found[message][0]:
                found[message] = (at, Sealed(cell, commitment))
    return {message: sealed for message, (_, sealed) in found.items()}


def read_cells(log: Log, sealed: Mapping[int, bytes | None]) -> dict[int, bytes]:
    """The bytes of cells by number, checked against their commitments where those are known.

    A cell that is missing or does not match is an error that names it.
    """
    cells = log.cells(sealed)
    for number, commitment in sealed.items():
        cell = cells.get(number)
        if cell is None:
            raise CorruptError(f"cell {number} is missing from the log; run `vmstore verify`")
        if cell.erased:
            raise UnknownError(f"the content in cell {number} was erased")
        if commitment is not None and not cell.keeps(commitment):
            raise CorruptError(f"cell {number} does not match its commitment; run `vmstore verify`")
    return {number: cell.content for number, cell in cells.items()}


def open_cell(log: Log, number: int, commitment: bytes) -> BinaryIO:
    """The bytes of a cell as a file, checked against its commitment, however long, a piece at a time."""
    found = log.open_cell(number)
    if found is None:
        raise CorruptError(f"cell {number} is missing from the log; run `vmstore verify`")
    if found.salt == ERASED.salt:
        raise UnknownError(f"the content in cell {number} was erased")
    digest = sha256(found.salt)
    while piece := found.file.read(PIECE_BYTES):
        digest.update(piece)
    if digest.digest() != commitment:
        found.file.close()
        raise CorruptError(f"cell {number} does not match its commitment; run `vmstore verify`")
    found.file.seek(0)
    return found.file


PIECE_BYTES = 1 << 18
_PAGES = """SELECT page, message, part, role, type, modality, mime FROM pages
  WHERE session = ? AND page IN (SELECT value FROM json_each(?))"""
_CONTENTS = """SELECT position, version, level, tokens, size, cell, commitment FROM versions
  WHERE session = ? AND position IN (SELECT value FROM json_each(?))"""
_ENVELOPES = """SELECT message, position, cell, commitment FROM envelopes
  WHERE session = ? AND message IN (SELECT value FROM json_each(?)) AND position <= ?"""
