"""Each mode writes the same rows: for programs exactly, for readers so that they can be read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from vmstore.shell.terminal.format import wide
from vmstore.shell.terminal.render import Screen
from vmstore.shell.vmql.output.formats import MODES, QueryOutput, Row, text_of, write


class Named(NamedTuple):
    """A column of an answer."""

    name: str
    type: str


COLUMNS = (
    Named("page", "text"),
    Named("tokens", "integer"),
    Named("tier", "integer"),
    Named("pinned", "boolean"),
    Named("tags", "list"),
    Named("hint", "text"),
)
ROWS: list[Row] = [
    ("p1", 12, 0, True, ["a", "b"], "naïve, 漢字"),
    ("p2", None, 2, False, [], 'a | "b"\nsecond \x1b[31m'),
]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Says so."""
        return True


def answer(rows: Sequence[Row] = ROWS, columns: Sequence[Named] = COLUMNS, chunk: int = 1) -> QueryOutput:
    """Rows as an answer that comes in chunks."""

    def chunks() -> Iterator[Sequence[Row]]:
        for at in range(0, len(rows), chunk):
            yield rows[at : at + chunk]

    return QueryOutput(columns, chunks(), {"session": "s", "position": 9}, lambda: {"elapsed_ms": 1.5})


def written(mode: str, shown: QueryOutput | None = None, width: int | None = None, monkeypatch: Any = None) -> str:
    """What a mode writes, to a pipe or to a terminal of a width."""
    stream = io.StringIO() if width is None else Terminal()
    if width is not None:
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setenv("NO_COLOR", "1")
    write(shown or answer(), mode, Screen(out=stream))
    return stream.getvalue()


def test_json_is_one_object_on_one_line() -> None:
    """The whole answer is one line with basis, columns, rows and time, whatever the chunks."""
    for chunk in (1, 2, 5):
        text = written("json", answer(chunk=chunk))
        assert text.count("\n") == 1 and text.endswith("\n")
        document = json.loads(text)
        assert list(document) == ["basis", "columns", "rows", "elapsed_ms"]
        assert document["columns"][1] == {"name": "tokens", "type": "integer"}
        assert [tuple(row.values()) for row in document["rows"]] == ROWS
    assert json.loads(written("json", answer([])))["rows"] == []


def test_jsonl_is_one_object_a_row() -> None:
    """Each row is a line of its own, with the names of its columns."""
    lines = [json.loads(line) for line in written("jsonl").splitlines()]
    assert [tuple(line.values()) for line in lines] == ROWS and list(lines[0]) == [c.name for c in COLUMNS]


@pytest.mark.parametrize("mode", ["json", "jsonl"])
def test_columns_of_one_name_keep_their_values(mode: str) -> None:
    """A row has a value for each column, the second of a name under a numbered key."""
    twice = (Named("n", "integer"), Named("n", "integer"), Named("n_2", "integer"))
    shown = json.loads(written(mode, answer([(1, 2, 3)], twice)))
    assert (shown["rows"][0] if mode == "json" else shown) == {"n": 1, "n_3": 2, "n_2": 3}


def test_csv_can_be_read_again() -> None:
    """A reader of CSV gets back titles and values, line ends and quotes in them included."""
    readers = list(csv.reader(io.StringIO(written("csv"))))
    assert readers[0] == [c.name for c in COLUMNS]
    assert readers[1:] == [
        ["p1", "12", "0", "true", '["a", "b"]', "naïve, 漢字"],
        ["p2", "", "2", "false", "[]", 'a | "b"\nsecond \x1b[31m'],
    ]


def test_markdown_is_a_table() -> None:
    """Each row is one line of as many cells as there are columns, whatever signs are in them."""
    lines = written("markdown").splitlines()
    assert lines[1].count("---") == len(COLUMNS) and len(lines) == 4
    assert lines[2] == "| p1 | 12 | L0 | true | a, b | naïve, 漢字 |"
    assert 'a \\| "b"<br>second \\x1b[31m' in lines[3]


def test_a_table_in_a_pipe_is_whole() -> None:
    """In a pipe nothing is cut, tiers are words, and what could drive a terminal is written out."""
    lines = written("table").splitlines()
    assert lines[0].split() == [c.name for c in COLUMNS]
    assert lines[1].split() == ["p1", "12", "L0", "true", "a,", "b", "naïve,", "漢字"]
    assert lines[2].endswith('a | "b"\\nsecond \\x1b[31m')


def test_columns_stay_in_line_when_a_later_chunk_is_wider() -> None:
    """A chunk that needs more room gets it, and those after it keep it."""
    rows: list[Row] = [("a", 1), ("a" * 9, 22), ("b", 3)]
    text = written("table", answer(rows, (Named("page", "text"), Named("n", "integer"))))
    assert text.splitlines() == ["page  n", "a     1", "aaaaaaaaa  22", "b           3"]


def test_a_terminal_cuts_texts_and_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table fits its terminal by cutting the widest texts, never a number."""
    columns = (Named("page", "text"), Named("hint", "text"), Named("n", "integer"))
    rows: list[Row] = [("p1", "x" * 200, 123_456_789), ("p2", "y", 1)]
    lines = written("table", answer(rows, columns), 50, monkeypatch).splitlines()
    assert all(wide(line) <= 50 for line in lines)
    assert "…" in lines[1] and lines[1].endswith("123456789")


def test_rows_too_wide_stand_upright(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where even cut texts leave no room, each value stands on a line of its own, cut to the terminal."""
    columns = tuple(Named(f"column_{n}", "text") for n in range(9))
    rows: list[Row] = [tuple("z" * 99 for _ in columns), tuple("y" for _ in columns)]
    lines = written("table", answer(rows, columns), 60, monkeypatch).splitlines()
    assert len(lines) == 20 and lines[0].startswith("── 1 ") and lines[10].startswith("── 2 ")
    assert all(wide(line) <= 60 for line in lines)
    whole = written("line", answer(rows, columns), 60, monkeypatch)
    assert "z" * 99 in whole


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_without_rows_has_its_titles(mode: str) -> None:
    """Nothing found is written as nothing but titles, in every mode that has them."""
    text = written(mode, answer([]))
    assert ("page" in text) == (mode in ("json", "csv", "markdown"))


@pytest.mark.parametrize(
    ("value", "name", "text"),
    [
        (None, "", ""),
        (True, "pinned", "true"),
        (2, "tier", "L2"),
        (0, "tier_before", "L0"),
        (2, "from_tier", "L2"),
        (3, "level", "reference"),
        (1, "level_after", "reduced"),
        (7, "levels", "7"),
        (0.1 + 0.2, "", "0.3"),
        ([1, "a"], "", '[1, "a"]'),
        ({"a": 1}, "detail", '{"a": 1}'),
    ],
)
def test_values_read_as_people_read_them(value: Any, name: str, text: str) -> None:
    """Tiers and levels are words to readers, lists of texts have commas, objects are JSON."""
    assert text_of(value, name) == text
