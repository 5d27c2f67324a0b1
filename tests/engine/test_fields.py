"""What the reader of fields accepts is what the rules about fields let through, kind by kind."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.engine.author import engine_over
from vmstore.core.decision import Why
from vmstore.core.mutation import Configure, Create, Known, Link, Mark, Pack, Reply, decode
from vmstore.core.page import Role
from vmstore.engine.head import EmptyLookups, GateHead, NewSession
from vmstore.engine.rules import field_types
from vmstore.engine.rules.field_types import sound
from vmstore.engine.rules.rules import RULES, MutationPlace, cells_exist, numbers_fit
from vmstore.engine.rules.rules_by_kind import OF_FIELDS
from vmstore.errors import RefusedError

NUMBERS = st.sampled_from([0, 1, 2, 3, 7, 40, -1, 2**63 - 1, 1 - 2**63, 2**63, -(2**63), 2**64, Role.TOOL])
OTHERS = st.sampled_from([None, True, 1.5, "3", b"bytes", object(), (), (1,), (1, 2), (1, "2"), (1, 2, 3), ((0, 7),)])
WHY = (1, 8, 7, 1, 4, 2, 6, ((7, 5),))
WHYS = st.sampled_from([Why(*WHY), WHY, WHY[:7], Why(*WHY[:7], ((7, 2**63),)), (*WHY[:6], "6", ())])
MORE = st.sampled_from([((99, 7),), ((0, 2**63),), ((1, (2, 3)),), ((1, 2, 0, 10),), ((1, 2, 0, 2**63),), [[0, 7]]])
VALUES = NUMBERS | OTHERS | MORE | WHYS
KINDS = get_args(Known)


@st.composite
def mutations(draw: st.DrawFn) -> Any:
    """A mutation of any kind, most of its fields sound and some of anything."""
    kind = draw(st.sampled_from(KINDS))
    fields = {}
    for field in msgspec.structs.fields(kind):
        usual = b"b" * 16 if field.type is bytes else Why(*WHY) if field.type is Why else 1
        if field.default is msgspec.NODEFAULT or draw(st.integers(0, 3)) == 0:
            fields[field.name] = draw(VALUES) if draw(st.integers(0, 3)) == 0 else usual
    return kind(**fields)


def objections(mutation: Any) -> list[str]:
    """The first rule about fields that a mutation breaks; a cell that is too far away is left to `cells_exist`."""
    head = GateHead(b"u" * 16, EmptyLookups(b"u" * 16))
    for rule in RULES:
        if rule in OF_FIELDS and rule(head, mutation, MutationPlace()) is not None:
            far = rule is numbers_fit and cells_exist(head, mutation, MutationPlace()) is not None and sound(mutation)
            return [] if far else [rule.__name__]
    return []


@given(mutation=mutations())
@example(mutation=Create(0, 0, 1, 0, 0, None, 1, 1, 0, ((0, 7), (9, 2**63 - 1))))
@example(mutation=Create(0, 0, 1, 0, 0, None, 1, 1, 0, ((0, 7), (10, 1))))
@example(mutation=Create(0, 0, 1, 0, 0, 2**63, 1, 1))
@example(mutation=Link(1, 2, 10))
@example(mutation=Pack(1, 0, 1, 1, b"r" * 32, ((1, 2, 0, 2**63),)))
@example(mutation=Pack(1, 0, 1, 1, b"r" * 32, envelopes=((1, (2, 3)), (2, 4))))
def test_the_reader_says_what_the_rules_say(mutation: Any) -> None:
    """A mutation is read back whole where no rule about fields objects, and nowhere else."""
    raw = sound(mutation)
    assert (raw is not None) == (objections(mutation) == [])
    if raw is not None:
        value = decode(b"\x91" + raw)[0]
        assert msgspec.msgpack.encode(value) == msgspec.msgpack.encode(mutation)


@pytest.mark.parametrize("word", ["type", "modality", "role", "mime"])
def test_words_are_read_to_the_last(word: str) -> None:
    """Every word of every vocabulary is read, and the first number beyond is not."""
    words = field_types.WORDS[Create][word]
    usual = {"type": 0, "modality": 0, "role": 0, "message": 0, "part": 0, "content": None, "size": 0, "tokens": 0}
    for number in (*words, max(words) + 1, -1):
        assert (sound(Create(**{**usual, word: number})) is not None) == (number in words)


def test_a_wrong_type_is_named_before_anything_else() -> None:
    """A field of the wrong type is refused by one rule with the field's name, whatever another rule would meet."""
    batch = engine_over().begin(NewSession("s"), 0)
    for mutation, field in (
        (Reply("1", 1), "call"),  # type: ignore[arg-type]
        (Mark([1]), "reason"),  # type: ignore[arg-type]
        (Configure(1, None), "factor_ppm"),  # type: ignore[arg-type]
        (Pack(1, 0, 0, 0, b"", entered=5), "entered"),  # type: ignore[arg-type]
        (Create(0, 0, 0, 0, 0, ("a", 0), 0, 0), "content"),  # type: ignore[arg-type]
    ):
        with pytest.raises(RefusedError, match=rf"{field} is .*fields_are_typed"):
            batch.add(mutation)
