"""Transitive dependents of pages as one session sees them.

A page stands on another where it was made from it, represents it, was caused by it, is a part or
the caption of it, or was written by the model with a citation of it. That it replaces, contradicts
or is like another makes nothing stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from vmstore.core.mutation import Cite
from vmstore.core.page import LinkKind
from vmstore.views.branch import Branch
from vmstore.views.projectors.lineage import ended

CARRIES = (LinkKind.DERIVES, LinkKind.REPRESENTS, LinkKind.CAUSED_BY, LinkKind.PART_OF)
CITES = "cites"
assert LinkKind.HAS_CAPTION not in CARRIES, "a caption stands on its picture: that link is followed the other way"
_WORDS = {int(kind): kind.word for kind in LinkKind}
assert CITES not in _WORDS.values(), "a step by citation is distinguishable from one by a link"


class DependencyStep(NamedTuple):
    """An edge of the dependency graph: one page depends on another by a link of a `kind` or by citing it."""

    page: int
    on: int
    kind: str


def standing_on(lane: Branch, position: int, roots: Iterable[int]) -> dict[int, list[DependencyStep]]:
    """The roots and all that stands on them at a position, each with the steps that lead there.

    A root has the steps from other pages that were found, or none. Costs what is found.
    """
    found: dict[int, list[DependencyStep]] = {root: [] for root in sorted(roots)}
    front = list(found)
    while front:
        met: dict[int, None] = {}
        for step in steps(lane, position, front, up=False):
            if step.page not in found:
                found[step.page] = []
                met[step.page] = None
            found[step.page].append(step)
        front = list(met)
    return found


def steps(lane: Branch, position: int, pages: Iterable[int], *, up: bool) -> Iterator[DependencyStep]:
    """The pages that some pages depend on (`up`), or their dependents, one step away."""
    listed = f"[{','.join(map(str, pages))}]"
    seen: set[DependencyStep] = set()
    gone = ended(lane, position)
    for stretch in lane.upto(position):
        for page, on, kind, at in lane.db.execute(_UP if up else _DOWN, (listed, stretch.session, stretch.high)):
            step = DependencyStep(page, on, CITES if kind is None else _WORDS[kind])
            ends = (on, page, kind) if kind == LinkKind.HAS_CAPTION else (page, on, kind)
            if page != on and step not in seen and at > gone.get(ends, 0):
                seen.add(step)
                yield step


def replacing(lane: Branch, position: int, pages: Iterable[int]) -> list[tuple[int, int]]:
    """The links at a position by which a page replaces another, as (newer, older), where either is among some pages."""
    listed = f"[{','.join(map(str, pages))}]"
    found: set[tuple[int, int]] = set()
    gone, kind = ended(lane, position), int(LinkKind.SUPERSEDES)
    for stretch in lane.upto(position):
        for near in ("source", "target"):
            rows = lane.db.execute(_REPLACES.format(near=near), (listed, stretch.session, stretch.high))
            found.update((new, old) for new, old, at in rows if at > gone.get((new, old, kind), 0))
    return sorted(found)


_KINDS = ", ".join(str(int(kind)) for kind in CARRIES)
_LINKED = """SELECT {page}, {on}, l.kind, l.position FROM json_each(?1) one CROSS JOIN links l
   ON l.session = ?2 AND l.{near} = one.value AND l.position <= ?3 AND l.kind IN ({kinds})"""
_CITED = f"""SELECT d.cause, d.page, NULL, d.position FROM decisions d {{index}}
  WHERE d.session = ?2 AND d.{{near}} IN (SELECT value FROM json_each(?1)) AND d.position <= ?3
   AND d.kind = {Cite.NUMBER}"""


def _steps(linked: str, captioned: str, cited: str) -> str:
    """The query for steps from a list of pages: those of links, of captions, which lead the other way, of citations."""
    made = _LINKED.format(page="l.source", on="l.target", near=linked, kinds=_KINDS)
    shown = _LINKED.format(page="l.target", on="l.source", near=captioned, kinds=int(LinkKind.HAS_CAPTION))
    return f"{made} UNION ALL {shown} UNION ALL {cited}"


_UP = _steps("source", "target", _CITED.format(index="", near="cause"))
_DOWN = _steps("target", "source", _CITED.format(index="INDEXED BY decisions_page", near="page"))
_REPLACES = f"""SELECT l.source, l.target, l.position FROM json_each(?) one CROSS JOIN links l
   ON l.session = ? AND l.{{near}} = one.value AND l.position <= ? AND l.kind = {int(LinkKind.SUPERSEDES)}"""
