"""The shelf: the segments of one log, found and checked, extended as the log grows, rebuilt when they fail.

What the segments do not hold yet is cut in memory. Segments are views: one that is damaged or of
another log is not read, and makes way for a new cut.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

import duckdb
import msgspec

from vmstore.columns.parquet import reader
from vmstore.columns.schema import TAIL_MAX
from vmstore.columns.segment import SegmentFolder, SegmentSeal, found_in, seal_of, sealed
from vmstore.columns.segment_writer import SegmentWriter
from vmstore.core.system.logger import notices
from vmstore.errors import StoreError
from vmstore.log.port import Log
from vmstore.views.applier import Applier
from vmstore.views.projection import Progress, Projection

MUTATIONS_MAX = 122_880  # of a segment, one row group of Parquet: some 200 MB while it is written
MUTATIONS_MIN = MUTATIONS_MAX // 2  # a last one with fewer is cut again with what follows
LOCK = "lock"
DAMAGE = (OSError, ValueError, msgspec.MsgspecError)

T = TypeVar("T")
_OURS = re.compile(r"[0-9a-f]{8}-\d+-\d+-[0-9a-f]{16}(\.new)?")


class ColumnRows(NamedTuple):
    """All that the log holds up to an ordinal: in segments, and beyond them in memory. One of both is there.

    Others may have sealed more meanwhile: what is held ends at `end`.
    """

    ordinal: int
    segments: list[SegmentFolder]
    tail: SegmentWriter | None

    @property
    def end(self) -> int:
        """The last commit that is held."""
        return max(_end(self.segments), 0 if self.tail is None else self.tail.ordinal)


class Segments:
    """The segments in a folder; None where there can be none. Asked while the views stand still."""

    def __init__(self, folder: Path | None, log: Log, projection: Projection, *, readonly: bool) -> None:
        self.folder = folder
        self._readonly = readonly or folder is None
        self.log = log
        self.projection = projection
        self._seals: dict[str, SegmentSeal] = {}  # what was checked, by name
        self._warned: set[str] = set()
        self._tail: SegmentWriter | None = None
        self._db: duckdb.DuckDBPyConnection | None = None

    @property
    def db(self) -> duckdb.DuckDBPyConnection:
        """The database that reads and writes segments."""
        if self._db is None:
            self._db = reader()
        return self._db

    def close(self) -> None:
        """Drops what is in memory."""
        if self._db is not None:
            self._db.close()
        self._db = self._tail = None

    def segments(self) -> list[SegmentFolder]:
        """The sound segments from the start of the log on, up to the first gap."""
        chain: list[SegmentFolder] = []
        for segment in () if self.folder is None else found_in(self.folder):
            if segment.after == _end(chain) and self._sound(segment):
                chain.append(segment)
        return chain

    def _sound(self, segment: SegmentFolder) -> bool:
        """Whether a segment is what was sealed, and of this log; looked into once."""
        if segment.path.name not in self._seals:
            try:
                self._seals[segment.path.name] = self.checked(segment)
            except DAMAGE as error:
                if segment.path.name not in self._warned and segment.path.is_dir():  # else another has replaced it
                    self._warned.add(segment.path.name)
                    notices().warning("%s is left out and cut again from the log: %s", segment.path, error)
                return False
        return True

    def checked(self, segment: SegmentFolder) -> SegmentSeal:
        """A segment's seal; raises ValueError or OSError where it is damaged, or not of this log."""
        seal = seal_of(segment)
        commits = self.log.tail(segment.upto - 1, 1)
        if not commits or commits[0].ordinal != segment.upto or commits[0].hash.hex() != seal.last:
            raise ValueError(f"it does not end with commit {segment.upto} of this log")
        return seal

    # ---- holding all of the log

    def reading(self, ordinal: int, read: Callable[[ColumnRows], T]) -> T:
        """Runs `read` on all segments up to an ordinal that the views have reached."""
        try:
            return read(self.held(ordinal))
        except duckdb.Error:
            self._seals.clear()  # another has replaced segments, or they broke since they were looked into
        try:
            return read(self.held(ordinal))
        except duckdb.Error as error:
            remedy = "mend the disk, then run `vmstore rebuild --view columns`"
            raise StoreError(
                f"the column segments in {self.folder} cannot be read ({error}); {remedy}", code="segments-unreadable"
            ) from error

    def held(self, ordinal: int) -> ColumnRows:
        """Everything up to an ordinal that the views have reached; much that is new is sealed first."""
        try:
            self.grow(ordinal)
        except StoreError as error:
            notices().warning("the newest commits are cut in memory: %s", error)
        segments = self.segments()
        return ColumnRows(ordinal, segments, self._ahead(_end(segments), ordinal))

    def grow(self, ordinal: int, progress: Progress | None = None) -> list[SegmentFolder]:
        """Seals what there is up to an ordinal that the views have reached, where it is worth a segment."""
        if not self._readonly:
            tail = self._ahead(_end(self.segments()), ordinal, mutations_max=TAIL_MAX)
            if tail is not None and tail.ordinal < ordinal:
                self.fill(ordinal, progress)
        return self.segments()

    def _ahead(self, end: int, ordinal: int, *, mutations_max: int | None = None) -> SegmentWriter | None:
        """A writer for the part of the log that segments up to `end` lack, limited in size, or None."""
        if 0 < end >= ordinal:
            return None
        if self._tail is None or self._tail.after != end:
            self._tail = SegmentWriter(self.log, self.projection.db, end)
        try:
            self._tail.follow(ordinal, mutations_max=mutations_max)
        except BaseException:
            self._tail = None
            raise
        return self._tail

    # ---- cutting

    def fill(self, ordinal: int, progress: Progress | None = None) -> list[SegmentFolder]:
        """Cuts and seals everything up to an ordinal that the views have reached; one process at a time."""
        if self.folder is None or self._readonly:
            return self.segments()
        if _end(self.segments()) < ordinal:
            with self._cutting(self.folder) as applier:
                self._clear(self.folder)
                while (end := _end(self.segments())) < ordinal:
                    applier.moved(end)
                    if progress is not None:
                        progress(end, ordinal)
                    self._seal(self.folder, ordinal)
        return self.segments()

    def rebuild(self, ordinal: int, progress: Progress | None = None) -> list[SegmentFolder]:
        """Forgets every segment and cuts the log again from its start."""
        if self.folder is not None and not self._readonly:
            with self._cutting(self.folder):
                for segment in found_in(self.folder):
                    self._remove(segment.path)
        return self.fill(ordinal, progress)

    @contextmanager
    def _cutting(self, folder: Path) -> Iterator[Applier]:
        """The right to change a folder of segments; errors of the disk say what to do."""
        applier = Applier(folder / LOCK)
        try:
            folder.mkdir(exist_ok=True)
            with applier.taken():
                yield applier
        except (OSError, duckdb.Error) as error:
            raise StoreError(
                f"column segments cannot be written to {folder} ({error}); "
                "nothing is lost, the log has it all: make room or mend the disk, then try again",
                code="not-written",
            ) from error
        finally:
            applier.close()

    def _clear(self, folder: Path) -> None:
        """Removes what no reader needs: what is damaged, unfinished, replaced before, or of another version.

        What is replaced now stays until the next time, for those who read it.
        """
        chain = self.segments()
        found = found_in(folder)
        keep = {segment.path.name for segment in found if self._sound(segment) and not _replaced(segment, chain)}
        for entry in folder.iterdir():
            if _OURS.fullmatch(entry.name) and entry.name not in keep:
                self._remove(entry)

    def _seal(self, folder: Path, ordinal: int) -> None:
        """Cuts one more segment, together with the last one where that is small."""
        chain = self.segments()
        end = _end(chain)
        small = bool(chain) and self._seals[chain[-1].path.name].mutations < MUTATIONS_MIN
        cut = self._cut(chain[-1].after if small else end, ordinal)
        if cut.ordinal <= end:  # what follows does not fit with it
            cut = self._cut(end, ordinal)
        try:
            sealed(folder, cut, self.db)
        except BaseException:
            for entry in folder.glob("*.new"):
                shutil.rmtree(entry, ignore_errors=True)
            raise

    def _cut(self, after: int, ordinal: int) -> SegmentWriter:
        cut = SegmentWriter(self.log, self.projection.db, after)
        cut.follow(ordinal, mutations_max=MUTATIONS_MAX)
        return cut

    def _remove(self, path: Path) -> None:
        self._seals.pop(path.name, None)
        shutil.rmtree(path)


def _end(chain: list[SegmentFolder]) -> int:
    """The last commit that segments hold."""
    return chain[-1].upto if chain else 0


def _replaced(segment: SegmentFolder, chain: list[SegmentFolder]) -> bool:
    """Whether a longer segment holds all that this one does."""
    return any(other.after <= segment.after and segment.upto <= other.upto and segment != other for other in chain)
