"""Destruction in PostgreSQL: frames are rewritten without the cells, then the whole table, then objects deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from vmstore.core.system.safe_files import Stray
from vmstore.errors import CorruptError, LockedError
from vmstore.log.destruction import blanked
from vmstore.log.frame import ERASED_SIZE, Frame, named
from vmstore.log.frame_encryption import PLAIN, NoEncryption, key_of
from vmstore.log.port import DestroyResult
from vmstore.log.postgres.cell_objects import CellObjects, not_named
from vmstore.log.postgres.connection import Connection, Params
from vmstore.log.postgres.tables import OBJECTS, Statements
from vmstore.log.rows import frame_of


class Destroyer:
    """Destroys cells of a namespace, and deletes objects that no commit names; the lease is held around each call."""

    def __init__(
        self, writing: Connection, sql: Statements, params: Params, objects: CellObjects | None, vault: NoEncryption
    ) -> None:
        self._writing = writing
        self._sql = sql
        self._params = params
        self._objects = objects
        self._vault = vault

    def destroy(self, frames: Iterator[Frame], erased: Mapping[int, int]) -> DestroyResult:
        """Rewrites frames, as they lie, without the cells, then the table, so that no file of it holds the old rows.

        Objects go last: until then a kill leaves their names, by which they are found again.
        """
        done, gone, wanted = DestroyResult(), list[bytes](), sorted(erased)
        for old in frames:
            frame = self._vault.opened(old)
            lengths = frame.lengths
            if lengths is None:
                raise CorruptError(f"the frame of cell {frame.first} is damaged; run `vmstore verify`")
            places = [number - frame.first for number in wanted if frame.first <= number < frame.after]
            if old.form in OBJECTS:
                gone += [named(old, at) for at in places]  # a kill may have left one of those of before
            fresh = [at for at in places if lengths[at] != ERASED_SIZE]
            if fresh:
                self._put(self._vault.closed(blanked(frame, fresh), key_of(old)))
                size = sum(lengths[at] for at in fresh)
                done = DestroyResult(done.cells + len(fresh), done.bytes + size, done.frames + 1)
        if done.frames:
            self._writing.rewrite(self._sql.vacuum)
        self._drop_emptied()
        return done._replace(files=self._deleted(gone))

    def _put(self, blank: Frame) -> None:
        row = {"sizes": blank.sizes, "salts": blank.salts, "content": blank.content}
        with self._writing.used() as db:
            db.execute(self._sql.put_frame, {**self._params, "first": blank.first, "form": blank.form, **row})

    def _drop_emptied(self) -> None:
        """Drops every key under which no cell is left, while no append can come between the look and the drop."""
        if self._vault is PLAIN:
            return
        with self._writing.used() as db, db.transaction():
            db.execute(self._sql.lock, self._params)
            rows = db.cursor(binary=True).execute(self._sql.encrypted, self._params).fetchall()
            names = self._vault.emptied(map(frame_of, rows))
            db.execute(self._sql.sweeping, self._params)
            dropped = sum(db.execute(self._sql.drop_key, {**self._params, "id": name}).rowcount for name in names)
        self._vault.forget()
        if dropped:
            self._writing.rewrite(self._sql.vacuum_keys)

    def _deleted(self, gone: Sequence[bytes]) -> int:
        """Deletes the objects of destroyed cells; how many were there."""
        if not gone:
            return 0
        if self._objects is None:
            raise not_named(self._writing.address)
        self._move_on()
        return sum(map(self._objects.remove, gone))

    def _move_on(self) -> None:
        """Has every append refused that put its objects before: it looks again whether they are there."""
        with self._writing.used() as db:
            db.execute(self._sql.sweeping, self._params)

    def sweep(self, before: int, holds: Callable[[], bool]) -> list[Stray]:
        """Deletes what no commit names and was written before a time, as long as the lease `holds`."""
        self._move_on()
        assert self._objects is not None, "there is where to look"
        found = []
        for name, stray in list(self.strays(before)):
            if not holds():
                raise LockedError(
                    f"{self._writing.address} was taken by another writer while strays were deleted, which is safe to "
                    "go on with: try again"
                )
            self._objects.objects.delete(name)
            found.append(stray)
        return found

    def strays(self, before: int) -> Iterator[tuple[str, Stray]]:
        """Objects that no commit names and that were written before a time, by name."""
        if self._objects is None:
            return
        frames = map(frame_of, self._writing.rows(self._sql.objects, self._params))
        names = {named(frame, at) for frame in frames for at in range(frame.cells)}
        for name, stray in self._objects.strays(names.__contains__):
            if stray.at < before:
                yield name, stray
