"""Symptoms: what may be wrong with a namespace, each found by a look and with the command that mends it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from vmstore.cells import schema
from vmstore.cells.storekey import StoreKey
from vmstore.core.clock import SystemClock, SystemIds
from vmstore.core.system.atomic_file import scratches
from vmstore.core.system.waits import WAIT_S
from vmstore.engine.named_cells import unformed
from vmstore.engine.verify.history_tree import HistoryTree
from vmstore.engine.verify.verify import ERASURE, UNREADABLE, ChainCheck, Finding, batches_of, left_of
from vmstore.erasure.resume import open_namespace
from vmstore.errors import CorruptError, VmstoreError
from vmstore.log.commit import Commit
from vmstore.log.compaction import DUE_FRAMES, due
from vmstore.log.file import ROOM_MIN
from vmstore.log.holder import holder_of
from vmstore.log.lock import is_held
from vmstore.log.port import Progress
from vmstore.log.sqlite import SqliteLog
from vmstore.log.upgrade import KEPT
from vmstore.maintenance.columns import ColumnStore
from vmstore.maintenance.vector_coverage import vector_coverage
from vmstore.maintenance.verify import verdict_on
from vmstore.namespace.folder import COLUMNS, LOG, VIEWS, views_file
from vmstore.namespace.reports import LockedFile, Symptom, VectorCoverage
from vmstore.seals.seal import Seal, watched
from vmstore.seals.seals import SEAL, folder_of, read_seal
from vmstore.transfer.disk_usage import as_it_is
from vmstore.views.cell_resolver import CellResolver
from vmstore.views.erased_cells import Erasures
from vmstore.views.projection import stranger

BEHIND_MIN = 10_000  # commits that take a moment to fold
RESTING_US = 3_600_000_000
NAMED_MAX = 20
BACKUP = "keep a copy, stop writing, and put back a backup"


def mended(error: str, store: Path) -> str:
    """The remedy for a log that cannot be opened."""
    if "vmstore upgrade" in error:
        return f"vmstore upgrade {store}"
    _, taken, command = error.partition(schema.TAKEN_OUT)
    return f"{BACKUP}; or {command}" if taken else BACKUP


# ---- the log


def log(
    log: SqliteLog, folder: Path, store: Path, key: StoreKey | None, full: bool, progress: Progress | None
) -> Iterator[Symptom]:
    """Damage of the log's file, its chain or its cells, seals that do not hold, and what could be packed."""
    with log.file as db:
        verdict = db.execute("PRAGMA quick_check(1)").get
    if verdict != "ok":
        yield Symptom("log", str(folder / LOG), f"its file is damaged: {verdict}", BACKUP)
        return
    seals: list[Seal] = []
    for file in sorted(folder_of(folder).glob(f"{folder.name}-*{SEAL}")):
        try:
            seals.append(read_seal(file))
        except VmstoreError as error:
            yield Symptom("seal", str(file), str(error), f"put back a copy of {file}, or delete it")
    found = _checked(log, folder, store, key, seals, full, progress)
    again = _again(log) if any(finding.kind == "position" for finding in found) else None
    if again is not None:
        yield Symptom("twice", f"commit {again.ordinal}", again.what, again.remedy(folder / LOG, store))
        return
    for kind, where, what in found[:NAMED_MAX]:
        sealed = f"keep a copy, find out who wrote to the store, hold a backup against it: vmstore verify {store}"
        rebuilt = f"vmstore rebuild {store}"
        remedy = {
            UNREADABLE: f"write it again, or vmstore erase {store} --session SESSION",
            ERASURE: f"vmstore erase {store} --finish",
            "seal": sealed,
            "view": rebuilt,
            "views": rebuilt,
            "columns": rebuilt,
        }.get(kind, BACKUP)
        yield Symptom(kind, where, what, remedy)
    if due(log.file) is not None:
        yield Symptom("raw", str(folder / LOG), f"{DUE_FRAMES} rows or more lie unpacked", f"vmstore compact {store}")


class RepeatedCommits(NamedTuple):
    """Commits at the end of a log that say once more what their session said last."""

    ordinal: int
    cell: int
    before: int

    @property
    def what(self) -> str:
        """A description of the fault."""
        reason = f"from here to its end the log says once more what commit {self.before} says, so its chain is broken"
        return f"{reason}: an earlier version let a batch be committed twice by hand; nothing else is damaged"

    def remedy(self, file: Path, store: Path) -> str:
        """The command that removes the repeated commits."""
        commits, frames = (
            f"DELETE FROM {table} WHERE {key} >= {number}"
            for table, key, number in (("commits", "ordinal", self.ordinal), ("frames", "first", self.cell))
        )
        return f'keep a copy, stop writing, then sqlite3 {file} "{commits}; {frames}" and vmstore rebuild {store}'


def _again(log: SqliteLog) -> RepeatedCommits | None:
    """The repeated commits at the end of a log; None where its end says anything new."""
    last: dict[int, Commit] = {}
    begins: tuple[Commit, Commit] | None = None
    try:
        for commit in (each for batch in batches_of(log) for each in batch):
            before = last.get(commit.session) if begins is None else begins[1]
            if before is not None and commit.first <= before.last:
                if not _alike(log, commit, before):
                    return None
                begins = begins or (commit, before)
            elif begins is not None:
                return None
            last[commit.session] = commit
    except VmstoreError:
        return None
    if begins is None:
        return None
    commit, before = begins
    with log.file as db:
        alone = db.execute("SELECT 1 FROM frames WHERE first = ?", (commit.cell,)).get is not None
    return RepeatedCommits(commit.ordinal, commit.cell, before.ordinal) if alone or not commit.cell_count else None


def _alike(log: SqliteLog, commit: Commit, before: Commit) -> bool:
    """Whether two commits of a session say the same of the same contents."""
    if (commit.session, commit.first, commit.body, commit.cell_count) != (
        before.session, before.first, before.body, before.cell_count,
    ):  # fmt: skip
        return False
    contents = [
        [cell.content for _, cell in sorted(log.cells(range(each.cell, each.cell + each.cell_count)).items())]
        for each in (commit, before)
    ]
    return contents[0] == contents[1]


def _checked(
    log: SqliteLog,
    folder: Path,
    store: Path,
    key: StoreKey | None,
    seals: Sequence[Seal],
    full: bool,
    progress: Progress | None,
) -> list[Finding]:
    if full:
        ns = open_namespace(store, "r", folder.name, SystemClock(), SystemIds(), key)
        with closing(ns), closing(ColumnStore(ns)) as columns:
            found = verdict_on(ns, columns, progress, views=True, rules=True, seals=seals).problems
        return [Finding(finding.kind, finding.where, finding.what) for finding in found if finding.kind != "archive"]
    histories = HistoryTree(watched(seals))
    check, total = ChainCheck(log, histories), log.ordinal
    file = views_file(folder)
    with closing(as_it_is(file) if file.exists() else apsw.Connection(":memory:")) as db:
        cellar = CellResolver(log, db)
        try:
            for batch in batches_of(log):
                for commit in batch:
                    check.commit(commit)
                check.problems += [Finding(UNREADABLE, *finding) for finding in unformed(log, batch, cellar)]
                if progress is not None:
                    progress(min(batch[-1].ordinal, total), total)
        except VmstoreError as error:
            check.problems.append(Finding("log", "log", str(error)))
    pending = [] if any(finding.kind != UNREADABLE for finding in check.problems) else list(_pending(log))
    return [*check.problems, *pending, *(finding for seal in seals for finding in seal.problems(histories))]


def _pending(log: SqliteLog) -> Iterator[Finding]:
    """Cells that are recorded as erased and still there, once nobody is about to destroy them."""
    erasures = Erasures(log)
    erasures.follow()
    try:
        if not (numbers := erasures.numbers) or not left_of(log, numbers):
            return
        with log.settled():
            left = left_of(log, numbers)
    except CorruptError as error:  # of the log itself: archives are looked at on their own
        yield Finding("cell", "log", str(error))
        return
    if left:
        what = f"{len(left):,} recorded as erased and still there: an erasure was not carried out"
        yield Finding(ERASURE, "1 cell" if len(left) == 1 else f"{len(left):,} cells", what)


def strays(log: SqliteLog, store: Path, now: int) -> Iterator[Symptom]:
    """Files of cells and archives that no frame names."""
    found = log.sweep(now - RESTING_US, dry=True)
    if found:
        files = "file" if len(found) == 1 else "files"
        what = f"{len(found)} {files} of {sum(stray.size for stray in found):,} bytes that no commit names"
        yield Symptom("stray", str(found[0].path), what, f"vmstore sweep {store}")


def archives(log: SqliteLog, full: bool) -> Iterator[Symptom]:
    """Archives that are missing, and with `full` those that are damaged."""
    for uid in sorted({place.uid for _, _, place in log.mover.places()}):
        if not log.archives.path(uid).exists() and log.archives.address(uid) is None:
            yield Symptom(
                "archive", str(log.archives.path(uid)), "it is missing, and with it contents of its session",
                "put it back from a backup",
            )  # fmt: skip
        elif full:
            for what in log.archives.problems([uid]):
                yield Symptom("archive", str(log.archives.path(uid)), what, "put it back from a backup")


# ---- the views


def views(folder: Path, store: Path, end: int, now: int) -> tuple[dict[str, int], list[Symptom]]:
    """How far each view is behind the log; damaged or old views, and imports that were never finished."""
    file = views_file(folder)
    found = [
        Symptom("old views", str(old), "it is of other projectors, of another version", f"vmstore info {store}")
        for old in sorted(folder.glob(f"{VIEWS}*.sqlite"))
        if old != file
    ]
    if not file.exists():
        return {}, found
    try:
        with closing(as_it_is(file)) as db:
            schema.guard(db)
            verdict = db.execute("PRAGMA quick_check(1)").get
            if verdict != "ok" or (verdict := stranger(db)) is not None:
                raise apsw.CorruptError(str(verdict))
            behind = {view: max(end - at, 0) for view, at in db.execute("SELECT view, ordinal FROM positions")}
            unfinished: list[Any] = db.execute(_UNFINISHED, (now - RESTING_US,)).fetchall()
    except (apsw.Error, TypeError) as error:
        return {}, [*found, Symptom("views", str(file), f"they are damaged ({error})", f"vmstore rebuild {store}")]
    late = max(behind.values(), default=0)
    if late >= BEHIND_MIN:
        what = f"{late:,} commits behind the log, which the next question has to fold"
        found.append(Symptom("behind", str(file), what, f"vmstore info {store}"))
    for name, source in unfinished:
        what = f"its import of {source or 'a file'} was never finished, so nobody sees it"
        found.append(Symptom("unfinished", f"session {name}", what, f"vmstore import {store} FILE, with the same file"))
    return behind, found


def vectors(folder: Path, store: Path) -> tuple[VectorCoverage | None, list[Symptom]]:
    """How much has vectors of the model in use, by the views as they are; whether it is to be embedded."""
    file = views_file(folder)
    if not file.exists():
        return None, []
    try:
        with closing(as_it_is(file)) as db:
            schema.guard(db)
            coverage = vector_coverage(db)
    except (apsw.Error, TypeError):  # damaged views are told of by themselves
        return None, []
    if coverage is None or coverage.due is None:
        return coverage, []
    remedy = f"vmstore embed {store} --url URL --model {coverage.model}"
    return coverage, [Symptom("vectors", str(file), coverage.due, remedy)]


# ---- files and disk


def left_wal(folder: Path, store: Path, locked: Sequence[LockedFile]) -> Iterator[Symptom]:
    """A WAL with commits in it that nobody has open, as a kill leaves it."""
    for file in sorted(folder.glob("*.sqlite-wal")):
        if file.stat().st_size and not any(lock.file == file.name.replace("-wal", "-shm") for lock in locked):
            what = (
                f"{file.stat().st_size:,} bytes that a killed process left; they count, and are to stay beside the log"
            )
            yield Symptom("wal", str(file), what, f"vmstore info {store}, which folds them in")


def locked(folder: Path, now: int) -> Iterator[Symptom]:
    """Locks that somebody holds for longer than a call waits, or who is stopped."""
    for file in sorted([*folder.glob("*.lock"), *folder.glob("*.queue")]):
        if is_held(file):
            holder = holder_of(file)
            if holder.stopped or now - holder.since > WAIT_S * 1e6:
                yield Symptom("locked", str(file), f"it is held by {holder}, and others wait for it", holder.remedy)


def disk(folder: Path, store: Path) -> Iterator[Symptom]:
    """A disk with less room than the log, which an upgrade, a backup or an archive may need, or hardly any."""
    free = shutil.disk_usage(folder).free
    if free < max(ROOM_MIN, (folder / LOG).stat().st_size):
        what = f"{free:,} bytes are free, less than the log is long or than commits may need"
        yield Symptom("disk", str(folder), what, f"make room; vmstore archive {store} --older-than 90d")


def extras(folder: Path, versions: Mapping[str, str | None]) -> Iterator[Symptom]:
    """Files of an extra that is not installed, which fall behind."""
    for name, extra, needs in ((COLUMNS, "columns", "duckdb"), ("text", "search", "numpy")):
        if (folder / name).is_dir() and versions[needs] is None:
            what = f"it was made with the extra `{extra}`, which is not installed, and falls behind"
            yield Symptom("extra", str(folder / name), what, f"pip install 'vmstore[{extra}]'")


def leftovers(store: Path, now: int) -> Iterator[Symptom]:
    """Remains of killed creations, backups and upgrades, and old logs that an upgrade kept."""
    halves = [*store.parent.glob(f".{store.name}.*.new"), *store.parent.glob(f".{store.name}.*.part")]
    halves += [*store.glob(".*.new"), *store.glob("*/log.sqlite.new*")]
    halves += Path(tempfile.gettempdir()).glob(f".{store.name}.*.new")  # of a rehearsal that found no room elsewhere
    for half in sorted(halves):
        if half.stat().st_mtime_ns // 1_000 < now - RESTING_US:
            yield Symptom("left", str(half), "a killed process left it half made", f"rm -r {half}")
    for left in (left for folder in sorted(store.glob("*/")) for left in scratches(folder)):
        what = "an import that was killed left contents there"
        yield Symptom("left", str(left), what, f"vmstore erase {store} --finish")
    for kept in sorted(store.glob(f"*/{LOG}{KEPT}*")):
        yield Symptom("kept", str(kept), "the log from before an upgrade", f"rm {kept}, when the new one is proven")


_UNFINISHED = (
    "SELECT name, source FROM sessions s WHERE hidden = 1"
    " AND (SELECT max(logged_at) FROM commits c WHERE c.session = s.session) < ? ORDER BY name"
)
