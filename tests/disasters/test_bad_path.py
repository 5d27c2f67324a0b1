"""What lies at a store's path is no store: each case has its own error and remedy, and nothing is touched."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import apsw
import pytest

import vmstore
from tests.engine.stories import LOG, chat
from tests.refusals import refused
from vmstore.errors import InputError, StoreError, VmstoreError
from vmstore.log.file import FORMAT, HALF_ENCRYPTED_FORMAT


def tree(folder: Path) -> dict[str, bytes | None]:
    """Every entry below a folder, with the bytes of files."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def a_file(path: Path) -> None:
    """A text file."""
    path.write_text("notes")


def an_empty_folder(path: Path) -> None:
    """A folder with nothing in it."""
    path.mkdir()


def another_folder(path: Path) -> None:
    """A folder of something else."""
    (path / "src").mkdir(parents=True)
    (path / "src" / "main.py").write_text("print()")


def a_folder_of_folders(path: Path) -> None:
    """A folder that holds a folder of the namespace's name without a log."""
    (path / "default").mkdir(parents=True)


def a_broken_link(path: Path) -> None:
    """A link to nothing."""
    path.symlink_to(path.with_name("gone"))


def a_looping_link(path: Path) -> None:
    """A link to itself."""
    path.symlink_to(path)


def a_namespace(path: Path) -> None:
    """The inner folder of a store, named in place of the store."""
    vmstore.open(path.with_name("whole.vms")).close()
    (path.with_name("whole.vms") / "default").rename(path)


def another_database(path: Path) -> None:
    """A folder whose log is some other program's database."""
    (path / "default").mkdir(parents=True)
    db = apsw.Connection(str(path / LOG))
    db.execute("PRAGMA journal_mode = WAL; CREATE TABLE t(x)").fetchall()
    db.close()


def a_later_format(path: Path) -> None:
    """A store of a format to come."""
    vmstore.open(path).close()
    db = apsw.Connection(str(path / LOG))
    db.execute(f"PRAGMA user_version = {HALF_ENCRYPTED_FORMAT + 1}")
    db.close()


def an_empty_log(path: Path) -> None:
    """A store whose log was emptied."""
    (path / "default").mkdir(parents=True)
    (path / LOG).touch()


def a_log_of_noise(path: Path) -> None:
    """A store whose log is noise."""
    (path / "default").mkdir(parents=True)
    (path / LOG).write_bytes(bytes(range(256)) * 32)


CASES = [
    (a_file, r"is a file, and a store is a folder; name another path"),
    (an_empty_folder, r"is an empty folder, not a store; remove it"),
    (another_folder, r"is a folder of something else \(it holds src\); name another path"),
    (a_folder_of_folders, r"is a folder of something else \(it holds default\); name another path"),
    (a_broken_link, r"is a link to nothing; remove it or name another path"),
    (a_looping_link, r"is a link to nothing; remove it or name another path"),
    (a_namespace, r"something else \(it holds log\.sqlite\); name another path; did you mean"),
    (another_database, r"log\.sqlite is no vmstore log \(application id 0\); name another store"),
    (a_later_format, rf"has format {HALF_ENCRYPTED_FORMAT + 1}, this vmstore reads format {FORMAT}: install"),
    (an_empty_log, r"log\.sqlite is .*; (name another|put back a backup|run)"),
    (a_log_of_noise, r"log\.sqlite is .*; (name another|put back a backup|run)"),
]


@pytest.mark.parametrize("mode", ["r", "rw"])
@pytest.mark.parametrize(("make", "message"), CASES, ids=[make.__name__ for make, _ in CASES])
def test_it_is_refused_with_the_remedy(store_path: Path, make: object, message: str, mode: str) -> None:
    """The error names the path, the reason and the remedy, and what lies there stays as it is."""
    make(store_path)  # type: ignore[operator]
    before = tree(store_path.parent)
    with pytest.raises(VmstoreError, match=message) as raised:
        vmstore.open(store_path, mode)
    assert str(store_path) in str(raised.value)
    assert tree(store_path.parent) == before


def test_each_case_has_its_own_words(tmp_path: Path) -> None:
    """A file, an empty folder, another folder, another program's log and a later format are told apart."""
    texts = set()
    for make, _ in CASES:
        if make in (a_file, an_empty_folder, another_folder, another_database, a_later_format):
            folder = tmp_path / make.__name__
            folder.mkdir()
            make(folder / "x.vms")
            with pytest.raises(StoreError) as raised:
                vmstore.open(folder / "x.vms")
            texts.add(str(raised.value).replace(str(folder), ""))
    assert len(texts) == 5


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing/agent.vms", r"missing is no folder, so agent\.vms cannot be made in it; make it first"),
        ("file/agent.vms", r"file is no folder"),
        ("x" * 300, r"x cannot be|too long"),
        ("a\0b", r"cannot|null"),
        ("\udcff.vms", r"cannot|no log could be made"),
    ],
)
def test_a_path_that_cannot_be_made_is_refused(tmp_path: Path, name: str, message: str) -> None:
    """A parent that is missing or a file, a name too long or impossible: an error of ours, nothing made."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=message):
        vmstore.open(tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_parent_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """A folder without the right to write is named with the remedy."""
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(StoreError, match=r"cannot be written to .*; name a path that can"):
            vmstore.open(tmp_path / "agent.vms")
    finally:
        tmp_path.chmod(0o755)


def test_reading_makes_no_store(store_path: Path) -> None:
    """Opening a store that is not there for reading says how one is made, and makes none."""
    with refused("no-store", StoreError):
        vmstore.open(store_path, "r")
    assert not list(store_path.parent.iterdir())


def test_a_wrong_mode_is_refused(store_path: Path) -> None:
    """A mode that is neither 'r' nor 'rw' is refused before anything is made."""
    with refused("no-mode", InputError, "'w'"):
        vmstore.open(store_path, "w")
    assert not store_path.exists()


@pytest.mark.parametrize("namespace", ["", ".", "..", "a/b", "../x", "a\0b", ".hidden", "x" * 300])
def test_a_namespace_needs_a_name(store_path: Path, namespace: str) -> None:
    """A name that would leave the store's folder, hide in it or not fit is refused, and makes nothing."""
    vmstore.open(store_path).close()
    before = tree(store_path)
    with pytest.raises(StoreError, match=r"namespace|too long"):
        vmstore.open(store_path, namespace=namespace)
    assert tree(store_path) == before


def test_an_unknown_namespace_is_no_way_to_learn_of_others(store_path: Path) -> None:
    """Reading a namespace that is not there names no other, nor a leftover of a killed maker."""
    vmstore.open(store_path).close()
    vmstore.open(store_path, namespace="team").close()
    shutil.copytree(store_path / "team", store_path / ".late.x1.new")
    with refused("no-namespace", StoreError, "'late'"):
        vmstore.open(store_path, "r", namespace="late")


@pytest.mark.parametrize("mode", ["r", "rw"])
def test_a_namespace_without_its_log_is_not_made_anew(store_path: Path, mode: str) -> None:
    """Where a namespace's log is gone and its views are left, that is an error, not a new and empty log."""
    vmstore.open(store_path).close()
    with vmstore.open(store_path, namespace="team") as store:
        store.record("s", chat("hi"))
    (store_path / "team" / "log.sqlite").unlink()
    before = tree(store_path)
    with pytest.raises(StoreError, match="team"):
        vmstore.open(store_path, mode, namespace="team")
    assert tree(store_path) == before


def test_a_link_to_a_store_is_that_store(store_path: Path) -> None:
    """A link that leads to a store opens it, for writing and for reading."""
    with vmstore.open(store_path) as store:
        store.record("s", chat("hi"))
    link = store_path.with_name("link.vms")
    link.symlink_to(store_path)
    for mode in ("r", "rw"):
        with vmstore.open(link, mode) as store:
            assert [s.session for s in store.sessions()] == ["s"]
