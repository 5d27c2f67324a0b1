"""Column segments as the store offers them: page tables, paths, upkeep, and what is said where they cannot be had."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import vmstore
from tests.columns.kept import cut, grow, right, segments, sound
from tests.engine.stories import answer, chat, tell
from tests.refusals import refused
from tests.store.test_readonly import files
from tests.test_house import WALL
from vmstore.columns import page_table
from vmstore.columns import schema as table
from vmstore.columns import segments as shelf
from vmstore.columns.segment_writer import SegmentWriter
from vmstore.core.mutation import MUTATION_NAMES
from vmstore.errors import InputError, UnknownError
from vmstore.shell.main import main


def test_a_page_table_is_of_whom_and_when_it_is_asked(store_path: Path) -> None:
    """All sessions, one, several, or each at a position: the rows are those the views tell."""
    cut(store_path)
    with vmstore.open(store_path) as store:
        whole = right(store)
        assert list(store.admin.page_table().rows()) == sorted(whole, key=lambda row: store.session(row[0])._key)
        assert list(store.admin.page_table("plan").rows()) == [row for row in whole if row[0] == "plan"]
        two = store.admin.page_table(["plan-b", "other"])
        assert {name for name, *_ in two.rows()} == {"plan-b", "other"} == set(two.names.values())
        assert two.ordinal == store.admin.log.ordinal
        early = list(store.admin.page_table({"plan-b": 4, "other": None}).rows())
        assert {row[0] for row in early} == {"plan-b", "other"}
        assert max(row[1] for row in early if row[0] == "plan-b") <= 4
        tokens = dict(
            zip(two.session.tolist(), np.bincount(two.session, two.tokens)[two.session].tolist(), strict=True)
        )
        assert len(tokens) == 2


def test_no_such_session_or_position_is_an_error(store_path: Path) -> None:
    """An unknown session and a position beyond a session's end are named with the nearest that is there."""
    cut(store_path)
    with vmstore.open(store_path) as store:
        with refused("no-session", UnknownError, "'plam'", "'plan'"):
            store.admin.page_table("plam")
        with refused("no-call", UnknownError, "position 999"):
            store.admin.page_table({"plan": 999})


def test_what_is_new_is_cut_in_memory(store_path: Path) -> None:
    """A little beyond the segments writes nothing; a store in memory needs none at all."""
    cut(store_path)
    grow(store_path)
    before = segments(store_path)
    sound(store_path)
    assert segments(store_path) == before
    memory = vmstore.memory_store()
    memory.record("s", chat("one"), answer("1"))
    assert list(memory.admin.page_table().rows()) == right(memory)
    assert (
        memory.admin.column_segments() == memory.admin.column_segments()
        and memory.admin.column_segments().segments == []
    )
    memory.record("s", chat("one", "1", "two"), answer("2"))
    assert list(memory.admin.page_table().rows()) == right(memory)
    assert memory.admin.compact().segments == 0 and memory.admin.rebuild("columns")["columns"] == 0


def test_much_that_is_new_is_sealed_first(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where much lies beyond the segments a question cuts them on; the small last one grows with it."""
    cut(store_path)
    grow(store_path)
    monkeypatch.setattr(shelf, "TAIL_MAX", 5)
    sound(store_path, "r")
    assert len(segments(store_path)) == 1
    table = sound(store_path)
    with vmstore.open(store_path) as store:
        columns = store.admin.column_segments()
        assert (columns.ordinal, columns.behind, len(columns.segments)) == (store.admin.log.ordinal, 0, 1)
        assert list(store.admin.page_table().rows()) == table


def test_reading_writes_nothing(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A handle for reading leaves every file as it is, and says how far behind segments are."""
    cut(store_path)
    grow(store_path)
    monkeypatch.setattr(shelf, "TAIL_MAX", 1)
    with vmstore.open(store_path, "r") as store:  # the WAL's index may come and go
        store.info()
    before = files(store_path)
    for damaged in (False, True):
        if damaged:
            (segments(store_path)[0] / "contents.parquet").write_bytes(b"")
            before = files(store_path)
        with vmstore.open(store_path, "r") as store:
            assert list(store.admin.page_table().rows()) and sorted(store.admin.page_table().rows()) == sorted(
                right(store)
            )
            columns = store.admin.column_segments()
            assert columns.behind == store.admin.log.ordinal - columns.ordinal > 0
        assert files(store_path) == before


def test_duckdb_reads_the_files(store_path: Path) -> None:
    """The paths it gives are Parquet files with every mutation of the log, and what no row has is NULL."""
    cut(store_path)
    grow(store_path)
    with vmstore.open(store_path) as store:
        columns = store.admin.column_segments()
        paths = [f"{segment.path}/mutations.parquet" for segment in columns.segments]
        entries = list(store.tail())
        asked = duckdb.connect().execute(
            'SELECT position, "at", kind, page IS NULL FROM read_parquet(?) ORDER BY ordinal, position', [paths]
        )
        rows = asked.fetchall()
        told_of = [(*row[:2], MUTATION_NAMES[row[2]]) for row in rows]
        assert told_of == [(entry.position, entry.at, entry.kind) for entry in entries]
        paged = {MUTATION_NAMES[kind] for *_, kind, none in rows if not none}
        assert paged == {"create", "update", "compress", "link"} & {entry.kind for entry in entries} != set()


def test_relations_have_what_is_new_too(store_path: Path) -> None:
    """The database the store hands out for SQL has segments, what is beyond them, and names of sessions."""
    cut(store_path)
    with vmstore.open(store_path) as store:
        for grown in (False, True):
            if grown:
                store.record("new", chat("one"), answer("1"))
            db = store._columns.relations()
            rows = db.execute(
                "SELECT s.name, count(*), count(*) FILTER (m.kind = 40)"
                " FROM mutations m JOIN sessions s USING (session) GROUP BY ALL ORDER BY min(m.ordinal)"
            ).fetchall()
            db.close()
            want = [(info.session, info.mutations) for info in store.sessions()]
            assert sorted(row[:2] for row in rows) == sorted(want)
            assert {row[0]: row[2] for row in rows}.get("new") == (1 if grown else None)
    empty = vmstore.memory_store()
    assert empty._columns.relations().execute("SELECT count(*) FROM contents").fetchone() == (0,)


def test_relations_end_where_the_question_stands(store_path: Path) -> None:
    """Commits that another handle sealed after the moment of a question are in none of its relations."""
    cut(store_path)
    with vmstore.open(store_path) as store, store._ns.asking() as ordinal:
        before = store.admin.page_table()
        grow(store_path)
        with vmstore.open(store_path) as other:
            assert other.admin.column_segments().ordinal > ordinal
        db = store._columns.relations()
        for name in ("mutations", "contents", "residencies"):
            (last,) = db.execute(f"SELECT max(ordinal) FROM {name}").fetchone() or (0,)
            assert last <= ordinal
        assert db.execute("SELECT max(ordinal) FROM mutations").fetchone() == (ordinal,)
        assert list(store.admin.page_table().rows()) == list(before.rows()) and before.ordinal == ordinal
        assert store._columns.problems() == []


def test_compacting_cuts_and_says_so(
    store_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction seals much that is new and leaves little; its answer and the command's words say how far."""
    tell(store_path)
    with vmstore.open(store_path) as store:
        assert (store.admin.compact().segments, store.admin.compact().columns) == (0, 0) and not segments(store_path)
        monkeypatch.setattr(shelf, "TAIL_MAX", 5)
        monkeypatch.setattr(table, "TAIL_MAX", 5)
        report = store.admin.compact()
        assert (report.segments, report.columns) == (1, store.admin.log.ordinal)
    grow(store_path)
    assert main(["compact", str(store_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["segments"] == 1 and document["columns"] > report.columns
    assert main(["compact", str(store_path)]) == 0
    assert f"cut: 1 column segment, up to commit {document['columns']}" in capsys.readouterr().out
    assert main(["du", str(store_path), "--json"]) == 0
    parts = {(file["part"], file["what"]) for file in json.loads(capsys.readouterr().out)["files"]}
    assert {("columns", "mutations"), ("columns", "contents"), ("columns", "residencies"), ("columns", "seal")} <= parts


def test_columns_are_rebuilt(store_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Deleted, or cut again alone or with all views, columns are what they were; where there are none none are made."""
    tell(store_path)
    with vmstore.open(store_path) as store:
        assert "columns" not in store.admin.rebuild() and not segments(store_path)
        assert store.admin.rebuild("columns")["columns"] == store.admin.log.ordinal
    first = {file: (segment / file).read_bytes() for segment in segments(store_path) for file in ("seal.json",)}
    (segment,) = segments(store_path)
    (segment / "contents.parquet").unlink()
    with vmstore.open(store_path) as store:
        assert store.admin.rebuild()["columns"] == store.admin.log.ordinal and store.verify().ok
    assert first == {file: (segment / file).read_bytes() for segment in segments(store_path) for file in ("seal.json",)}
    assert main(["rebuild", str(store_path), "--view", "columns"]) == 0
    assert "rebuilt: columns; at commit" in capsys.readouterr().out
    sound(store_path)


def test_a_backup_has_no_columns(store_path: Path) -> None:
    """A backup leaves columns out, and its store cuts its own."""
    cut(store_path)
    with vmstore.open(store_path) as store:
        store.backup(store_path.with_name("nightly"))
    assert not list(store_path.with_name("nightly").rglob("*.parquet"))


# ---- verify


def problems(path: Path) -> list[tuple[str, str, str]]:
    """What verify finds."""
    with vmstore.open(path) as store:
        return [(problem.kind, problem.where, problem.what) for problem in store.verify().problems]


def test_verify_holds_columns_against_a_fresh_cut(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that a faulty cut sealed are named by column and position, although every digest holds."""
    tell(store_path)
    with monkeypatch.context() as patch:
        patch.setattr(SegmentWriter, "on_turn", lambda cut, fact, turn: None)
        cut(store_path.with_name("faulty.vms"))
    ((kind, where, what),) = problems(store_path.with_name("faulty.vms"))
    assert (kind, where) == ("columns", segments(store_path.with_name("faulty.vms"))[0].name)
    assert "it holds turn 0 in mutations at commit 2, position" in what and what.endswith("the log gives 1")


def test_verify_holds_columns_against_the_views(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the fold of the columns tells another page table than the views, the session is named."""
    cut(store_path)
    right = page_table._Lanes.__init__

    def one_less(lanes: Any, *arguments: Any) -> None:
        right(lanes, *arguments)
        lanes.upto -= 3

    monkeypatch.setattr(page_table._Lanes, "__init__", one_less)
    actual_problems = problems(store_path)
    assert {(kind, where) for kind, where, _ in actual_problems} == {("columns", "page table")}
    assert any(what.startswith("session 'plan': the columns tell ") for *_, what in actual_problems)


def test_verify_holds_columns_against_the_chain(store_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A seal that does not hold the commits' hashes is named, and the remedy is to rebuild."""
    cut(store_path)
    (segment,) = segments(store_path)
    seal = json.loads((segment / "seal.json").read_bytes())
    (segment / "seal.json").write_text(json.dumps(seal | {"chain": "0" * 64}))
    assert [what for *_, what in problems(store_path)] == ["its seal does not hold the hashes of its commits"]
    assert main(["verify", str(store_path)]) == 1
    assert f"vmstore rebuild {store_path}" in capsys.readouterr().out
    with vmstore.open(store_path) as store:
        assert store.verify(views=False).ok


def test_verify_does_not_look_where_there_are_none(store_path: Path) -> None:
    """Without segments verify says nothing of them and makes none."""
    tell(store_path)
    assert problems(store_path) == [] and not (store_path / "default" / "columns").exists()


# ---- without the extra


WITHOUT = """
import logging, vmstore
logging.basicConfig()
path = sys.argv[-1]
del sys.argv[-1]
with vmstore.open(path) as store:
    print(store.admin.compact().segments, store.verify().ok, len(store.sessions()), "columns" in store.admin.rebuild())
    for ask in (store.admin.page_table, store.admin.column_segments, lambda: store.admin.rebuild("columns")):
        try:
            ask()
        except vmstore.InputError as error:
            print(error)
"""


def test_without_the_extra_everything_else_works(store_path: Path) -> None:
    """Without numpy or duckdb a store does all it did, and asking for columns says what to install."""
    cut(store_path)
    for lacking in ("numpy", "duckdb"):
        code = WALL + WITHOUT
        done = subprocess.run(
            [sys.executable, "-c", code, lacking, str(store_path)], capture_output=True, text=True, check=False
        )
        lines = done.stdout.splitlines()
        assert lines[0] == "0 True 4 False", done.stderr
        assert len(lines) == 4 and all("pip install 'vmstore[columns]'" in line for line in lines[1:])
        assert done.stderr.count("the column segments are left as they are") == 2
    assert InputError is vmstore.InputError
