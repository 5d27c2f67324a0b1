"""What somebody else put into the files of a store, to be obeyed: triggers, tables, views, other columns."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

import vmstore
from tests.engine.stories import chat, tell
from tests.refusals import refused
from vmstore.errors import CorruptError
from vmstore.log.archive.file import ArchiveLog
from vmstore.maintenance.archive import archive
from vmstore.maintenance.backup import backup, restore
from vmstore.maintenance.doctor import doctor
from vmstore.namespace.storekey import new_store_key
from vmstore.store.encrypt import encrypt
from vmstore.transfer.merge import merge

LOG = "default/log.sqlite"
PLANTED = {
    "trigger": "CREATE TRIGGER planted AFTER INSERT ON commits BEGIN DELETE FROM frames; END",
    "table": "CREATE TABLE planted(content)",
    "index": "CREATE INDEX planted ON commits(session)",
    "view": "CREATE VIEW planted AS SELECT 1",
}


def plant(file: Path, *statements: str) -> None:
    """Runs statements on a database by hand."""
    db = apsw.Connection(str(file))
    for statement in statements:
        db.execute(statement)
    db.close()


def a_view_for_a_table(file: Path) -> None:
    """Puts a view in the place of the table of commits."""
    plant(file, "ALTER TABLE commits RENAME TO kept", "CREATE VIEW commits AS SELECT * FROM kept WHERE ordinal < 3")


def another_column(file: Path) -> None:
    """Adds a column to a table of ours."""
    plant(file, "ALTER TABLE frames ADD COLUMN more BLOB DEFAULT x''")


def refusals(path: Path, beside: Path) -> list[str]:
    """What each door says of a store that is not to be opened."""
    doors: list[Callable[[], object]] = [
        lambda: vmstore.open(path),
        lambda: vmstore.open(path, "r"),
        lambda: backup(path, beside / "bak"),
        lambda: merge(beside / "other.vms", path),
    ]
    texts = []
    vmstore.open(beside / "other.vms").close()
    for door in doors:
        with pytest.raises(CorruptError) as error:
            door()
        texts.append(str(error.value))
    return texts


@pytest.mark.parametrize("kind", PLANTED)
def test_what_was_planted_in_a_log_is_named(store_path: Path, kind: str) -> None:
    """A log with a trigger, table, index or view of others opens nowhere; taken out as told it does."""
    tell(store_path)
    plant(store_path / LOG, PLANTED[kind])
    other_refusals = refusals(store_path, store_path.parent)
    assert all(
        f"holds the {kind} 'planted'" in other_refusal and "put back a backup" in other_refusal
        for other_refusal in other_refusals
    )
    (symptom,) = doctor(store_path).symptoms
    assert f"holds the {kind} 'planted'" in symptom.what
    command = symptom.remedy.rpartition("; or ")[2]
    assert command == f"sqlite3 {store_path / LOG} 'DROP {kind.upper()} planted'"
    plant(store_path / LOG, command.split("'")[1])
    with vmstore.open(store_path) as store:
        assert store.verify().ok


@pytest.mark.parametrize("how", [a_view_for_a_table, another_column])
def test_what_was_changed_in_a_log_is_named(store_path: Path, how: Callable[[Path], None]) -> None:
    """A log whose tables are not as they are made opens nowhere, and a backup is the remedy."""
    tell(store_path)
    how(store_path / LOG)
    other_refusals = refusals(store_path, store_path.parent)
    assert all(
        "does not make like that" in other_refusal and "DROP" not in other_refusal.replace("DROP TABLE kept", "")
        for other_refusal in other_refusals
    )
    assert len(doctor(store_path).symptoms) == 1


def test_a_hostile_backup_is_not_obeyed(store_path: Path) -> None:
    """A backup whose log holds a trigger is refused before anything of it runs, however its list was made to fit."""
    tell(store_path)
    kept = store_path.parent / "kept.bak"
    backup(store_path, kept)
    plant(kept / LOG, PLANTED["trigger"])
    listing = json.loads((kept / "backup.json").read_text())
    for file in listing["files"]:
        content = (kept / file["path"]).read_bytes()
        file |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (kept / "backup.json").write_text(json.dumps(listing))
    with refused("not-sound", CorruptError, "'planted'"):
        restore(kept, store_path.parent / "new.vms")
    assert not (store_path.parent / "new.vms").exists()


def test_no_trigger_runs_while_a_store_is_open(store_path: Path) -> None:
    """A trigger that comes into the log of an open store is not run, and the next open names it."""
    tell(store_path)
    with vmstore.open(store_path) as store:
        plant(store_path / LOG, "CREATE TRIGGER planted AFTER INSERT ON frames BEGIN DELETE FROM commits; END")
        store.record("later", chat("still here"))
        assert store.session("later").wire.request() == chat("still here")
    with refused("foreign-schema", CorruptError):
        vmstore.open(store_path)


@pytest.mark.parametrize("planted", ["CREATE TRIGGER planted AFTER INSERT ON pages BEGIN DELETE FROM pages; END",
                                     "CREATE TABLE planted(content)"])  # fmt: skip
@pytest.mark.parametrize("mode", ["r", "rw"])
def test_views_with_a_stranger_are_made_anew(
    store_path: Path, planted: str, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A views file that holds what no view makes is named by the doctor, folded again by a writer, not read else."""
    tell(store_path)
    (views,) = (store_path / "default").glob("views-*.sqlite")
    plant(views, planted, "UPDATE pages SET tokens = 99")
    (symptom,) = doctor(store_path).symptoms
    assert "'planted'" in symptom.what and "rebuild" in symptom.remedy
    caplog.set_level(logging.WARNING, "vmstore")
    with vmstore.open(store_path, mode) as store:
        assert all(page.tokens != 99 for page in store.session("plan").pages())
        assert store.verify().ok
    assert ("'planted'" in caplog.text) == (mode == "rw")
    assert bool(doctor(store_path).symptoms) == (mode == "r")


def test_known_contents_with_a_stranger_are_forgotten(store_path: Path) -> None:
    """The file of known contents is rebuilt where it holds what vmstore does not make."""
    tell(store_path)
    plant(store_path / "default/known.sqlite", PLANTED["trigger"])
    with vmstore.open(store_path) as store:
        store.record("later", chat("still here"))
        assert store.verify().ok
    db = apsw.Connection(str(store_path / "default/known.sqlite"))
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'planted'").get == 0


def test_keys_and_archives_with_a_stranger_are_refused(store_path: Path) -> None:
    """A file of keys, or an archive, that holds what vmstore does not make is named and not read."""
    tell(store_path)
    with vmstore.open(store_path) as store:
        archive(store, sessions=["plan"])
    (file,) = (store_path / "default/archive").glob("*.archive")
    plant(file, "CREATE TRIGGER planted AFTER INSERT ON runs BEGIN DELETE FROM runs; END")
    with refused("foreign-schema", CorruptError, "'planted'"):
        ArchiveLog(file)
    with vmstore.open(store_path) as store, refused("archive-damaged", CorruptError):
        store.session("plan").wire.request()
    other = store_path.parent / "locked.vms"
    tell(other)
    key = new_store_key(store_path.parent / "store.key")
    encrypt(other, key)
    plant(other / "default/keys.sqlite", "CREATE TRIGGER planted AFTER INSERT ON keys BEGIN DELETE FROM keys; END")
    with refused("foreign-schema", CorruptError, "'planted'"):
        vmstore.open(other, key=key)
