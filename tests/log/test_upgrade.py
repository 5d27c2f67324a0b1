"""A log of format 0 is refused with the remedy, and upgraded to one that holds the same under the same hashes."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path

import apsw
import msgspec
import pytest

import vmstore
from tests.golden.make_golden import FOLDER
from tests.refusals import refused
from vmstore.cells.cell import Cell
from vmstore.errors import CorruptError, StoreError
from vmstore.log import upgrade as upgrade_module
from vmstore.log.commit import Commit
from vmstore.log.file import APPLICATION_ID, FORMAT
from vmstore.log.frame import FILE_BYTES_MIN
from vmstore.log.rows import row_of
from vmstore.log.sqlite import SqliteLog
from vmstore.log.upgrade import upgrade
from vmstore.testing.log_contract import CommitSpec, chain

OLD = f"""
PRAGMA page_size = 4096;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = 0;
PRAGMA journal_mode = WAL;
CREATE TABLE commits(
  ordinal INTEGER PRIMARY KEY, session INTEGER NOT NULL, first INTEGER NOT NULL, count INTEGER NOT NULL,
  at INTEGER NOT NULL, lag INTEGER NOT NULL, request INTEGER, cell INTEGER, commitments BLOB,
  body BLOB NOT NULL, hash BLOB NOT NULL);
CREATE TABLE cells(number INTEGER PRIMARY KEY, salt BLOB, content BLOB, form INTEGER);
"""
GOLDEN = json.loads((FOLDER / "format-0.json").read_text(encoding="utf-8"))


def old_log(path: Path, commits: Sequence[Commit]) -> None:
    """A log as format 0 wrote it; every other cell deflated."""
    path.parent.mkdir(parents=True, exist_ok=True)
    db = apsw.Connection(str(path))
    db.execute(OLD).fetchall()
    for commit in commits:
        db.execute("INSERT INTO commits VALUES(?,?,?,?,?,?,?,?,?,?,?)", row_of(commit))
        for number, cell in enumerate(commit.cells, commit.cell):
            form = 1 if number % 2 else None
            content = zlib.compress(cell.content) if form else cell.content
            db.execute("INSERT INTO cells VALUES(?,?,?,?)", (number, cell.salt, content, form))
    db.close()


def golden() -> list[Commit]:
    """The commits of the golden session as format 0 held them."""
    items = []
    for row in GOLDEN:
        numbers = {f: row[f] for f in ("ordinal", "session", "first", "count", "at", "lag", "request", "cell")}
        hashed = {f: bytes.fromhex(row[f]) for f in ("body", "commitments", "hash")}
        cells = tuple(Cell(bytes.fromhex(salt), text.encode()) for salt, text in row["cells"])
        items.append(Commit(**numbers, **hashed, cells=cells))
    return items


def story() -> list[Commit]:
    """Commits with many cells, empty and long ones among them."""
    commits = [CommitSpec(contents=tuple(b"text %d " % n * n for n in range(at))) for at in range(1, 40)]
    commits.append(CommitSpec(contents=(b"", b"long" * FILE_BYTES_MIN)))
    items: list[Commit] = []
    cell = 1
    for ordinal, commit in enumerate(chain(commits), 1):
        items.append(msgspec.structs.replace(commit, ordinal=ordinal, session=1, cell=cell))
        cell += len(commit.cells)
    return items


@pytest.mark.parametrize("commits", [golden(), story(), []], ids=["golden", "story", "empty"])
def test_the_upgraded_log_holds_the_same(tmp_path: Path, commits: list[Commit]) -> None:
    """Every commit has its ordinal, its number and its hash, every cell its salt and bytes; the old log is kept."""
    path = tmp_path / "log.sqlite"
    old_log(path, commits)
    before = path.read_bytes()
    path.with_name("log.sqlite.new").write_bytes(b"left by a try that was killed")
    rows: list[tuple[int, int]] = []
    actual_upgrade = upgrade(path, lambda done, total: rows.append((done, total)))
    assert rows == sorted(rows) and (not commits or rows[-1][0] == rows[-1][1])
    assert (actual_upgrade.before, actual_upgrade.now, actual_upgrade.commits) == (0, FORMAT, len(commits))
    assert Path(actual_upgrade.kept or "").read_bytes() == before
    log = SqliteLog(path)
    assert log.tail(0, 999) == [msgspec.structs.replace(commit, cells=()) for commit in commits]
    cells = [cell for commit in commits for cell in commit.cells]
    assert log.cells(range(9_999)) == dict(enumerate(cells, 1))
    log.close()
    assert upgrade(path).kept is None
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["log.sqlite", "log.sqlite.format-0"]


def test_a_store_goes_on_after_its_upgrade(tmp_path: Path) -> None:
    """A store of format 0 is refused with the command that upgrades it, and then asked, verified and written."""
    store = tmp_path / "a.vms"
    old_log(store / "default" / "log.sqlite", golden())
    for mode in ("r", "rw"):
        with refused("older-format", StoreError, "format 0"):
            vmstore.open(store, mode)
    upgrade(store / "default" / "log.sqlite")
    with vmstore.open(store) as opened:
        assert opened.verify().ok
        assert [call.status for call in opened.session("golden").calls()] == ["ok", "ok", "aborted"]
        opened.record("golden", {"model": "m-2", "messages": [{"role": "user", "content": "On?"}]})
        assert opened.verify().ok


def test_another_process_is_in_the_way(tmp_path: Path) -> None:
    """A log that somebody has open is not upgraded under his hands."""
    path = tmp_path / "log.sqlite"
    old_log(path, story())
    holder = apsw.Connection(str(path))
    holder.execute("SELECT count(*) FROM commits").fetchall()
    with refused("open-elsewhere", StoreError):
        upgrade(path)
    holder.close()
    assert upgrade(path).commits == 40


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE cells SET content = x'00' WHERE number = 20",
        "UPDATE cells SET content = x'00' WHERE number = 21",
        "UPDATE cells SET salt = 'seven' WHERE number = 20",
        "DELETE FROM cells WHERE number = 400",
        "DELETE FROM cells WHERE number = 782",
        "UPDATE commits SET commitments = zeroblob(32) WHERE ordinal = 1",
    ],
)
def test_a_damaged_log_is_not_upgraded(tmp_path: Path, damage: str) -> None:
    """A log whose cells do not match is left as it is, and the damage named."""
    path = tmp_path / "log.sqlite"
    old_log(path, story())
    db = apsw.Connection(str(path))
    db.execute(damage)
    db.close()
    before = path.read_bytes()
    with pytest.raises(CorruptError, match="put back a backup, then upgrade"):
        upgrade(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["log.sqlite"]


def test_a_crash_leaves_the_old_log_or_the_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before the new log takes its place the old one is still there, and the next try succeeds."""
    path = tmp_path / "log.sqlite"
    old_log(path, story())

    def killed(*arguments: object) -> None:
        raise SystemExit

    for name in ("_compare", "flush"):
        with monkeypatch.context() as patched:
            patched.setattr(upgrade_module, name, killed)
            with pytest.raises(SystemExit):
                upgrade(path)
    assert upgrade(path).kept is None  # the second was in place already
    log = SqliteLog(path)
    assert log.ordinal == 40
    log.close()


@pytest.mark.parametrize("version", [4, 77])
def test_a_later_format_is_not_touched(tmp_path: Path, version: int) -> None:
    """A log of a format this version does not know is refused with the reason."""
    path = tmp_path / "log.sqlite"
    old_log(path, [])
    db = apsw.Connection(str(path))
    db.execute(f"PRAGMA user_version = {version}")
    db.close()
    with pytest.raises(StoreError, match=f"has format {version}"):
        upgrade(path)
