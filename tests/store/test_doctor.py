"""The doctor finds each thing that may be wrong with a store, says what to do, and writes nothing."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

import vmstore
from tests.disasters.child import kill, start
from tests.engine.author import engine_over
from tests.engine.stories import answer, chat
from tests.log.test_upgrade import golden, old_log
from tests.store.archives import told_at
from vmstore.core.clock import ManualClock
from vmstore.engine.head import NewSession
from vmstore.errors import StoreError
from vmstore.log import compaction
from vmstore.log.sqlite import SqliteLog
from vmstore.maintenance import checks
from vmstore.maintenance import doctor as room
from vmstore.maintenance.archive import archive
from vmstore.maintenance.doctor import doctor
from vmstore.namespace.folder import views_file
from vmstore.namespace.reports import Health

NOW = ManualClock(4_000_000_000_000_000)  # long after everything was written


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A healthy store, made once."""
    return told_at(tmp_path_factory.mktemp("made") / "a.vms")


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of it."""
    shutil.copytree(made, tmp_path / "a.vms")
    yield tmp_path / "a.vms"


def look(path: Path, *, full: bool = False) -> Health:
    """What the doctor says; every file is as it was."""
    before = tree(path.parent)
    health = doctor(path, clock=NOW, full=full)
    assert tree(path.parent) == before, "it writes nothing"
    return health


def tree(folder: Path) -> dict[str, bytes]:
    """Every file with its bytes; a shared index is memory."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.name.endswith("-shm")]
    return {str(file): file.read_bytes() for file in files}


def edit(path: Path, sql: str) -> None:
    """Changes the log by hand."""
    log = SqliteLog(path / "default/log.sqlite")
    with log.file as db:
        db.execute(sql).fetchall()
    log.close()


# ---- what is planted


def flipped(path: Path) -> None:
    """A commit that was changed."""
    edit(path, "UPDATE commits SET at = at + 1 WHERE ordinal = 4")


def torn(path: Path) -> None:
    """A log whose pages are noise."""
    with (path / "default/log.sqlite").open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(8192))


def no_log(path: Path) -> None:
    """A log that is text."""
    (path / "default/log.sqlite").write_bytes(b"text" * 3000)


def too_old(path: Path) -> None:
    """A log of format 0."""
    shutil.rmtree(path)
    old_log(path / "default" / "log.sqlite", golden())


def cut_after_a_seal(path: Path) -> None:
    """A log that lost its end after it was sealed."""
    key = vmstore.new_key(path.with_name("key"))
    with vmstore.open(path) as store:
        vmstore.seal(store, key)
        store.admin.compact()
    edit(path, "DELETE FROM commits WHERE ordinal = (SELECT max(ordinal) FROM commits)")
    views_file(path / "default").unlink()


def broken_seal(path: Path) -> None:
    """A seal with a byte changed."""
    key = vmstore.new_key(path.with_name("key"))
    with vmstore.open(path) as store:
        sealed = Path(vmstore.seal(store, key).path)
    sealed.write_bytes(sealed.read_bytes()[:-3] + b"abc")


def stray_blob(path: Path) -> None:
    """A file that no cell names."""
    (path / "default/blobs/00").mkdir(parents=True)
    (path / "default/blobs/00" / ("00" * 32)).write_bytes(b"x")


def stray_archive(path: Path) -> None:
    """An archive that no frame names."""
    (path / "default/archive").mkdir()
    (path / "default/archive" / f"{'00' * 16}.archive").write_bytes(b"x")


def lost_archive(path: Path) -> None:
    """An archive that is gone."""
    with vmstore.open(path) as store:
        (done,) = archive(store, "plan", grace_s=0).sessions
    Path(done.file).unlink()


def hidden_import(path: Path) -> None:
    """An import that was never finished."""
    log = SqliteLog(path / "default/log.sqlite")
    engine_over(log, seed=3).begin(NewSession("half", hidden=True), 5).commit(5)
    log.close()
    with vmstore.open(path) as store:
        store.admin.follow()


def old_views(path: Path) -> None:
    """Views of another version."""
    shutil.copy(views_file(path / "default"), path / "default/views-00000000.sqlite")


def damaged_views(path: Path) -> None:
    """Views that are noise."""
    views_file(path / "default").write_bytes(os.urandom(9_000))


def half_made(path: Path) -> None:
    """A store that a killed process began to make."""
    path.with_name(f".{path.name}.abc.new").mkdir()


def half_upgraded(path: Path) -> None:
    """A log that a killed upgrade began to write."""
    (path / "default/log.sqlite.new").write_bytes(b"x")


def kept_log(path: Path) -> None:
    """A log that an upgrade kept."""
    (path / "default/log.sqlite.format-0").write_bytes(b"x")


def killed_writer(path: Path) -> None:
    """A WAL that a killed process left."""

    def work() -> None:
        store = vmstore.open(path)
        store.record("plan", chat("Where to?", "Killed."), answer("Oh."))
        os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(start(work), 0)
    assert (path / "default/log.sqlite-wal").stat().st_size


PLANTED: list[tuple[Callable[[Path], None], str, str]] = [
    (flipped, "hash", "put back a backup"),
    (torn, "log", "put back a backup"),
    (no_log, "log", "put back a backup"),
    (too_old, "log", "vmstore upgrade {}"),
    (cut_after_a_seal, "seal", "vmstore verify {}"),
    (broken_seal, "seal", "put back a copy"),
    (stray_blob, "stray", "vmstore sweep {}"),
    (stray_archive, "stray", "vmstore sweep {}"),
    (lost_archive, "archive", "from a backup"),
    (hidden_import, "unfinished", "vmstore import {}"),
    (old_views, "old views", "vmstore info {}"),
    (damaged_views, "views", "vmstore rebuild {}"),
    (half_made, "left", "rm -r"),
    (half_upgraded, "left", "rm -r"),
    (kept_log, "kept", "rm "),
    (killed_writer, "wal", "vmstore info {}"),
]


@pytest.mark.parametrize(("plant", "kind", "remedy"), PLANTED, ids=[plant.__name__ for plant, _, _ in PLANTED])
def test_each_symptom_is_found(path: Path, plant: Callable[[Path], None], kind: str, remedy: str) -> None:
    """What is planted is found with its kind and its remedy, and nothing is written by looking."""
    plant(path)
    health = look(path)
    rows = {(symptom.kind, remedy.format(path) in symptom.remedy) for symptom in health.symptoms}
    assert not health.ok and (kind, True) in rows, health.symptoms
    assert {name for name, _ in rows} <= {kind, "seal", "position"}


def test_a_healthy_store_needs_nothing(path: Path) -> None:
    """A healthy store has no symptom, quick or full, and its versions, commits and lags are told."""
    for full in (False, True):
        health = look(path, full=full)
        assert (health.ok, health.symptoms, health.full) == (True, [], full)
        (ward,) = health.namespaces
        assert ward.format == 1 and ward.commits and set(ward.behind.values()) == {0} and ward.held == []
        assert health.versions["sqlite"] == apsw.sqlite_lib_version() and health.versions["python"]


def test_a_damaged_cell_needs_a_full_look(path: Path) -> None:
    """A cell that does not match its commitment, and a damaged archive, are found by a full look."""
    with vmstore.open(path) as store:
        (done,) = archive(store, "plan", grace_s=0).sessions
    edit(path, "UPDATE frames SET salts = zeroblob(length(salts)) WHERE first = (SELECT max(first) FROM frames)")
    file = Path(done.file)
    content = bytearray(file.read_bytes())
    for at in range(2_000, len(content), 50):
        content[at] ^= 1
    file.write_bytes(bytes(content))
    assert look(path).ok
    assert {symptom.kind for symptom in look(path, full=True).symptoms} == {"archive", "cell"}


def test_views_far_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views that are many commits behind are found; a few are told and are nothing."""
    edit(path, "SELECT 1")
    with apsw.Connection(str(views_file(path / "default"))) as db:
        db.execute("UPDATE positions SET ordinal = ordinal - 2 WHERE view = 'lineage'")
    health = look(path)
    assert health.ok and health.namespaces[0].behind["lineage"] == 2
    monkeypatch.setattr(checks, "BEHIND_MIN", 2)
    (symptom,) = look(path).symptoms
    assert (symptom.kind, symptom.remedy) == ("behind", f"vmstore info {path}")


def test_much_that_lies_unpacked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log whose end lies unpacked is found."""
    with vmstore.open(path) as store:
        for text in ("One.", "Two.", "Three."):
            store.record("plan", chat("Where to?", text), None)
    monkeypatch.setattr(compaction, "DUE_FRAMES", 2)
    (symptom,) = look(path).symptoms
    assert (symptom.kind, symptom.remedy) == ("raw", f"vmstore compact {path}")


def test_a_full_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk with less room than the log is long is found."""
    monkeypatch.setattr(checks, "ROOM_MIN", 1 << 60)
    (symptom,) = look(path).symptoms
    assert symptom.kind == "disk" and "vmstore archive" in symptom.remedy


def test_an_extra_that_is_missing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text index or columns without the extra that follows them are found."""
    (path / "default/text").mkdir(exist_ok=True)
    (path / "default/columns").mkdir(exist_ok=True)
    monkeypatch.setattr(room, "versions", lambda: {"duckdb": None, "numpy": None})
    assert {symptom.remedy for symptom in look(path).symptoms} == {
        "pip install 'vmstore[columns]'",
        "pip install 'vmstore[search]'",
    }


@pytest.mark.skipif(not room.LOCKS.exists(), reason="this system does not tell who holds a lock")
def test_who_uses_it_is_told(path: Path) -> None:
    """A process that holds the writers' lock, or has the log open, is named, and its WAL is no symptom."""

    def work() -> None:
        store = vmstore.open(path)
        store.record("plan", chat("Where to?", "Open."), answer("Yes."))
        with (path / "default/log.lock").open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            (path / "ready").touch()
            time.sleep(60)

    child = start(work)
    while not (path / "ready").exists():
        time.sleep(0.01)
    (path / "ready").unlink()
    try:
        health = look(path)
    finally:
        kill(child)
    assert {(file.file, file.pid) for file in health.namespaces[0].held} >= {
        ("log.lock", child),
        ("log.sqlite-shm", child),
    }
    assert "wal" not in {symptom.kind for symptom in health.symptoms}


def test_every_namespace_is_looked_at(path: Path) -> None:
    """Each namespace is told, one's symptoms do not hide another's, and one alone can be asked for."""
    with vmstore.open(path, namespace="work") as store:
        store.record("job", chat("Go"), answer("Gone."))
    torn(path)
    health = look(path)
    assert [ward.namespace for ward in health.namespaces] == ["default", "work"] and not health.ok
    assert doctor(path, namespace="work", clock=NOW).ok


def test_no_store_is_an_error(tmp_path: Path) -> None:
    """Where there is no store the doctor says so."""
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(StoreError):
            doctor(path, clock=NOW)
