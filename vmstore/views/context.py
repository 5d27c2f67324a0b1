"""The context at a call: which pages the model saw, in order, checked against the pack's root."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from typing import BinaryIO, NamedTuple

from vmstore.cells.cell import COMMITMENT_BYTES, ERASED
from vmstore.cells.merkle import Tree, leaf
from vmstore.errors import CorruptError, UnknownError
from vmstore.log.port import Log
from vmstore.views.calls import CallRow
from vmstore.views.lane import Lane
from vmstore.views.residency import AT, knower


class Shown(NamedTuple):
    """One page as the model saw it; those of a context come in the order of their ranks."""

    rank: int
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
    commitment: bytes | None
    since: int


def shown_at(lane: Lane, call: CallRow) -> list[Shown]:
    """The pages of a call in order; raises CorruptError where they are not as many as its pack counted."""
    knows = knower(lane, call.position)
    told = {"s": knows[0], "q": knows[1], **bounds(lane)} if knows else {}
    shown = sorted(map(Shown._make, lane.db.execute(_shown(len(lane.stretches)), told))) if knows else []
    if len(shown) != call.leaves or sum([s.tokens for s in shown]) != call.tokens:
        raise _differs(call, "pages")
    return shown


def check_root(lane: Lane, call: CallRow, shown: Iterable[Shown]) -> None:
    """Raises CorruptError where pages as shown do not give the root that the call's pack stated."""
    if root_of(lane, shown) != call.root:
        raise _differs(call, "root")


def _differs(call: CallRow, what: str) -> CorruptError:
    return CorruptError(
        f"the context at call {call.call} does not match the {what} its pack recorded; "
        "run `vmstore verify`, then `vmstore rebuild`"
    )


@cache
def _shown(stretches: int) -> str:
    """The query for a context's pages with all columns, over a lane of so many stretches.

    Without statistics SQLite would begin with the table it should end with: CROSS JOIN holds the order.
    """
    return f"""SELECT r.rank, r.page, p.message, p.part, p.role, p.type, p.modality, p.mime,
  coalesce(c.version, 1), r.level, coalesce(c.tokens, p.tokens), coalesce(c.size, p.size),
  iif(c.position IS NULL, p.cell, c.cell), iif(c.position IS NULL, p.commitment, c.commitment), r.since
  FROM ({AT}) r CROSS JOIN pages p ON p.session = {owner("r.page", stretches)} AND p.page = r.page
  LEFT JOIN changes c ON c.session = {owner("r.content", stretches)}
   AND c.position = iif(r.content = r.page, NULL, r.content)"""


def owner(position: str, stretches: int, first: int = 0) -> str:
    """SQL for the session that wrote a position, of a lane whose bounds are given as `low0`, `s0` and on."""
    if stretches == 1:
        return f":s{first}"
    half = stretches // 2
    near, far = owner(position, half, first), owner(position, stretches - half, first + half)
    return f"iif({position} > :low{first + half - 1}, {near}, {far})"


def bounds(lane: Lane) -> dict[str, int]:
    """What `owner` asks for."""
    told = {f"s{n}": stretch.session for n, stretch in enumerate(lane.stretches)}
    return told | {f"low{n}": stretch.low for n, stretch in enumerate(lane.stretches[:-1])}


def root_of(lane: Lane, shown: Iterable[Shown]) -> bytes:
    """The Merkle root over pages as shown."""
    uids: dict[int, bytes] = {}
    leaves = []
    for s in shown:
        writer = lane.owner(s.page)
        if writer not in uids:
            uids[writer] = lane.db.execute("SELECT uid FROM sessions WHERE session = ?", (writer,)).get
        leaves.append(leaf(uids[writer], s.page, s.version, s.level, s.commitment or bytes(COMMITMENT_BYTES)))
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
_ENVELOPES = """SELECT message, position, cell, commitment FROM envelopes
  WHERE session = ? AND message IN (SELECT value FROM json_each(?)) AND position <= ?"""
