"""Cells by number, as the log holds them: read, checked against their commitments, and named where they were erased."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import BinaryIO

import apsw

from vmstore.cells.cell import ERASED, Cell
from vmstore.errors import CorruptError, ErasedError
from vmstore.log.port import Log
from vmstore.views.erased_cells import erased_among, erased_at, seen

PIECE_BYTES = 1 << 18

Instead = Callable[[int], bytes]
"""What stands in the place of a content that was erased at a position."""


def read_cells(
    log: Log, db: apsw.Connection, sealed: Mapping[int, bytes | None], instead: Instead | None = None
) -> dict[int, bytes]:
    """The bytes of cells by number, checked against their commitments where those are known.

    A cell that is missing or does not match is an error that names it, one that was erased an
    ErasedError, unless something is to stand `instead`.
    """
    found = {}
    for number, cell in whole_cells(log, sealed, seen(log, db, sealed)).items():
        found[number] = cell.content
        if cell.erased:
            position = erased_at(log, db, number)
            if instead is None:
                raise erased_error(position)
            found[number] = instead(position)
    return found


def whole_cells(log: Log, sealed: Mapping[int, bytes | None], found: dict[int, Cell]) -> dict[int, Cell]:
    """Cells by number, as found; CorruptError for one that is missing or does not match its commitment."""
    for number, commitment in sealed.items():
        if not is_whole(found.get(number), commitment):
            cell = log.cells([number]).get(number)  # it may have been destroyed as it was read
            if cell is None or not is_whole(cell, commitment):
                what = "is missing from the log" if cell is None else "does not match its commitment"
                raise CorruptError(f"cell {number} {what}; run `vmstore verify`", code="cell-missing")
            found[number] = cell
    assert sealed.keys() <= found.keys(), "the caller takes each cell without looking whether it is there"
    return found


def is_whole(cell: Cell | None, commitment: bytes | None) -> bool:
    """Whether a cell was destroyed, or holds what its commitment is over, where that is known."""
    return cell is not None and (cell.erased or commitment is None or cell.keeps(commitment))


def erased_error(position: int) -> ErasedError:
    """The error for a content that was erased."""
    return ErasedError(f"that content was erased at position {position}; nothing can bring it back")


def open_cell(log: Log, db: apsw.Connection, number: int, commitment: bytes) -> BinaryIO:
    """The bytes of a cell as a file, checked against its commitment, however long, a piece at a time."""
    found = log.open_cell(number)
    if found is None:
        raise CorruptError(f"cell {number} is missing from the log; run `vmstore verify`", code="cell-missing")
    if found.salt == ERASED.salt or erased_among(db, [number]):
        found.file.close()
        raise erased_error(erased_at(log, db, number))
    digest = sha256(found.salt)
    while piece := found.file.read(PIECE_BYTES):
        digest.update(piece)
    if digest.digest() != commitment:
        found.file.close()
        if ERASED in log.cells([number]).values():  # destroyed as it was read
            raise erased_error(erased_at(log, db, number))
        raise CorruptError(f"cell {number} does not match its commitment; run `vmstore verify`", code="cell-damaged")
    found.file.seek(0)
    return found.file
