"""The folder of archives: a file a session, there before a frame of the log names it.

    archive/<uid of the session, 32 hex digits>.archive
    archive/<uid>.cold                          in its place, the address where it lies

A file holds the session's commits and cells, and, of a fork, those it inherits before them, so it can
be opened alone. It is written beside its name, proven, flushed and renamed, and never changes in place.
Rewritten after the session grew, its cells keep their numbers. The file it replaces is
overwritten with zeros, because it may hold what was erased, or keys under a former store key.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import apsw
import msgspec

from vmstore.cells.cell import DAMAGED, ERASED, Cell
from vmstore.core.system.safe_files import Stray, destroy, kind_of, read_within
from vmstore.core.system.waits import WAIT_S
from vmstore.errors import CorruptError, StoreError
from vmstore.log.blobs import flush
from vmstore.log.cell_reader import cells_of, key_under
from vmstore.log.commit import Commit
from vmstore.log.frame_encryption import PLAIN, NoEncryption
from vmstore.log.lock import WriteLock

if TYPE_CHECKING:
    from vmstore.log.archive.file import ArchiveContents, ArchiveFile, ArchiveLog, Recorded, Under

SUFFIX = ".archive"
COLD = ".cold"
FORMER = ".former"
OPEN_MAX = 8  # archives kept open for the next question
REMEDY = "put it back from a backup; everything else works without it"


T = TypeVar("T")
Fetch = Callable[[bytes, str, bool], Path]
"""Gives a copy of a session's archive from an address, by the session's uid; or, where it says so, of what is new."""


class _Opened(msgspec.Struct):
    """An archive that is open, and which file that is."""

    file: ArchiveFile
    state: tuple[int, int, int]


class Archives:
    """The folder of a log's archives; made when the first one comes. Any thread may use it."""

    def __init__(self, folder: Path, vault: NoEncryption = PLAIN, wait_s: float | None = WAIT_S) -> None:
        self.folder = folder
        self._vault = vault
        self.fetch: Fetch | None = None  # of archives that lie elsewhere
        self._opened: OrderedDict[bytes, _Opened] = OrderedDict()
        self._reading = threading.Lock()
        self._settled = False
        self._lock = WriteLock(folder.with_suffix(".lock"), wait_s)

    def path(self, uid: bytes) -> Path:
        """The path of a session's archive."""
        return self.folder / f"{uid.hex()}{SUFFIX}"

    def address(self, uid: bytes) -> str | None:
        """The address of an archive that lies elsewhere; None of one that is here, or of none."""
        if self.path(uid).exists():
            return None
        try:
            return read_within(self.path(uid).with_suffix(COLD), link=False).decode().strip()
        except FileNotFoundError:
            return None

    def leave(self, uid: bytes, address: str) -> None:
        """Says where an archive lies from now on, durable, and overwrites and removes the one here.

        The caller has seen that it is there.
        """
        from vmstore.core.system.atomic_file import new_file

        assert self._lock.held, "nobody moves cells into an archive that is about to go"
        place = self.path(uid).with_suffix(COLD)
        place.unlink(missing_ok=True)
        with new_file(place) as file:
            file.write(address.encode() + b"\n")
        destroy(self.folder, self.path(uid))

    def _place_of(self, uid: bytes, *, newest: bool = False) -> Path:
        """The path of a session's archive, fetched where it lies elsewhere."""
        address = None if self.fetch is None else self.address(uid)
        return self.path(uid) if address is None or self.fetch is None else self.fetch(uid, address, newest)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keeps everybody else from writing archives, and from moving cells into them or out."""
        with self._lock:
            yield

    @contextmanager
    def settled(self, make: bool) -> Iterator[None]:
        """Waits until nobody writes archives, moves cells or destroys any, and keeps them from it; many may share it.

        Where nobody ever did, and nothing is to be made, it keeps nobody from it.
        """
        with self._lock.turn():
            if self._lock.held or self._settled:
                yield
                return
            with self._lock.shared(make):
                self._settled = True
                try:
                    yield
                finally:
                    self._settled = False

    # ---- reading

    def cells(self, uid: bytes, numbers: Sequence[int]) -> Mapping[int, Cell] | None:
        """The cells of some numbers in the archive of a session; None where its file is gone.

        Raises CorruptError, naming the file, where it is damaged or does not hold them.
        """
        path = self._place_of(uid)
        found = self._read_in(uid, path, numbers)
        if found is not None and len(found) < len(set(numbers)) and path != self.path(uid):
            path = self._place_of(uid, newest=True)  # it was published again since
            found = self._read_in(uid, path, numbers)
        if found is not None and len(found) < len(set(numbers)):
            raise CorruptError(f"{path} is older than the log, and lacks cells that it names: {REMEDY}")
        return found

    def _read_in(self, uid: bytes, path: Path, numbers: Sequence[int]) -> Mapping[int, Cell] | None:
        """Those of some numbers that the file of a session's archive holds; None where it is gone."""
        with self._reading:
            file = self._open(uid, path)
            if file is None:
                return None
            state = self._opened[uid].state
            found = self._found(file, numbers)
            if found is None and (file := self._open(uid, path)) is not None and self._opened[uid].state != state:
                found = self._found(file, numbers)  # it was rewritten meanwhile
        if found is None:
            raise CorruptError(f"{path} is damaged: {REMEDY}")
        return found

    def _found(self, file: ArchiveFile, numbers: Sequence[int]) -> Mapping[int, Cell] | None:
        """The cells of some numbers in a file, None where any is damaged."""
        from vmstore.log.archive.file import no_file

        try:
            found = dict(cells_of(file, numbers, no_file, None, self._vault, dense=True))
        except CorruptError:
            return None
        return None if DAMAGED in found.values() else found

    def problems(self, uids: Iterable[bytes]) -> Iterator[str]:
        """Reads and checks the archives of sessions; yields a sentence for each fault."""
        for uid in sorted(uids):
            try:
                with contextlib.closing(self._read(self._place_of(uid))) as log:
                    keys = log.file.keys() if log.file.encrypted else {}
                    if not all(self._vault.opens(name, key) for name, key in keys.items()):
                        yield f"{log.path} carries a key that the store key does not open; run `vmstore rekey` again"
            except CorruptError as error:
                yield str(error)
            except StoreError as error:
                there = self.path(uid).exists() or self.address(uid) is not None
                yield str(error if there else self.missing(uid))

    def _open(self, uid: bytes, path: Path) -> ArchiveFile | None:
        """The file of an archive, opened again where another one took its name."""
        from vmstore.log.archive.file import ArchiveFile

        assert self._reading.locked(), "threads share the open files, and one of them may close the oldest"
        if (kind := kind_of(path)) is not None:
            raise CorruptError(f"{path} is {kind}, and no archive: {REMEDY}")
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        state = status.st_ino, status.st_mtime_ns, status.st_size
        kept = self._opened.get(uid)
        if kept is None or kept.state != state:
            if kept is not None:
                kept.file.close()
                del self._opened[uid]
            try:
                kept = self._opened[uid] = _Opened(ArchiveFile(path), state)
            except (StoreError, CorruptError) as error:
                raise CorruptError(f"{path} is damaged: {REMEDY}", code="archive-damaged") from error
            while len(self._opened) > OPEN_MAX:
                self._opened.popitem(last=False)[1].file.close()
        self._opened.move_to_end(uid)
        return kept.file

    def missing(self, uid: bytes) -> CorruptError:
        """The error for an archive that is not there."""
        return CorruptError(
            f"{self.path(uid)} is missing, and with it contents of its session: {REMEDY}", code="archive-missing"
        )

    # ---- writing

    def write(
        self,
        uid: bytes,
        commits: Iterable[Commit],
        uids: Mapping[int, bytes],
        recorded: Recorded,
        under: Under,
    ) -> ArchiveLog:
        """Makes the archive of a session: its commits with their cells, after those it inherits.

        `uids` are those of all their sessions, `recorded` says where cells of the log were erased, `under`
        which keys they lie under. The archive is read and proven before it takes its name, and given
        back open.
        """
        from vmstore.log.archive.file import chained

        return self._place(self.path(uid), *chained(commits, uids, recorded, under))

    def _place(self, path: Path, commits: Iterable[Commit], source: ArchiveContents) -> ArchiveLog:
        """Writes an archive, proves it and puts it in its place."""
        from vmstore.log.archive.file import write

        def made(beside: Path) -> ArchiveLog:
            write(beside, commits, source, self._vault)
            flush(beside)
            return self._read(beside)

        return self._put(path, made)

    def _read(self, path: Path) -> ArchiveLog:
        from vmstore.log.archive.file import ArchiveLog

        if (kind := kind_of(path)) is not None:
            raise CorruptError(f"{path} is {kind}, and no archive: {REMEDY}")
        return ArchiveLog(path, vault=self._vault)

    def _put(self, path: Path, make: Callable[[Path], T]) -> T:
        """Has a file made beside a name, durable, and puts it in the place of what has the name, which is overwritten.

        What a kill left half way is overwritten and removed by the next erasure, or swept.
        """
        import tempfile

        try:
            if not self.folder.is_dir():
                self.folder.mkdir()
                flush(self.folder.parent)
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=self.folder)
            os.close(handle)
            beside = Path(name)
            try:
                os.chmod(beside, self.folder.stat().st_mode & 0o666)  # as the umask left the folder
                made = make(beside)
                former = beside.with_suffix(FORMER)
                with contextlib.suppress(FileNotFoundError):
                    os.link(path, former)
                os.rename(beside, path)
                destroy(self.folder, former)
            finally:
                for suffix in ("", "-journal"):
                    beside.with_name(beside.name + suffix).unlink(missing_ok=True)
            flush(self.folder)
        except (OSError, apsw.Error) as error:
            raise StoreError(
                f"{path} could not be written ({error}); make room, then try again", code="not-written"
            ) from error
        return made

    def destroy(self, erased: Mapping[bytes, int]) -> int:
        """Rewrites every archive that holds cells of these commitments without their bytes and salts; how many.

        Where each is recorded as erased, in commits that may not be there, is written beside. Their
        numbers and the commits stay. Forks hold what they inherit, so any archive may hold a
        cell. Nobody else is to write archives meanwhile: see `alone`.
        """
        from vmstore.log.archive.file import ArchiveContents

        assert self._lock.held, "another process could be writing one of the files that a kill seems to have left"
        for left in self.folder.glob(".*"):  # of a kill: nobody else writes here now
            destroy(self.folder, left)
        done = 0
        for path in self.files():
            with contextlib.closing(self._read(path)) as old:
                commits = old.tail(0, old.ordinal)
                sealed = {c.cell + i: c.commitment(i) for c in commits for i in range(c.cell_count)}
                erased_here = {
                    number: erased[commitment] for number, commitment in sealed.items() if commitment in erased
                }
                if any(not cell.erased for cell in old.cells(erased_here).values()):
                    rewritten = (_with_cells(old, commit, erased_here) for commit in commits)
                    recorded, under = {**old.erased, **erased_here}.get, partial(key_under, old.file)
                    self._place(path, rewritten, ArchiveContents(old.start_of, recorded, under)).close()
                    done += 1
        return done

    def rewrap(self, wrapped: Callable[[bytes], bytes]) -> None:
        """Has every archive carry its keys as `wrapped` gives them, by their ids."""
        import shutil

        from vmstore.log.archive.file import rewrap

        def made(beside: Path) -> None:
            shutil.copyfile(path, beside)
            rewrap(beside, wrapped)
            flush(beside)

        with self.alone():
            for path in self.files():
                self._put(path, made)

    def drop(self, uid: bytes) -> None:
        """Deletes the archive of a session, which no frame names any more; one that lies elsewhere stays there."""
        self.path(uid).unlink(missing_ok=True)
        self.path(uid).with_suffix(COLD).unlink(missing_ok=True)

    # ---- looking around

    def files(self) -> list[Path]:
        """Every archive."""
        return sorted(self.folder.glob(f"*{SUFFIX}"))

    def strays(self, named: set[bytes]) -> Iterator[Stray]:
        """Files that no frame names, those a crash left half written included; `named` are uids."""
        names = {self.path(uid).with_suffix(suffix).name for uid in named for suffix in (SUFFIX, COLD)}
        for path in sorted(self.folder.glob("*")):
            with contextlib.suppress(FileNotFoundError):
                if path.name not in names and path.is_file():
                    status = path.lstat()
                    yield Stray(path, status.st_size, status.st_mtime_ns // 1_000)

    def close(self) -> None:
        """Closes the files."""
        with self._reading:
            for kept in self._opened.values():
                kept.file.close()
            self._opened.clear()
        self._lock.close()


def _with_cells(log: ArchiveLog, commit: Commit, without: Collection[int]) -> Commit:
    """A commit with its cells, some of them destroyed."""
    numbers = range(commit.cell, commit.cell + commit.cell_count)
    found = log.cells(numbers)
    cells = tuple(ERASED if number in without else found[number] for number in numbers)
    return msgspec.structs.replace(commit, cells=cells)
