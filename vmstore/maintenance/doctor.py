"""The doctor: looks at a store and says what is to be done; it writes nothing."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import apsw

from vmstore.cells.storekey import StoreKey
from vmstore.core.clock import Clock, SystemClock, SystemIds
from vmstore.errors import VmstoreError
from vmstore.log.file import format_of
from vmstore.log.frame_encryption import FrameEncryption
from vmstore.log.port import Progress
from vmstore.log.sqlite import SqliteLog
from vmstore.maintenance import checks
from vmstore.maintenance.database_checks import looked_at
from vmstore.namespace.backends.address import Address, backend_of
from vmstore.namespace.backends.folder import FolderBackend
from vmstore.namespace.backends.outside_archives import reach_outside
from vmstore.namespace.backends.port import Backend
from vmstore.namespace.encryption import Key, encrypted, store_key_of, vault_in
from vmstore.namespace.folder import LOG, find, namespaces
from vmstore.namespace.reports import Health, LockedFile, NamespaceHealth, Symptom

EXTRAS = (
    "rich",
    "prompt_toolkit",
    "dateparser",
    "duckdb",
    "numpy",
    "PyStemmer",
    "sqlite-utils",
    "pillow",
    "cryptography",
)
LOCKS = Path("/proc/locks")


def doctor(
    store: Address | Backend,
    *,
    namespace: str | None = None,
    full: bool = False,
    key: Key | None = None,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> Health:
    """Checks a store, or one namespace of it, names a remedy for each fault, and says what its backend can do.

    The structure of the log, its chain and its seals are checked; with `full` all that `verify`
    checks. `key` is the store key of an encrypted store. Raises StoreError where there is no store.
    """
    backend, clock = backend_of(store), clock or SystemClock()
    if not isinstance(backend, FolderBackend):
        capabilities, wards, found = looked_at(backend, namespace, full, clock, progress)
        return Health(not found, full, versions(), wards, found, capabilities)
    path, now = backend.path, clock.now()
    find(path, namespace or next(iter(namespaces(path) if path.is_dir() else ()), "default"), create=False)
    names = [namespace] if namespace is not None else namespaces(path)
    store_key = store_key_of(key, SystemIds())
    wards, found = list[NamespaceHealth](), list(checks.leftovers(path, now))
    for name in names:
        ward, here = _looked_at(path, name, full, store_key, now, progress)
        wards.append(ward)
        found += here
    return Health(not found, full, versions(), wards, found, backend.capabilities(clock))


def versions() -> dict[str, str | None]:
    """The versions of what is at work, None for an extra that is not installed."""
    found: dict[str, str | None] = {
        "vmstore": _version("vmstore"),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "apsw": apsw.apsw_version(),
    }
    return found | {name: _version(name) for name in EXTRAS}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _looked_at(
    path: Path, name: str, full: bool, store_key: StoreKey | None, now: int, progress: Progress | None
) -> tuple[NamespaceHealth, list[Symptom]]:
    folder = path / name
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    locked = list(holders(folder)) if LOCKS.exists() else []  # not there on macOS
    found = [*checks.disk(folder, path), *checks.extras(folder, versions())]
    if LOCKS.exists():
        found += checks.left_wal(folder, path, locked)
    found += checks.locked(folder, now)
    vault = vault_in(folder, store_key, SystemIds()) if _encrypted(folder) else None
    commits: int | None = None
    archives, behind, coverage = 0, dict[str, int](), None
    try:
        stated: int | None = format_of(folder / LOG)
        with _opened(folder / LOG, vault) as log:
            commits = log.ordinal
            archives = len({place.uid for _, _, place in log.mover.places()})
            found += checks.log(log, folder, path, store_key if vault is not None else None, full, progress)
            behind, symptoms = checks.views(folder, path, log.ordinal, now)
            coverage, lacking = checks.vectors(folder, path)
            found += [*symptoms, *lacking, *checks.strays(log, path, now), *checks.archives(log, full)]
    except VmstoreError as error:
        stated = None
        found.append(Symptom("log", str(folder / LOG), str(error), checks.mended(str(error), path)))
    return NamespaceHealth(name, stated, commits, size, behind, archives, locked, coverage), found


def _encrypted(folder: Path) -> bool:
    """Whether a namespace is known to be encrypted; a damaged one is not."""
    try:
        return encrypted(folder)
    except VmstoreError:
        return False


@contextmanager
def _opened(file: Path, vault: FrameEncryption | None) -> Iterator[SqliteLog]:
    """A log that is looked at; a WAL that was left behind is left as it is."""
    left = file.with_name(file.name + "-wal").exists()
    log = SqliteLog(file, readonly=True, vault=vault)
    reach_outside(log, file.parent.name)
    try:
        if left:
            with log.file as db:
                db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        yield log
    finally:
        log.close()


def holders(folder: Path) -> Iterator[LockedFile]:
    """Locked files of a namespace and their holders, as the system reports them."""
    lines = LOCKS.read_text().splitlines()
    names = {file.stat().st_ino: file.name for file in folder.iterdir() if file.name.endswith((".lock", "-shm"))}
    seen = set()
    for line in lines:
        words = line.replace("->", "").split()
        pid, inode = int(words[4]), int(words[5].rpartition(":")[2])
        if inode in names and (inode, pid) not in seen:
            seen.add((inode, pid))
            yield LockedFile(names[inode], pid, _command(pid))


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()[:200]
    except OSError:
        return "?"
