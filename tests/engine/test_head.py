"""A head, folded as it is written, is what the views say."""

from __future__ import annotations

from itertools import cycle

import apsw
from hypothesis import example, given

from tests.cells.test_merkle import reference
from tests.engine.author import STORIES, Author, Deed, engine_over
from vmstore.cells.merkle import EMPTY, leaf
from vmstore.core.mutation import Create, Pack, Update
from vmstore.engine.batch import Batch
from vmstore.engine.engine import Engine
from vmstore.engine.head import EmptyLookups, GateHead, NewSession
from vmstore.engine.lookups import load_head
from vmstore.engine.verify.verify import verify
from vmstore.views.projection import Projection

FORKED = [Deed("say", 1, 1, 1, 3), Deed("pack", 1, 2), Deed("fork", 1), Deed("update", 0, 5), Deed("pack", 3, 5)]

TURNS = [Deed(what, 1) for what in ("turn", "end", "pack", "end", "turn", "end", "pack", "end", "say", "end", "say")]


def state(head: GateHead) -> dict[str, object]:
    """Everything a head knows by itself."""
    return {
        "uid": head.uid,
        "session": head.session,
        "position": head.position,
        "hash": head.hash,
        "turn": head.turn,
        "call": head.call,
        "opened": head.opened,
        "order": head.order,
        "tokens": head.tokens,
        "root": head.tree.root,
        "totals": head.totals,
    }


def answers(head: GateHead) -> list[object]:
    """What a head answers about every position."""
    span = range(head.position + 3)
    return [(head.content(p), head.version(p), head.has_message(p), head.residence(p)) for p in span]


@given(story=STORIES)
@example(story=FORKED)
def test_a_kept_head_is_what_the_views_say(story: list[Deed]) -> None:
    """After any story each session's kept head and one loaded from fresh views agree in all they know."""
    engine = engine_over()
    author = Author(engine)
    author.write(story)
    fresh = Projection(engine.log, apsw.Connection(":memory:"))
    fresh.catch_up()
    for session in author.known:
        kept = engine.head(session)
        loaded = load_head(fresh.db, session)
        assert state(kept) == state(loaded)
        assert answers(kept) == answers(loaded)


@given(story=STORIES)
@example(story=FORKED)
def test_a_story_by_the_rules_is_verified(story: list[Deed]) -> None:
    """What the gate let through is folded, verified without a problem, and rebuilt equal."""
    engine = engine_over()
    Author(engine).write(story)
    engine.follow()
    counts, problems = verify(engine.log, engine.projection)
    assert problems == []
    assert counts.commits == engine.log.ordinal
    names = [projector.name for projector in engine.projection.projectors]
    before = [engine.projection.digest(name) for name in names]
    for name in (*names, None):
        engine.projection.rebuild(name)
    assert [engine.projection.digest(name) for name in names] == before


class Pair(Author):
    """Two engines over one log and one views database, which write in turn."""

    def __init__(self, engine: Engine, two: Engine) -> None:
        self.engines = cycle((engine, two))
        super().__init__(engine)

    def open(self, session: int) -> None:
        """Goes on with the other engine."""
        self.engine = next(self.engines)
        self.engine.follow()
        super().open(session)


@given(story=STORIES)
@example(story=TURNS)
def test_two_engines_in_turn_agree(story: list[Deed]) -> None:
    """Two writers that fold into the same views leave what one fold of the log gives, and agree on every head."""
    each_engine = engine_over()
    two = Engine(
        each_engine.log, Projection(each_engine.log, each_engine.projection.db), each_engine.clock, each_engine.ids
    )
    author = Pair(each_engine, two)
    author.write(story)
    for session in author.known:
        for engine in (each_engine, two):
            engine.follow()
        assert state(each_engine.head(session)) == state(two.head(session))
        assert answers(each_engine.head(session)) == answers(two.head(session))
    assert verify(each_engine.log, two.projection)[1] == []


@given(story=STORIES)
def test_a_copy_is_apart(story: list[Deed]) -> None:
    """Nothing done to a copy of a head is seen by the head."""
    engine = engine_over()
    author = Author(engine)
    author.write([Deed("say", 1, 1, 1, 3), Deed("pack", 1, 2)])
    head = engine.head(1)
    before, value = state(head.copy()), answers(head)
    author.batch = Batch(engine, head.copy())  # its own, never the engine's
    for deed in story:
        if deed.what not in ("fork", "switch", "end"):
            getattr(author, "do_" + deed.what)(deed)
    assert (state(head), answers(head)) == (before, value)


def questions(engine: Engine, session: int) -> int:
    """How many statements the views are asked to load a session's head."""
    asked: list[str] = []
    db = engine.projection.db
    db.exec_trace = lambda _, sql, __: asked.append(sql) is None
    try:
        load_head(db, session)
    finally:
        db.exec_trace = None
    return len(asked)


def test_a_head_is_loaded_by_its_context() -> None:
    """Loading a head asks the views as little after two hundred calls over twenty pages as after two over three."""
    other_questions = []
    for says, calls in ((1, 2), (7, 200)):
        author = Author(engine_over())
        packs = [*(Deed("pack", n, n) for n in range(calls)), Deed("pack", 1, 2)]
        author.write([Deed("say", 1, 1, 1, 3)] * says + packs)
        author.engine.follow()
        assert len(author.engine.head(1).order) >= says
        other_questions.append(questions(author.engine, 1))
    assert other_questions[0] == other_questions[1]


def test_a_refused_batch_leaves_the_head() -> None:
    """A batch that is given up leaves the session's head as it was."""
    engine = engine_over()
    author = Author(engine)
    author.write([Deed("say", 1, 1, 1, 3), Deed("pack", 1, 2)])
    before = state(engine.head(1))
    author.do_pack(Deed("pack", 4, 1))
    author.do_update(Deed("update", 1, 1))
    assert state(engine.head(1)) == before
    assert engine.log.ordinal == 2


def test_a_new_head_knows_nothing() -> None:
    """A session that has just begun has no page, message, turn or call."""
    head = GateHead(b"u" * 16, EmptyLookups(b"u" * 16))
    assert (head.position, head.turn, head.call, head.opened, head.order) == (0, 0, 0, False, [])
    assert (head.session, head.known, head.hash, head.totals) == (0, 0, b"", (0, 0, EMPTY))
    assert answers(head) == [(None, None, False, None)] * 3


def test_entering_again_moves_a_page() -> None:
    """A page that enters while it is there is moved and shown again, not counted twice."""
    engine = engine_over()
    author = Author(engine)
    author.write([Deed("say", 1, 1, 1, 2)])
    first, second = author.now.pages
    batch = engine.batch(1)
    totals = batch.head.copy().enter([(first, first, 0, 10), (second, second, 0, 20)], [])
    batch.add(Pack(1, 0, *totals, ((first, first, 0, 10), (second, second, 0, 20))))
    batch.end(0)
    changed = batch.add(Update(first, 2, batch.cell(b"new"), 3, 40))
    totals = batch.head.copy().enter([(first, changed, 0, 30)], [])
    batch.add(Pack(2, 0, *totals, ((first, changed, 0, 30),)))
    assert [r[0] for r in batch.head.order] == [second, first]
    assert (batch.head.tokens, len(batch.head.tree)) == (2 + 40, 2)
    batch.commit(0)
    assert engine.head(1).residence(first) == (first, changed, 0, 30)


def test_a_context_is_its_pages_in_the_order_of_their_ranks() -> None:
    """Whatever enters, moves and leaves, foreseen or done: so many leaves, their tokens, the root over them."""
    batch = engine_over().begin(NewSession("s"), 0)
    pages = [batch.add(Create(0, 0, 1, 0, 0, batch.cell(b"page %d" % n), 6, 10**n)) for n in range(5)]
    head = batch.head
    (commit,) = batch.commit(0)
    leaves = {page: leaf(head.uid, page, 1, 0, commit.commitment(n + 1)) for n, page in enumerate(pages)}
    ranks: dict[int, int] = {}

    def right(ranks: dict[int, int]) -> tuple[int, int, bytes]:
        order = sorted(ranks, key=lambda page: ranks[page])
        tokens = sum(10 ** pages.index(page) for page in order)
        return len(order), tokens, reference([leaves[page] for page in order])

    for moves, left in (
        ({0: 30, 1: 10, 2: 20}, ()),
        ({3: 15}, ()),
        ({1: 40}, ()),
        ({4: 10, 0: 5}, (2,)),
        ({}, (4, 3)),
        ({}, ()),
        ({2: 1, 3: 2, 4: 3}, (0, 1)),
        ({0: 9, 1: 8}, (2, 3, 4)),
        ({}, (0, 1)),
        ({2: 7}, ()),
    ):
        entered = tuple((pages[n], pages[n], 0, rank) for n, rank in moves.items())
        gone, before = tuple(pages[n] for n in left), head.totals
        stay = {page: rank for page, rank in ranks.items() if page not in gone}
        assert head.foresee((), gone) == right(stay)
        after = {**stay, **{page: rank for page, _, _, rank in entered}}
        assert head.foresee(entered, gone) == right(after) and head.totals == before == right(ranks)
        sketch = head.sketch()
        assert head.enter(entered, gone) == head.totals == right(after)
        assert sketch.totals == before and sketch.enter((), tuple(ranks)) == (0, 0, EMPTY)
        assert head.totals == right(after) and [r[0] for r in head.order] == sorted(after, key=lambda p: after[p])
        assert {page: residence[3] for page in pages if (residence := head.residence(page))} == after
        ranks = after


def test_a_page_keeps_its_name_when_its_content_changes() -> None:
    """A page that was changed is shown by the version and bytes of the change, under who made it and where it began."""
    engine = engine_over()
    batch = engine.begin(NewSession("s"), 0)
    page = batch.add(Create(0, 0, 1, 0, 0, batch.cell(b"first"), 5, 2))
    parent = batch.commit(0)[0].session
    child = engine.fork(parent, page, "f", 0)
    uid = engine.head(parent).uid
    assert engine.head(child).uid != uid
    for session in (parent, child):
        batch = engine.batch(session)
        content = batch.add(Update(page, 2, batch.cell(b"second %d" % session), 8, 3))
        assert content != page
        right = leaf(uid, page, 2, 0, batch.head.recent.sealing[0])
        assert batch.head.foresee(((page, content, 0, 10),), ()) == (1, 3, reference([right]))
        (commit,) = batch.commit(0)
        assert engine.head(session).enter(((page, content, 0, 10),), ()).root == reference([right])
        assert right == leaf(uid, page, 2, 0, commit.commitment(0))
