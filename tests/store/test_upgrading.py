"""Upgrades are rehearsed on a copy, proven before they take the old log's place, and survive a kill anywhere."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import apsw
import pytest

import vmstore
from tests.disasters.child import joined, start
from tests.log.test_upgrade import golden, old_log
from tests.refusals import refused
from vmstore.core.clock import ManualClock
from vmstore.errors import CorruptError, StoreError
from vmstore.log import upgrade as log_room
from vmstore.log.file import FORMAT, format_of
from vmstore.log.sqlite import SqliteLog
from vmstore.maintenance import upgrade as upgrading
from vmstore.maintenance.upgrade import rehearse, upgrade
from vmstore.views.projection import PROJECTORS, Projection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of format 0."""
    old_log(tmp_path / "old.vms" / "default" / "log.sqlite", golden())
    return tmp_path / "old.vms"


def tree(folder: Path) -> dict[str, bytes]:
    """Every file with its bytes."""
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_rehearsal_leaves_nothing(path: Path, tmp_path: Path) -> None:
    """A rehearsal says what it compared and what it takes, and no file is other than before; somebody may read."""
    before, there = tree(tmp_path), sorted(tmp_path.iterdir())
    reader = apsw.Connection(str(path / "default/log.sqlite"))
    reader.execute("SELECT count(*) FROM commits").fetchall()
    rows: list[tuple[int, int]] = []
    rehearsal = rehearse(
        path, "default", lambda done, total: rows.append((done, total)), clock=ManualClock(5, 1_000_000)
    )
    reader.close()
    assert (rehearsal.ready, rehearsal.format_before, rehearsal.format) == (True, 0, FORMAT)
    assert (rehearsal.commits, rehearsal.views, rehearsal.seconds) == (len(golden()), len(PROJECTORS), 1.0)
    assert 0 < rehearsal.bytes == rehearsal.bytes_after < rehearsal.bytes_free and rows
    assert tree(tmp_path) == before and sorted(tmp_path.iterdir()) == there


def test_what_is_rehearsed_is_what_happens(path: Path) -> None:
    """After the rehearsal the upgrade gives a log as long as was said, and then there is nothing to rehearse."""
    rehearsal = rehearse(path, "default")
    upgrade(path, "default")
    assert (path / "default/log.sqlite").stat().st_size == rehearsal.bytes_after
    again = rehearse(path, "default")
    assert (again.format_before, again.commits, again.bytes) == (FORMAT, 0, 0)
    with vmstore.open(path) as store:
        assert store.verify().ok


def test_a_rehearsal_without_room(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the store's disk is full it happens elsewhere; where no disk has room it says how much is needed."""
    usage, full = shutil.disk_usage, {path.absolute().parent, Path(tempfile.gettempdir())}
    nothing = type(usage("/"))(1, 1, 0)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: nothing if place in full else usage(place))
    with refused("no-room", StoreError):
        rehearse(path, "default")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    assert rehearse(path, "default").commits == len(golden()) and list(elsewhere.iterdir()) == []


DAMAGES = ["UPDATE cells SET content = x'00' WHERE number = 3", "UPDATE commits SET at = at + 1 WHERE ordinal = 3"]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("work", [rehearse, upgrade])
def test_damage_is_named_and_nothing_changes(path: Path, tmp_path: Path, damage: str, work: object) -> None:
    """A damaged old log, in a cell or only in its chain, is named by the rehearsal and the upgrade, and stays."""
    db = apsw.Connection(str(path / "default/log.sqlite"))
    db.execute(damage)
    db.close()
    before = tree(tmp_path)
    with pytest.raises(CorruptError, match="put back a backup, then upgrade"):
        work(path, "default")  # type: ignore[operator]
    after = {name: content for name, content in tree(tmp_path).items() if "/blobs/" not in name}
    assert after == before


def test_a_view_that_differs_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new log whose views are not those of the old one takes nobody's place."""
    digest, times = Projection.digest, []

    def other(self: Projection, view: str) -> bytes:
        times.append(view)
        return b"another" if len(times) == 2 else digest(self, view)

    monkeypatch.setattr(Projection, "digest", other)
    with pytest.raises(CorruptError, match=f"the view {PROJECTORS[0].name} of the new log is another one"):
        upgrade(path, "default")
    assert format_of(path / "default/log.sqlite") == 0


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("where", "step"),
    [
        (log_room, "create"),
        (log_room, "_copy"),
        (upgrading, "prove"),
        (os, "link"),
        (os, "replace"),
        (log_room, "flush"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_a_kill_leaves_a_store_that_is_upgraded_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, where: object, step: str, after: bool
) -> None:
    """Killed before or after any step the old log is whole, or the new one in its place with the old one kept."""
    old = (path / "default/log.sqlite").read_bytes()
    do = getattr(where, step)

    def killed(*arguments: object, **more: object) -> object:
        if not after:
            os._exit(9)
        do(*arguments, **more)
        os._exit(9)

    def work() -> None:
        monkeypatch.setattr(where, step, killed)
        upgrade(path, "default")

    assert joined(start(work)) == 9
    log = path / "default/log.sqlite"
    kept = log.with_name("log.sqlite.format-0")
    assert log.read_bytes() == old or (format_of(log) == FORMAT and kept.read_bytes() == old)
    upgrade(path, "default")
    assert kept.read_bytes() == old
    with vmstore.open(path) as store:
        assert store.verify().ok and store.admin.log.ordinal == len(golden())


def test_another_kept_log_is_not_written_over(path: Path) -> None:
    """A file of the name the old log would be kept under stays, and the error says to move it."""
    kept = path / "default/log.sqlite.format-0"
    kept.write_bytes(b"of another time")
    with refused("path-taken", StoreError):
        upgrade(path, "default")
    assert kept.read_bytes() == b"of another time" and format_of(path / "default/log.sqlite") == 0
    kept.unlink()
    assert upgrade(path, "default").commits == len(golden())
    log = SqliteLog(path / "default/log.sqlite")
    log.close()
