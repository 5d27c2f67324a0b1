"""The context at a call: which pages the model saw, in order, checked against the pack's root."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

from vmstore.cells.cell import COMMITMENT_BYTES
from vmstore.cells.merkle import Tree, leaf
from vmstore.errors import CorruptError
from vmstore.views.branch import Branch
from vmstore.views.projectors.calls import CallRow
from vmstore.views.projectors.residency import residents_at


class ShownPage(NamedTuple):
    """One page as the model saw it; those of a context come in the order of their ranks."""

    rank: int
    page: int
    since: int
    message: int
    part: int
    role: int
    type: int
    modality: int
    mime: int
    version: int
    level: int
    tokens: int
    size: int
    cell: int | None
    commitment: bytes | None


_ROW: Callable[[Iterable[Any]], ShownPage] = partial(tuple.__new__, ShownPage)
_TOKENS = itemgetter(ShownPage._fields.index("tokens"))
_OWN = ShownPage._fields.index("version") - ShownPage._fields.index(
    "message"
)  # columns that every content of a page has alike


def shown_at(lane: Branch, call: CallRow) -> list[ShownPage]:
    """The pages of a call in order; raises CorruptError where they are not as many as its pack counted."""
    residents = residents_at(lane, call.position)
    what = contents(lane, [content for _, _, _, content in residents])
    shown = [_ROW((rank, page, since, *what[content])) for rank, page, since, content in residents]
    if len(shown) != call.leaves or sum(map(_TOKENS, shown)) != call.tokens:
        raise _differs(call, "pages")
    return shown


def contents(lane: Branch, positions: Collection[int]) -> Mapping[int, tuple[Any, ...]]:
    """Contents made at some positions, in the columns of `ShownPage` from `message` on.

    That never changes, so a lane keeps it for the next question.
    """
    known = lane.known
    if len(known) > KNOWN_MAX:
        known.clear()
    _know(lane, positions)
    later = [position for position in positions if position not in known]
    if later:
        changed = list(lane.rows(_CHANGES, later))
        _know(lane, {page for _, page, *_ in changed})
        known.update((position, (*known[page][:_OWN], *rest)) for position, page, *rest in changed if page in known)
    return known


def _know(lane: Branch, pages: Iterable[int]) -> None:
    """Has the lane know what the first contents of pages are."""
    missing = [page for page in pages if page not in lane.known]
    if missing:
        lane.known.update((page, tuple(first)) for page, *first in lane.rows(_PAGES, missing))


def check_root(lane: Branch, call: CallRow, shown: Iterable[ShownPage]) -> None:
    """Raises CorruptError where pages as shown do not give the root that the call's pack stated."""
    if root_of(lane, shown) != call.root:
        raise _differs(call, "root")


def _differs(call: CallRow, what: str) -> CorruptError:
    return CorruptError(
        f"the context at call {call.call} does not match the {what} its pack recorded; "
        "run `vmstore verify`, then `vmstore rebuild`",
        code="other-root",
    )


def root_of(lane: Branch, shown: Iterable[ShownPage]) -> bytes:
    """The Merkle root over pages as shown."""
    return Tree(leaves_of(lane, shown)).root


def leaves_of(lane: Branch, shown: Iterable[ShownPage]) -> list[bytes]:
    """The leaf of each page as shown."""
    uids: dict[int, bytes] = {}
    leaves = []
    for s in shown:
        writer = lane.owner(s.page)
        if writer not in uids:
            uids[writer] = lane.db.execute("SELECT uid FROM sessions WHERE session = ?", (writer,)).get
        leaves.append(leaf(uids[writer], s.page, s.version, s.level, s.commitment or bytes(COMMITMENT_BYTES)))
    return leaves


class SealedCell(NamedTuple):
    """A cell and what it must hash to."""

    cell: int
    commitment: bytes


def envelopes_at(lane: Branch, messages: Iterable[int], position: int) -> dict[int, SealedCell]:
    """The cell of each message's skeleton as it held at a position."""
    wanted = sorted(set(messages))
    listed = json.dumps(wanted)
    found: dict[int, tuple[int, SealedCell]] = {}
    for stretch in lane.upto(position):
        for message, at, cell, commitment in lane.db.execute(_ENVELOPES, (stretch.session, listed, stretch.high)):
            if message not in found or at > found[message][0]:
                found[message] = (at, SealedCell(cell, commitment))
    return {message: sealed for message, (_, sealed) in found.items()}


KNOWN_MAX = 50_000
_PAGES = """SELECT page, message, part, role, type, modality, mime, 1, 0, tokens, size, cell, commitment FROM pages
  WHERE session = ? AND page IN (SELECT value FROM json_each(?))"""
_CHANGES = """SELECT position, page, version, level, tokens, size, cell, commitment FROM changes
  WHERE session = ? AND position IN (SELECT value FROM json_each(?))"""
assert _PAGES.partition(" FROM ")[0].count(",") + 3 == len(ShownPage._fields), "after rank, page and since come these"
assert _CHANGES.partition(" FROM ")[0].count(",") - 1 + _OWN + 3 == len(ShownPage._fields), (
    "and so they do of a later one"
)
_ENVELOPES = """SELECT message, position, cell, commitment FROM envelopes
  WHERE session = ? AND message IN (SELECT value FROM json_each(?)) AND position <= ?"""
