"""Rows of the log's tables as structs, whatever a damaged file makes of them.

A column of the wrong type becomes a value that no hash agrees with, so that damage is named by the
commit or the cell it touches and never ends in a TypeError.
"""

from __future__ import annotations

from typing import Any

from vmstore.log.commit import NO_REQUEST, Commit
from vmstore.log.frame import Frame

COMMITS = "ordinal, session, first, count, at, lag, request, cell, commitments, body, hash"
# Read as bytes whatever type a damaged column has, so that its hash can name it.
READ_COMMITS = (
    "ordinal, session, first, count, at, lag, request, cell, CAST(commitments AS BLOB), CAST(body AS BLOB),"
    " CAST(hash AS BLOB)"
)
READ_FRAMES = "first, count, form, CAST(sizes AS BLOB), CAST(salts AS BLOB), CAST(content AS BLOB)"

assert COMMITS.count(",") == READ_COMMITS.count(","), "a commit is read back from the columns it was written to"
assert READ_FRAMES.count(",") + 1 == len(Frame._fields), "a frame is its row, column by column"


def row_of(c: Commit) -> tuple[Any, ...]:
    """A commit as it is written."""
    request = None if c.request == NO_REQUEST else c.request
    assert c.commitments or not c.cell, "a commit that brought no cell has no first one"
    cell, commitments = (c.cell, c.commitments) if c.commitments else (None, None)
    return c.ordinal, c.session, c.first, c.count, c.at, c.lag, request, cell, commitments, c.body, c.hash


def commit_of(row: Any) -> Commit:
    """A commit as it was read, without its cells."""
    ordinal, session, first, count, at, lag, request, cell, commitments, body, digest = row
    return Commit(
        first=number(first),
        count=number(count),
        at=number(at),
        lag=number(lag),
        body=blob(body),
        commitments=blob(commitments),
        hash=blob(digest),
        request=NO_REQUEST if request is None else number(request),
        session=number(session),
        ordinal=ordinal,
        cell=0 if cell is None else number(cell),
    )


def frame_of(row: Any) -> Frame:
    """A frame as it was read."""
    first, count, form, *blobs = row
    sizes, salts, content = map(blob, blobs)
    cells = min(max(number(count), 0), len(sizes) // 4 + 1)  # one that counts more is damaged as well, and no longer
    return Frame(number(first), cells, number(form, -1), sizes, salts, content)


def number(value: object, otherwise: int = 0) -> int:
    """A column's integer; a damaged one becomes what no hash agrees with."""
    return value if isinstance(value, int) else otherwise


def blob(value: object) -> bytes:
    """A column's bytes; a damaged type becomes bytes that no hash agrees with."""
    if isinstance(value, bytes):
        return value
    return str(value).encode("utf-8", "replace") if value is not None else b""
