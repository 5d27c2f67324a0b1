"""When a stored cell is sound: one rule for whoever checks cells.

A cell holds the bytes its commitment is over, or it was destroyed and the log records that. A
destroyed cell that no erasure names is damage like any other: else whoever can write to the files
could take contents away and call it forgetting.
"""

from __future__ import annotations

from collections.abc import Callable

from vmstore.cells.cell import Cell

Erased = Callable[[int], bool]
"""Whether the log records that the cell of a number was erased."""


def nothing_erased(number: int) -> bool:
    """Of a log that records no erasure."""
    return False


def unsound(cell: Cell | None, number: int, commitment: bytes, erased: Erased) -> str | None:
    """What is wrong with the cell of a number, None where nothing is; `commitment` is what its commit states."""
    if cell is None:
        return "it is missing"
    if cell.erased:
        return None if erased(number) else "its bytes were destroyed, and no erasure is recorded"
    return None if cell.keeps(commitment) else "its bytes do not match their commitment"
