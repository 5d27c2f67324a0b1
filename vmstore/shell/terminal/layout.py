"""The layout of an answer before it is printed: lines of styled spans, and tables.

Styles are words (`bold`, `dim`, `good`, `bad`, `warn`, `name`); only `render` knows their colours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from vmstore.shell.terminal.format import cut, wide

GAP = 2
LAST_COLUMNS_MIN = 12
TEXT_COLUMNS = 48  # what the last column of a table should have, which is where texts stand


class StyledText(NamedTuple):
    """Some text in one style."""

    text: str
    style: str = ""


Line: TypeAlias = "str | StyledText | tuple[Line, ...]"


class TableColumn(NamedTuple):
    """A column of a table: its title, whether its cells stand to the right, the style of its cells.

    Where the terminal is too narrow `spare` columns go, the highest first.
    """

    title: str
    right: bool = False
    style: str = ""
    spare: int = 0


class TextTable(NamedTuple):
    """Rows under titles; the last column takes what is left of the width. `notes` stand before rows, by index."""

    columns: Sequence[TableColumn]
    rows: Sequence[Sequence[Line]]
    notes: Mapping[int, Line] = {}


Block: TypeAlias = "Line | TextTable"
Item = TypeVar("Item")


def table(items: Iterable[Item], cells: Mapping[TableColumn, Callable[[Item], Line]]) -> TextTable:
    """A row for each item, its cells computed by the function of each column."""
    return TextTable(list(cells), [[cell(item) for cell in cells.values()] for item in items])


def one_line_each(lines: Sequence[Line]) -> TextTable:
    """Lines that are cut at the terminal's width instead of wrapped."""
    return TextTable((TableColumn(""),), [(line,) for line in lines])


def spans(line: Line, style: str = "") -> list[StyledText]:
    """The pieces of a line; those without a style of their own get `style`."""
    if isinstance(line, str):
        return [StyledText(line, style)]
    if isinstance(line, StyledText):
        return [line if line.style else line._replace(style=style)]
    return [span for piece in line for span in spans(piece, style)]


def text_of(line: Line) -> str:
    """A line without its styles."""
    if isinstance(line, str):
        return line
    return "".join(span.text for span in spans(line))


def lines_of(block: Block, width: int | None) -> list[list[StyledText]]:
    """The lines of a block; a table's last column is cut to fit a width where one is given."""
    if not isinstance(block, TextTable):
        return [spans(block)]
    block = _fitting(block, width)
    rows = _titled(block)
    widths = _widths(block, rows)
    if width is not None and widths:
        before = sum(widths[:-1]) + GAP * (len(widths) - 1)
        widths[-1] = min(widths[-1], max(width - before, LAST_COLUMNS_MIN))
    lines = [row_of(block.columns, row, widths) for row in rows]
    for index in sorted(block.notes, reverse=True):
        lines.insert(index + len(rows) - len(block.rows), spans(block.notes[index]))
    return lines


def _titled(block: TextTable) -> list[Sequence[Line]]:
    titles: list[Line] = [StyledText(column.title, "dim") for column in block.columns]
    return [titles, *block.rows] if any(column.title for column in block.columns) else list(block.rows)


def _widths(block: TextTable, rows: Sequence[Sequence[Line]]) -> list[int]:
    return [max((wide(text_of(row[i])) for row in rows), default=0) for i in range(len(block.columns))]


def _fitting(block: TextTable, width: int | None) -> TextTable:
    """The table without the columns that nothing stands in; on a terminal also without those it has no room for.

    First go those with the same in each row, then spare ones, then others from the right; never the first two and the
    last, which is cut.
    """
    kept = [i for i in range(len(block.columns)) if not block.rows or any(text_of(row[i]) for row in block.rows)]
    if width is not None and kept:
        texts = [[text_of(row[i]) for row in block.rows] for i in range(len(block.columns))]
        sizes = _widths(block, _titled(block))
        same = {i for i in kept if len(texts[i]) > 1 and len({*texts[i]}) == 1}
        order = sorted(
            (i for i in kept[:-1] if i in kept[2:] or block.columns[i].spare),
            key=lambda i: (i in same, block.columns[i].spare, i),
        )
        while order:
            eager = order[-1] in same or block.columns[order[-1]].spare
            needed = min(sizes[kept[-1]], TEXT_COLUMNS if eager else LAST_COLUMNS_MIN)
            if sum(sizes[i] + GAP for i in kept[:-1]) + needed <= width:
                break
            kept.remove(order.pop())
    return block._replace(columns=[block.columns[i] for i in kept], rows=[[row[i] for i in kept] for row in block.rows])


def row_of(columns: Sequence[TableColumn], row: Sequence[Line], widths: Sequence[int]) -> list[StyledText]:
    """One row of a table as a line, each cell cut and padded to the width of its column."""
    found: list[StyledText] = []
    for index, (column, cell, columns_wide) in enumerate(zip(columns, row, widths, strict=True)):
        pieces = spans(cell, column.style)
        size = sum(wide(piece.text) for piece in pieces)
        if size > columns_wide:
            pieces = _cut(pieces, columns_wide)
            size = sum(wide(piece.text) for piece in pieces)
        last = index == len(columns) - 1
        before = columns_wide - size if column.right else 0
        after = 0 if last else columns_wide - size - before + GAP
        found += [StyledText(" " * before), *pieces, StyledText(" " * after)]
    return [span for span in found if span.text]


def _cut(pieces: list[StyledText], columns: int) -> list[StyledText]:
    """The pieces of a cell that is wider than its column, as far as they fit."""
    kept: list[StyledText] = []
    for piece in pieces:
        room = columns - sum(wide(span.text) for span in kept)
        if wide(piece.text) > room or piece is pieces[-1]:
            return [*kept, piece._replace(text=cut(piece.text, room))] if room > 0 else kept
        kept.append(piece)
    return kept
