"""The lineage view: how pages relate, to be walked in both directions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

import apsw

from vmstore.core.mutation import Create, Link
from vmstore.views.lane import Lane
from vmstore.views.projector import Fact, Projector


class Edge(NamedTuple):
    """`source` relates to `target` by `kind`, since `position`; `depth` steps from where a walk began."""

    source: int
    target: int
    kind: int
    position: int
    depth: int


class Lineage(Projector):
    """One row a link: source was made from, replaces, or otherwise relates to target."""

    name = "lineage"
    schema: ClassVar = {
        "links": """session INTEGER, source INTEGER, target INTEGER, kind INTEGER, position INTEGER,
            valid_from INTEGER, valid_to INTEGER, PRIMARY KEY(session, source, target, kind, position)"""
    }
    indexes = ("CREATE INDEX links_target ON links(session, target)",)

    inserts: ClassVar = {"links": "INSERT OR IGNORE"}

    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self._links = self.rows["links"]

    def on_create(self, fact: Fact, m: Create) -> None:
        """Adds the provenance a page is born with."""
        for kind, target in m.links:
            self._links.append((fact.session, fact.position, target, kind, fact.position, None, None))

    def on_link(self, fact: Fact, m: Link) -> None:
        """Adds a link made later."""
        told = (m.source, m.target, m.link, fact.position, m.valid_from, m.valid_to)
        self._links.append((fact.session, *told))


def walk(
    lane: Lane,
    page: int,
    position: int,
    *,
    up: bool,
    depth: int | None = None,
    kinds: Iterable[int] | None = None,
) -> list[Edge]:
    """The links met from a page towards its sources (`up`) or what came of it, breadth first.

    Only links logged at or before `position` count. Each page is walked from once, so the walk ends.
    """
    wanted = None if kinds is None else set(kinds)
    here, there = ("source", "target") if up else ("target", "source")
    sql = f"SELECT source, target, kind, position FROM links WHERE session = ? AND {here} = ? AND position <= ?"
    edges: list[Edge] = []
    seen, front, steps = {page}, [page], 0
    while front and (depth is None or steps < depth):
        steps += 1
        ahead: list[int] = []
        for at in front:
            for stretch in lane.upto(position):
                for source, target, kind, where in lane.db.execute(
                    sql + f" ORDER BY {there}", (stretch.session, at, stretch.high)
                ):
                    if wanted is not None and kind not in wanted:
                        continue
                    edges.append(Edge(source, target, kind, where, steps))
                    other = target if up else source
                    if other not in seen:
                        seen.add(other)
                        ahead.append(other)
        front = ahead
    return edges
