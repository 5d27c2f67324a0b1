"""Backups: a store's truth as it stood at one moment, verified, in a folder that is there when it is whole.

    nightly.bak/backup.json           what is in it: each file's size and SHA-256
    nightly.bak/default/log.sqlite    the log, a consistent copy made while others may write
    nightly.bak/default/blobs/        the blobs it refers to
    nightly.bak/default/archive/      the archives it refers to

Views are not copied: they are folded again. Restoring copies a backup to where a store may be.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import apsw
import msgspec

from vmstore.cells.storekey import StoreKey
from vmstore.core.clock import SystemIds
from vmstore.core.system import after_fork
from vmstore.core.system.atomic_file import beside, naming
from vmstore.core.system.safe_files import no_links, read_within, regular
from vmstore.engine.verify.verify import unsafe, verify
from vmstore.erasure.certificates import Certificate, certificates
from vmstore.erasure.certificates import beside as beside_store
from vmstore.errors import CorruptError, StoreError
from vmstore.log.archive.folder import FORMER, Archives
from vmstore.log.frame_encryption import FrameEncryption
from vmstore.log.sqlite import SqliteLog
from vmstore.namespace.backends.address import path_of
from vmstore.namespace.backends.outside_archives import reach_outside
from vmstore.namespace.effects import Agree, settle
from vmstore.namespace.encryption import KEYS, Key, store_key_of, vault_in
from vmstore.namespace.folder import ARCHIVE, BLOBS, LOG, check_name, check_own, find, namespaces
from vmstore.namespace.reports import Backup, BackupPart, RestoreReport
from vmstore.namespace.signing_keys import public_key as read_public_key
from vmstore.views.projection import Progress, Projection, room_of

LIST = "backup.json"
VERSION = 1
STEP_PAGES = 512
CHUNK_BYTES = 1 << 20
UNFINISHED = (".new", FORMER)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    bytes: Annotated[int, msgspec.Meta(ge=0)]
    sha256: str


class _Listing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file that makes a folder a backup."""

    version: int
    parts: list[BackupPart]
    files: list[_File]


def backup(
    store: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    namespace: str | None = None,
    key: Key | None = None,
    progress: Progress | None = None,
) -> Backup:
    """Copies a store, or one namespace of it, to a new folder, while others may write to it.

    Each log is copied as it stood at one moment, then verified in full; an encrypted one needs its
    `key` for that, and stays encrypted. Raises StoreError where the folder is there already or cannot
    be written, CorruptError where the log is damaged; nothing is left then.
    """
    path, target = path_of(store, "back it up with the tools of its database"), Path(to)
    ids = SystemIds()
    store_key = store_key_of(key, ids)
    find(path, namespace or _first(path), create=False)
    if path.resolve() in target.resolve().parents:
        raise StoreError(
            f"{target} lies within the store, where it is no copy apart; name a place elsewhere",
            code="within-the-store",
        )
    names = [namespace] if namespace is not None else namespaces(path)
    for name in names:  # a key that does not fit is reported before anything is copied
        if (vault := vault_in(path / name, store_key, ids)) is not None:
            vault.close()
    with beside(target) as part, naming(target):
        part.mkdir()
        parts = []
        for number, name in enumerate(names):
            tell = _share(progress, number, len(names))
            _copy_namespace(path / name, part / name, _share(tell, 0, 2))
            parts.append(_proven(part / name, path, vault_in(part / name, store_key, ids), _share(tell, 1, 2)))
        files = [_File(file.relative_to(part).as_posix(), *_measured(file)) for file in _files(part)]
        _write(part / LIST, msgspec.json.format(msgspec.json.encode(_Listing(VERSION, parts, files)), indent=1))
    return Backup(str(target), parts)


def restore(
    backup: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    key: Key | None = None,
    erasures: str | os.PathLike[str] | None = None,
    public_key: str | os.PathLike[str] | None = None,
    agreed: Agree = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> RestoreReport:
    """Makes a store of a backup where none is; its bytes are compared and its log verified in full.

    What certificates beside the new store, or in the folder `erasures`, say was erased since is
    erased again before the store is there; the answer says how much, and in how many they looked.
    Certificates that the key of `public_key` signed are obeyed. What others would destroy, and whom the
    backup shares with, which rules it brings and for whom it lifts redaction, takes effect where somebody
    has `agreed`, or says so asked with what that is; else RefusedError, and no store is there.
    `dry_run` does all of it and leaves nothing. `key` is the store key of one that is encrypted.
    """
    path, target = Path(backup), Path(to)
    store_key = store_key_of(key, SystemIds())
    listing = _listing(path)
    ledger = list(_ledger(target, erasures))
    trusted = None if public_key is None else read_public_key(public_key)
    from vmstore.erasure.reapply import ReapplyPlan

    found = [RestoreReport(str(target), listing.parts, len(ledger), 0)]
    with suppress(_LookedError), beside(target) as part, naming(target):
        part.mkdir()
        _put_back(path, part, listing, store_key, progress)
        again = ReapplyPlan(part, [part_of.namespace for part_of in listing.parts], ledger, trusted, store_key)
        effects = again.effects
        found[0] = msgspec.structs.replace(
            found[0], erased=again.cells, signed=again.signed, effects=effects, done=not dry_run
        )
        if dry_run:
            raise _LookedError
        settle(agreed, effects, path)
        again.erase(beside_store(target))
    return found[0]


class _LookedError(Exception):
    """Ends what was only tried, so that nothing of it is left."""


def _put_back(path: Path, part: Path, listing: _Listing, store_key: StoreKey | None, progress: Progress | None) -> None:
    """Copies what a backup lists and proves it; CorruptError where it is not what was backed up."""
    ids = SystemIds()
    for number, file in enumerate(listing.files):
        source, place = path / file.path, part / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            no_links(path, source)
            same = _copied(source, place, file.bytes) == (file.bytes, file.sha256)
        except FileNotFoundError as error:
            raise CorruptError(f"{source} is missing; use another backup") from error
        except FileExistsError as error:
            raise CorruptError(f"{path} lists {file.path} twice; use another backup") from error
        except OSError as error:
            if not isinstance(error.filename, str) or error.filename != str(source):
                raise
            raise CorruptError(
                f"{source} cannot be read ({error.strerror}); use another backup", code="backup-damaged"
            ) from error
        if not same:
            raise CorruptError(f"{source} is not what was backed up; use another backup", code="backup-damaged")
        if progress is not None:
            progress(number, len(listing.files) * 2)
    for entry in listing.parts:
        folder = part / entry.namespace
        if _proven(folder, path, vault_in(folder, store_key, ids), _share(progress, 1, 2)) != entry:
            raise CorruptError(f"{path} does not hold what its {LIST} says; use another backup")


def _ledger(target: Path, folder: str | os.PathLike[str] | None) -> Iterator[Certificate]:
    """The certificates to be held to."""
    if folder is not None and not Path(folder).is_dir():
        raise StoreError(f"{folder} is no folder of certificates; name the one that lies beside the store")
    if beside_store(target).is_dir():
        yield from certificates(beside_store(target))
    if folder is not None:
        yield from certificates(folder)


def _listing(path: Path) -> _Listing:
    """Reads the listing of a backup; StoreError where there is none."""
    try:
        listing = msgspec.json.decode(read_within(path / LIST, link=False), type=_Listing)
    except OSError as error:
        raise StoreError(
            f"{path} is no finished backup (it has no {LIST} to read); name a folder that `vmstore backup` made",
            code="not-a-backup",
        ) from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CorruptError(f"{path / LIST} is damaged ({error}); use another backup") from error
    if listing.version != VERSION:
        raise StoreError(f"{path} is a backup of another version of vmstore; restore it with that one")
    names = [entry.namespace for entry in listing.parts]
    for name in names:
        check_name(name)
    files = [file.path for file in listing.files]
    if not names or len({*names}) < len(names) or len({*files}) < len(files):
        raise CorruptError(f"{path / LIST} names nothing, or something twice; use another backup")
    for file in files:
        if not _of_backup(file, names):
            raise CorruptError(
                f"{path / LIST} names {file[:200]!r}, which is no file of a backup; use another backup",
                code="backup-damaged",
            )
    for name in names:
        if f"{name}/{LOG}" not in files:
            raise CorruptError(f"{path / LIST} names no log of namespace {name!r}; use another backup")
    return listing


def _of_backup(file: str, names: list[str]) -> bool:
    """Whether a path is that of a log, of its keys, of a blob or of an archive of these namespaces."""
    namespace, _, rest = file.partition("/")
    return namespace in names and _PLACES.fullmatch(rest) is not None


_PLACES = re.compile(
    rf"{re.escape(LOG)}|{re.escape(KEYS)}|{BLOBS}/[0-9a-f]{{2}}/[0-9A-Za-z.]{{1,100}}|{ARCHIVE}/[0-9A-Za-z.]{{1,100}}"
)


def _share(progress: Progress | None, number: int, of: int) -> Progress | None:
    """The progress of one part among `of` parts of some work."""
    if progress is None:
        return None
    return lambda done, total: progress(number * 1000 + 1000 * done // max(total, 1), of * 1000)


def _first(path: Path) -> str:
    """A namespace that is there, where any is; `find` says what is wrong where none is."""
    try:
        return next(iter(namespaces(path)), "default")
    except OSError:
        return "default"


def _copy_namespace(source: Path, target: Path, progress: Progress | None) -> None:
    """Copies a log and the files that hold cells of it; who erases or archives waits, who writes does not."""
    check_own(source)
    target.mkdir()
    with Archives(source / ARCHIVE).settled(make=True):
        copy_log(source / LOG, target / LOG, progress)
        for folder in (BLOBS, ARCHIVE):
            _copy_files(source / folder, target / folder)
        if (source / KEYS).is_file():  # after the log: keys come before what is written under them
            copy_log(source / KEYS, target / KEYS, None)


def copy_log(source: Path, target: Path, progress: Progress | None) -> None:
    """Copies a log within one read transaction: writers go on, and are not seen."""
    with _copying(source), _connected(source) as log, _closing(apsw.Connection(str(target))) as copy:
        log.execute("BEGIN; SELECT count(*) FROM sqlite_schema").fetchall()
        copy.execute("PRAGMA synchronous = FULL").fetchall()
        with copy.backup("main", log, "main") as steps:
            while not steps.done:
                steps.step(STEP_PAGES)
                if progress is not None:
                    progress(steps.page_count - steps.remaining, max(steps.page_count, 1))
        log.execute("COMMIT")


@contextmanager
def _copying(source: Path) -> Iterator[None]:
    """Turns what SQLite says of a log that is copied into our errors."""
    try:
        yield
    except (apsw.FullError, apsw.IOError, apsw.CantOpenError) as error:
        raise StoreError(
            f"{source} could not be copied ({error}); make room, or name another path", code="not-written"
        ) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise CorruptError(f"{source} is damaged ({error}); run `vmstore verify`, or put back a backup") from error


@contextmanager
def _connected(path: Path) -> Iterator[apsw.Connection]:
    """A connection that reads a log; where its folder may not be written it reads the file as it is."""
    if (reason := after_fork.busy(path)) is not None:
        raise StoreError(reason)
    uri = path.absolute().as_uri()
    try:
        db = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
        db.setbusytimeout(10_000)
        db.execute("PRAGMA query_only = ON; SELECT count(*) FROM sqlite_schema").fetchall()
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        db = apsw.Connection(uri + "?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    with _closing(db):
        yield db


@contextmanager
def _closing(db: apsw.Connection) -> Iterator[apsw.Connection]:
    try:
        yield db
    finally:
        db.close()


def _copy_files(source: Path, target: Path) -> None:
    """Copies blobs and archives after the log that names them: they are written before it and never changed."""
    if not source.is_dir():
        return
    for file in sorted(path for path in source.rglob("*") if path.is_file() and path.suffix not in UNFINISHED):
        no_links(source, file)
        place = target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            _copied(file, place)
        except FileNotFoundError:  # swept meanwhile: nothing names it, or the proof will say so
            place.unlink(missing_ok=True)


def _proven(folder: Path, of: Path, vault: FrameEncryption | None, progress: Progress | None) -> BackupPart:
    """Checks every hash and rule of a copied log; what it holds. Raises CorruptError naming the first problem."""
    try:
        log = SqliteLog(folder / LOG, readonly=True, vault=vault)
        reach_outside(log, folder.name)
    except CorruptError as error:
        what = str(error).replace(str(folder), str(of / folder.name))
        raise CorruptError(f"{of} cannot be relied on: {what}", code="not-sound") from error
    views = Projection(log, apsw.Connection(":memory:"), room=room_of(folder / LOG, folder / ARCHIVE))
    try:
        counts, problems = verify(log, views, progress)
        ordinal = log.ordinal
    finally:
        views.db.close()
        log.close()
    if problems := unsafe(problems):
        kind, where, what = problems[0]
        raise CorruptError(
            f"{of} cannot be relied on: {kind}, {where}: {what}; `vmstore verify` names all problems", code="not-sound"
        )
    for left in ("-wal", "-shm"):
        (folder / f"{LOG}{left}").unlink(missing_ok=True)
    return BackupPart(folder.name, ordinal, counts.mutations, counts.sessions)


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def _measured(file: Path) -> tuple[int, str]:
    """A file's size and SHA-256."""
    with file.open("rb") as reading:
        digest = hashlib.file_digest(reading, "sha256")
        return reading.tell(), digest.hexdigest()


def _copied(source: Path, target: Path, size_max: int | None = None) -> tuple[int, str]:
    """Copies a regular file, durable, and stops beyond `size_max`; the size and SHA-256 of what was read."""
    digest, size = hashlib.sha256(), 0
    with regular(source, link=False) as reading, target.open("xb") as writing:
        while chunk := reading.read(CHUNK_BYTES):
            digest.update(chunk)
            size += len(chunk)
            if size_max is not None and size > size_max:
                break
            writing.write(chunk)
        writing.flush()
        os.fsync(writing.fileno())
    return size, digest.hexdigest()


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content + b"\n")
        file.flush()
        os.fsync(file.fileno())
