"""Law 1 of the catalog: what is known of pages, and every choice and order of them, as facts read one by one say.

What was said of pages, what is dirty and what came back stand here and not in `specs/model.py`,
which stays small.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from specs.decided import Decided as Model
from specs.model import Fact
from tests.vmql.said import tag_rows
from vmstore.core import mutation as kinds
from vmstore.core.decision import Denial, FaultReason, Signal, Use
from vmstore.core.page import Level, LinkKind, Standing
from vmstore.store.session import Session


def catalog_is_the_models(model: Model, name: str, session: Session, pages: list[Any], position: int) -> None:
    """Whatever the catalog answers about a position is what the model's facts up to there say; `pages` are all."""
    notes = notes_of(model, name, position)
    assert [_noted(page) for page in pages] == [_note(notes[page.position]) for page in pages]
    words = ("tag", "canonical", "pages", "turns", "tokens", "depth")
    tags = [tuple(getattr(tag, word) for word in words) for tag in session.memory.tags.all(position=position)]
    assert tags == [tuple(row[word] for word in words) for row in tag_rows(model, name, position)]
    _accesses(model, name, pages, position)
    choices_are_kept(session, pages, position)
    dirty = {page.position for page in session.pages(position=position, dirty=True)}
    assert dirty == _outdated(model, name, position)
    assert [_fault(fault) for fault in session.debug.faults(position=position)] == [
        _asked(model, name, fault) for fault in model.moves(name, position)[0]
    ]


class Note(NamedTuple):
    """What is known of a page: what it was born with, and the last that was said of each thing."""

    importance: int
    status: int | None
    valid_from: int | None
    valid_to: int | None
    tags: set[str]
    anchors: dict[str, Any]


def notes_of(model: Model, name: str, position: int) -> dict[int, Note]:
    """What is known of every page, read from the first fact on."""
    notes: dict[int, Note] = {}
    for fact in model.seen(name, position):
        mutation = fact.mutation
        if isinstance(mutation, kinds.Create):
            tags = set(_words(model, fact, mutation.labels).get("tags", ()))
            notes[fact.position] = Note(mutation.importance, None, None, None, tags, {})
        elif isinstance(mutation, kinds.Delete):
            notes[mutation.page] = notes[mutation.page]._replace(status=Standing.SUPERSEDED)
        elif isinstance(mutation, kinds.Annotate):
            old, values = (
                notes[mutation.page],
                (mutation.importance, mutation.status, mutation.valid_from, mutation.valid_to),
            )
            kept: Iterable[Any] = (was if new is None else new for was, new in zip(old, values, strict=False))
            gained, lost = (set(_words(model, fact, ref)) for ref in (mutation.tags, mutation.untags))
            anchors = {**old.anchors, **_words(model, fact, mutation.anchors)}
            notes[mutation.page] = Note(*kept, (old.tags | gained) - lost, anchors)
        elif isinstance(mutation, kinds.Tag):
            tags, tag = notes[mutation.page].tags, model.cell(fact.session, fact.position, mutation.tag).decode()
            notes[mutation.page] = notes[mutation.page]._replace(tags=tags | {tag} if mutation.held else tags - {tag})
    return notes


def _words(model: Model, fact: Fact, ref: kinds.CellRef | None) -> Any:
    """The JSON in a cell; nothing where none is named."""
    return {} if ref is None else json.loads(model.cell(fact.session, fact.position, ref))


def _outdated(model: Model, name: str, position: int) -> set[int]:
    """The pages made from one that has a later version than they and their link to it, and were not flushed since."""
    flushed = {f.mutation.page: f.position for f in model.seen(name, position) if isinstance(f.mutation, kinds.Flush)}
    last = {
        page: [content.position for content in contents if content.level == Level.FULL][-1]
        for page, contents in model.versions(name, position).items()
    }
    return {
        edge.source
        for edge in model.links(name, position)
        if edge.kind == LinkKind.DERIVES
        and last[edge.target] > max(edge.position, last[edge.source], flushed.get(edge.source, 0))
    }


def _fault(fault: Any) -> tuple[Any, ...]:
    values = fault.position, fault.turn, fault.page, fault.out_since, fault.granted, fault.denied_because, fault.reason
    return *values, fault.level_asked, fault.level_served, fault.from_tier, fault.tokens


def _asked(model: Model, name: str, fault: Any) -> tuple[Any, ...]:
    """A fault as the facts tell it: what asked, and the mutation that answers; without one a pack showed it."""
    asked, answer = fault.asked, fault.answer
    page = f"p{fault.page}" if fault.page else None
    reason = None
    if asked is not None:
        words = {Use.FAULT: FaultReason(asked.reason), Use.ASKED: FaultReason(asked.reason)}
        words[Use.SIGNAL] = Signal(asked.signal)
        reason = words.get(asked.use, Use(asked.use)).word
    values = (fault.position, fault.turn, page, fault.out_since)
    level = None if asked is None else asked.level
    match answer:
        case kinds.FaultIn():
            return *values, True, None, reason, level, answer.level, answer.tier, answer.tokens
        case kinds.FaultDenied():
            return *values, False, Denial(answer.because).word, reason, level, None, None, None
    shown = next(row for row in model.context(name, fault.position) if row.page == fault.page)
    content = next(c for c in model.versions(name, fault.position)[fault.page] if c.position == shown.content)
    return *values, True, None, None, None, shown.level, 2, content.told.tokens


def _noted(page: Any) -> tuple[Any, ...]:
    values = page.importance, page.status, page.valid_from, page.valid_to
    return *values, page.tags, page.anchors


def _note(note: Any) -> tuple[Any, ...]:
    status = None if note.status is None else Standing(note.status).word
    anchors = {name: value for name, value in note.anchors.items() if value is not None}
    return note.importance / 1e6, status, note.valid_from, note.valid_to, sorted(note.tags), anchors


def _accesses(model: Model, name: str, pages: list[Any], position: int) -> None:
    """Each page's calls are those whose context held it, and it stands for what it is linked to as that."""
    counts: Counter[int] = Counter()
    last: dict[int, int] = {}
    for call in model.calls(name, position).values():
        for shown in model.context(name, call.position):
            counts[shown.page] += 1
            last[shown.page] = call.turn
    represented: dict[int, set[int]] = {}
    for edge in model.links(name, position):
        if edge.kind == LinkKind.REPRESENTS:
            represented.setdefault(edge.source, set()).add(edge.target)
    for page in pages:
        assert (page.access_count, page.last_access_turn) == (counts[page.position], last.get(page.position))
        assert page.represents == [f"p{target}" for target in sorted(represented.get(page.position, ()))]


CHOICES: dict[str, tuple[Any, Callable[[Any], bool]]] = {
    "type": ("claim", lambda page: page.type == "claim"),
    "role": ("tool", lambda page: page.role == "tool"),
    "actor": ("user", lambda page: page.actor == "user"),
    "tier": ("L0", lambda page: page.tier == 0),
    "level": (0, lambda page: page.level == 0),
    "tag": ("t1", lambda page: "t1" in page.tags),
    "importance_min": (0.8, lambda page: page.importance >= 0.8),
}
MORE = {"level": (2, lambda page: page.level == 2), "tier": (2, lambda page: page.tier == 2)} | {
    "importance_min": (0.4, lambda page: page.importance >= 0.4),
    "type": ("transcript", lambda page: page.type == "transcript"),
}


def choices_are_kept(session: Session, pages: list[Any], position: int) -> None:
    """Each choice, and each pair of them, gives the pages of all that say so; each order sorts, each cursor goes on."""
    singles = [{name: choice} for choices in (CHOICES, MORE) for name, choice in choices.items()]
    pairs = [
        {choice: CHOICES[choice], other: CHOICES[other]} for choice in CHOICES for other in CHOICES if choice < other
    ]
    for chosen in singles + pairs[position % 3 :: 3]:
        values = {name: value for name, (value, _) in chosen.items()}
        right = [page for page in pages if all(holds(page) for _, holds in chosen.values())]
        assert session.pages(position=position, **values) == right, values
    for order_by in ("position", "importance", "tokens", "recency"):
        ordered = session.pages(position=position, order_by=order_by)
        assert sorted(ordered, key=lambda page: page.position) == pages
        if order_by in ("importance", "tokens"):
            assert ordered == sorted(pages, key=lambda page: (-getattr(page, order_by), page.position))
        some: list[Any] = []
        while more := session.pages(
            position=position, order_by=order_by, limit=3, after=some[-1].page if some else None
        ):
            some += more
        assert some == ordered, f"by {order_by}, three at a time"
