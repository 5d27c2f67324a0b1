"""Whether segments are what they should be: their bytes, the chain, a fresh cut, and the views' page table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest

import duckdb
import numpy as np

from vmstore.columns.page_table import page_table
from vmstore.columns.parquet import read
from vmstore.columns.schema import NULL, TABLES
from vmstore.columns.segment import SegmentFolder, SegmentSeal, found_in
from vmstore.columns.segment_writer import Columns, SegmentWriter
from vmstore.columns.segments import DAMAGE, Segments
from vmstore.errors import VmstoreError
from vmstore.views.branch import Branch
from vmstore.views.reads.page_table import page_table as table_of_views

Problem = tuple[str, str]
"""Where something is wrong, and what."""


def problems(shelf: Segments, ordinal: int, sessions: Mapping[int, tuple[str, int]]) -> Iterator[Problem]:
    """Faults of the segments, while the views stay at an ordinal.

    `sessions` are all of them by key, with name and last position.
    """
    found = found_in(shelf.folder) if shelf.folder is not None else []
    for segment in found:
        newer = (
            ordinal < segment.upto <= shelf.log.ordinal
        )  # another has sealed it since: the views say nothing of it yet
        wrong = None if newer else _wrong(shelf, segment)
        if wrong is not None:
            yield segment.path.name, wrong
    try:
        if shelf.segments():
            yield from _disagreements(shelf, ordinal, sessions)
    except VmstoreError as error:
        yield "page table", str(error)


def _wrong(shelf: Segments, segment: SegmentFolder) -> str | None:
    """The fault of a segment, if any."""
    try:
        seal = shelf.checked(segment)
        cut = SegmentWriter(shelf.log, shelf.projection.db, segment.after)
        cut.follow(segment.upto)
        return _difference(shelf, segment, seal, cut)
    except (*DAMAGE, duckdb.Error, VmstoreError) as error:
        return str(error)


def _difference(shelf: Segments, segment: SegmentFolder, seal: SegmentSeal, cut: SegmentWriter) -> str | None:
    if (seal.chain, seal.mutations) != (cut.chain.hexdigest(), cut.mutations):
        return "its seal does not hold the hashes of its commits"
    for name in TABLES:
        right = cut.table(name)
        have = read(shelf.db, [segment.table(name)], TABLES[name])
        if len(have["ordinal"]) != len(right["ordinal"]):
            return f"it holds {len(have['ordinal'])} rows of {name} where the log gives {len(right['ordinal'])}"
        for column in TABLES[name]:
            other = np.flatnonzero(have[column] != right[column])
            if other.size:
                return _first_difference(name, column, have, right, int(other[0]))
    return None


def _first_difference(name: str, column: str, have: Columns, right: Columns, row: int) -> str:
    """The first difference of a column, in words."""
    left, other = (None if table[column][row] == NULL else int(table[column][row]) for table in (have, right))
    where = f"commit {right['ordinal'][row]}, position {right['position'][row]}"
    return f"it holds {column} {left} in {name} at {where} where the log gives {other}"


def _disagreements(shelf: Segments, ordinal: int, sessions: Mapping[int, tuple[str, int]]) -> Iterator[Problem]:
    """Differences between the page tables of the columns and of the views."""
    names = {key: name for key, (name, _) in sessions.items()}
    lanes = {key: Branch(shelf.projection.db, key) for key in sessions}
    asked = {key: lane.upto(sessions[key][1]) for key, lane in lanes.items()}
    table = page_table(shelf, ordinal, asked, names)
    begins = np.searchsorted(table.session, np.fromiter(asked, np.int64, len(asked)), side="left")
    ends = np.searchsorted(table.session, np.fromiter(asked, np.int64, len(asked)), side="right")
    for (key, lane), begin, end in zip(lanes.items(), begins, ends, strict=True):
        have = list(zip(*(column[begin:end].tolist() for column in table[3:]), strict=True))
        want = list(table_of_views(lane, sessions[key][1]))
        if have != want:
            mine, other = next(pair for pair in zip_longest(have, want) if pair[0] != pair[1])
            yield "page table", f"session {names[key]!r}: the columns tell {mine} where the views tell {other}"
