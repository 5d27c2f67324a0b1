"""The views file is lost, damaged or somebody else's: the log gives the views back, equal."""

from __future__ import annotations

import logging
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import vmstore
from tests.disasters.child import kill, start
from tests.engine.stories import chat, tell
from vmstore.views.projection import PROJECTORS

ViewFile = Callable[[Path], None]


@pytest.fixture
def store_folder(store_path: Path) -> Path:
    """A store with sessions and forks, closed."""
    tell(store_path)
    with vmstore.open(store_path) as store:
        store.sessions()
    return store_path


def views(store: Path) -> Path:
    """A closed store's one views file."""
    (path,) = (store / "default").glob("views-*.sqlite")
    return path


def dumps(store: vmstore.Store) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table of every view, in order."""
    store.sessions()
    tables = sorted(table for projector in PROJECTORS for table in projector.schema)
    return {t: sorted(store.admin.views.execute(f"SELECT * FROM {t}").fetchall(), key=repr) for t in tables}


def deleted(file: Path) -> None:
    """The file is gone."""
    file.unlink()


def emptied(file: Path) -> None:
    """The file has no bytes."""
    file.write_bytes(b"")


def noise(file: Path) -> None:
    """The file is noise."""
    file.write_bytes(random.Random(1).randbytes(20_000))


def cut(file: Path) -> None:
    """The file ends early."""
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def scribbled(file: Path) -> None:
    """Noise stands in the middle of the file's pages."""
    content = bytearray(file.read_bytes())
    for page in range(1, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = random.Random(page).randbytes(64)
    file.write_bytes(content)


def a_shorter_stores(file: Path) -> None:
    """The file follows the log of another store that holds less."""
    _replace(file, 1)


def a_longer_stores(file: Path) -> None:
    """The file follows the log of another store that holds more."""
    _replace(file, 40)


def of_the_same_length(file: Path) -> None:
    """The file follows another log of as many commits, as after a backup was put back and written on."""
    other = file.parents[2] / "same.vms"
    tell(other)
    with vmstore.open(other) as store:
        store.record("another", chat("hi"))
    with vmstore.open(file.parents[1]) as store:
        store.record("this", chat("hi"))
    shutil.copy(views(other), file)


def _replace(file: Path, calls: int) -> None:
    other = file.parents[2] / "other.vms"
    with vmstore.open(other) as store:
        for n in range(calls):
            store.record("theirs", chat(f"{n}"))
    shutil.copy(views(other), file)


DAMAGES = [deleted, emptied, noise, cut, scribbled, a_shorter_stores, a_longer_stores, of_the_same_length]


@pytest.mark.parametrize("damage", DAMAGES, ids=[d.__name__ for d in DAMAGES])
def test_the_log_gives_the_views_back(store_folder: Path, damage: ViewFile, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever became of the views file, every view equals a fresh fold of the log and verify is clean."""
    caplog.set_level(logging.CRITICAL, "vmstore")
    damage(views(store_folder))
    fresh = shutil.copytree(store_folder, store_folder.with_name("fresh.vms"), ignore=shutil.ignore_patterns("views-*"))
    with vmstore.open(fresh) as store:
        expected = dumps(store)
    for mode in ("r", "rw", "rw"):
        with vmstore.open(store_folder, mode) as store:
            assert dumps(store) == expected
            assert store.verify().ok


def test_deleted_views_are_rebuilt_equal(store_folder: Path) -> None:
    """The views of a store that were deleted while it was closed come back with the digests they had."""
    with vmstore.open(store_folder) as store:
        before, positions = dumps(store), store.info().positions
    views(store_folder).unlink()
    with vmstore.open(store_folder) as store:
        assert dumps(store) == before
        assert store.info().positions == positions
        assert store.session("plan").context(call=2).messages()


def test_rebuild_is_the_same_view_by_view(store_folder: Path) -> None:
    """Rebuilding each view alone, and then all, changes no row."""
    with vmstore.open(store_folder) as store:
        before = dumps(store)
        for projector in PROJECTORS:
            store.admin.rebuild(projector.name)
            assert dumps(store) == before
        store.admin.rebuild()
        assert dumps(store) == before
        assert store.verify().ok


def test_views_killed_while_folding_go_on(store_folder: Path) -> None:
    """A fold that is killed leaves views that the next open brings to the log's end, equal."""
    with vmstore.open(store_folder) as store:
        before = dumps(store)
    for number in range(8):
        for file in (store_folder / "default").glob("views-*"):
            file.unlink()

        def work() -> None:
            vmstore.open(store_folder).sessions()

        pid = start(work)
        time.sleep(0.004 * number)
        kill(pid)
        with vmstore.open(store_folder) as store:
            assert dumps(store) == before
            assert store.verify().ok


def test_views_ahead_of_their_log_are_made_anew(store_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where an older log was put back, what the views hold beyond it is forgotten, and that is said."""
    log = store_folder / "default" / "log.sqlite"
    older = log.read_bytes()
    with vmstore.open(store_folder) as store:
        before = dumps(store)
        store.record("later", chat("hi"))
        store.sessions()
    log.write_bytes(older)
    with caplog.at_level(logging.WARNING, "vmstore"), vmstore.open(store_folder) as store:
        assert dumps(store) == before
        assert store.verify().ok
    assert "rebuilt from the log" in caplog.text


def test_views_of_another_store_beside_an_empty_log(store_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A store that holds nothing yet forgets views it finds, and folds its own first call."""
    caplog.set_level(logging.CRITICAL, "vmstore")
    path = store_folder.with_name("empty.vms")
    vmstore.open(path).close()
    shutil.copy(views(store_folder), path / "default" / views(store_folder).name)
    with vmstore.open(path) as store:
        assert store.sessions() == []
        assert set(store.info().positions.values()) == {0}
        store.record("first", chat("hi"))
        assert [s.session for s in store.sessions()] == ["first"]
        assert store.verify().ok
