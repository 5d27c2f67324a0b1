"""The tables of states in residency.md, driven through the gate: what becomes of a page, mutation by mutation."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import apsw

from tests.prose import section, tables
from vmstore.core import mutation as m
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.decision import Why
from vmstore.core.page import Modality, PageType, Role
from vmstore.engine.batch import Batch
from vmstore.engine.engine import Engine
from vmstore.engine.head import NewSession
from vmstore.errors import RefusedError
from vmstore.log.memory import MemoryLog
from vmstore.views.projection import Projection


class Scene(NamedTuple):
    """A page in some state, and the batch that can change it."""

    batch: Batch
    page: int
    less: int  # the position of its shorter content


def scene(state: str) -> Scene:
    """A page in a state."""
    log = MemoryLog()
    engine = Engine(log, Projection(log, apsw.Connection(":memory:")), ManualClock(), SeededIds())
    batch = engine.begin(NewSession("s"), 0)
    if state == "none":
        return Scene(batch, batch.position + 1, batch.position + 2)
    page = create(batch)
    less = batch.add(m.Compress(page, 1, 3, 2, 1, batch.cell(b"a note"), 6, 2))
    if state != "L2":
        pack(batch, ((page, page, 0, 1024) if state == "L0 full" else (page, less, 3, 1024),))
    return Scene(batch, page, less)


def create(batch: Batch) -> int:
    """A page with a content of its own."""
    content = batch.cell(f"page {batch.position}".encode())
    return batch.add(m.Create(PageType.TRANSCRIPT, Modality.TEXT, Role.USER, 0, 0, content, 6, 2))


def pack(batch: Batch, entered: tuple[m.Residence, ...] = (), left: tuple[int, ...] = ()) -> None:
    """A call whose totals are right where its membership can be."""
    try:
        totals = batch.head.copy().enter(entered, left)
    except (KeyError, AssertionError):  # the rules before the totals will say why
        totals = batch.head.totals
    call = batch.head.call + 1
    batch.add(m.Pack(call, 1, totals.leaves, totals.tokens, totals.root, entered, left))
    batch.end(0)


def link(s: Scene) -> None:
    """A link from the page to another."""
    s.batch.add(m.Link(s.page, create(s.batch) if s.page <= s.batch.head.position else 1, 0))


def update(s: Scene) -> None:
    """A new version of the page."""
    s.batch.add(m.Update(s.page, 2, s.batch.cell(b"other"), 5, 2))


def compress(s: Scene) -> None:
    """A shorter form of the page."""
    s.batch.add(m.Compress(s.page, 1, 2, 1, 1, s.batch.cell(b"less"), 4, 1))


ACTS: dict[str, Callable[[Scene], object]] = {
    "`create`": lambda s: create(s.batch),
    "`update`": update,
    "`compress`": compress,
    "`link`": link,
    "`pack` enters full": lambda s: pack(s.batch, ((s.page, s.page, 0, 1024),)),
    "`pack` enters less": lambda s: pack(s.batch, ((s.page, s.less, 3, 1024),)),
    "`pack` leaves": lambda s: pack(s.batch, (), (s.page,)),
    "`pack` is silent": lambda s: pack(s.batch),
}


def decision(make: Callable[[Scene], m.Mutation]) -> Callable[[Scene], object]:
    """Logs a decision about the page, and before it what asked for it, of the same page or of none."""

    def act(s: Scene) -> None:
        s.batch.add(m.Reference(0, 0))
        s.batch.add(make(s))  # type: ignore[arg-type]

    return act


WHY = Why(1, 100, 90, 10, 0, 3, 7, ())
DECIDED: dict[str, Callable[[Scene], object]] = {
    "`reference`": decision(lambda s: m.Reference(s.page, 0)),
    "`fault_in`": decision(lambda s: m.FaultIn(s.page, s.page, 0, 2, s.batch.position - 1, WHY)),
    "`fault_denied`": decision(lambda s: m.FaultDenied(s.page, s.batch.position - 1, 4, WHY)),
    "`prefetch`": decision(lambda s: m.Prefetch(s.page, s.less, 3, 2, s.batch.position - 1, WHY)),
    "`evict`": decision(lambda s: m.Evict(s.page, 0, 2, 7, why=WHY)),
    "`evict` to a level": decision(lambda s: m.Evict(s.page, 0, 1, 7, 3, s.less, WHY)),
    "`pin`": decision(lambda s: m.Pin(s.page)),
    "`unpin`": decision(lambda s: m.Unpin(s.page)),
}


def outcome(state: str, act: str) -> str:
    """What becomes of a page in a state when a mutation is tried, in the words of the table."""
    actual_scene = scene(state)
    page = actual_scene.batch.position if (state, act) == ("none", "`create`") else actual_scene.page
    try:
        (ACTS | DECIDED)[act](actual_scene)
    except RefusedError as error:
        return f"refused: `{re.findall(r'rule (.+)[)]', str(error))[0]}`"
    residence = actual_scene.batch.head.residence(page)
    if residence is None:
        return "`none`" if actual_scene.batch.head.version(page) is None else "`L2`"
    return "`L0 less`" if residence[2] else "`L0 full`"


def states(text: str) -> list[str]:
    """What the tables of states get wrong about what the gate does."""
    return _states(text, "The state machine", ACTS) + _states(text, "Decisions", DECIDED)


def _states(text: str, title: str, driven: dict[str, Callable[[Scene], object]]) -> list[str]:
    other_section = section(text, title)
    title = next(line for line in other_section.split("\n") if line.startswith("| state"))
    acts = [cell.strip() for cell in title.strip("|").split("|")][1:]
    table = tables(other_section)[0]
    wrong = [f"acts {acts}"] if acts != list(driven) else []
    if [row[0] for row in table] != ["`none`", "`L2`", "`L0 full`", "`L0 less`"]:
        return [*wrong, "states"]
    cases = [(row[0].strip("`"), act, cell) for row in table for act, cell in zip(acts, row[1:], strict=True)]
    return wrong + [f"{s}, {a}: {outcome(s, a)}" for s, a, cell in cases if a in driven and outcome(s, a) != cell]
