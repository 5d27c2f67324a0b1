"""Contents that were sealed before, so that they are named again and not written again.

In memory for the sessions at work, and for later processes in a file beside the log: rows of
(session, position, digests), the digests of the cells of one commit in order, keyed with a random
key of that file. The file is a hint and nothing more: what it says is held against the cell before
it is believed, rows of it can be deleted one by one, and without it contents are written once more.
It goes by no name a content could be guessed from: without the key a digest says nothing.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path

import apsw
import msgspec

from vmstore.cells import schema
from vmstore.core.system import after_fork
from vmstore.core.text.holes import Hole
from vmstore.errors import StoreError
from vmstore.views.branch import Branch, BranchRange

CONTENTS_MAX = 8192
LOADED_MAX = 1024  # of a session that is taken up again
LOOKED_MAX = 16_384  # some 200 bytes each
NOTED_MAX = 1024  # before they are written
SHORT_BYTES, SHORT_MAX = 256, 1024
DIGEST_BYTES = 16
NO_CONTENT = bytes(DIGEST_BYTES)
BUSY_MS = 200

assert max(LOADED_MAX, NOTED_MAX) <= CONTENTS_MAX, "what is loaded or noted at once does not push itself out"

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS key(key BLOB);
DROP TABLE IF EXISTS contents;  -- of an earlier version, a row a content
CREATE TABLE IF NOT EXISTS commits(session INTEGER, position INTEGER, digests BLOB,
  PRIMARY KEY(session, position)) WITHOUT ROWID;
INSERT INTO key SELECT randomblob(16) WHERE NOT EXISTS (SELECT 1 FROM key);
"""  # the key is random, and nothing of the log depends on it

_MADE = schema.made_by(_SCHEMA)

_RENEW = """
PRAGMA secure_delete = ON;
BEGIN IMMEDIATE;
DELETE FROM commits;
UPDATE key SET key = randomblob(16);
COMMIT;
VACUUM;
PRAGMA wal_checkpoint(TRUNCATE);
"""


class SealedContent(msgspec.Struct, frozen=True, gc=False):
    """The place of a sealed content: first position of its commit, index in it, and its commitment once checked."""

    position: int
    cell: int
    commitment: bytes | None


class CheckedCells:
    """Cells that durable batches looked at, by session and where they lie: they stay what they are."""

    def __init__(self) -> None:
        self.holes: dict[tuple[int, int, int], Sequence[Hole]] = {}  # of skeletons
        self.fit: set[tuple[int, int, int, str]] = set()  # what is of which form

    def take(
        self, holes: Mapping[tuple[int, int, int], Sequence[Hole]], fit: Iterable[tuple[int, int, int, str]]
    ) -> None:
        """Takes in what a batch looked at."""
        if len(self.holes) + len(self.fit) > LOOKED_MAX:
            self.clear()
        self.holes.update(holes)
        self.fit.update(fit)

    def clear(self) -> None:
        """Forgets all: something was erased."""
        self.holes.clear()
        self.fit.clear()


class KnownContents:
    """An index of sealed contents by session and digest, in memory or in a file made for the first content."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._db: apsw.Connection | None = None
        self._key = b""
        self._places: OrderedDict[tuple[int, bytes], SealedContent] = OrderedDict()
        self._short: dict[bytes, bytes] = {}  # digests of short contents
        self._noted: list[tuple[int, int, bytes]] = []
        self._waiting = 0
        self.looked = CheckedCells()  # of sessions written to by hand

    def digest(self, content: bytes) -> bytes:
        """The keyed digest of a content, 16 bytes; of short ones, which come again, it is kept."""
        if self._db is None:
            self._open()
        if len(content) > SHORT_BYTES:
            return sha256(self._key + content).digest()[:DIGEST_BYTES]
        found = self._short.get(content)
        if found is None:
            if len(self._short) >= SHORT_MAX:
                self._short.clear()
            found = self._short[content] = sha256(self._key + content).digest()[:DIGEST_BYTES]
        return found

    def find(self, session: int, digest: bytes) -> SealedContent | None:
        """The place of a session's content, as far as the index remembers it."""
        return self._places.get((session, digest))

    def checked(self, session: int, digest: bytes, place: SealedContent) -> None:
        """Remembers what a place was found to be sealed as."""
        assert place.commitment is not None, "its cell was looked at"
        self._places[session, digest] = place

    def note(self, session: int, position: int, digests: Sequence[bytes], commitments: Sequence[bytes]) -> None:
        """Remembers what a session sealed in the commit that begins at a position, cell by cell; NO_CONTENT is none."""
        assert len(digests) == len(commitments), "a digest and a commitment are of the cell at their place"
        places = self._places
        for cell, digest in enumerate(digests):
            if digest is not NO_CONTENT:
                places[session, digest] = SealedContent(position, cell, commitments[cell])
        while len(self._places) > CONTENTS_MAX:
            self._places.popitem(last=False)
        if digests:
            self._noted.append((session, position, b"".join(digests)))
            self._waiting += len(digests)
        if self._waiting >= NOTED_MAX:
            self.flush()

    def load(self, lane: Branch, after: int = 0) -> None:
        """Takes up what the file holds of a session and, before it forked, of those it came from.

        `after` the position up to which that was done: what was noted since need not be written for it.
        """
        if self._db is None and (self._file is None or not self._file.exists()):
            return
        if not after:
            self.flush()
        newest = (
            row for stretch in lane.stretches for row in self._rows(stretch._replace(low=max(stretch.low, after)))
        )
        for position, cell, digest in islice(newest, LOADED_MAX):
            self._places.setdefault((lane.session, digest), SealedContent(position, cell, None))

    def _rows(self, stretch: BranchRange) -> Iterator[tuple[int, int, bytes]]:
        """Rows of the file for a stretch of positions (position, cell, digest), newest commit first."""
        with contextlib.suppress(apsw.Error):
            rows = self._connection().execute(_LOAD, (stretch.session, stretch.low, stretch.high))
            for position, digests in rows:
                if isinstance(digests, bytes):
                    for cell in range(len(digests) // DIGEST_BYTES):
                        yield position, cell, digests[cell * DIGEST_BYTES : (cell + 1) * DIGEST_BYTES]

    def reload(self) -> None:
        """Forgets what memory holds: something was erased, and another process may have renewed the file."""
        self._places.clear()
        self._short.clear()
        self.looked.clear()
        self._noted, self._waiting = [], 0
        if self._db is not None:
            with contextlib.suppress(apsw.Error):
                self._key = self._db.execute("SELECT key FROM key").get

    def renew(self) -> None:
        """Forgets everything, in the file too, and draws another key: no guess can be tested against what it held."""
        if self._file is not None and (self._db is not None or self._file.exists()):
            try:
                self._connection().execute(_RENEW).fetchall()
            except apsw.Error:
                self._remove(self._file)
        self.reload()

    def _remove(self, file: Path) -> None:
        """Deletes the file; who keeps it open keeps one that has no name any more."""
        if self._db is not None:
            with contextlib.suppress(apsw.Error):
                self._db.close()
            self._db = None
        for suffix in ("", "-wal", "-shm"):
            path = file.with_name(file.name + suffix)
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise StoreError(
                    f"{path} could not be deleted ({error.strerror}); mend the disk, then run `vmstore erase --finish`"
                ) from error

    def forget(self, session: int, positions: Iterable[int]) -> None:
        """Deletes what lies at these positions of a session, from memory, and from the file where it can be written.

        What stays there is no fault: a content is named that lies in an archive.
        """
        gone = set(positions)
        for key in [k for k, place in self._places.items() if k[0] == session and place.position in gone]:
            del self._places[key]
        self.flush()
        sql = "DELETE FROM commits WHERE session = ? AND position = ?"
        with contextlib.suppress(apsw.Error):
            self._connection().executemany(sql, [(session, position) for position in gone])

    def flush(self) -> None:
        """Writes what was noted; where that is not possible it is forgotten."""
        noted, self._noted, self._waiting = self._noted, [], 0
        if noted:
            with contextlib.suppress(apsw.Error):
                db = self._connection()
                with db:
                    db.executemany("INSERT OR IGNORE INTO commits VALUES(?,?,?)", noted)

    def close(self) -> None:
        """Writes what was noted and closes the file; what a failing disk cannot take is dropped."""
        self.flush()
        if self._db is not None:
            with contextlib.suppress(apsw.Error):
                self._db.close()

    def _connection(self) -> apsw.Connection:
        if self._db is None:
            self._open()
        assert self._db is not None, "it was opened just now"
        return self._db

    def _open(self) -> None:
        """Opens the file; a damaged one is rebuilt, and where none can be opened memory takes its place."""
        if self._file is None or not (self._try(self._file) or self._try(self._file)):
            self._connect(":memory:")

    def _try(self, file: Path) -> bool:
        try:
            self._connect(str(file))
            return True
        except (apsw.BusyError, apsw.CantOpenError, apsw.ReadOnlyError, apsw.FullError, apsw.IOError):
            return False
        except apsw.Error:
            for suffix in ("", "-wal", "-shm"):
                file.with_name(file.name + suffix).unlink(missing_ok=True)
            return False

    def connections(self) -> list[apsw.Connection]:
        """The connection to the file, where it is open."""
        return [] if self._db is None else [self._db]

    def _connect(self, name: str) -> None:
        if self._file is not None and after_fork.busy(self._file) is not None and name != ":memory:":
            raise apsw.CantOpenError("it is the parent's")
        db = apsw.Connection(name)
        try:
            schema.guard(db)
            db.setbusytimeout(BUSY_MS)
            db.execute(_SCHEMA).fetchall()
            key = db.execute("SELECT key FROM key").get
            if not isinstance(key, bytes) or schema.stranger(db, _MADE) is not None:
                raise apsw.CorruptError("it is not as it was made")
        except BaseException:
            db.close()
            raise
        self._db, self._key = db, key
        self._short.clear()


_LOAD = """SELECT position, digests FROM commits WHERE session = ? AND position > ? AND position <= ?
  ORDER BY position DESC"""
