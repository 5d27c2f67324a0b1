"""The forms an answer can be written in: table, line, json, jsonl, csv, markdown.

Each is written while it is read, a chunk of rows at a time, so that a long answer needs no room.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from vmstore.core.text.visible import visible
from vmstore.shell.terminal.format import cut, dollars, wide
from vmstore.shell.terminal.format import level as level_word
from vmstore.shell.terminal.layout import GAP, Line, StyledText, TableColumn, row_of
from vmstore.shell.terminal.render import Screen
from vmstore.vmql.execution.result import unlike

MODES = ("table", "line", "json", "jsonl", "csv", "markdown")

NUMBERS = ("integer", "real")
FLEXIBLE = ("text", "list", "json")  # columns that may be cut on a terminal
CELL_MIN = 14  # columns are not cut below this; a table that needs it stands upright instead

Row = Sequence[Any]
Chunks = Iterator[Sequence[Row]]


class OutputField(Protocol):
    """A column of an answer."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...


class QueryOutput(NamedTuple):
    """What is to be written: columns, rows by the chunk, what it is based on, and what is known at its end."""

    columns: Sequence[OutputField]
    chunks: Chunks
    basis: dict[str, Any]
    end: Callable[[], dict[str, Any]]  # elapsed_ms, and next where a limited answer continues

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]


def write(answer: QueryOutput, mode: str, screen: Screen) -> int:
    """Writes an answer to a screen; how many rows it had."""
    return WRITERS[mode](answer, screen)


# ---- for programs


def as_json(answer: QueryOutput, screen: Screen) -> int:
    """The whole answer as one object on one line; the line is cut short where the query fails half-way.

    Of columns of one name the second `n` is `n_2` in the rows, and `n` in `columns`.
    """
    columns = [{"name": column.name, "type": column.type} for column in answer.columns]
    screen.out.write(f'{{"basis": {to_json(answer.basis)}, "columns": {to_json(columns)}, "rows": [')
    keys, count = unlike(answer.names), 0
    for chunk in answer.chunks:
        rows = ", ".join(to_json(dict(zip(keys, row, strict=True))) for row in chunk)
        screen.out.write(", " + rows if count and rows else rows)
        count += len(chunk)
    screen.out.write(f"], {to_json(answer.end())[1:]}\n")
    return count


def as_jsonl(answer: QueryOutput, screen: Screen) -> int:
    """Each row as an object on a line of its own, its keys as in `as_json`."""
    keys = unlike(answer.names)
    return _counted(
        answer.chunks,
        lambda chunk: screen.out.write(
            "".join(to_json(dict(zip(keys, row, strict=True))) + "\n" for row in chunk),
        ),
    )


def as_csv(answer: QueryOutput, screen: Screen) -> int:
    """Titles and rows, with commas between and quotes where they are needed; lists and objects as JSON."""
    import csv

    writer = csv.writer(screen.out, lineterminator="\n")
    writer.writerow(answer.names)

    def rows(chunk: Sequence[Row]) -> None:
        """Writes rows as lines of CSV."""
        writer.writerows([_csv(value) for value in row] for row in chunk)

    return _counted(answer.chunks, rows)


def _csv(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return to_json(value) if isinstance(value, list | dict | tuple) else value


def to_json(value: Any) -> str:
    """A value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


# ---- for readers


def as_markdown(answer: QueryOutput, screen: Screen) -> int:
    """A table in Markdown."""
    screen.out.write("| " + " | ".join(map(_markdown, answer.names)) + " |\n")
    screen.out.write("|" + "|".join(" ---: " if c.type in NUMBERS else " --- " for c in answer.columns) + "|\n")
    columns = answer.columns

    def rows(chunk: Sequence[Row]) -> None:
        """Writes rows as lines of a Markdown table."""
        for row in chunk:
            cells = (_markdown(text_of(value, column.name)) for value, column in zip(row, columns, strict=True))
            screen.out.write("| " + " | ".join(cells) + " |\n")

    return _counted(answer.chunks, rows)


def _markdown(text: str) -> str:
    return visible(text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", "<br>"))


def as_line(answer: QueryOutput, screen: Screen, *, whole: bool = True) -> int:
    """Each row upright, a value a line; `whole` says not to cut values at the terminal's width."""
    titles = max((wide(name) for name in answer.names), default=0)
    count = itertools.count(1)

    def rows(chunk: Sequence[Row]) -> None:
        """Writes each row upright, under a rule with its number."""
        for row in chunk:
            head = f"── {next(count)} "
            screen.write([StyledText(head + "─" * max(0, min(titles + 20, 40) - wide(head)), "dim")])
            for value, column in zip(row, answer.columns, strict=True):
                text = text_of(value, column.name)
                if screen.width is None or whole:
                    text = visible(text)
                else:
                    text = cut(visible(text[: screen.width]), screen.width - titles - GAP)
                screen.write(
                    [StyledText(" " * (titles - wide(column.name)) + column.name, "dim"), StyledText("  " + text)]
                )

    return _counted(answer.chunks, rows)


def as_table(answer: QueryOutput, screen: Screen) -> int:
    """A table; on a terminal too narrow for it the rows stand upright."""
    grid: Grid | None = None
    count = 0
    for chunk in answer.chunks:
        if grid is None:
            grid = Grid(answer.columns, chunk, screen.width)
            if screen.width is not None and not grid.fits(screen.width):
                upright = answer._replace(chunks=itertools.chain([chunk], answer.chunks))
                return as_line(upright, screen, whole=False)
            screen.heading(grid.title())
        for line in grid.lines(chunk):
            screen.write(line)
        count += len(chunk)
    return count


class Grid:
    """The columns of a table, as wide as the first chunk of rows needs; a later chunk may widen them."""

    def __init__(self, columns: Sequence[OutputField], rows: Sequence[Row], width: int | None = None) -> None:
        self._fields = columns
        self._chars = width  # no cell shows more, so no more of a long text is looked at
        self._columns = [TableColumn(c.name, right=c.type in NUMBERS, style=_style(c)) for c in columns]
        self._widths = [wide(column.name) for column in columns]
        self._may_grow = True
        self._widen(self._cells(rows))

    def fits(self, width: int) -> bool:
        """Cuts columns of text, the widest first, until the table fits a width; whether that can be done."""
        room = width - GAP * (len(self._widths) - 1)
        for most in range(room, CELL_MIN - 1, -1):
            widths = [
                min(needed, most) if field.type in FLEXIBLE else needed
                for needed, field in zip(self._widths, self._fields, strict=True)
            ]
            if sum(widths) <= room:
                self._widths, self._may_grow = widths, False
                return True
        return False

    def title(self) -> list[StyledText]:
        """The line of titles."""
        titles: list[Line] = [StyledText(column.title, "dim") for column in self._columns]
        return row_of(self._columns, titles, self._widths)

    def lines(self, rows: Sequence[Row]) -> Iterator[list[StyledText]]:
        """The lines of a chunk of rows."""
        cells = self._cells(rows)
        self._widen(cells)
        for row in cells:
            yield row_of(self._columns, row, self._widths)

    def _cells(self, rows: Sequence[Row]) -> list[list[str]]:
        names = [field.name for field in self._fields]
        most = self._chars and self._chars + 1
        return [[visible(text_of(value, name)[:most]) for value, name in zip(row, names, strict=True)] for row in rows]

    def _widen(self, cells: Sequence[Sequence[str]]) -> None:
        if self._may_grow:
            for index, known in enumerate(self._widths):
                self._widths[index] = max(known, max((wide(row[index]) for row in cells), default=0))


def _style(field: OutputField) -> str:
    if field.name in ("page", "session", "source", "target"):
        return "name"
    return "dim" if field.type == "time" else ""


def text_of(value: Any, name: str = "") -> str:
    """A value as people read it: tiers and levels as words, lists with commas between."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return _word(value, name)
    if isinstance(value, float):
        return dollars(value) if name == "cost" or re.fullmatch(r"\w+\(cost\)", name) else f"{value:.10g}"
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return value if isinstance(value, str) else to_json(value)


def _word(value: int, name: str) -> str:
    if name == "tier" or name.startswith("tier_") or name.endswith("_tier"):
        return f"L{value}"
    if name == "level" or name.startswith("level_"):
        return level_word(value)
    return str(value)


def _counted(chunks: Chunks, take: Callable[[Sequence[Row]], object]) -> int:
    count = 0
    for chunk in chunks:
        take(chunk)
        count += len(chunk)
    return count


WRITERS: dict[str, Callable[[QueryOutput, Screen], int]] = {
    "table": as_table,
    "line": as_line,
    "json": as_json,
    "jsonl": as_jsonl,
    "csv": as_csv,
    "markdown": as_markdown,
}
