"""Contents of appends on their way: encrypted under their keys, long ones put into an object store before."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from vmstore.cells.cell import Cell
from vmstore.log.commit import Commit
from vmstore.log.frame import Frame
from vmstore.log.frame_encryption import PLAIN, Began, NoEncryption
from vmstore.log.port import Append
from vmstore.log.postgres.append_rows import numbered
from vmstore.log.postgres.cell_objects import OBJECT_BYTES_MIN, CellObjects

NEVER = (1 << 63) - 1


class Pending(Struct, eq=False):
    """An append on its way, then what came of it."""

    append: Append
    stored: list[Commit] = []
    error: Exception | None = None
    long: list[Cell] = []  # those that are objects
    key: bytes = b""  # the id of the key that its contents lie under
    swept: int | None = None  # the count that key and objects hold for
    unkept: Exception | None = None  # why there are none


class ContentWriter:
    """Lays the cells of appends into frames.

    Objects may be deleted and keys dropped by other hosts, which count that in the namespace's row first. So what
    `keep` did holds as long as the count it was given stands there, and an append states it.
    """

    def __init__(self, objects: CellObjects | None, vault: NoEncryption, began: Began) -> None:
        self._objects = objects
        self._vault = vault
        self._began = began

    def pending(self, appends: Sequence[Append]) -> list[Pending]:
        """Appends to be kept, laid and written."""
        pending = [Pending(each._replace(commits=list(each.commits))) for each in appends]
        for each in pending if self._objects is not None else ():
            cells = (cell for commit in each.append.commits for cell in commit.cells)
            each.long = [cell for cell in cells if len(cell.content) >= OBJECT_BYTES_MIN]
        return pending

    def keep(self, pending: Sequence[Pending], swept: int) -> int | None:
        """Chooses keys and puts objects; gives back the count they hold for, None where there are neither.

        The count was read before. One below 0 says that others may be deleting: then nothing is kept.
        """
        if self._vault is PLAIN and not any(each.long for each in pending):
            return None
        for each in pending if swept >= 0 else ():
            if each.swept == swept or each.unkept is not None:
                continue
            try:
                self._keep(each)
            except Exception as error:
                each.unkept = error
            each.swept = swept
        return swept

    def _keep(self, each: Pending) -> None:
        key = self._vault.name(each.append, self._began)
        for cell in each.long:
            assert self._objects is not None, "else no content is too long for a row"
            if each.swept is None or key != each.key or not self._objects.holds(cell.commitment):
                self._objects.keep(cell.commitment, cell.content, key)
        each.key = key

    def numbered(self, pending: Pending, ordinal: int, cell: int) -> tuple[list[Commit], list[Frame]]:
        """An append's commits as they will stand after an ordinal and a cell, and its cells in frames."""
        object_min = NEVER if self._objects is None else OBJECT_BYTES_MIN
        stored, frames = numbered(pending.append, ordinal, cell, object_min)
        return stored, [self._vault.closed(frame, pending.key) for frame in frames]
