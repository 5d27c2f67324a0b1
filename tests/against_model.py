"""Law 1: every view answers as the model of `specs/model.py` does, which is fed from the public tail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

from specs.decided import Decided as Model
from specs.model import Edge
from tests.against_catalog import catalog_is_the_models
from vmstore.core import mutation as kinds
from vmstore.core.page import Fidelity, LinkKind, Modality, PageType, Role, Status
from vmstore.errors import UnknownError
from vmstore.store.session import Session
from vmstore.store.store import Store
from vmstore.testing.simulate import Player
from vmstore.views.branch import Branch

KINDS = {kinds.MUTATION_NAMES[kind.NUMBER]: kind for kind in kinds.Mutation.__subclasses__()}
QUESTIONS = (
    *("own", "seen", "last", "calls", "turns", "messages", "versions", "context", "pages", "links", "history"),
    *("moves", "pinned", "settings", "invalidated"),
)
SAMPLES = 8  # positions looked at in each session, besides every call


def model_of(store: Store) -> Model:
    """The model of all a store holds, fed from its tail and with the bytes of its cells."""
    model = Model()
    cells = {}
    for commit in store.admin.log.tail(0, 1 << 30):
        actual_cells = store.admin.log.cells(range(commit.cell, commit.cell + commit.cell_count))
        contents = [cell.content for _, cell in sorted(actual_cells.items())]  # one list a commit
        cells.update(((commit.session, at), contents) for at in range(commit.first, commit.last + 1))
    store.sessions()  # the views follow when they are asked
    keys = dict(store.admin.views.execute("SELECT name, session FROM sessions"))
    for entry in store.tail():
        value = KINDS[entry.kind](**entry.mutation)
        model.apply(entry.session, entry.position, value, entry.at, cells[keys[entry.session], entry.position])
    for question in QUESTIONS:  # the same ones are asked again and again, and the log stands still
        setattr(model, question, cache(getattr(model, question)))
    return model


def key_of(views: Any, name: str) -> int:
    """The number of a session in this log."""
    return int(views.execute("SELECT session FROM sessions WHERE name = ?", (name,)).get)


def samples(last: int) -> list[int]:
    """Some positions from the first to the last, spread evenly."""
    return sorted({*range(1, last + 1, max(1, last // SAMPLES)), last})


def answers_are_the_models(player: Player) -> None:
    """Every view answers as the model does, about the head and about the past."""
    store_answers_as_the_model(player.store)


def store_answers_as_the_model(store: Store) -> None:
    """Asks every session of a store about its head, each call, positions and times, and asks the model the same."""
    model = model_of(store)
    assert [info.session for info in store.sessions()] == sorted(model.names.values())
    for name in model.names.values():
        session = store.session(name)
        _whole_session(model, name, session)
        for call, made in model.calls(name).items():
            _context(model, name, session, made.position, {"call": call})
        for position in samples(model.last(name)[0]):
            _moment(model, name, session, position)
            _messages(model, name, store.admin.views, position)
        _times(model, name, session)


def _whole_session(model: Model, name: str, session: Session) -> None:
    info, own = session.info(), model.own(name)
    born = [fact.mutation for fact in own if isinstance(fact.mutation, kinds.Create)]
    assert (info.position, info.turns, info.calls) == model.last(name)
    assert (info.mutations, info.pages, info.tokens) == (len(own), len(born), sum(item.tokens for item in born))
    assert info.messages == sum(isinstance(fact.mutation, kinds.Message) for fact in own)
    assert info.status == model.status(name)
    derived = any(call.pack.fidelity == Fidelity.DERIVED for call in model.calls(name).values())
    recorded = sum(
        isinstance(item.mutation, kinds.Pack) and item.mutation.fidelity == Fidelity.RECORDED for item in own
    )
    assert info.recorded == recorded
    assert info.fidelity == ("recorded" if not derived else "partly" if recorded else "derived")
    assert [(turn.turn, turn.position, turn.calls) for turn in session.turns()] == model.turns(name)
    faults, left = model.moves(name)
    moved = Counter(fault.turn for fault in faults), Counter(turn for _, turn in left)
    assert [(turn.faults, turn.evictions) for turn in session.turns()] == [
        (moved[0][turn], moved[1][turn]) for turn, _, _ in model.turns(name)
    ]
    fields = model.told(name)
    assert [(turn.searches, turn.load) for turn in session.turns()] == [
        fields.get(turn, (0, None)) for turn, _, _ in model.turns(name)
    ]
    _costs(model, name, session)
    assert [_call(call) for call in session.calls()] == [
        (number, call.turn, call.position, call.at, call.pack.leaves, call.pack.tokens, *_reply(call.reply))
        for number, call in model.calls(name).items()
    ]


def _costs(model: Model, name: str, session: Session) -> None:
    """What each call could hold, and what it cost of the request before."""
    calls, voided = model.calls(name), model.invalidated(name)
    for call in session.calls():
        at = calls[call.call].position
        settings = model.settings(name, at) or {}
        factors = [f.mutation.factor_ppm for f in model.seen(name, at) if isinstance(f.mutation, kinds.Configure)]
        tokens = settings.get("l0_tokens_max")
        assert call.budget == (None if tokens is None else tokens * 1_000_000 // (factors or [1_000_000])[-1])
        assert call.invalidated == voided[call.call], f"call {call.call}"


def _call(call: Any) -> tuple[Any, ...]:
    reported = (call.tokens_reported, call.tokens_cached, call.tokens_out, call.tokens_written)
    return call.call, call.turn, call.position, call.at, call.pages, call.tokens, call.status, *reported


def _reply(reply: kinds.Reply | None) -> tuple[Any, ...]:
    if reply is None:
        return "open", None, None, None, None
    return Status(reply.status).word, reply.tokens_in, reply.tokens_cached, reply.tokens_out, reply.tokens_written


def _context(model: Model, name: str, session: Session, position: int, moment: dict[str, int]) -> None:
    contents = {c.position: c for listed in model.versions(name, position).values() for c in listed}
    context = session.context(**moment)
    numbers = model.pinned(name, list(model.calls(name, position).values())[-1].position)
    assert [page.pinned for page in context.pages] == [s.page in numbers for s in model.context(name, position)]
    assert [
        (page.order, page.page, page.level, page.tokens, (page.since_turn, page.since_call)) for page in context.pages
    ] == [
        (order, f"p{shown.page}", shown.level, contents[shown.content].told.tokens, model.last(name, shown.since)[1:])
        for order, shown in enumerate(model.context(name, position), 1)
    ]
    shows = [(shown.page, contents[shown.content]) for shown in model.context(name, position)]
    assert [shown.version for shown in context.shown] == [content.version for _, content in shows]
    assert context.contents() == {
        f"p{page}": model.cell(name, content.position, content.told.content)
        for page, content in shows
        if content.told.content is not None
    }
    packed = list(model.calls(name, position).values())[-1]
    assert (context.basis.position, context.basis.turn) == (packed.position, packed.turn)
    assert (context.basis.call, context.root, context.tokens) == (
        packed.pack.call,
        packed.pack.root,
        packed.pack.tokens,
    )
    assert context.fidelity == Fidelity(packed.pack.fidelity).word


def _moment(model: Model, name: str, session: Session, position: int) -> None:
    pages = model.pages(name, position)
    answered = session.pages(position=position)
    assert [_page(page) for page in answered] == [_modelled(page) for page in pages]
    assert {page.position for page in answered if page.pinned} == model.pinned(name, position)
    catalog_is_the_models(model, name, session, answered, position)
    if model.calls(name, position):
        _context(model, name, session, position, {"position": position})
    else:
        unknown(session.context, position=position)
    for page in pages[:: max(1, len(pages) // 4)]:
        _about_page(model, name, session, page.page, position)


def _page(page: Any) -> tuple[Any, ...]:
    created = page.position, page.created_turn, page.created_call, page.created_at
    kind = page.type, page.role, page.modality, page.message
    return *created, *kind, page.tier, page.level, page.version, page.tokens, page.bytes


def _modelled(page: Any) -> tuple[Any, ...]:
    born = page.born
    kind = PageType(born.type).word, Role(born.role).word, Modality(born.modality).word
    message = f"m{born.message}" if born.message else None
    shown = page.tier, page.level, page.version, page.counted.told.tokens, page.counted.told.size
    return page.page, page.turn, page.call, page.at, *kind, message, *shown


def _about_page(model: Model, name: str, session: Session, page: int, position: int) -> None:
    events = session.lineage.history(page, position=position)
    assert Counter((event.position, event.event) for event in events) == Counter(model.history(name, page, position))
    assert [event.position for event in events] == sorted(event.position for event in events)
    versions = model.versions(name, position)[page]
    by_position = {content.position: content for content in versions}
    for event in events:
        assert (event.turn, event.call) == model.last(name, event.position)[1:]
        if event.event in ("create", "update", "compress"):
            value = by_position[event.position]
            assert (event.version, event.level, event.tokens) == (value.version, value.level, value.told.tokens)
        elif event.event in ("enter", "shown"):
            shown = next(row for row in model.context(name, event.position) if row.page == page)
            assert (event.version, event.level) == (by_position[shown.content].version, shown.level)
    for level in {content.level for content in versions}:
        last = [content for content in versions if content.level == level][-1]
        if last.told.content is not None:
            content = session.content(page, position=position, level=level)
            assert content == model.cell(name, last.position, last.told.content)
    for up, ask in ((True, session.lineage.ancestors), (False, session.lineage.descendants)):
        edges = [_edge(relation) for relation in ask(f"p{page}@position:{position}")]
        assert len(edges) == len(set(edges)), "a link is met once"
        assert set(edges) == model.walk(name, page, position, up=up)
        near = [_edge(relation) for relation in ask(f"p{page}@position:{position}", depth=1)]
        assert set(near) == model.walk(name, page, position, up=up, depth=1)


def _edge(relation: Any) -> Edge:
    kind = LinkKind.of(relation.kind)
    return Edge(relation.depth, int(relation.source[1:]), kind, int(relation.target[1:]), relation.position)


def _messages(model: Model, name: str, views: Any, position: int) -> None:
    lane = Branch(views, key_of(views, name))
    fields: dict[int, tuple[Any, ...]] = {}
    for stretch in lane.upto(position):
        args = (stretch.session, stretch.high)
        for message, *row in lane.db.execute(MESSAGES, args):
            fields[message] = tuple(row)
    assert fields == {
        message: (
            other_message.message.role,
            other_message.message.slot,
            other_message.message.human,
            other_message.message.reply_to,
            other_message.turn,
            other_message.call,
        )
        for message, other_message in model.messages(name, position).items()
    }


def _times(model: Model, name: str, session: Session) -> None:
    moments = {fact.at for fact in model.seen(name)}
    for at in sorted({at + step for at in moments for step in (-1, 0, 1) if at + step >= 0}):
        position = model.at_time(name, at)
        if position is None:
            unknown(session.pages, time=at)
        else:
            pages = [page.position for page in session.pages(time=at)]
            assert pages == [page.page for page in model.pages(name, position)], f"as of time {at}"


def unknown(ask: Callable[..., Any], **moment: int) -> None:
    """Sees that a question about a moment that is none is refused."""
    try:
        answer = ask(**moment)
    except UnknownError:
        return
    raise AssertionError(f"there is no {moment}, and yet the answer was {answer!r}")


MESSAGES = """SELECT message, role, slot, human, reply_to, turn, call FROM messages
  WHERE session = ? AND message <= ?"""
