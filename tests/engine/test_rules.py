"""Each rule of the gate is broken by a test, alone, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.engine.author import engine_over
from tests.refusals import refused
from vmstore.core.decision import PromptContest, Why
from vmstore.core.mutation import (
    Alias,
    Annotate,
    Cite,
    Close,
    Compress,
    Configure,
    Create,
    Delete,
    Depth,
    Embed,
    Erase,
    Evict,
    Fact,
    FaultDenied,
    FaultIn,
    Flush,
    GuardTrip,
    Link,
    Mark,
    Message,
    Mutation,
    Open,
    Pack,
    Pin,
    Prefetch,
    Pressure,
    Promote,
    Recall,
    Reference,
    Reply,
    Search,
    Segment,
    Settings,
    Share,
    Tag,
    ToolRun,
    Turn,
    Unknown,
    Unlink,
    Unpin,
    Update,
)
from vmstore.core.page import LinkKind
from vmstore.engine.batch import Batch
from vmstore.engine.engine import Engine
from vmstore.engine.head import EmptyLookups, GateHead, NewSession
from vmstore.engine.rules.rules import RULES
from vmstore.engine.rules.rules_by_kind import OF_CONTENTS
from vmstore.errors import RefusedError

# The scene: message 3 with pages 4 (version 2 at position 8) and 5 (opaque); page 6 stands in no
# message; 7 is a shorter form of 4 at level 1; call 1 (position 9) shows 4 at rank 10 and 5 at rank 20.
MESSAGE, PAGE, OPAQUE, APART, SHORT, NEWER, CALL = 3, 4, 5, 6, 7, 8, 9
LOST = PromptContest(7, 0, 1, 0, 9, 0, ((1, 99),))
WHY = Why(1, 8_000, 7_000, 900, PAGE, 12, 40, ((41, OPAQUE),))


def scene() -> Engine:
    """An engine whose session 1 has two turns' worth of everything a rule may look at."""
    engine = engine_over()
    batch = engine.begin(NewSession("s"), 0)
    batch.add(Turn(1))
    batch.add(Message(1, 2, batch.cell(b"{}"), 1))
    batch.add(Create(0, 0, 1, MESSAGE, 0, batch.cell(b"hello"), 5, 2))
    batch.add(Create(0, 0, 1, MESSAGE, 1, None, 0, 7))
    batch.add(Create(6, 0, 5, 0, 0, batch.cell(b"raw"), 3, 1))
    batch.add(Compress(PAGE, 1, 1, 0, 1, batch.cell(b"h"), 1, 1))
    batch.add(Update(PAGE, 2, batch.cell(b"hello!"), 6, 2))
    batch.add(pack(batch, [(PAGE, NEWER, 0, 10), (OPAQUE, OPAQUE, 0, 20)]))
    batch.commit(0)
    return engine


def pack(batch: Batch, entered: list[tuple[int, int, int, int]], left: tuple[int, ...] = (), **fields: Any) -> Pack:
    """A pack whose totals are right unless `told` says otherwise."""
    totals = batch.head.copy().enter(entered, left)
    stated = {"call": batch.head.call + 1, "leaves": totals.leaves, "tokens": totals.tokens, "root": totals.root}
    return Pack(entered=tuple(entered), left=left, **{"fidelity": 0, **stated, **fields})


def fact(batch: Batch, **changed: Any) -> Fact:
    """A fact that may stand, with some fields changed."""
    word = batch.cell(b"word")
    fields = dict.fromkeys(("type", "status", "one", "precision", "confidence", "strength"), 0)
    words = dict.fromkeys(("subject", "verb", "what", "method"), word)
    times = dict.fromkeys(("attribute", "valid_from", "valid_to"))
    return Fact(**{"page": PAGE, **words, **fields, **times, **changed})


def create(**options: Any) -> Create:
    """An opaque page of no message."""
    fields = {"type": 0, "modality": 0, "role": 0, "message": 0, "part": 0, "content": None, "size": 0, "tokens": 0}
    return Create(**{**fields, **options})


def after(*mutations: Mutation) -> Callable[[Batch], None]:
    """Writes mutations before the one that breaks a rule."""

    def write(batch: Batch) -> None:
        for mutation in mutations:
            batch.add(mutation)

    return write


nothing = after()
Breaker = tuple[str, Callable[[Batch], None], Callable[[Batch], Any]]
BREAKERS: list[Breaker] = [
    ("kind_is_known", nothing, lambda b: Unknown(99, b"\x91\x63")),
    ("fields_are_typed", nothing, lambda b: create(part="first")),
    ("fields_are_typed", nothing, lambda b: create(importance=0.5)),
    ("fields_are_typed", nothing, lambda b: create(size=True)),
    ("fields_are_typed", nothing, lambda b: Recall(PAGE, None)),
    ("fields_are_typed", nothing, lambda b: Recall(PAGE, object())),
    ("fields_are_typed", nothing, lambda b: Mark(0, digest="d" * 16)),
    ("fields_are_typed", nothing, lambda b: Link(PAGE, OPAQUE, 0, valid_from="wide")),
    ("open_comes_first", nothing, lambda b: Open(b"u" * 16, b.cell(b"again"))),
    ("turn_is_next", nothing, lambda b: Turn(1)),
    ("turn_is_next", nothing, lambda b: Turn(3)),
    ("turn_opens_its_commit", after(Configure(1, 2)), lambda b: Turn(2)),
    ("nothing_follows_an_end", after(Mark(0)), lambda b: Configure(1, 2)),
    ("nothing_follows_an_end", lambda b: after(pack(b, []))(b), lambda b: Reply(2, 1)),
    ("cells_exist", nothing, lambda b: Message(0, 0, 0)),
    ("cells_exist", lambda b: after(Message(0, 0, b.cell(b"x")))(b), lambda b: Mark(0, name=1)),
    ("cells_exist", nothing, lambda b: Message(0, 0, -1)),
    ("cells_exist", nothing, lambda b: Message(0, 0, (0, 0))),
    ("cells_exist", nothing, lambda b: Message(0, 0, (1, -1))),
    ("cells_exist", nothing, lambda b: Message(0, 0, (b.position, 0))),
    ("cells_exist", nothing, lambda b: pack(b, [], rest=3)),
    ("cells_exist", nothing, lambda b: pack(b, [], envelopes=((MESSAGE, 3),))),
    ("erased_cells_are_its_own", nothing, lambda b: Erase(0)),
    ("erased_cells_are_its_own", nothing, lambda b: Erase(0, ((PAGE, 99),))),
    ("erased_cells_are_its_own", nothing, lambda b: Erase(0, ((PAGE, -1),))),
    ("erased_cells_are_its_own", nothing, lambda b: Erase(0, ((0, 0),))),
    ("erased_cells_are_its_own", nothing, lambda b: Erase(0, ((b.position, 0),))),
    ("erased_cells_are_its_own", nothing, lambda b: Erase(0, (), b.position)),
    ("words_are_listed", nothing, lambda b: Erase(99, ((PAGE, 0),))),
    ("cells_exist", nothing, lambda b: pack(b, [], envelopes=((MESSAGE, 1),))),
    ("cells_exist", nothing, lambda b: pack(b, [], envelopes=((MESSAGE, -1),))),
    ("cells_exist", nothing, lambda b: pack(b, [], envelopes=((MESSAGE, (1, 99)),))),
    ("message_exists", nothing, lambda b: create(message=PAGE)),
    ("message_exists", nothing, lambda b: create(message=99)),
    ("page_exists", nothing, lambda b: Link(99, PAGE, 0)),
    ("page_exists", nothing, lambda b: Link(PAGE, MESSAGE, 0)),
    ("page_exists", nothing, lambda b: create(links=((0, 99),))),
    ("page_exists", nothing, lambda b: create(links=((0, b.position),))),
    ("version_is_next", nothing, lambda b: Update(PAGE, 2, b.cell(b"x"), 1, 1)),
    ("version_is_next", nothing, lambda b: Update(PAGE, 4, b.cell(b"x"), 1, 1)),
    ("version_is_next", nothing, lambda b: Compress(PAGE, 1, 1, 0, 1, b.cell(b"x"), 1, 1)),
    ("version_is_next", nothing, lambda b: Compress(PAGE, 3, 1, 0, 1, b.cell(b"x"), 1, 1)),
    ("level_is_reduced", nothing, lambda b: Compress(PAGE, 2, 0, 0, 1, b.cell(b"x"), 1, 1)),
    ("level_is_reduced", nothing, lambda b: Compress(PAGE, 2, 4, 0, 1, b.cell(b"x"), 1, 1)),
    ("link_kind_is_listed", nothing, lambda b: Link(PAGE, APART, len(LinkKind))),
    ("links_lead_elsewhere", nothing, lambda b: Link(PAGE, PAGE, 0)),
    ("links_lead_elsewhere", nothing, lambda b: Unlink(PAGE, PAGE, 0)),
    ("link_kind_is_listed", nothing, lambda b: Unlink(PAGE, APART, len(LinkKind))),
    ("results_keep_their_call", nothing, lambda b: Unlink(PAGE, APART, LinkKind.CAUSED_BY)),
    ("page_exists", nothing, lambda b: Unlink(PAGE, 99, 0)),
    ("page_exists", nothing, lambda b: Delete(99)),
    ("page_exists", nothing, lambda b: Flush(99)),
    ("words_are_listed", nothing, lambda b: Close(0)),
    ("cells_exist", nothing, lambda b: Close(2, 99)),
    ("link_kind_is_listed", nothing, lambda b: create(links=((-1, PAGE),))),
    ("sizes_count_up", nothing, lambda b: create(size=-1)),
    ("sizes_count_up", nothing, lambda b: create(tokens=-1)),
    ("sizes_count_up", nothing, lambda b: Update(PAGE, 3, b.cell(b"x"), -1, 1)),
    ("sizes_count_up", nothing, lambda b: Compress(PAGE, 2, 1, 0, 1, b.cell(b"x"), 1, -1)),
    ("numbers_fit", nothing, lambda b: Configure(1, 2**63)),
    ("numbers_fit", nothing, lambda b: create(tokens=2**63)),
    ("numbers_fit", nothing, lambda b: create(part=-(2**63))),
    ("numbers_fit", nothing, lambda b: create(part=2**64 - 1)),
    ("numbers_fit", nothing, lambda b: Annotate(PAGE, valid_to=2**63)),
    ("importance_is_a_share", nothing, lambda b: create(importance=1_000_001)),
    ("importance_is_a_share", nothing, lambda b: Annotate(PAGE, -1)),
    ("annotation_says_something", nothing, lambda b: Annotate(PAGE)),
    ("page_exists", nothing, lambda b: Annotate(99, 1)),
    ("words_are_listed", nothing, lambda b: Annotate(PAGE, status=99)),
    ("cells_exist", nothing, lambda b: Annotate(PAGE, tags=3)),
    ("numbers_fit", nothing, lambda b: Message(0, 2, b.cell(b"{}"), human=2**63)),
    ("numbers_fit", nothing, lambda b: Reply(1, 1, cost=2**63)),
    ("numbers_fit", nothing, lambda b: Link(PAGE, APART, 0, valid_from=2**63)),
    ("numbers_fit", nothing, lambda b: pack(b, [(APART, APART, 0, 2**63)])),
    ("words_are_listed", nothing, lambda b: create(type=99)),
    ("words_are_listed", nothing, lambda b: create(modality=99)),
    ("words_are_listed", nothing, lambda b: create(role=-1)),
    ("words_are_listed", nothing, lambda b: create(mime=99)),
    ("words_are_listed", nothing, lambda b: Message(99, 2, b.cell(b"{}"))),
    ("words_are_listed", nothing, lambda b: Message(0, 99, b.cell(b"{}"))),
    ("words_are_listed", nothing, lambda b: Reply(1, 99)),
    ("words_are_listed", nothing, lambda b: pack(b, [], fidelity=99)),
    ("words_are_listed", nothing, lambda b: Mark(99)),
    ("call_is_next", nothing, lambda b: pack(b, [], call=1)),
    ("call_is_next", nothing, lambda b: pack(b, [], call=3)),
    ("reply_answers_last_call", nothing, lambda b: Reply(2, 1)),
    ("reply_answers_last_call", nothing, lambda b: Reply(0, 1)),
    ("reply_answers_last_call", nothing, lambda b: Message(2, 2, b.cell(b"{}"), reply_to=2)),
    ("membership_changes", nothing, lambda b: pack(b, [(PAGE, NEWER, 1, 30)])),
    ("membership_changes", nothing, lambda b: pack(b, [(APART, PAGE, 0, 30)])),
    ("page_exists", nothing, lambda b: Pin(99)),
    ("page_exists", nothing, lambda b: Cite(PAGE, 99)),
    ("page_exists", nothing, lambda b: Reference(99, 0)),
    ("page_exists", nothing, lambda b: Search(b.cell(b"words"), (PAGE, 99))),
    ("page_exists", nothing, lambda b: Search(b.cell(b"words"), contests=(LOST,))),
    ("page_exists", nothing, lambda b: Segment(1, 99)),
    ("words_are_listed", nothing, lambda b: Pin(PAGE, 99)),
    ("words_are_listed", nothing, lambda b: Reference(PAGE, 0, signal=99)),
    ("words_are_listed", nothing, lambda b: FaultIn(PAGE, NEWER, 0, 2, CALL, WHY, 9)),
    ("words_are_listed", nothing, lambda b: FaultDenied(PAGE, CALL, 99, WHY)),
    ("words_are_listed", nothing, lambda b: Pressure(9, 1, 1)),
    ("sizes_count_up", nothing, lambda b: Evict(PAGE, 0, -1)),
    ("cells_exist", nothing, lambda b: Settings(0)),
    ("cells_exist", nothing, lambda b: Reference(PAGE, 0, evidence=3)),
    ("fields_are_typed", nothing, lambda b: FaultDenied(PAGE, CALL, 1, (1, 2, 3))),
    ("fields_are_typed", nothing, lambda b: Unpin(PAGE, 0, why=7)),
    ("numbers_fit", nothing, lambda b: FaultDenied(PAGE, CALL, 1, WHY._replace(losers=((2**63, 4),)))),
    ("content_is_its_own", nothing, lambda b: FaultIn(PAGE, OPAQUE, 0, 2, CALL, WHY)),
    ("content_is_its_own", nothing, lambda b: FaultIn(PAGE, NEWER, 1, 2, CALL, WHY)),
    ("content_is_its_own", nothing, lambda b: FaultIn(PAGE, 99, 0, 2, CALL, WHY)),
    ("content_is_its_own", nothing, lambda b: Prefetch(APART, SHORT, 1, 2, CALL, WHY)),
    ("content_is_its_own", nothing, lambda b: Evict(PAGE, 0, 2, level=1)),
    ("content_is_its_own", nothing, lambda b: Evict(PAGE, 0, 2, content=SHORT)),
    ("content_is_its_own", nothing, lambda b: Evict(PAGE, 0, 2, level=2, content=SHORT)),
    ("facts_end_after_they_begin", nothing, lambda b: fact(b, valid_from=5, valid_to=4)),
    ("facts_end_after_they_begin", nothing, lambda b: fact(b, one=1)),
    ("importance_is_a_share", nothing, lambda b: fact(b, confidence=1_000_001)),
    ("importance_is_a_share", nothing, lambda b: fact(b, strength=-1)),
    ("words_are_listed", nothing, lambda b: fact(b, status=99)),
    ("words_are_listed", nothing, lambda b: fact(b, type=11)),
    ("words_are_listed", nothing, lambda b: fact(b, one=2, attribute=b.cell(b"word"))),
    ("words_are_listed", nothing, lambda b: fact(b, precision=6)),
    ("page_exists", nothing, lambda b: fact(b, page=99)),
    ("cells_exist", nothing, lambda b: fact(b, what=99)),
    ("embeds_a_content", nothing, lambda b: Embed(OPAQUE, OPAQUE, b.cell(b"m"), 3, 1, ((0, 5),))),
    ("embeds_a_content", nothing, lambda b: Embed(PAGE, APART, b.cell(b"m"), 3, 1, ((0, 5),))),
    ("embeds_a_content", nothing, lambda b: Embed(PAGE, SHORT, b.cell(b"m"), 3, 1, ((0, 5),))),
    ("embeds_a_content", nothing, lambda b: Embed(PAGE, PAGE, b.cell(b"m"), 0, 1, ((0, 5),))),
    ("embeds_a_content", nothing, lambda b: Embed(PAGE, PAGE, b.cell(b"m"), 65_537, 1, ((0, 5),))),
    ("embeds_a_content", nothing, lambda b: Embed(PAGE, PAGE, b.cell(b"m"), 3, 1, ())),
    ("embeds_a_content", nothing, lambda b: Embed(PAGE, PAGE, b.cell(b"m"), 3, 1, ((5, 5),))),
    ("embeds_a_content", nothing, lambda b: Embed(PAGE, PAGE, b.cell(b"m"), 3, 1, ((0, 9), (0, 12)))),
    ("words_are_listed", nothing, lambda b: Embed(PAGE, PAGE, b.cell(b"m"), 3, 9, ((0, 5),))),
    ("words_are_listed", nothing, lambda b: Tag(PAGE, b.cell(b"t"), 99)),
    ("words_are_listed", nothing, lambda b: Tag(PAGE, b.cell(b"t"), 0, 2)),
    ("words_are_listed", nothing, lambda b: Depth(b.cell(b"t"), 4)),
    ("words_are_listed", nothing, lambda b: ToolRun(PAGE, 2)),
    ("page_exists", nothing, lambda b: ToolRun(MESSAGE, 0)),
    ("page_exists", nothing, lambda b: ToolRun(PAGE, 0, MESSAGE)),
    ("page_exists", nothing, lambda b: ToolRun(PAGE, 0, created=(PAGE, MESSAGE))),
    ("cells_exist", nothing, lambda b: ToolRun(PAGE, 0, error=7)),
    ("words_are_listed", nothing, lambda b: GuardTrip(4, b.cell(b"t"), 3, (PAGE,))),
    ("sizes_count_up", nothing, lambda b: GuardTrip(0, b.cell(b"t"), -1, (PAGE,))),
    ("page_exists", nothing, lambda b: GuardTrip(0, b.cell(b"t"), 3, (PAGE,), MESSAGE)),
    ("page_exists", nothing, lambda b: Promote(MESSAGE, b.cell(b"t"), 5, 5, ())),
    ("successes_were_tried", nothing, lambda b: Promote(PAGE, b.cell(b"t"), 6, 5, (PAGE,))),
    ("page_exists", nothing, lambda b: Tag(MESSAGE, b.cell(b"t"))),
    ("cells_exist", nothing, lambda b: Tag(PAGE, 7)),
    ("cells_exist", nothing, lambda b: Alias(b.cell(b"t"), 7)),
    ("reference_came_before", nothing, lambda b: FaultIn(PAGE, NEWER, 0, 2, 0, WHY)),
    ("reference_came_before", nothing, lambda b: FaultDenied(0, b.position, 0, WHY)),
    ("reference_came_before", nothing, lambda b: Prefetch(PAGE, SHORT, 1, 2, b.position + 1, WHY)),
    ("ranks_are_distinct", nothing, lambda b: pack(b, [(APART, APART, 0, 20)])),
    ("ranks_are_distinct", nothing, lambda b: pack(b, [(APART, APART, 0, 30), (PAGE, PAGE, 0, 30)])),
    ("charter_stands_apart", nothing, lambda b: Share(3, None, 1)),
    ("totals_match", nothing, lambda b: pack(b, [], leaves=3)),
    ("totals_match", nothing, lambda b: pack(b, [], tokens=0)),
    ("totals_match", nothing, lambda b: pack(b, [], root=bytes(32))),
]


each_breaker = pytest.mark.parametrize(
    ("rule", "before", "breaking"), BREAKERS, ids=[f"{rule}-{n}" for n, (rule, _, _) in enumerate(BREAKERS)]
)


@each_breaker
def test_a_broken_rule_is_named_and_nothing_is_written(
    rule: str, before: Callable[[Batch], None], breaking: Callable[[Batch], Any]
) -> None:
    """The refusal names the rule that is broken, the log keeps its end, and the session goes on."""
    engine = scene()
    batch = engine.batch(1)
    before(batch)
    position = batch.position
    with pytest.raises(RefusedError, match=rf"at position {position} refused: .*\(rule {rule}\)") as caught:
        batch.add(breaking(batch))
    assert caught.value.code == rule
    assert (batch.position, engine.log.ordinal, engine.head(1).position) == (position, 1, CALL)
    again = engine.batch(1)
    again.add(Reply(1, 1))
    assert again.commit(0)[0].first == CALL + 1


@each_breaker
def test_each_example_breaks_one_rule(
    rule: str, before: Callable[[Batch], None], breaking: Callable[[Batch], Any]
) -> None:
    """Of all rules only the one an example is for says no, so no rule hides behind another."""
    batch = scene().batch(1)
    before(batch)
    mutation = breaking(batch)
    assert [r.__name__ for r in RULES if r(batch.head, mutation, batch.place) is not None] == [rule]


def test_what_a_pack_says_lies_in_any_cell_there_is() -> None:
    """An envelope may be the first cell of its commit, the last, or one of an earlier commit."""
    for which in (0, 1, (1, 0)):
        batch = scene().batch(1)
        assert (batch.cell(b"first"), batch.cell(b"last")) == (0, 1)
        batch.add(pack(batch, [], envelopes=((MESSAGE, which),)))
        assert batch.position == CALL + 2


def test_a_page_that_is_not_there_cannot_leave() -> None:
    """A pack from which an existing page leaves that was not in it is refused before anything is folded."""
    batch = scene().batch(1)
    with refused("membership_changes", RefusedError, "p6"):
        batch.add(Pack(2, 0, 2, 9, bytes(32), (), (APART,)))
    with refused("membership_changes"):
        batch.add(Pack(2, 0, 2, 9, bytes(32), ((PAGE, NEWER, 0, 30),), (PAGE,)))
    for content in (99, MESSAGE, CALL):
        with pytest.raises(RefusedError, match=rf"position {content} holds no content of p4.*membership_changes"):
            batch.add(Pack(2, 0, 2, 9, bytes(32), ((PAGE, content, 0, 30),), ()))


def test_a_rank_that_is_left_may_be_taken() -> None:
    """In one pack a page may move and another take its rank, or change places with it; both then stand once."""
    for entered in ([(PAGE, NEWER, 0, 30), (APART, APART, 0, 10)], [(PAGE, NEWER, 0, 20), (OPAQUE, OPAQUE, 0, 10)]):
        batch = scene().batch(1)
        batch.add(pack(batch, entered))
        assert [(r[3], r[0]) for r in batch.head.order] == sorted({20: OPAQUE, **{r[3]: r[0] for r in entered}}.items())


def test_a_taken_name_is_refused() -> None:
    """A second session of one name is refused by `name_is_free`, for new ones and forks."""
    engine = scene()
    with refused("name_is_free"):
        engine.begin(NewSession("s"), 0)
    with refused("name_is_free"):
        engine.fork(1, CALL, "s", 0)
    assert engine.log.ordinal == 1


def test_a_session_begins_with_open() -> None:
    """Without an `open` before it nothing else is taken."""
    engine = engine_over()
    batch = Batch(engine, GateHead(b"u" * 16, EmptyLookups(b"u" * 16)))
    with refused("open_comes_first"):
        batch.add(Turn(1))


def test_a_fork_stands_on_a_commit_end() -> None:
    """A fork inside a commit, before the first or after the last position is refused and names the next end."""
    engine = scene()
    for position, remedy in ((4, "the next one is 9"), (0, "the next one is 9"), (10, "ends before it")):
        with pytest.raises(RefusedError, match=f"fork_stands_on_a_commit_end.*{remedy}"):
            engine.fork(1, position, "f", 0)
    assert engine.log.ordinal == 1


def test_a_turn_may_follow_open_in_its_commit() -> None:
    """The first commit of a session holds `open` and then its turn; a turn after a third is refused."""
    engine = scene()
    assert engine.log.tail(0, 1)[0].count == CALL
    batch = engine.begin(NewSession("t"), 0)
    batch.add(Configure(1, 2))
    with refused("turn_opens_its_commit"):
        batch.add(Turn(1))


def test_a_cell_beyond_its_commit_is_refused() -> None:
    """A reference past the cells of an earlier commit is refused, for it would name another session's cell."""
    engine = scene()
    other = engine.begin(NewSession("other"), 0)
    other.add(Message(0, 0, other.cell(b"a secret of another session")))
    other.commit(0)
    batch = engine.batch(1)
    beyond = engine.log.tail(0, 1)[0].cell_count
    with refused("cells_exist"):
        batch.add(Message(0, 0, (1, beyond)))


def test_every_rule_has_its_example() -> None:
    """Each rule in the list is broken by an example of this file, those about contents by one of test_contents."""
    others = {"name_is_free"} | {rule.__name__ for rule in OF_CONTENTS}
    assert {rule.__name__ for rule in RULES} == {rule for rule, _, _ in BREAKERS} | others
    assert len({rule.__name__ for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("settled", [False, True])
def test_a_fork_names_no_cell_of_its_parents_future(settled: bool) -> None:
    """A child may name the cells it inherits; of what its parent sealed after the fork point it knows none."""
    engine = scene()
    for text in (b"one", b"two", b"three"):
        batch = engine.batch(1)
        batch.add(Message(0, 0, batch.cell(text)))
        batch.commit(0)
    child = engine.fork(1, CALL, "f", 0)
    if settled:
        engine.follow()
    for position in range(CALL + 2, CALL + 5):
        with refused("cells_exist"):
            engine.batch(child).add(Message(0, 0, (position, 0)))
    for position in (0, -1):
        with refused("cells_exist"):
            engine.batch(child).add(Message(0, 0, (position, 0)))
    assert engine.batch(child).add(Message(0, 0, (1, 0))) == CALL + 2
