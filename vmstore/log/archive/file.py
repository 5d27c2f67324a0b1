"""The file of an archive: a session's commits and cells, dense, with nothing in it that follows from the rest.

    runs    first ordinal | content       up to 512 commits, column by column, as one zstd frame
    frames  as in a log                   all cells, in long frames, under their subjects' keys as there
    keys    id | wrapped                  the keys of those frames, wrapped by the store key
    heads   session | start hash          what each session's chain starts from and ends with
    erased  number | commitment | position
                                          of cells that were destroyed, and where that is recorded in the
                                          session that brought them, which may be after all its commits here

Hashes and commitments are computed from the cells, and each chain must end as its head says:
opening an archive proves every byte of it but what was erased and where, which it states.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import apsw
import msgspec

from vmstore.cells import schema
from vmstore.cells.cell import DAMAGED, Cell
from vmstore.cells.storekey import StoreKey
from vmstore.cells.subject_keys import unwrapped
from vmstore.errors import CorruptError, StoreError
from vmstore.log.archive.formats import ENCRYPTED_FORMAT, FORMAT, FORMATS
from vmstore.log.cell_reader import cells_of
from vmstore.log.commit import Commit, follows, genesis, link
from vmstore.log.file import APPLICATION_ID, LogFile
from vmstore.log.frame import ERASED_SIZE, densely, opened, squeezed, stretched
from vmstore.log.frame_encryption import PLAIN, FrameDecryption, NoEncryption
from vmstore.log.readonly import ReadLog
from vmstore.log.rows import READ_FRAMES, blob, frame_of, number

COMMITS_MAX = 512
COLUMNS_BYTES, COLUMNS_RATIO = 16 << 20, 32  # of all commits of a file; more than both is not believed
# What reading a damaged file may run into; a chain that ends as stated is what proves it.
DAMAGE = (ValueError, TypeError, KeyError, OverflowError, StopIteration, RuntimeError, struct.error)
_SCHEMA = f"""
PRAGMA page_size = 1024;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
PRAGMA synchronous = OFF;
BEGIN;
CREATE TABLE runs(first INTEGER PRIMARY KEY, size INTEGER NOT NULL, content BLOB NOT NULL);
CREATE TABLE frames(
  first INTEGER PRIMARY KEY, count INTEGER NOT NULL, form INTEGER NOT NULL, sizes BLOB NOT NULL,
  salts BLOB NOT NULL, content BLOB NOT NULL);
CREATE TABLE heads(session INTEGER PRIMARY KEY, start BLOB NOT NULL, hash BLOB NOT NULL);
CREATE TABLE keys(id BLOB PRIMARY KEY, wrapped BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE erased(number INTEGER PRIMARY KEY, commitment BLOB NOT NULL, position INTEGER);
"""
_HEADS = "SELECT session, CAST(start AS BLOB), CAST(hash AS BLOB) FROM heads ORDER BY session"


_SOME = msgspec.Meta(max_length=COMMITS_MAX)
_Ints = Annotated[list[int], _SOME]


class _Columns(msgspec.Struct, frozen=True, array_like=True):
    """Some commits, column by column."""

    session: _Ints
    first: _Ints
    count: _Ints
    at: _Ints
    lag: _Ints
    request: _Ints
    cells: _Ints
    body: Annotated[list[bytes], _SOME]


assert _Columns.__struct_fields__ == ("session", "first", "count", "at", "lag", "request", "cells", "body"), (
    "`_laid` writes and `_read` reads the columns by place"
)


Start = Callable[[Commit], bytes]
"""What the chain of a session starts from, by its first commit."""
Recorded = Callable[[int], int | None]
"""Where a cell is recorded as erased, by its number where the commits are from; None where it is not."""


Under = Callable[[int], bytes]
"""The id of the key that a cell lies under, by its number where the commits are from."""


class ArchiveContents(NamedTuple):
    """The rest of an archive: chain starts, recorded erasures, and the keys that cells are encrypted with."""

    start: Start
    recorded: Recorded
    under: Under


def write(path: Path, commits: Iterable[Commit], source: ArchiveContents, vault: NoEncryption) -> None:
    """Writes a new archive of commits with their cells, numbered as in a log of their own. It is not flushed."""
    db = apsw.Connection(str(path))
    try:
        db.execute(_SCHEMA).fetchall()
        heads: dict[int, list[Any]] = {}  # by key where the commits are from: key here, start, hash
        names = set()
        after = 1
        for name, run in groupby(_laid(db, iter(commits), source, heads), itemgetter(0)):
            for frame in densely(after, (cell for _, cell in run)):
                assert frame.first == after, "`_commitments` takes a gap between two frames for a missing cell"
                db.execute("INSERT INTO frames VALUES(?,?,?,?,?,?)", vault.closed(frame, name))
                after = frame.after
                if name and any(length != ERASED_SIZE for length in frame.lengths or ()):
                    names.add(name)
        if vault.suffix:
            db.execute(f"PRAGMA user_version = {ENCRYPTED_FORMAT}")
            db.executemany("INSERT INTO keys VALUES(?,?)", [(name, vault.carried(name)) for name in sorted(names)])
        db.executemany("INSERT INTO heads VALUES(?,?,?)", heads.values())
        db.execute("COMMIT").fetchall()
    finally:
        db.close()


def chained(
    commits: Iterable[Commit], uids: Mapping[int, bytes], recorded: Recorded, under: Under
) -> tuple[Iterator[Commit], ArchiveContents]:
    """Commits with their cells, sessions before their forks, and the rest of their archive.

    `uids` are those of all their sessions, by key. What a chain starts from is found as they are read.
    """
    ends: dict[int, list[bytes]] = {}

    def noted() -> Iterator[Commit]:
        for commit in commits:
            yield commit
            ends.setdefault(commit.last, []).append(commit.hash)

    def start(commit: Commit) -> bytes:
        before: list[bytes] = [genesis(uids[commit.session]), *ends.get(commit.first - 1, [])]
        for found in before:
            if follows(found, commit):
                return found
        raise CorruptError(f"commit {commit.ordinal} follows nothing; run `vmstore verify`")

    return noted(), ArchiveContents(start, recorded, under)


def _laid(
    db: apsw.Connection, commits: Iterator[Commit], source: ArchiveContents, heads: dict[int, list[Any]]
) -> Iterator[tuple[bytes, Cell]]:
    """Writes the columns of commits, and gives their cells one after the other, each with the id of its key."""
    ordinal, cell = 0, 0
    while run := list(islice(commits, COMMITS_MAX)):
        rows = []
        for at, c in enumerate(run, ordinal + 1):
            assert len(c.cells) == c.cell_count, "an archive computes commitments from the cells: none may be left out"
            head = heads.setdefault(c.session, [at, b"", b""])
            head[1:] = head[1] or source.start(c), c.hash
            rows.append((head[0], c.first, c.count, c.at, c.lag, c.request, c.cell_count, c.body))
            name = source.under(c.cell) if c.cells else b""
            for index, sealed in enumerate(c.cells):
                cell += 1
                if sealed.erased:
                    db.execute(
                        "INSERT INTO erased VALUES(?,?,?)", (cell, c.commitment(index), source.recorded(c.cell + index))
                    )
                yield name, sealed
        columns = msgspec.msgpack.encode(_Columns(*map(list, zip(*rows, strict=True))))
        db.execute("INSERT INTO runs VALUES(?,?,?)", (ordinal + 1, len(columns), squeezed(columns)))
        ordinal += len(run)


def rewrap(path: Path, wrapped: Callable[[bytes], bytes]) -> None:
    """Puts keys in the place of those that an archive carries, by their ids; what was there is overwritten."""
    db = apsw.Connection(str(path))
    try:
        schema.guard(db)
        db.execute("PRAGMA secure_delete = ON").fetchall()
        names = [blob(name) for (name,) in db.execute("SELECT id FROM keys")]
        db.executemany("UPDATE keys SET wrapped = ? WHERE id = ?", [(wrapped(name), name) for name in names])
        db.execute("VACUUM").fetchall()
    finally:
        db.close()


class ArchiveFile(LogFile):
    """The file of an archive, for reading."""

    made = schema.made_by(_SCHEMA)

    def __init__(self, path: Path) -> None:
        super().__init__(path, readonly=True, formats=FORMATS)
        self.encrypted = self.format == ENCRYPTED_FORMAT

    def keys(self) -> dict[bytes, bytes]:
        """The keys it carries by their ids, wrapped."""
        with self as db:
            return {blob(name): blob(key) for name, key in db.execute("SELECT id, wrapped FROM keys")}


class CarriedKeys:
    """The keys that an archive carries, unwrapped by the store key: it has to open each."""

    def __init__(self, file: ArchiveFile, store_key: StoreKey) -> None:
        self._keys = {
            name: unwrapped(store_key, name, wrapped, str(file.path)) for name, wrapped in file.keys().items()
        }

    def key(self, name: bytes) -> bytes | None:
        """The key of an id; None where the file carries none."""
        return self._keys.get(name)

    def refresh(self) -> bool:
        """Does nothing and returns False: an archive never changes in place."""
        return False

    def close(self) -> None:
        """Forgets the keys."""
        self._keys.clear()


class ArchiveLog(ReadLog):
    """An archive as a log that is only read. Opening it reads and proves all of it.

    Beside its store a `vault` opens what is encrypted; alone the keys it carries do, by the `store_key`.
    """

    def __init__(self, path: Path, *, vault: NoEncryption | None = None, store_key: StoreKey | None = None) -> None:
        self.file = ArchiveFile(path)
        super().__init__(path)
        try:
            self._vault = vault or self._alone(store_key)
            if self.file.encrypted != bool(self._vault.suffix):
                raise self._damaged("it does not say rightly whether it is encrypted")
            with self.file as db:
                self._commits = list(self._read(db))
        except BaseException as error:
            self.file.close()
            if isinstance(error, DAMAGE):
                raise self._damaged(str(error)) from error
            raise

    def _alone(self, store_key: StoreKey | None) -> NoEncryption:
        if self.file.encrypted == (store_key is not None):
            return PLAIN if store_key is None else FrameDecryption(CarriedKeys(self.file, store_key))
        path = self.file.path
        self.file.close()
        raise StoreError(
            f"{path} is encrypted; name the file of its store's key with --store-key or in VMSTORE_KEY_FILE, in Python "
            "with vmstore.open(…, key=…)"
            if store_key is None
            else f"{path} is not encrypted; leave the key out",
            code="not-encrypted",
        )

    def _read(self, db: apsw.Connection) -> Iterator[Commit]:
        """Its commits, each with the commitments and the hash that its cells give."""
        heads: list[Any] = db.execute(_HEADS).fetchall()
        self._starts: dict[int, bytes] = {session: start for session, start, _ in heads}
        stated = {session: end for session, _, end in heads}
        ends = dict(self._starts)
        commitments = self._commitments(db)
        ordinal, cell, size_held, packed = 0, 0, 0, 0
        for first, size, content in db.execute("SELECT first, size, CAST(content AS BLOB) FROM runs ORDER BY first"):
            size_held, packed = size_held + number(size), packed + len(content)
            if size_held > COLUMNS_BYTES and size_held > COLUMNS_RATIO * packed:
                raise self._damaged(f"its commits are said to be {size_held} bytes long, which lie in {packed}")
            columns = msgspec.msgpack.decode(stretched(content, number(size)) or b"", type=_Columns)
            if first != ordinal + 1:
                raise self._damaged("commits are missing")
            for session, *head, cells, body in zip(*msgspec.structs.astuple(columns), strict=True):
                ordinal += 1
                sealed = b"".join(next(commitments) for _ in range(cells))
                p, count, at, lag, request = head
                digest = ends[session] = link(ends[session], p, count, at, lag, request, body, sealed)
                yield Commit(p, count, at, lag, body, sealed, digest, request, session, ordinal, cells and cell + 1)
                cell += cells
        if next(commitments, None) is not None or ends != stated:
            raise self._damaged("its chains do not end as it says")

    def _commitments(self, db: apsw.Connection) -> Iterator[bytes]:
        """The commitments of its cells, in order; stated only for those that were destroyed."""
        stated = db.execute("SELECT number, CAST(commitment AS BLOB), position FROM erased").fetchall()
        gone = {number(at): blob(commitment) for at, commitment, _ in stated}
        self._erased: dict[int, int] = {
            number(at): number(position) for at, _, position in stated if position is not None
        }
        after = 1
        for row in db.execute(f"SELECT {READ_FRAMES} FROM frames ORDER BY first"):
            frame = self._vault.opened(frame_of(row))
            if frame.first != after:
                raise self._damaged(f"cell {after} is missing")
            after = frame.after
            for at, cell in opened(frame, range(frame.first, frame.after), no_file, dense=True):
                if cell is None or cell == DAMAGED:
                    raise self._damaged(f"cell {at} cannot be read")
                yield gone[at] if cell.erased else cell.commitment

    def start_of(self, first: Commit) -> bytes:
        """The value that a session's chain starts from, computed from its first commit."""
        return self._starts[first.session]

    def _damaged(self, why: str) -> CorruptError:
        return CorruptError(f"{self.path} is damaged ({why}): put it back from a backup", code="archive-damaged")

    # ---- the log port, for reading

    def tail(self, after: int, limit: int) -> list[Commit]:
        """Up to `limit` commits with an ordinal above `after`."""
        return self._commits[max(after, 0) : max(after, 0) + limit]

    def cells(self, numbers: Iterable[int], *, archived: bool = True) -> dict[int, Cell]:
        """The cells of these numbers."""
        return dict(self.each(numbers))

    def each(self, numbers: Iterable[int]) -> Iterator[tuple[int, Cell]]:
        """The cells of these numbers, one frame at a time."""
        return cells_of(self.file, numbers, no_file, None, self._vault, dense=True)

    @property
    def ordinal(self) -> int:
        """The ordinal of the last commit."""
        return len(self._commits)

    @property
    def erased(self) -> Mapping[int, int]:
        """Cells that are recorded as erased, also by commits that came after it was written."""
        return self._erased

    @property
    def last_cell(self) -> int:
        """The number of the last cell."""
        return max((c.cell + c.cell_count - 1 for c in self._commits if c.cell), default=0)

    def close(self) -> None:
        """Closes the file."""
        self.file.close()


def no_file(commitment: bytes) -> bytes | None:
    """Returns None: an archive has no cells in files of their own."""
    return None
