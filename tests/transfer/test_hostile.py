"""What others made names no file of ours, has no effect here that nobody agreed to, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
import zstandard

import vmstore
from tests.disasters.child import start
from tests.engine.stories import answer, chat
from tests.erasure.found import found_in
from tests.refusals import refused
from vmstore.core.mutation import Approve
from vmstore.core.system.safe_files import destroy
from vmstore.erasure import erase
from vmstore.errors import CorruptError, InputError, RefusedError, StoreError
from vmstore.log.archive.folder import Archives
from vmstore.maintenance.doctor import doctor
from vmstore.namespace.reports import Problem
from vmstore.retention.apply import keep
from vmstore.shell.commands.care.verify import remedies
from vmstore.shell.main import main
from vmstore.transfer import sessions

SECRET = "the combination is 4711-violet-9"
LONG = "long violet words, many of them; " * 3_000


def secret_store(path: Path, *more: str) -> Path:
    """A store with a session that was told a secret and a long one."""
    with vmstore.open(path) as store:
        store.record("s", chat(SECRET), answer("Noted."))
        store.record("s", chat(SECRET, "Noted.", LONG), answer("Noted too."))
        for name in more:
            store.record(name, chat(f"I am {name}."), answer("Hello."))
    return path


# ---- backups


@pytest.mark.parametrize("whose", ["absolute", "relative", "dotted", "empty"])
def test_a_backup_touches_no_store_it_names(tmp_path: Path, whose: str) -> None:
    """A namespace in backup.json that is a path is refused before a file is opened: a live WAL stays as it is."""
    live = tmp_path / "live.vms"
    ours = vmstore.open(live)
    for number in range(40):
        ours.record(f"s{number}", chat(f"Word {number}."), answer("Yes."))
    wal = live / "default" / "log.sqlite-wal"
    before = wal.read_bytes()
    secret_store(tmp_path / "a.vms")
    vmstore.backup(tmp_path / "a.vms", tmp_path / "b")
    listing = json.loads((tmp_path / "b" / "backup.json").read_text())
    names = {"absolute": str(live / "default"), "relative": "../live.vms/default", "dotted": ".x", "empty": ""}
    listing["parts"].append({**listing["parts"][0], "namespace": names[whose]})
    (tmp_path / "b" / "backup.json").write_text(json.dumps(listing))
    with refused("not-a-name", StoreError):
        vmstore.restore(tmp_path / "b", tmp_path / "r.vms")
    assert wal.read_bytes() == before and not (tmp_path / "r.vms").exists()
    ours.close()
    with vmstore.open(live) as store:
        assert len(store.sessions()) == 40 and store.verify().ok


@pytest.mark.parametrize("kind", ["link", "pipe", "folder link", "longer"])
def test_a_backup_is_read_as_it_lies(tmp_path: Path, kind: str) -> None:
    """A file of a backup that is a link, a pipe or longer than listed is refused at once, and no store is made."""
    secret_store(tmp_path / "a.vms")
    vmstore.backup(tmp_path / "a.vms", tmp_path / "b")
    log = tmp_path / "b" / "default" / "log.sqlite"
    if kind == "folder link":
        (tmp_path / "b" / "default").rename(tmp_path / "elsewhere")
        (tmp_path / "b" / "default").symlink_to(tmp_path / "elsewhere")
    elif kind == "longer":
        with log.open("ab") as file:
            file.truncate(1 << 32)
    else:
        log.rename(tmp_path / "log")
        os.mkfifo(log) if kind == "pipe" else log.symlink_to(tmp_path / "log")
    with refused("backup-damaged", CorruptError):
        vmstore.restore(tmp_path / "b", tmp_path / "r.vms")
    assert not (tmp_path / "r.vms").exists()


def test_what_a_backup_states_is_agreed_to(tmp_path: Path) -> None:
    """Grants, rules and approvals of a backup are named, and take effect only where somebody agrees."""
    with vmstore.open(secret_store(tmp_path / "a.vms")) as store:
        vmstore.share(store, "sandbox:mallory", "read,write")
        vmstore.approve(store, "jsonl", "s", who="Mallory")
        keep(store, "1h")
        store.backup(tmp_path / "b")
    with refused("effect-not-allowed"):
        vmstore.restore(tmp_path / "b", tmp_path / "r.vms")
    assert not (tmp_path / "r.vms").exists()
    assert len(vmstore.restore(tmp_path / "b", tmp_path / "r.vms", agreed=True).effects) == 3


# ---- bundles


def grown(tmp_path: Path) -> Path:
    """A store, and an exact bundle of its session that went on by an erasure elsewhere."""
    path = secret_store(tmp_path / "here.vms", "other")
    shutil.copytree(path, tmp_path / "there.vms")
    with vmstore.open(tmp_path / "there.vms") as store:
        vmstore.erase(store, page=store.search("combination")[0].page, in_session="s")
        store.export(tmp_path / "grown.jsonl", "s", exact=True)
    return path


def test_an_exact_bundle_erases_what_it_says(tmp_path: Path) -> None:
    """An erasure in an exact bundle asks; agreed to, it is carried out with a certificate, and all is sound."""
    path = grown(tmp_path)
    with vmstore.open(path) as store:
        before = store.admin.log.ordinal
        with refused("effect-not-allowed", RefusedError, "'s'"):
            store.import_file(tmp_path / "grown.jsonl", exact=True)
        assert store.admin.log.ordinal == before and store.verify().ok
        done = store.import_file(tmp_path / "grown.jsonl", exact=True, agreed=True)
        assert done.new == 1 and "destroys 1 cell" in done.effects[0]
        assert store.verify().ok
        store.backup(tmp_path / "b")
    assert found_in(path, [SECRET.encode()]) == {} and not (path / "default" / "erasing").exists()
    assert len(list(Path(f"{path}.erasures").iterdir())) == 1 and doctor(path).ok


def test_a_killed_intake_is_finished(tmp_path: Path) -> None:
    """Killed once the erasure is recorded, the next open for writing destroys; until then doctor and verify say so."""
    path = grown(tmp_path)

    def child() -> None:
        sessions.finish_brought = lambda ns: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        with vmstore.open(path) as store:
            store.import_file(tmp_path / "grown.jsonl", exact=True, agreed=True)

    assert os.WIFSIGNALED(os.waitpid(start(child), 0)[1])
    assert found_in(path, [SECRET.encode()])
    (symptom,) = [symptom for symptom in doctor(path).symptoms if symptom.kind == "erasure"]
    assert symptom.remedy == f"vmstore erase {path} --finish"
    with vmstore.open(path, "r") as store:
        (problem,) = store.verify().problems
        (remedy,) = remedies([problem], str(path))
    assert "--finish` destroys it" in remedy and "put back" not in remedy and "no damage" in remedy
    with vmstore.open(path) as store:
        assert store.verify().ok
    assert found_in(path, [SECRET.encode()]) == {}


def test_damage_is_still_told_beside_a_pending_erasure() -> None:
    """Where something else is wrong too, the advice to put back a backup stays."""
    problems = [Problem("erasure", "cell 3", "still there"), Problem("hash", "commit 2", "is another")]
    assert any("put back a backup" in remedy for remedy in remedies(problems, "a.vms"))


def test_a_bundle_changes_no_policy_unasked(tmp_path: Path) -> None:
    """A session that masks here does not stop because its copy from elsewhere says so."""
    path = tmp_path / "here.vms"
    with vmstore.open(path) as store:
        store.record("s", chat("Hello."), answer("Hi."), redaction="mask")
    shutil.copytree(path, tmp_path / "there.vms")
    with vmstore.open(tmp_path / "there.vms") as store:
        store.session("s", redaction="off")
        store.record("s", chat("Hello.", "Hi.", "More."), answer("More."))
        store.export(tmp_path / "off.jsonl", "s", exact=True)
    with vmstore.open(path) as store:
        with refused("effect-not-allowed", RefusedError, "'off'"):
            store.import_file(tmp_path / "off.jsonl", exact=True)
        with refused("effect-not-allowed", RefusedError, "'off'"):
            vmstore.merge(path, tmp_path / "there.vms")


WAYS: dict[str, Callable[[Path, vmstore.Store, Path], Any]] = {
    "merge": lambda path, store, there: vmstore.merge(path, there),
    "exact": lambda path, store, there: store.import_file(there.with_suffix(".exact"), exact=True),
    "rewritten": lambda path, store, there: store.import_file(there.with_suffix(".exact")),
    "masked": lambda path, store, there: store.import_file(there.with_suffix(".masked")),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("where", ["in the session", "by the command"])
def test_an_approval_does_not_travel(tmp_path: Path, way: str, where: str) -> None:
    """No matter who approved there, what came from there leaves here masked, by every way in."""
    there = tmp_path / "there.vms"
    with vmstore.open(there) as store:
        store.record("s", chat("my password is hunter2-Blue"), answer("Noted."))
        if where == "by the command":
            vmstore.approve(store, "all", "s", who="mallory")
        else:
            batch = store._ns.engine.batch(store._ns.key("s") or 0)
            for session in (None, bytes(16)):
                batch.add(Approve(1, 0, None, batch.cell(b"mallory"), session=session))
            batch.commit(store._ns.clock.now())
        store.export(there.with_suffix(".exact"), "s", exact=True)
        vmstore.approve(store, "all", "s", who="mallory", granted=False)
        store.export(there.with_suffix(".masked"), "s")
    with vmstore.open(tmp_path / "here.vms") as store:
        WAYS[way](tmp_path / "here.vms", store, there)
        (info,) = store.sessions()
        assert vmstore.approvals(store) == []
        report = store.export(tmp_path / "out", info.session)
        assert report.redacted and report.approved == [] and b"hunter2" not in (tmp_path / "out").read_bytes()
        assert store.verify().ok


# ---- links


PLANTED = {
    "blob": lambda folder: next((folder / "blobs").glob("*/*")),
    "kept log": lambda folder: folder / "log.sqlite.format-0",
    "half log": lambda folder: folder / "log.sqlite.new",
    "half archive": lambda folder: folder / "archive" / ".x.new",
    "killed import": lambda folder: folder / ".scratch.abcdefgh.part" / "log.sqlite",
}


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("place", PLANTED)
def test_erasing_follows_no_link(tmp_path: Path, place: str, hard: bool) -> None:
    """What a planted link leads to stays byte for byte, whatever place of a store it was planted in."""
    path, precious = secret_store(tmp_path / "a.vms"), tmp_path / "precious"
    precious.write_bytes(b"somebody else's")
    with vmstore.open(path) as store:
        at = PLANTED[place](path / "default")
        at.parent.mkdir(exist_ok=True)
        whole = at.read_bytes() if at.exists() else b""
        at.unlink(missing_ok=True)
        at.hardlink_to(precious) if hard else at.symlink_to(precious)
        try:
            vmstore.erase(store, session="s")
        except vmstore.VmstoreError as error:
            assert "is a link" in str(error) or "is damaged" in str(error)
    assert precious.read_bytes() == b"somebody else's"
    with vmstore.open(path) as store:
        if [info.session for info in store.sessions()] == ["s"]:
            at.unlink()
            at.write_bytes(whole)
            vmstore.erase(store, session="s")
    assert precious.read_bytes() == b"somebody else's"
    assert found_in(path, [SECRET.encode()]) == {}


@pytest.mark.parametrize("name", ["log.sqlite", "blobs", "archive", "text", "log.lock", "erasing", ""])
def test_a_store_that_leads_out_of_itself_is_not_opened(tmp_path: Path, name: str) -> None:
    """A link in a namespace's folder, or in its place, is refused by name, and what it leads to is left as it is."""
    path, other = secret_store(tmp_path / "a.vms"), secret_store(tmp_path / "other.vms")
    before = {file: file.read_bytes() for file in other.rglob("*") if file.is_file()}
    at, to = path / "default" / name, other / "default" / name
    shutil.rmtree(at, ignore_errors=True)
    at.unlink(missing_ok=True)
    at.symlink_to(to)
    for mode in ("r", "rw"):
        with refused("leads-out", StoreError):
            vmstore.open(path, mode)
    assert {file: file.read_bytes() for file in other.rglob("*") if file.is_file()} == before


def test_a_blob_that_is_a_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    """A pipe in the place of a content is damage that is named at once, not a wait without end."""
    path = secret_store(tmp_path / "a.vms")
    (blob,) = (path / "default" / "blobs").glob("*/*")
    blob.unlink()
    os.mkfifo(blob)
    with vmstore.open(path, "r") as store, refused("not-read", StoreError):
        store.session("s").wire.request(call=2)


def test_a_backup_copies_no_link(tmp_path: Path) -> None:
    """A backup of a store with a planted link takes nothing of what it leads to."""
    path, precious = secret_store(tmp_path / "a.vms"), tmp_path / "precious"
    precious.write_bytes(b"somebody else's")
    (path / "default" / "blobs" / "00").mkdir(exist_ok=True)
    (path / "default" / "blobs" / "00" / "x").symlink_to(precious)
    with refused("not-written", StoreError):
        vmstore.backup(path, tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_a_killed_archiver_costs_no_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between giving the old archive its second name and the new one its place, the next erasure spares it."""
    path = secret_store(tmp_path / "a.vms", "t")
    with vmstore.open(path) as store:
        vmstore.archive(store, ["s", "t"], grace_s=0)
        for file in Archives(path / "default" / "archive").files():
            os.link(file, file.with_name(f".{file.name}.left.former"))
        vmstore.erase(store, session="s")
        assert store.session("t").wire.request(call=1) == chat("I am t.") and store.verify().ok
        assert not list((path / "default" / "archive").glob(".*"))


def test_zeroing_needs_a_name_of_its_own(tmp_path: Path) -> None:
    """A file with one name is overwritten and goes, one with two keeps its bytes under the other."""
    (tmp_path / "one").write_bytes(b"x" * 9)
    file = (tmp_path / "one").open("rb")
    destroy(tmp_path, tmp_path / "one")
    assert file.read() == bytes(9) and not (tmp_path / "one").exists()
    file.close()


# ---- what a kill leaves


def test_a_killed_import_leaves_nothing_an_erasure_misses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed import of a bundle leaves lies in the store, is named by the doctor and destroyed by an erasure."""
    path, temp = secret_store(tmp_path / "a.vms"), tmp_path / "temp"
    temp.mkdir()
    with vmstore.open(path) as store:
        store.export(tmp_path / "e.jsonl", "s", exact=True)

    def child() -> None:
        os.environ["TMPDIR"] = str(temp)
        sessions.take_anew = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        with vmstore.open(path) as store:
            store.import_file(tmp_path / "e.jsonl")

    for use in ("erase", "sweep"):
        assert os.WIFSIGNALED(os.waitpid(start(child), 0)[1])
        assert list(temp.iterdir()) == []
        (left,) = (path / "default").glob(".scratch.*")
        assert found_in(left, [SECRET.encode()])
        assert [symptom.where for symptom in doctor(path).symptoms if symptom.kind == "left"] == [str(left)]
        with vmstore.open(path) as store:
            assert store.admin.collect_garbage(dry_run=True).files and left.exists()
            erase.finish_erasing(store) if use == "erase" else store.admin.collect_garbage()
        assert not left.exists() and doctor(path).ok


def test_a_killed_table_export_leaves_no_rows(tmp_path: Path) -> None:
    """Killed while rows are written, an export to Parquet leaves no contents among the temporary files."""
    path, temp = secret_store(tmp_path / "a.vms"), tmp_path / "temp"
    temp.mkdir()

    def child() -> None:
        import tempfile

        from vmstore.transfer import parquet

        tempfile.tempdir = str(temp)
        parquet._convert = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment]
        with vmstore.open(path) as store:
            store.export(tmp_path / "out", "s", format="parquet", redact=False)

    assert os.WIFSIGNALED(os.waitpid(start(child), 0)[1])
    assert list(temp.iterdir()) == []


# ---- what is no file


@pytest.mark.parametrize("format", [None, "bundle", "chat-completions"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_only_a_file_is_imported(tmp_path: Path, kind: str, format: str | None) -> None:
    """A pipe, a device or a folder is refused at once with what it is."""
    at = tmp_path / "in"
    os.mkfifo(at) if kind == "pipe" else at.symlink_to("/dev/zero") if kind == "device" else at.mkdir()
    with (
        vmstore.open(tmp_path / "a.vms") as store,
        pytest.raises(InputError, match=f"it is a {kind}"),
    ):
        store.import_file(at, format=format)


def test_the_command_refuses_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`vmstore import` of a pipe says so and makes no store."""
    os.mkfifo(tmp_path / "in")
    assert main(["import", str(tmp_path / "a.vms"), str(tmp_path / "in")]) == 1
    assert "it is a pipe, and no regular file" in capsys.readouterr().err and not (tmp_path / "a.vms").exists()


def test_the_command_asks_before_it_obeys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --yes, and nobody to ask, an import or a merge that would erase says so and leaves with 1."""
    path = grown(tmp_path)
    for command in (["import", str(path), str(tmp_path / "grown.jsonl"), "--exact"],
                    ["merge", str(path), str(tmp_path / "there.vms")]):  # fmt: skip
        assert main(command) == 1
        assert "destroys 1 cell of session 's' here for good" in capsys.readouterr().err
    assert main(["merge", str(path), str(tmp_path / "there.vms"), "--dry-run"]) == 0
    assert "would happen here: an erasure" in capsys.readouterr().out
    assert main(["merge", str(path), str(tmp_path / "there.vms"), "--yes"]) == 0
    assert "done here: an erasure" in capsys.readouterr().out
    assert found_in(path, [SECRET.encode()]) == {}


PI = {"type": "session", "id": "s-1", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"}
ODD = {
    "a kind that is a list": json.dumps(PI) + "\n" + json.dumps({"type": [], "id": "a", "parentId": None}) + "\n",
    "a lone surrogate": json.dumps([{"task_id": "\ud800", "trial": 0, "traj": [{"role": "user", "content": "hi"}]}]),
}


@pytest.mark.parametrize("what", ODD)
def test_an_odd_value_is_taken_in_as_it_is(tmp_path: Path, what: str) -> None:
    """A value of another kind than a format's, or half a character, is kept as it stands, and all can be asked."""
    (tmp_path / "x.jsonl").write_text(ODD[what])
    with vmstore.open(tmp_path / "a.vms") as store:
        store.import_file(tmp_path / "x.jsonl")
        assert store.sessions() and store.verify().ok


def test_a_file_made_to_fill_memory_is_refused(tmp_path: Path) -> None:
    """A packed file that holds far more bytes, or far more values, than was packed is refused as they are met."""
    packer = zstandard.ZstdCompressor(level=19)
    for content in (bytes(64 << 20), b"[" + b"[]," * 2_000_000 + b"[]]"):
        (tmp_path / "x.zst").write_bytes(packer.compress(content))
        tracemalloc.start()
        with vmstore.memory_store() as store, refused("too-large", InputError):
            store.import_file(tmp_path / "x.zst")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100 << 20


def test_a_file_that_forks_at_each_step_is_refused(tmp_path: Path) -> None:
    """Forks that share more records than can be read again are refused before anything is written."""
    records = [
        {"type": "user", "uuid": f"u{n}", "parentUuid": f"u{(n - 1) // 2 * 2}" if n else None, "sessionId": "s",
         "isSidechain": False, "message": {"role": "user", "content": "hi"}}
        for n in range(2_400)
    ]  # fmt: skip
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    with vmstore.memory_store() as store:
        with refused("too-much-shared", InputError, "1,200", "share 719,400"):
            store.import_file(tmp_path / "x.jsonl")
        assert store.sessions() == []


def test_views_of_others_are_not_believed(tmp_path: Path) -> None:
    """Views that show the other namespace's own session as a user's do not bring its grants along."""
    secret_store(tmp_path / "here.vms")
    with vmstore.open(tmp_path / "there.vms") as store:
        store.record("guest", chat("Hello."), answer("Hi."))
        vmstore.share(store, "sandbox:mallory", "read,write,grant")
    (views,) = (tmp_path / "there.vms" / "default").glob("views-*.sqlite")
    with closing(apsw.Connection(str(views))) as db:
        db.execute("UPDATE sessions SET hidden = 0").fetchall()
    merged = vmstore.merge(tmp_path / "here.vms", tmp_path / "there.vms")
    assert [session.session for session in merged.sessions] == ["guest"]
    with vmstore.open(tmp_path / "here.vms") as store:
        assert vmstore.grants(store) == [] and store.verify().ok
