"""What a batch says of a mutation is what the whole list of rules says, whatever is left out and made for its kind."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.engine.test_fields import KINDS
from tests.engine.test_rules import APART, CALL, MESSAGE, NEWER, OPAQUE, PAGE, SHORT, WHY, create, pack, scene
from vmstore.core.mutation import (
    Annotate,
    Compress,
    Configure,
    Delete,
    Link,
    Mark,
    Message,
    Pin,
    Reply,
    Turn,
    Unlink,
    Update,
)
from vmstore.core.text.holes import TEXT
from vmstore.engine.batch import Batch
from vmstore.engine.rules.rules import RULES
from vmstore.errors import RefusedError

REFS = st.sampled_from([None, 0, 1, 2, 3, -1, (1, 0), (1, 1), (1, 5), (1, 99), (0, 0), (9, 0), (10, 0)])
NUMBERS = st.sampled_from([0, 1, 2, 3, MESSAGE, PAGE, OPAQUE, APART, SHORT, NEWER, CALL, 10, 99, -1, 2**63, True])
LISTS = st.sampled_from([(), ((0, PAGE),), ((10, PAGE),), ((0, 99),), ((PAGE, NEWER, 0, 30),), ((MESSAGE, 0),), (4,)])
OTHERS = st.sampled_from([None, "text", 1.5, b"r" * 32, object(), WHY])
VALUES = REFS | NUMBERS | LISTS | OTHERS


def good(batch: Batch) -> list[Any]:
    """Mutations that may stand next, of the kinds that are written most, with the cells they name."""
    text, value, skeleton = batch.cell(b"said"), batch.cell(b'{"a":1}'), batch.cell(msgspec.json.encode({TEXT: 0}))
    return [
        Turn(batch.head.turn + 1),
        Message(1, 2, skeleton, 1, value),
        create(message=MESSAGE, part=0, content=text, size=4, tokens=1, links=((0, PAGE),), labels=value),
        create(modality=1, content=value, size=7, tokens=2, importance=1),
        Update(PAGE, 3, text, 4, 1),
        Compress(PAGE, 2, 2, 0, 1, text, 4, 1),
        Annotate(PAGE, status=0),
        Link(PAGE, OPAQUE, 3),
        Unlink(PAGE, OPAQUE, 3),
        Delete(PAGE),
        Reply(batch.head.call, 1, aside=value),
        Mark(0, name=text),
        Configure(1, 2),
        Pin(PAGE, 0),
        pack(batch, [(PAGE, SHORT, 1, 30)], rest=value, renderer=2),
        pack(batch, [], (OPAQUE,), renderer=2),
    ]


@st.composite
def mutations(draw: st.DrawFn) -> Any:
    """Makes a mutation of a batch: a good one with some fields changed, or one of any kind and any fields."""
    if draw(st.integers(0, 3)):
        which = draw(st.integers(0, 15))
        changed = draw(st.dictionaries(st.integers(0, 13), VALUES, max_size=2))

        def make(batch: Batch) -> Any:
            made = good(batch)[which]
            names = made.__struct_fields__
            return msgspec.structs.replace(made, **{names[at]: v for at, v in changed.items() if at < len(names)})

        return make
    kind = draw(st.sampled_from(KINDS))
    drawns = [draw(VALUES) for field in msgspec.structs.fields(kind) if field.default is msgspec.NODEFAULT]
    return lambda batch: kind(*drawns)


def by_the_list(batch: Batch, mutation: Any) -> str | None:
    """What the first rule says that objects, each asked in order."""
    for rule in RULES:
        reason = rule(batch.head, mutation, batch.place)
        if reason is not None:
            return f"{mutation.kind} at position {batch.position} refused: {reason} (rule {rule.__name__})"
    return None


def by_the_batch(batch: Batch, mutation: Any) -> str | None:
    """What a batch says of a mutation; one that it takes is in it."""
    try:
        batch.take(mutation)
    except RefusedError as error:
        return str(error)
    return None


def begun(before: Any, by_hand: bool) -> Batch:
    """A batch with what stands before: nothing, something, or what ends its commit."""
    engine = scene()
    batch = engine.batch_by_hand(1) if by_hand else engine.batch(1)
    if before is not None:
        batch.take(before)
    return batch


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("before", [None, Configure(1, 2), Mark(0)])
@given(made=mutations())
@example(made=lambda batch: Link(99, PAGE, 3))
@example(made=lambda batch: Reply(7, 1))
@example(made=lambda batch: create(message=MESSAGE, content=batch.cell(b"\xff"), size=1, tokens=1))
def test_a_batch_says_what_the_list_of_rules_says(before: Any, by_hand: bool, made: Any) -> None:
    """Of any mutation anywhere a batch names the first rule of the list that objects, in its words, or takes it."""
    batch = begun(before, by_hand)
    mutation = made(batch)
    other_by_the_list = by_the_list(batch, mutation)
    assert by_the_batch(batch, mutation) == other_by_the_list
    assert (batch.head.position == CALL + 1 + (before is not None)) == (other_by_the_list is None)


@pytest.mark.parametrize("by_hand", [False, True])
def test_what_is_good_is_taken_by_both(by_hand: bool) -> None:
    """Each mutation that the ones above are made of is taken where it may stand, so both are asked of good ones."""
    for which in range(len(good(begun(None, by_hand)))):
        batch = begun(None, by_hand)
        mutation = good(batch)[which]
        assert by_the_list(batch, mutation) is None
        assert by_the_batch(batch, mutation) is None
