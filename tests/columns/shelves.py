"""Shelves over logs that tests wrote, and tables read mutation by mutation to hold them against."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import numpy as np

from tests.engine.author import Author, Deed, engine_over
from vmstore.columns.page_table import PageTable, page_table
from vmstore.columns.schema import NULL, TABLES
from vmstore.columns.segment_writer import Columns, SegmentWriter
from vmstore.columns.segments import Segments
from vmstore.log.memory import MemoryLog
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.projection import Projection


def log_of(story: list[Deed]) -> MemoryLog:
    """A log with the sessions of a story."""
    log = MemoryLog()
    Author(engine_over(log)).write(story)
    return log


def views_of(log: Log) -> Projection:
    """All views of a log."""
    views = Projection(log, apsw.Connection(":memory:"))
    views.catch_up()
    return views


def shelf_over(log: Log, folder: Path | None = None, *, readonly: bool = False) -> Segments:
    """A shelf, by default in memory only."""
    return Segments(folder, log, views_of(log), readonly=readonly)


def cut_of(log: Log, views: Projection, after: int = 0, upto: int | None = None) -> SegmentWriter:
    """A stretch of a log as columns, to its end by default."""
    cut = SegmentWriter(log, views.db, after)
    cut.follow(log.ordinal if upto is None else upto)
    return cut


def rows(columns: Columns) -> list[dict[str, Any]]:
    """A table row by row, without what has no value."""
    names = list(columns)
    return [
        {name: value for name, value in zip(names, row, strict=True) if value != NULL}
        for row in zip(*(columns[name].tolist() for name in names), strict=True)
    ]


def same(columns: dict[str, Columns], other: dict[str, Columns]) -> bool:
    """Whether two sets of tables hold the same rows."""
    return all(np.array_equal(columns[table][name], other[table][name]) for table in columns for name in columns[table])


def tables(cut: SegmentWriter) -> dict[str, Columns]:
    """All tables of a cut."""
    return {name: cut.table(name) for name in TABLES}


def joined(parts: list[SegmentWriter]) -> dict[str, Columns]:
    """The tables of several cuts, one after the other."""
    columns = [tables(part) for part in parts]
    return {
        name: {column: np.concatenate([table[name][column] for table in columns]) for column in columns[0][name]}
        for name in TABLES
    }


def table_at(shelf: Segments, asked: dict[int, int]) -> PageTable:
    """The page table of sessions, by key, each at a position."""
    lanes = {key: Branch(shelf.projection.db, key).upto(position) for key, position in sorted(asked.items())}
    names = {key: str(key) for key in asked}
    return page_table(shelf, shelf.log.ordinal, lanes, names)


def rows_by_session(table: PageTable) -> dict[int, list[tuple[int, ...]]]:
    """The rows of a page table by session key."""
    fields: dict[int, list[tuple[int, ...]]] = {}
    for name, *row in table.rows():
        fields.setdefault(int(name), []).append(tuple(row))
    return fields
