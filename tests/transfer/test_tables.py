"""The tables analysts get: each says what the store answers, and other programs open them."""

from __future__ import annotations

import base64
import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import vmstore
from tests.disasters.mounts import small_disk
from tests.engine.stories import answer, chat
from tests.refusals import refused
from tests.transfer.moved import filled, filled_in_memory
from vmstore.errors import InputError, StoreError
from vmstore.store.store import Store
from vmstore.transfer.table_rows import time_text
from vmstore.transfer.tables import TABLES

Ask = Callable[[str], list[tuple[Any, ...]]]
FORMATS = ("sqlite", "parquet")


def asked(store: Store, folder: Path, format: str, *names: str, **moment: Any) -> Ask:
    """Exports a store; what SQL then answers of the tables."""
    out = folder / f"out.{format}"
    report = store.export(out, names or None, format=format, **moment)
    if format == "sqlite":
        assert report.bytes == out.stat().st_size
        db = sqlite3.connect(out)
        return lambda sql: db.execute(sql).fetchall()
    files = {file.stem: file for file in out.iterdir()}
    assert report.bytes == sum(file.stat().st_size for file in files.values())
    db2 = duckdb.connect()
    for name, file in files.items():
        db2.execute(f"CREATE VIEW {name} AS SELECT * FROM '{file}'")
    return lambda sql: db2.execute(sql).fetchall()


@pytest.mark.parametrize("format", FORMATS)
def test_sessions_turns_and_calls_are_as_the_store_says(tmp_path: Path, format: str) -> None:
    """Every session's own turns and calls stand in their tables with the numbers the store answers."""
    store = filled_in_memory()
    ask = asked(store, tmp_path, format)
    infos = {info.session: info for info in store.sessions()}
    assert set(ask("SELECT session, origin, parent, fork_position, last_position FROM sessions")) == {
        (name, info.origin, info.parent, info.fork_position, info.position) for name, info in infos.items()
    }
    calls = ask(
        "SELECT session, call, turn, position, status, fidelity, pages, tokens, tokens_reported, stop, model FROM calls"
    )
    assert sorted(calls) == sorted(
        (n, c.call, c.turn, c.position, c.status, c.fidelity, c.pages, c.tokens, c.tokens_reported, c.stop, c.model)
        for n, info in infos.items()
        for c in store.session(n).calls()
        if c.position > (info.fork_position or 0)
    )
    assert ask("SELECT count(*) FROM calls WHERE error LIKE '%gone%'") == [(1,)]
    turns = ask("SELECT session, turn, position FROM turns")
    assert sorted(turns) == sorted(
        (n, t.turn, t.position)
        for n, info in infos.items()
        for t in store.session(n).turns()
        if t.position > (info.fork_position or 0)
    )


@pytest.mark.parametrize("format", FORMATS)
def test_residency_gives_every_context(tmp_path: Path, format: str) -> None:
    """Joined by SQL, residency, versions and pages give what the model saw at each call of every session."""
    store = filled_in_memory()
    ask = asked(store, tmp_path, format)
    seen = 0
    for info in store.sessions():
        session = store.session(info.session)
        for call in session.calls():
            if call.position <= (info.fork_position or 0):
                continue
            actual_answer = ask(
                "SELECT p.position, p.role, p.type, r.level, v.tokens, v.content FROM residency r"
                " JOIN versions v ON v.id = r.version JOIN pages p ON p.id = r.page"
                f" WHERE r.session = '{info.session}' AND r.from_position <= {call.position}"
                f" AND (r.to_position IS NULL OR r.to_position > {call.position}) ORDER BY r.rank"
            )
            context = session.context(call=call.call)
            contents = context.contents()
            levels = ("full", "reduced", "abstract", "reference")
            assert [row[:5] for row in actual_answer] == [
                (int(page.page[1:]), page.role, page.type, levels[page.level], page.tokens) for page in context.pages
            ]
            for row, page in zip(actual_answer, context.pages, strict=True):
                text = contents[page.page].decode("utf-8", "surrogatepass").encode("utf-8", "replace").decode()
                assert row[5] == text
            seen += 1
    assert seen >= 8


@pytest.mark.parametrize("format", FORMATS)
def test_every_mutation_has_its_row(tmp_path: Path, format: str) -> None:
    """The table of mutations is the tail, session by session, and every table's rows have keys of their own."""
    store = filled_in_memory()
    ask = asked(store, tmp_path, format)
    other_rows = {(entry.session, entry.position, entry.kind) for entry in store.tail()}
    assert set(ask("SELECT session, position, kind FROM mutations")) == other_rows
    for table in TABLES:
        rows, keys = ask(f"SELECT count(*), count(DISTINCT {table.key}) FROM {table.name}")[0]
        assert rows == keys
        for column in table.columns:
            if column.of is not None:
                key = next(table.key for table in TABLES if table.name == column.of)
                lost = f"{column.name} IS NOT NULL AND {column.name} NOT IN (SELECT {key} FROM {column.of})"
                assert ask(f"SELECT count(*) FROM {table.name} WHERE {lost}") == [(0,)], f"{table.name}.{column.name}"


@pytest.mark.parametrize("format", FORMATS)
def test_what_was_said_of_pages_is_in_tables(tmp_path: Path, format: str) -> None:
    """The last row at or before a position gives the tags and the importance that the store answers there."""
    store = filled_in_memory()
    ask = asked(store, tmp_path, format)
    session = store.session("s")
    end = session.info().position
    for position in (4, end - 2, end - 1, end):
        for page in session.pages(position=position):
            here = f"page = 's/{page.page}' AND session = 's' AND position <= {position}"
            fields = dict(ask(f"SELECT tag, held FROM tags WHERE {here} ORDER BY position"))
            assert sorted(tag for tag, value in fields.items() if value) == page.tags
            other_answer = ask(
                f"SELECT importance FROM annotations WHERE {here} AND importance IS NOT NULL ORDER BY position"
            )
            assert page.importance == (other_answer[-1][0] if other_answer else 0.5)
    rows = ask("SELECT session, status, anchors FROM annotations WHERE page = 's/p4' ORDER BY happened_at")
    assert [row[:2] for row in rows] == [("s", None), ("s", "completed"), ("s.child", None)]
    assert json.loads(rows[0][2]) == {"user.name": "Ada"}


def test_a_moment_ends_the_tables(tmp_path: Path) -> None:
    """As of a call the tables know nothing that came later, its answer included."""
    ask = asked(filled_in_memory(), tmp_path, "sqlite", "s", call=2)
    assert ask("SELECT call, status FROM calls") == [(1, "ok"), (2, "open")]
    assert ask("SELECT max(position) FROM mutations") == ask("SELECT last_position FROM sessions")


def test_a_fork_brings_its_past_into_the_tables(tmp_path: Path) -> None:
    """Exported by itself a grandchild's tables hold its ancestors up to the fork points, so that all joins hold."""
    store = filled_in_memory()
    ask = asked(store, tmp_path, "sqlite", "s.grandchild")
    assert [row[0] for row in ask("SELECT session FROM sessions")] == ["s", "s.child", "s.grandchild"]
    assert ask("PRAGMA foreign_key_check") == []


def test_a_fork_goes_on_with_what_it_inherits(tmp_path: Path) -> None:
    """A fork that does not say its model again has its parent's, and an answer to its parent's call adds no call."""
    store = vmstore.memory_store()
    store.record("s", chat("one"), None)
    child = store.session("s").fork("s.child", call=1)
    store.record(child, chat("one", "two", "three"), answer("four"))
    ask = asked(store, tmp_path, "sqlite")
    actual_answer = ask("SELECT session, call, turn, model, status FROM calls")
    assert actual_answer == [
        (name, call.call, call.turn, call.model, call.status)
        for name, call in (("s", store.session("s").calls()[0]), ("s.child", child.calls()[1]))
    ]
    assert actual_answer[1][3] is not None


def test_the_database_is_for_reading(tmp_path: Path) -> None:
    """It is sound, its foreign keys hold and are indexed, and full text finds contents."""
    ask = asked(filled_in_memory(), tmp_path, "sqlite")
    assert ask("PRAGMA integrity_check") == [("ok",)] and ask("PRAGMA foreign_key_check") == []
    assert ("pages", "page", "id") in {(row[2], row[3], row[4]) for row in ask("PRAGMA foreign_key_list(versions)")}
    actual_answer = ask(
        "SELECT v.page, v.content FROM versions_fts f JOIN versions v ON v.rowid = f.rowid"
        " WHERE versions_fts MATCH 'package'"
    )
    assert actual_answer and all("package" in content for _, content in actual_answer)
    assert ask("SELECT typeof(happened_at) FROM calls LIMIT 1") == [("text",)]


def test_parquet_has_types(tmp_path: Path) -> None:
    """Times are timestamps, counts are integers, flags are booleans."""
    ask = asked(filled_in_memory(), tmp_path, "parquet")
    assert ask("SELECT typeof(happened_at), typeof(tokens), typeof(cost_dollars) FROM calls LIMIT 1") == [
        ("TIMESTAMP", "BIGINT", "DOUBLE")
    ]
    assert ask("SELECT typeof(human) FROM messages LIMIT 1") == [("BOOLEAN",)]
    assert ask("SELECT epoch_us(min(happened_at)) FROM calls") == [(1_000_000,)]


@pytest.mark.parametrize("format", FORMATS)
def test_no_column_needs_quotes(tmp_path: Path, format: str) -> None:
    """Each column of each table is asked for by its bare name."""
    ask = asked(filled_in_memory(), tmp_path, format)
    for table in TABLES:
        ask(f"SELECT {', '.join(column.name for column in table.columns)} FROM {table.name}")


def test_contents_that_are_no_text_are_left_out(tmp_path: Path) -> None:
    """An image has its size and no content, and its rows are there."""
    store = vmstore.memory_store()
    data = base64.b64encode(b"\x89PNG\r\n" + bytes(60) + b"\xff\xfe").decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    asks = {"role": "user", "content": [image, {"type": "text", "text": "what is it?"}]}
    store.record("s", {"model": "m", "max_tokens": 9, "system": "Look.", "messages": [asks]})
    for format in FORMATS:
        ask = asked(store, tmp_path, format)
        actual_answer = ask(
            "SELECT p.modality, p.mime, v.bytes, v.content FROM pages p JOIN versions v ON v.page = p.id"
        )
        assert ("image", "image/png", 68, None) in actual_answer
        assert any(row[3] == "what is it?" for row in actual_answer)


def test_times_no_calendar_holds_are_left_out() -> None:
    """Microseconds beyond the years 1 to 9999 have no text; others have it to the microsecond."""
    assert time_text(1_000_001) == "1970-01-01T00:00:01.000001+00:00"
    assert time_text(None) is time_text(10**18) is time_text(-(10**18)) is None


# ---- refusals


@pytest.mark.parametrize(("format", "package"), [("sqlite", "sqlite_utils"), ("parquet", "duckdb")])
def test_a_missing_package_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, package: str
) -> None:
    """Without the extra's package the export says what to install, and leaves nothing."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=f"pip install {package.replace('_', '-')}"):
        filled_in_memory().export(tmp_path / "out", format=format)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", FORMATS)
def test_tables_never_take_the_place_of_anything(tmp_path: Path, format: str) -> None:
    """A path where something stands is refused, and so is a stream."""
    (tmp_path / "there").mkdir()
    with refused("path-taken", StoreError):
        filled_in_memory().export(tmp_path / "there", format=format)
    with refused("not-a-stream", InputError):
        filled_in_memory().export(sys.stdout.buffer, format=format)


@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_leaves_no_tables(store_path: Path, tmp_path: Path, format: str) -> None:
    """Where the tables do not fit, the error names the path, and nothing is left."""
    with vmstore.open(store_path) as store, small_disk(tmp_path / "disk", "16k") as folder:
        filled(store)
        with refused("not-written", StoreError):
            store.export(folder / "out", format=format)
        assert list(folder.iterdir()) == []


def test_a_strange_path_is_only_a_path(tmp_path: Path) -> None:
    """Signs that mean something to a shell or to SQL mean nothing in the name of an export."""
    folder = tmp_path / "it's [a] *strange* place?"
    folder.mkdir()
    for format in FORMATS:
        assert filled_in_memory().export(folder / f"x'{format}[1]", format=format).bytes > 0
