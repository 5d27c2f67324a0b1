"""Answers as people read them: short where they are long, by the beginning of a name, by the ending of a path."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.shell.conftest import Run, record_s1, requests
from vmstore.namespace.results import Change
from vmstore.shell.terminal.format_session import few, largest_first
from vmstore.shell.terminal.layout import StyledText, TableColumn, TextTable, lines_of, text_of


def change(word: str, page: str, tokens: int) -> Change:
    before, after = (0, tokens) if word == "entered" else (tokens, 0)
    return Change(word, page, None, "user", "transcript", before, after, None, None, page)


def test_the_largest_losses_come_first() -> None:
    """Of a difference what left comes first, the largest before; few rows leave room for what entered."""
    changes = [change("left", "p1", 5), change("entered", "p2", 9), change("left", "p3", 50), change("moved", "p4", 1)]
    ordered = largest_first(changes)
    assert [changed.page for changed in ordered] == ["p3", "p1", "p4", "p2"]
    assert [changed.page for changed in few(ordered, 2)] == ["p3", "p4"]
    assert [changed.page for changed in few([*ordered[:2]] * 5, 4)] == ["p3", "p1", "p3", "p1"]


def test_a_context_leaves_out_its_middle(run: Run, recorded: Path) -> None:
    """With --limit a context shows its first and last pages and counts those between; --all and a pipe show each."""
    lines = run("context", recorded, "--limit", 2).out.splitlines()[5:]
    assert len(lines) == 3 and lines[1] == "… 5 pages between them; --all shows them"
    assert "list_files() " not in lines[0] and "and now?" in lines[2]
    assert run("context", recorded, "--all").out == run("context", recorded).out
    assert len(run("context", recorded).out.splitlines()) == 5 + 7


def test_a_session_by_its_beginning(run: Run, store_path: Path) -> None:
    """A beginning that only one session has names it, and - the one that was opened last."""
    with vmstore.open(store_path) as store:
        for name in ("alpha-1", "alpha-2", "beta"):
            record_s1(store, name)
    assert run("context", store_path, "be").out.startswith("beta, call 4")
    assert run("context", store_path, "-").out.startswith("beta, call 4")
    assert run("context", store_path, "alpha-1").out.startswith("alpha-1, call 4")
    assert "several sessions begin with 'alpha': alpha-1, alpha-2" in run("context", store_path, "alpha").err
    assert "- for the newest: beta, alpha-2" in run("context", store_path).err


def test_columns_go_before_lines_break() -> None:
    """Empty columns are left out; on a terminal those with one value go next, then spare ones, then others."""
    columns = [TableColumn(title, spare=spare) for title, spare in zip("abcdef", (0, 0, 1, 2, 0, 0), strict=True)]
    rows = [["1", "x", "same", f"spare{n}", "", "text " * 20] for n in range(3)]
    table = TextTable([column._replace(title=column.title * 4) for column in columns], rows)

    def titles(width: int | None) -> list[str]:
        return text_of(tuple(lines_of(table, width)[0])).split()

    assert titles(None) == ["aaaa", "bbbb", "cccc", "dddd", "ffff"]
    assert titles(72) == ["aaaa", "bbbb", "dddd", "ffff"] and titles(62) == ["aaaa", "bbbb", "ffff"]
    for width in (30, 60, 80, 100):
        assert all(len(text_of(tuple(line))) <= width for line in lines_of(table, width))


def test_a_note_stands_before_its_row() -> None:
    """A note of a table stands before the row with its number, under the titles."""
    table = TextTable((TableColumn("a"),), [["1"], ["2"]], {1: StyledText("…")})
    assert [text_of(tuple(line)) for line in lines_of(table, None)] == ["a", "1", "…", "2"]


@pytest.mark.parametrize(("ending", "begins"), [(".jsonl", b"{"), (".db", b"SQLite format 3")])
def test_an_ending_decides_the_format(run: Run, recorded: Path, tmp_path: Path, ending: str, begins: bytes) -> None:
    """What is exported has the format that the ending of its path says; another one named beside it is refused."""
    pytest.importorskip("sqlite_utils")
    path = tmp_path / f"out{ending}"
    assert run("export", recorded, "--out", path).code == 0 and path.read_bytes().startswith(begins)
    assert "differ" in run("export", recorded, "--out", path, "--format", "parquet").err


def test_a_folder_is_imported(run: Run, store_path: Path, chat: Path) -> None:
    """Of a folder every session file below it is imported, and nothing else."""
    (chat.parent / "notes.txt").write_text("no session")
    (chat.parent / "deep").mkdir()
    (chat.parent / "deep" / "more.jsonl").write_bytes(chat.read_bytes().replace(b'"plan"', b'"other"'))
    document = run("import", store_path, chat.parent, "--json").json
    assert sorted(session["session"] for session in document["sessions"]) == ["other", "plan"]


def test_what_somebody_meant() -> None:
    """A command of another program leads to the one here that does the same, and a strange word to none."""
    from vmstore.shell.commands.registry import nearest
    from vmstore.shell.main import MEANT

    assert MEANT["ls"] == "sessions" and MEANT["show"] == "context"
    assert nearest("contxt") == "context" and nearest("zzzzzz") is None


def test_one_request_is_short(run: Run, recorded: Path) -> None:
    """Each row of a context is one line that begins with what was said, a call by its tool."""
    lines = [line.split("  ")[-1].strip() for line in run("context", recorded).out.splitlines()[5:]]
    assert lines[4] == "→ list_files()" and lines[5].startswith("list_files → ")
    assert lines[1] == requests()[3][1]["content"]


def test_where_a_file_breaks(run: Run, store_path: Path, tmp_path: Path) -> None:
    """A file of broken JSON is refused with the line and the column, one of UTF-16 with a way to save it again."""
    broken, wide = tmp_path / "broken.json", tmp_path / "wide.jsonl"
    broken.write_text('{\n  "messages": [\n')
    wide.write_text('{"role": "user", "content": "hi"}\n', encoding="utf-16")
    assert "JSON that is broken at line 3, column 1" in run("import", store_path, broken).err
    assert "is UTF-16; save it as UTF-8: iconv" in run("import", store_path, wide).err


def test_every_command_stands_in_the_help() -> None:
    """The help lists every command, under Import, Query, Export, Maintain, Privacy or More."""
    from vmstore.shell.commands.registry import COMMANDS, GROUPS

    assert {command.group for command in COMMANDS.values()} == set(GROUPS)
