"""The lineage view: how pages relate, to be walked in both directions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import apsw

from vmstore.core.page import LinkKind
from vmstore.views.projector import PlacedMutation, Projector

if TYPE_CHECKING:
    from vmstore.core.mutation import Create, Flush, Link, Unlink
    from vmstore.views.branch import Branch


class Edge(NamedTuple):
    """`source` relates to `target` by `kind`, since `position`; `depth` steps from where a walk began."""

    source: int
    target: int
    kind: int
    position: int
    depth: int


class LineageProjector(Projector):
    """One row a link: source was made from, replaces, or otherwise relates to target; one of `unlinks` ends some,
    one of `flushes` says that a page is up to date with its sources.

    Rows never change, for a fork ends links that its parent keeps: a link holds at a position where none of
    what a session sees ended it since, see `ended`.
    """

    name = "lineage"
    schema: ClassVar = {
        "links": """session INTEGER, source INTEGER, target INTEGER, kind INTEGER, position INTEGER,
            valid_from INTEGER, valid_to INTEGER, PRIMARY KEY(session, source, target, kind, position)""",
        "unlinks": """session INTEGER, source INTEGER, target INTEGER, kind INTEGER, position INTEGER,
            PRIMARY KEY(session, source, target, kind, position)""",
        "flushes": "session INTEGER, page INTEGER, position INTEGER, at INTEGER, PRIMARY KEY(session, page, position)",
    }
    indexes = ("CREATE INDEX links_target ON links(session, target)",)

    inserts: ClassVar = {"links": "INSERT OR IGNORE"}

    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self._links = self.rows["links"]

    def on_create(self, placed: PlacedMutation, m: Create) -> None:
        """Adds the provenance a page is born with."""
        for kind, target in m.links:
            self._links.append((placed.session, placed.position, target, kind, placed.position, None, None))

    def on_link(self, placed: PlacedMutation, m: Link) -> None:
        """Adds a link made later."""
        row = (m.source, m.target, m.link, placed.position, m.valid_from, m.valid_to)
        self._links.append((placed.session, *row))

    def on_unlink(self, placed: PlacedMutation, m: Unlink) -> None:
        """Adds the end of the links there were."""
        self.rows["unlinks"].append((placed.session, m.source, m.target, m.link, placed.position))

    def on_flush(self, placed: PlacedMutation, m: Flush) -> None:
        """Adds that a page is up to date."""
        self.rows["flushes"].append((placed.session, m.page, placed.position, placed.at))


Ended = dict[tuple[int, int, int], int]
"""Links that were ended: source, target and kind, and the position of the last end."""


def ended(lane: Branch, position: int) -> Ended:
    """The links that were ended up to a position; most sessions have none."""
    found: Ended = {}
    for stretch in reversed(lane.upto(position)):
        for source, target, kind, at in lane.db.execute(_ENDED, (stretch.session, stretch.high)):
            found[source, target, kind] = max(at, found.get((source, target, kind), 0))
    return found


def held(lane: Branch, position: int) -> dict[tuple[int, int, int], set[tuple[int | None, int | None]]]:
    """The links that hold at a position, by source, target and kind, each with when it is valid from and to."""
    found: dict[tuple[int, int, int], set[tuple[int | None, int | None]]] = {}
    gone = ended(lane, position)
    for stretch in lane.upto(position):
        for source, target, kind, since, *valid in lane.db.execute(_LINKS, (stretch.session, stretch.high)):
            if since > gone.get((source, target, kind), 0):
                found.setdefault((source, target, kind), set()).add((valid[0], valid[1]))
    return found


def walk(
    lane: Branch,
    page: int,
    position: int,
    *,
    up: bool,
    depth: int | None = None,
    kinds: Iterable[int] | None = None,
) -> list[Edge]:
    """The links met from a page towards its sources (`up`) or what came of it, breadth first.

    Only links logged at or before `position`, and not ended by then, count. The views have reached it, and what they
    say of it does not change, so a lane keeps the walks it was asked for. Each page is walked from once,
    so a walk ends.
    """
    wanted = None if kinds is None else frozenset(kinds)
    asked = (page, position, up, depth, wanted)
    known: list[Edge] | None = lane.walks.get(asked)
    if known is None:
        if len(lane.walks) >= WALKS_MAX:
            lane.walks.clear()
        known = lane.walks[asked] = _walk(lane, page, position, up, depth, wanted)
    return list(known)


def _walk(
    lane: Branch, page: int, position: int, up: bool, depth: int | None, wanted: frozenset[int] | None
) -> list[Edge]:
    """Goes one step from all pages of a front at once."""
    stretches = lane.upto(position)
    sql = _step(up, len(stretches))
    bounds = [bound for stretch in stretches for bound in (stretch.session, stretch.high)]
    far = itemgetter(1 if up else 0)
    gone, edges = ended(lane, position), list[Edge]()
    seen, front, steps = {page}, [page], 0
    while front and bounds and (depth is None or steps < depth):
        steps += 1
        met = list(map(_EDGE, lane.db.execute(sql, (*bounds, steps, str(front)))))
        if gone:
            met = [edge for edge in met if edge.position > gone.get((edge.source, edge.target, edge.kind), 0)]
        if wanted is not None:
            met = [edge for edge in met if edge.kind in wanted]
        edges += met
        front = [other for other in dict.fromkeys(map(far, met)) if other not in seen]
        seen.update(front)
    return edges


@cache
def _step(up: bool, stretches: int) -> str:
    """The query for the links of a list of pages; CROSS JOIN holds the order, links last."""
    assert Edge._fields == ("source", "target", "kind", "position", "depth"), "rows become edges by place, unchecked"
    near = "source" if up else "target"
    bounds = ",".join(["(?,?)"] * stretches)
    return f"""WITH stretch(session, high) AS (VALUES{bounds or "(0,0)"})
      SELECT l.source, l.target, l.kind, l.position, ?
        FROM json_each(?) front CROSS JOIN stretch
        CROSS JOIN links l ON l.session = stretch.session AND l.{near} = front.value AND l.position <= stretch.high"""


def depths(lane: Branch, position: int) -> dict[int, int]:
    """How many steps of derivation lead from each page to the farthest it was made from; none that was made from none.

    The longest way counts; one that leads back to where it came from ends there.
    """
    sources: dict[int, list[int]] = {}
    for source, target, kind in held(lane, position):
        if kind == LinkKind.DERIVES:
            sources.setdefault(source, []).append(target)
    found: dict[int, int] = {}
    begun: set[int] = set()
    for page, made_of in sources.items():
        path = [(page, iter(made_of))] if page not in begun else []
        begun.add(page)
        while path:
            at, left = path[-1]
            below = next((each for each in left if each in sources and each not in begun), None)
            if below is None:
                found[at] = 1 + max(found.get(each, 0) for each in sources[at])
                path.pop()
            else:
                begun.add(below)
                path.append((below, iter(sources[below])))
    return found


def outdated(lane: Branch, position: int) -> set[int]:
    """The derived pages that are older than what they were made from: a source changed since, they did not."""
    changed: dict[int, int] = {}  # page -> position of its last version
    for stretch in reversed(lane.upto(position)):
        changed.update(lane.db.execute(_CHANGED, (stretch.session, stretch.high)))
    found: set[int] = set()
    gone = ended(lane, position) if changed else {}
    flushed = _flushed(lane, position) if changed else {}
    for stretch in lane.upto(position) if changed else ():
        for source, target, linked in lane.db.execute(_DERIVED, (str([*changed]), stretch.session, stretch.high)):
            since = max(linked, changed.get(source, 0), flushed.get(source, 0))
            if changed[target] > since and linked > gone.get((source, target, int(LinkKind.DERIVES)), 0):
                found.add(source)
    return found


def _flushed(lane: Branch, position: int) -> dict[int, int]:
    """The position of each page's last `flush`."""
    found: dict[int, int] = {}
    for stretch in reversed(lane.upto(position)):
        found.update(lane.db.execute(_FLUSHED, (stretch.session, stretch.high)))
    return found


_CHANGED = "SELECT page, max(position) FROM changes WHERE session = ? AND position <= ? AND level = 0 GROUP BY page"
_DERIVED = f"""SELECT l.source, l.target, l.position FROM json_each(?) page
  CROSS JOIN links l ON l.session = ? AND l.target = page.value AND l.position <= ?
   AND l.kind = {int(LinkKind.DERIVES)}"""
_ENDED = "SELECT source, target, kind, position FROM unlinks WHERE session = ? AND position <= ?"
_LINKS = """SELECT source, target, kind, position, valid_from, valid_to FROM links
  WHERE session = ? AND position <= ? ORDER BY position"""
_FLUSHED = "SELECT page, max(position) FROM flushes WHERE session = ? AND position <= ? GROUP BY page"
WALKS_MAX = 1_000
_EDGE: Callable[[Iterable[Any]], Edge] = partial(tuple.__new__, Edge)
