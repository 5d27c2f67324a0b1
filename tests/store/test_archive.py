"""Archived sessions answer as before, their contents in one file each that can be asked alone."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import vmstore
from tests.engine.stories import answer, chat
from tests.refusals import refused
from tests.store.archives import LONG, away, everything, told_at
from vmstore.core.clock import ManualClock
from vmstore.errors import CorruptError, ErasedError, InputError, ReadOnlyError, RefusedError, UnknownError
from vmstore.log.archive.file import ArchiveLog
from vmstore.log.sqlite import SqliteLog
from vmstore.maintenance.archive import archive, archived_sessions, unarchive
from vmstore.seals.seals import read_seal

ALL = ["long", "other", "plan", "plan-b", "plan-c"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of five sessions, two of them forks."""
    return told_at(tmp_path / "a.vms")


def files(path: Path) -> list[Path]:
    """Every archive."""
    return sorted((path / "default" / "archive").glob("*"))


def gone(path: Path, text: str) -> bool:
    """Whether no file of the log or of long cells holds a text as it is."""
    there = [path / "default" / "log.sqlite", path / "default" / "log.sqlite-wal", *path.glob("default/blobs/*/*")]
    return not any(text.encode() in file.read_bytes() for file in there if file.exists())


def test_every_answer_stays(path: Path) -> None:
    """With all sessions archived every answer is what it was, through this handle, a later one and new views."""
    with vmstore.open(path) as store:
        before, cells = everything(store), store.admin.log.cells(range(999))
        done = archive(store, ALL, grace_s=0)
        assert [session.session for session in done.sessions] == ALL and len(files(path)) == 5
        assert (everything(store), store.admin.log.cells(range(999))) == (before, cells)
        assert store.verify().ok
        store.admin.rebuild()
        assert everything(store) == before
    with vmstore.open(path, "r") as store:
        assert everything(store) == before and store.verify().ok


def test_contents_leave_the_log(path: Path) -> None:
    """What moved is in no file of the log, free pages and WAL included; long contents have no file there any more."""
    assert not gone(path, "Twelve miles.") and not gone(path, LONG)
    with vmstore.open(path) as store:
        archive(store, ALL, grace_s=0)
        assert gone(path, "Twelve miles.") and gone(path, LONG) and list(path.glob("default/blobs/*/*")) == []
    assert gone(path, "Twelve miles.") and gone(path, LONG)


def test_only_the_sessions_named_move(path: Path) -> None:
    """The cells of other sessions stay in the log, also where they lay in one frame with those that moved."""
    with vmstore.open(path) as store:
        store.admin.compact()
        before = everything(store)
        archive(store, "other", grace_s=0)
        (uid,) = away(store.admin.log)  # type: ignore[arg-type]
        assert archived_sessions(store) == {"other": path / "default" / "archive" / f"{uid.hex()}.archive"}
        sessions = dict(store.admin.views.execute("SELECT uid, session FROM sessions"))
        own = sum(
            n for (n,) in store.admin.views.execute("SELECT cells FROM commits WHERE session = ?", (sessions[uid],))
        )
        assert away(store.admin.log) == {uid: own}  # type: ignore[arg-type]
        assert everything(store) == before and store.verify().ok


def test_what_an_archive_holds_can_be_asked_alone(path: Path, tmp_path: Path) -> None:
    """An archive's file alone is a store of its session, for reading: a fork's with the past it inherits."""
    with vmstore.open(path) as store:
        before = everything(store)
        done = archive(store, ["plan-b", "long"], grace_s=0)
        named = {session.session: Path(session.file) for session in done.sessions}
    alone = tmp_path / "elsewhere.archive"
    named["plan-b"].rename(alone)
    with vmstore.open(alone, "r") as store:
        record = everything(store)
        assert record["plan-b"] == before["plan-b"] and set(record) == {"plan", "plan-b"}
        assert store.verify().ok and list(store.query("PAGES", session="plan-b"))
        with pytest.raises(ReadOnlyError):
            store.record("plan-b", chat("more"), None)
    with vmstore.open(named["long"], "r") as store:
        assert everything(store) == {"long": before["long"]}
    with refused("archive-is-read", ReadOnlyError):
        vmstore.open(alone)


def test_a_session_grows_on_and_moves_again(path: Path) -> None:
    """An archived session that is written to grows in the log; archived again that moves too, to the same file."""
    with vmstore.open(path) as store:
        archive(store, "other", grace_s=0)
        (file,) = files(path)
        store.record("other", chat("Unrelated", "Quite.", "Where to?"), answer("Late."))
        store.session("other").fork("other-b", call=1)
        before, size = everything(store), file.stat().st_size
        assert sum(away(store.admin.log).values()) < store.admin.log.last_cell  # type: ignore[arg-type]
        archive(store, "other", grace_s=0)
        assert everything(store) == before and files(path) == [file] and file.stat().st_size >= size
        assert store.verify().ok
        again = archive(store, "other", grace_s=0)
        assert again.sessions == [] and again.skipped[0].why == "all of it is archived already"


def test_what_is_archived_is_not_named_again(path: Path) -> None:
    """A content that lies in an archive is sealed again, so what is written later can be read without it."""
    with vmstore.open(path) as store:
        store.record("other", chat("Unrelated", "Quite.", "And?"), answer("A word or two."))
        archive(store, "other", grace_s=0)
        (file,) = files(path)
        other_chat = chat("Unrelated", "Quite.", "And?", "A word or two.", "Say it again")
        store.record("other", other_chat, answer("A word or two."))
        last = store.session("other").pages()[-1]
        file.unlink()
        assert store.session("other").content(last.page) == b"A word or two."


def test_forks_read_through(path: Path) -> None:
    """Forks read what they inherit from the archive of the session that wrote it, archived themselves or not."""
    with vmstore.open(path) as store:
        before = everything(store)
        for name in ("plan", "plan-c", "plan-b"):
            archive(store, name, grace_s=0)
            assert everything(store) == before


def test_bringing_back_leaves_nothing(path: Path) -> None:
    """Brought back, all cells lie in the log and their files again, the archive is gone, and answers stay."""
    with vmstore.open(path) as store:
        before, cells = everything(store), store.admin.log.cells(range(999))
        archive(store, ALL, grace_s=0)
        done = unarchive(store, ALL)
        assert [session.session for session in done.sessions] == ALL
        assert (files(path), away(store.admin.log)) == ([], {})  # type: ignore[arg-type]
        assert (everything(store), store.admin.log.cells(range(999))) == (before, cells)
        assert len(list(path.glob("default/blobs/*/*"))) == 1 and store.verify().ok
        assert unarchive(store, "plan").skipped[0].why == "nothing of it is archived"


def test_a_look_moves_nothing(path: Path) -> None:
    """A dry run says how many cells would move, through a handle for reading too, and changes no file."""
    with vmstore.open(path, "r") as store:
        other_archive = archive(store, ALL, grace_s=0, dry_run=True)
        assert (
            not other_archive.done
            and sum(session.cells for session in other_archive.sessions) == store.admin.log.last_cell
        )
        assert files(path) == [] and other_archive.bytes_before == other_archive.bytes_after


def test_open_sessions_are_refused(path: Path) -> None:
    """A session written to lately, or managing its memory here, is refused by name and left alone by age."""
    with vmstore.open(path) as store:
        with refused("in-use", RefusedError, "'long'"):
            archive(store, ["other", "long"])
        assert files(path) == []
        live = store.live_session("alive", l0_tokens_max=8_000)
        live.user("Hello.")
        with refused("in-use"):
            archive(store, "alive", grace_s=0)
    with vmstore.open(path, clock=ManualClock(2_000_000_000_000_000)) as store:
        store.record("late", chat("Just now"), None)
        other_archive = archive(store, older_than_s=0.0)
        assert [session.session for session in other_archive.sessions] == ["alive", *ALL]
        assert [(session.session, "was written to" in session.why) for session in other_archive.skipped] == [
            ("late", True)
        ]
        assert archive(store, older_than_s=90 * 86_400.0, grace_s=0).skipped[0].why == "all of it is archived already"


@pytest.mark.parametrize(("names", "age"), [((), None), (("plan",), 3.0)])
def test_either_names_or_an_age(path: Path, names: tuple[str, ...], age: float | None) -> None:
    """Neither or both of names and an age is an error that says so."""
    with vmstore.open(path) as store, refused("which-sessions", InputError):
        archive(store, names, older_than_s=age)


def test_unknown_and_in_memory(path: Path) -> None:
    """An unknown session names the nearest, and a store in memory says that it has no files."""
    with vmstore.open(path) as store, refused("no-session", UnknownError, "'plan'"):
        archive(store, "plam", grace_s=0)
    with vmstore.memory_store() as store, refused("in-memory", InputError):
        archive(store, "plan")


def test_seals_and_bundles_hold(path: Path, tmp_path: Path) -> None:
    """A seal made before holds after, and an exact bundle has the very same bytes."""
    vmstore.new_key(tmp_path / "key")
    with vmstore.open(path) as store:
        sealed = vmstore.seal(store, tmp_path / "key", tmp_path / "a.seal")
        store.export(tmp_path / "before.jsonl", exact=True)
        archive(store, ALL, grace_s=0)
        store.export(tmp_path / "after.jsonl", exact=True)
        assert store.verify(seals=[read_seal(sealed.path)]).ok
    assert (tmp_path / "before.jsonl").read_bytes() == (tmp_path / "after.jsonl").read_bytes()


def test_a_backup_takes_archives_along(path: Path, tmp_path: Path) -> None:
    """A backup of a store with archives holds them, is proven with them, and restores to the same answers."""
    with vmstore.open(path) as store:
        archive(store, ["plan", "long"], grace_s=0)
        before = everything(store)
        store.backup(tmp_path / "b")
    assert len(list((tmp_path / "b/default/archive").iterdir())) == 2
    vmstore.restore(tmp_path / "b", tmp_path / "r.vms")
    with vmstore.open(tmp_path / "r.vms") as store:
        assert everything(store) == before and store.verify().ok
    next((path / "default" / "archive").iterdir()).unlink()
    with refused("not-sound", CorruptError):
        vmstore.backup(path, tmp_path / "c")


def test_sweep_knows_strays(path: Path) -> None:
    """Sweep finds archives that no frame names and what a crash left half written, and spares those in use."""
    with vmstore.open(path) as store:
        archive(store, "other", grace_s=0)
        used = files(path)
        folder = path / "default" / "archive"
        (folder / f"{'00' * 16}.archive").write_bytes(b"x" * 10)
        (folder / f".{'11' * 16}.archive.abc.new").write_bytes(b"y")
        assert store.admin.collect_garbage(grace_s=0, dry_run=True).bytes == 11
        assert len(store.admin.collect_garbage(grace_s=0).files) == 2 and files(path) == used
        assert store.admin.collect_garbage(grace_s=0).files == []


def test_destroying_in_archives(path: Path) -> None:
    """Cells destroyed by commitment are gone from every archive that holds them, which proves as before."""
    with vmstore.open(path) as store:
        archive(store, ["plan", "plan-b"], grace_s=0)
        log = store.admin.log
        (number,) = [n for n, cell in log.cells(range(999)).items() if cell.content == b"Where to?"][:1]
        commitment = log.cells([number])[number].commitment
        with log.archives.alone():  # type: ignore[attr-defined]
            assert log.archives.destroy({commitment: 9}) == 2  # type: ignore[attr-defined]
            assert log.archives.destroy({commitment: 9}) == 0  # type: ignore[attr-defined]
        assert log.cells([number])[number].erased
        for file in files(path):
            made = ArchiveLog(file)
            cells = made.cells(range(1, made.last_cell + 1))
            assert b"Where to?" not in [cell.content for cell in cells.values()]
            assert [n for n, cell in cells.items() if cell.erased] and len(cells) == made.last_cell
            made.close()


def _erased(path: Path) -> tuple[dict[str, Path], str]:
    """Archives of a session, of its fork and of a third, of which a page and all of the third were erased then."""
    with vmstore.open(path) as store:
        named = {
            session.session: Path(session.file)
            for session in archive(store, ["plan", "plan-b", "other"], grace_s=0).sessions
        }
        plan = store.session("plan")
        (page,) = [page.page for page in plan.pages() if plan.content(page.page) == b"Where to?"]
        vmstore.erase(store, page=page, in_session="plan")
        vmstore.erase(store, session="other")
        assert store.verify().ok
    return named, page


def test_what_is_erased_is_told_alone_as_in_its_store(path: Path) -> None:
    """An archive alone knows what was erased after it was made: sound, told by name and place, every query answered."""
    named, page = _erased(path)
    with vmstore.open(path, "r") as store:
        records = {name: everything_said(store, name) for name in ("plan", "plan-b")}
        with pytest.raises(ErasedError) as caught:
            store.session("plan").content(page)
        (lost,) = [session.session for session in store.sessions() if session.session.startswith("erased-")]
    for name in ("plan", "plan-b"):
        with vmstore.open(named[name], "r") as alone:
            assert alone.verify().ok and everything_said(alone, name) == records[name]
            assert b"Where to?" not in named[name].read_bytes() and alone.search("Where") == []
            with pytest.raises(ErasedError, match=str(caught.value)):
                alone.session(name).content(page)
            assert "[erased at position" in str([tuple(row) for row in alone.query("PAGES text", session=name)])
    with vmstore.open(named["other"], "r") as alone:
        assert [session.session for session in alone.sessions()] == [lost] and alone.verify().ok
        assert alone.query("VERIFY", session=lost)


def everything_said(store: vmstore.Store, name: str) -> list[list[dict[str, object]]]:
    """What every context of a session says."""
    session = store.session(name)
    return [session.context(call=call).messages() for call in range(1, session.info().calls + 1)]


def test_archived_again_the_record_stays(path: Path) -> None:
    """Brought back and archived again, and through a later erasure, an archive alone still knows what was erased."""
    named, page = _erased(path)
    with vmstore.open(path) as store:
        unarchive(store, "plan-b")
        archive(store, "plan-b", grace_s=0)
        vmstore.erase(store, page="p4", in_session="plan-b")
    with vmstore.open(named["plan-b"], "r") as alone:
        assert alone.verify().ok
        for erased in (page, "p4"):
            with pytest.raises(ErasedError):
                alone.session("plan-b").content(erased)


@pytest.mark.parametrize("planted", ["none", "other", "row"])
def test_what_no_record_names_is_damage(path: Path, planted: str) -> None:
    """A destroyed cell in an archive alone that no record names, or one of another cell, is damage all the same."""
    named, _ = _erased(path)
    db = apsw.Connection(str(named["plan"]))
    number = db.execute("SELECT min(number) FROM erased").get
    change = {"none": f"position = NULL WHERE number = {number}", "other": "number = number + 1", "row": ""}[planted]
    db.execute(f"UPDATE erased SET {change}" if change else "DELETE FROM erased")
    db.close()
    if planted == "none":
        with vmstore.open(named["plan"], "r") as alone:
            (problem,) = alone.verify().problems
            assert problem.where.startswith(f"cell {number} ") and "no erasure is recorded" in problem.what
    else:
        with refused("archive-damaged", CorruptError):
            vmstore.open(named["plan"], "r")


def test_damage_is_not_archived_as_erased(path: Path) -> None:
    """A cell that was destroyed in the log without a record is none in its archive either."""
    log = SqliteLog(path / "default" / "log.sqlite")
    (number,) = [n for n, cell in log.cells(range(999)).items() if cell.content == b"Where to?"][:1]
    log.destroy({number: 1})
    log.close()
    with vmstore.open(path) as store:
        (done,) = archive(store, "plan", grace_s=0).sessions
        assert not store.verify(views=False).ok
    with vmstore.open(done.file, "r") as alone:
        assert [problem.kind for problem in alone.verify(views=False).problems] == ["cell"]


def test_an_archive_without_the_record_is_not_merged(path: Path, tmp_path: Path) -> None:
    """Merged from an archive whose erasures are recorded elsewhere nothing would say what was erased: refused."""
    named, _ = _erased(path)
    with vmstore.open(tmp_path / "b.vms") as store:
        store.record("mine", chat("Hello"), None)
    with refused("erased-beside"):
        vmstore.merge(tmp_path / "b.vms", named["plan"])
    with vmstore.open(path) as store:
        unarchive(store, "plan")
        archive(store, "plan", grace_s=0)
    assert [session.outcome for session in vmstore.merge(tmp_path / "b.vms", named["plan"]).sessions] == ["new"]
    with vmstore.open(tmp_path / "b.vms") as store:
        assert store.verify().ok
