"""Commits as tests write them: what each is made of, linked and sealed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from vmstore.cells.cell import Cell
from vmstore.log.commit import NO_REQUEST, Commit, genesis, seal


class CommitSpec(NamedTuple):
    """A commit before it is linked and stored."""

    mutations: int = 1
    at: int = 0
    lag: int = 0
    body: bytes = b"\x90"
    contents: tuple[bytes, ...] = ()
    request: bool = False


MOMENTS = st.integers(-(2**62), 2**62)
COMMIT_SPECS = st.builds(
    CommitSpec,
    mutations=st.integers(1, 5),
    at=MOMENTS,
    lag=MOMENTS,
    body=st.binary(max_size=40),
    contents=st.lists(st.binary(max_size=40), max_size=3).map(tuple),
    request=st.booleans(),
)
APPENDS = st.lists(st.tuples(st.integers(0, 3), st.lists(COMMIT_SPECS, min_size=1, max_size=3)), min_size=1, max_size=6)
"""Appends in order: (which session, counted from 0, its commits)."""


def chain(specs: Sequence[CommitSpec], previous: bytes = genesis(b"one"), position: int = 0) -> list[Commit]:
    """Sealed commits that follow each other after a position."""
    commits = []
    for number, part in enumerate(specs):
        salts = [hashlib.sha256(previous + b"%d/%d" % (number, i)).digest()[:16] for i in range(len(part.contents))]
        cells = tuple(Cell(salt, content) for salt, content in zip(salts, part.contents, strict=True))
        request = 0 if part.request and cells else NO_REQUEST
        commit = seal(previous, position + 1, part.mutations, part.at, part.lag, part.body, cells, request)
        commits.append(commit)
        previous, position = commit.hash, commit.last
    return commits
