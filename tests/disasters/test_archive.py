"""Archiving is killed, raced, and its files damaged or lost: no content is lost, and every loss has a name."""

from __future__ import annotations

import os
import random
import shutil
import threading
from pathlib import Path

import pytest

import vmstore
from tests.disasters.child import joined, start
from tests.engine.stories import answer, chat
from tests.refusals import refused
from tests.store.archives import away, everything, told_at
from vmstore.errors import CorruptError, OvertakenError, StoreError
from vmstore.log.archive import file, folder
from vmstore.log.archive import mover as archiving
from vmstore.log.archive.file import ArchiveLog
from vmstore.log.archive.folder import Archives
from vmstore.log.archive.mover import Mover
from vmstore.log.sqlite import SqliteLog
from vmstore.maintenance.archive import archive, unarchive
from vmstore.maintenance.backup import backup
from vmstore.maintenance.doctor import doctor
from vmstore.namespace.results import to_json

ALL = ["long", "other", "plan", "plan-b", "plan-c"]
SOME = ["plan-b", "long"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of five sessions, made once."""
    return told_at(tmp_path_factory.mktemp("made") / "a.vms")


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(made, tmp_path / "a.vms")
    return tmp_path / "a.vms"


def files(path: Path) -> list[Path]:
    """Every archive."""
    return sorted((path / "default" / "archive").glob("*.archive"))


STEPS = [
    (Archives, "_place"),
    (folder, "flush"),
    (Mover, "_turned"),
    (Mover, "_put"),
    (Mover, "_drop_files"),
    (Mover, "_give_back"),
]


@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("where", "step"), STEPS)
def test_a_kill_at_any_step_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch, where: object, step: str, after: bool, back: bool
) -> None:
    """Killed before or after any step, there and back, every answer stays, and doing it again ends it."""
    with vmstore.open(path) as store:
        before = everything(store)
        if back:
            archive(store, SOME, grace_s=0)
    do, times = getattr(where, step), []

    def killed(*arguments: object, **more: object) -> object:
        times.append(1)
        if len(times) == 2 and not after:
            os._exit(9)
        actual = do(*arguments, **more)
        if len(times) == 2 and after:
            os._exit(9)
        return actual

    def work() -> None:
        monkeypatch.setattr(where, step, killed)
        with vmstore.open(path) as store:
            (unarchive if back else archive)(store, SOME, **({} if back else {"grace": 0}))  # type: ignore[operator]

    joined(start(work))
    with vmstore.open(path) as store:
        assert everything(store) == before and store.verify().ok
        if back:
            unarchive(store, SOME)
        else:
            archive(store, SOME, grace_s=0)
        store.admin.collect_garbage(grace_s=0)
        assert everything(store) == before and store.verify().ok
        assert len(files(path)) == (0 if back else 2) and list(path.glob("default/archive/.*")) == []


def test_a_lost_archive_is_named(path: Path) -> None:
    """Without its archive a session's contents are an error that names file and remedy; all else goes on, and back."""
    with vmstore.open(path) as store:
        before = everything(store)
        archive(store, "other", grace_s=0)
        (file,) = files(path)
        file.rename(path / "kept")
        page = store.session("other").pages()[0].page
        with pytest.raises(CorruptError, match=f"{file} is missing.*put it back from a backup"):
            store.session("other").content(page)
        (problem,) = store.verify().problems
        assert problem.kind == "archive" and str(file) in problem.what
        store.record("plan", chat("Still there?"), answer("Yes."))
        with refused("archive-missing", CorruptError):  # what it said is read to see what is new
            store.record("other", chat("And you?"), answer("Me too."))
        for view in path.glob("default/views-*"):
            view.unlink()
    with vmstore.open(path) as store:  # views are folded again without it
        assert all(to_json(store.session(name).info()) == before[name][0] for name in ALL if name != "plan")
        assert [info.session for info in store.sessions()] == ALL
        assert store.session("other").pages()[0].page == page
        store.admin.rebuild()
        (path / "kept").rename(file)
        assert store.verify().ok and store.session("other").content(page) == before["other"][2][0]


def test_a_lost_archive_is_named_once_beside_an_erasure(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an erasure was not carried out and its archive is lost, only the archive is named, by verify and doctor."""

    def cut(log: SqliteLog, erased: object) -> None:
        raise KeyboardInterrupt

    with vmstore.open(path) as store:
        page = store.session("other").pages()[0].page
        archive(store, "other", grace_s=0)
        monkeypatch.setattr(SqliteLog, "destroy", cut)
        with pytest.raises(KeyboardInterrupt):
            vmstore.erase(store, page=page, in_session="other")
        assert {problem.kind for problem in store.verify().problems} == {"erasure"}  # recorded, and still there
        (file,) = files(path)
        file.unlink()
        assert {problem.kind for problem in store.verify().problems} == {"archive"}
    for full in (False, True):
        assert {symptom.kind for symptom in doctor(path, full=full).symptoms} == {"archive"}


def test_every_flip_in_an_archive_is_named(path: Path) -> None:
    """A byte changed anywhere that counts is named as damage of that archive; contents that come are the right ones."""
    with vmstore.open(path) as store:
        archive(store, "plan", grace_s=0)
        before = everything(store)["plan"][2]
        pages = [page.page for page in store.session("plan").pages()]
        cells = store.admin.log.cells(range(999))
    (file,) = files(path)
    sound, rng, named = file.read_bytes(), random.Random(5), 0
    whole = ArchiveLog(file)
    commits = whole.tail(0, 99)
    whole.close()
    for at in rng.sample([at for at, byte in enumerate(sound) if byte], 60):
        file.write_bytes(sound[:at] + bytes((sound[at] ^ (1 << rng.randrange(8)),)) + sound[at + 1 :])
        with vmstore.open(path) as store:
            verdict = store.verify(views=False)
            assert verdict.ok or {problem.kind for problem in verdict.problems} <= {"archive", "cell"}
            assert not verdict.ok or store.admin.log.cells(range(999)) == cells  # else a byte that nothing is read from
            try:
                log = ArchiveLog(file)
                assert log.tail(0, 99) == commits and verdict.ok
                log.close()
            except (CorruptError, StoreError):
                assert not verdict.ok
            named += not verdict.ok
            for page, content in zip(pages, before, strict=True):
                try:
                    assert store.session("plan").content(page) == content
                except CorruptError as error:
                    assert str(file) in str(error) or "verify" in str(error)
    assert named > 30


@pytest.mark.parametrize("wrong", ["older", "of another session", "empty", "text"])
def test_another_file_in_its_place(path: Path, wrong: str) -> None:
    """An older archive, another session's, an empty file or no archive at all in its place is named."""
    with vmstore.open(path) as store:
        archive(store, ["other", "plan"], grace_s=0)
        named = {
            session.session: Path(session.file) for session in archive(store, ["plan", "other"], grace_s=0).sessions
        }
        uids = dict(store.admin.views.execute("SELECT name, hex(uid) FROM sessions"))
        named = {name: path / "default/archive" / f"{str(uid).lower()}.archive" for name, uid in uids.items()}
        file = named["other"]
        old = file.read_bytes()
        store.record("other", chat("Unrelated", "Quite.", "What is new?"), answer("This."))
        archive(store, "other", grace_s=0)
        content = {"older": old, "of another session": named["plan"].read_bytes(), "empty": b"", "text": b"x" * 9_000}
        file.unlink()
        file.write_bytes(content[wrong])
        verdict = store.verify(views=False)
        assert not verdict.ok and {problem.kind for problem in verdict.problems} <= {"archive", "cell"}
        with pytest.raises(CorruptError):
            everything(store)
        assert store.session("plan").context(call=1).messages()


def test_readers_and_writers_go_on_meanwhile(path: Path) -> None:
    """While sessions move there and back, other threads and handles read the right contents and write."""
    stop, wrong = threading.Event(), list[object]()
    with vmstore.open(path) as store, vmstore.open(path) as other:
        cells = store.admin.log.cells(range(999))

        def read() -> None:
            while not stop.is_set():
                actual_cells = other.admin.log.cells(range(1, max(cells) + 1))
                if actual_cells != cells:
                    wrong.append({n for n in cells if actual_cells.get(n) != cells[n]})

        def write() -> None:
            for number in range(20):
                other.record("busy", chat(f"Number {number}"), answer("Yes."))

        threads = [threading.Thread(target=case) for case in (read, write)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            archive(store, ALL, grace_s=0)
            unarchive(store, ALL)
        stop.set()
        for thread in threads:
            thread.join()
        assert wrong == [] and store.session("busy").info().calls == 20 and store.verify().ok


def test_frames_that_are_packed_meanwhile_are_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another handle packs the very frames that are about to move, they are read again and move."""
    turned, times = Mover._turned, []

    def packed(self: Mover, *arguments: object) -> object:
        actual = turned(self, *arguments)  # type: ignore[arg-type]
        if len(times) < 1:
            times.append(1)
            with vmstore.open(path) as other:
                other.admin.compact()
        return actual

    with vmstore.open(path) as store:
        before = everything(store)
        monkeypatch.setattr(Mover, "_turned", packed)
        archive(store, ALL, grace_s=0)
        assert times and everything(store) == before
        assert sum(away(store.admin.log).values()) == store.admin.log.last_cell  # type: ignore[arg-type]


def test_two_who_archive_at_once(path: Path) -> None:
    """Two processes that archive the same sessions both end, and every answer stays."""
    with vmstore.open(path) as store:
        before = everything(store)

    def work() -> None:
        with vmstore.open(path) as store:
            archive(store, ALL, grace_s=0)

    children = [start(work), start(work)]
    assert [joined(child) for child in children] == [0, 0]
    with vmstore.open(path) as store:
        assert everything(store) == before and store.verify().ok and len(files(path)) == 5


def test_a_backup_meanwhile_is_whole(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who wants to archive while a backup copies waits until it has, and the backup is whole without any archive."""
    from vmstore.maintenance import backup as room

    copy, order = room._copy_files, []

    def away() -> None:
        with vmstore.open(path) as store:
            archive(store, ALL, grace_s=0)
        order.append("archived")

    def moved(source: Path, target: Path) -> None:
        if not archiver.is_alive():
            archiver.start()
            archiver.join(0.5)
        copy(source, target)
        order.append("copied")

    archiver = threading.Thread(target=away)
    monkeypatch.setattr(room, "_copy_files", moved)
    backup(path, tmp_path / "b")
    archiver.join()
    assert order == ["copied", "copied", "archived"] and not (tmp_path / "b/default/archive").exists()
    assert len(list((path / "default/archive").iterdir())) == 5


def test_no_room_for_an_archive(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the archive cannot be written nothing moved, nothing is left, and the error says so."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with vmstore.open(path) as store:
        before = everything(store)
        monkeypatch.setattr(file, "write", full)
        with refused("not-written", StoreError):
            archive(store, "plan", grace_s=0)
        assert everything(store) == before and away(store.admin.log) == {}  # type: ignore[arg-type]
        assert list((path / "default" / "archive").iterdir()) == []


def test_what_the_archive_lacks_stays_in_the_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that does not hold what is about to leave the log stops the move: nothing leaves."""
    compare = archiving.Mover._read

    def other(mover: Mover, frame: object, numbers: object) -> object:
        diff = compare(mover, frame, numbers)  # type: ignore[arg-type]
        return [cell.__class__(cell.salt, b"changed") for cell in diff]

    with vmstore.open(path) as store:
        before = everything(store)
        monkeypatch.setattr(archiving.Mover, "_read", other)
        with refused("archive-overtaken", OvertakenError):
            archive(store, "plan", grace_s=0)
        assert everything(store) == before and files(path) == []
