"""A reference has one printed form, a wrong one says where, and a tail finds its page or its nearest."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.core.address import Address, Name, page_name, page_position, parse, resolve
from vmstore.errors import InputError, UnknownError

names = st.text(st.characters(exclude_categories=[]), min_size=1)  # any character, surrogates included
numbers = st.integers(0, 2**63 - 1)
places = st.one_of(
    st.fixed_dictionaries({"page": names}),
    st.fixed_dictionaries({"page": names, "session": names}),
    st.fixed_dictionaries({"page": names, "session": names, "namespace": names}),
)
moments = st.one_of(st.just({}), *(st.fixed_dictionaries({word: numbers}) for word in ("turn", "call", "position")))
levels = st.one_of(st.just({}), st.fixed_dictionaries({"level": st.integers(0, 3)}))
references = st.builds(lambda place, moment, level: Address(**place, **moment, **level), places, moments, levels)

KNOWN: list[Name] = [
    ("default", "planning", "p17"),
    ("default", "planning", "msg_042"),
    ("default", "planning", "p18"),
    ("default", "billing", "p18"),
    ("team", "billing", "p18"),
    ("team", "billing", "42"),
]


@given(references)
def test_what_is_printed_reads_back(reference: Address) -> None:
    """Every reference with any names at all is read back from its print."""
    assert parse(str(reference)) == reference


@given(references)
def test_a_print_holds_no_loose_characters(reference: Address) -> None:
    """A print can be encoded as UTF-8 and has no space to be cut at."""
    text = str(reference)
    assert text.encode()
    assert text.split() == [text]


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("p17", Address(page="p17")),
        ("planning/p17", Address(session="planning", page="p17")),
        ("default/planning/p17", Address(namespace="default", session="planning", page="p17")),
        ("vm://d/s/p@turn:42#level=2", Address(namespace="d", session="s", page="p", turn=42, level=2)),
        ("artifact://d/s/p@call:7", Address(namespace="d", session="s", page="p", call=7)),
        ("vm://p17", Address(page="p17")),
        ("p17@position:99", Address(page="p17", position=99)),
        ("p17#level=0", Address(page="p17", level=0)),
        ("p17@turn:0#level=abstract", Address(page="p17", turn=0, level=2)),
        ("a%2Fb/msg%20%C3%A9%40", Address(session="a/b", page="msg é@")),
        ("sitzung-ü/p1", Address(session="sitzung-ü", page="p1")),
    ],
)
def test_every_form_is_read(text: str, reference: Address) -> None:
    """Full references, aliases and tails are read, with moment and level or without."""
    assert parse(text) == reference


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        (parse("artifact://d/s/p@call:7"), "vm://d/s/p@call:7"),
        (parse("d/s/p#level=full"), "vm://d/s/p#level=0"),
        (parse("vm://s/p"), "s/p"),
        (Address(session="a/b#c@d%e f", page="ü"), "a%2Fb%23c%40d%25e%20f/ü"),
    ],
)
def test_there_is_one_printed_form(reference: Address, text: str) -> None:
    """A full reference prints with vm://, a tail without, only what must be is encoded."""
    assert str(reference) == text


@pytest.mark.parametrize(
    ("text", "place", "remedy"),
    [
        ("", 1, "write page, session/page"),
        ("vm://", 6, "write page, session/page"),
        ("s//p", 3, "write page, session/page"),
        ("vm://a/b/c/d", 6, "%2F"),
        ("my session/p1", 3, "%20"),
        ("50%/p1", 3, "%25"),
        ("p%FF", 1, "UTF-8"),
        ("p1@", 4, "@turn:42"),
        ("p1@turn:-1", 4, "@turn:42"),
        ("p1@turn:9999999999999999999", 4, "@turn:42"),
        ("p1@turn:٣", 4, "@turn:42"),
        ("p1@call:1@turn:2", 4, "%40"),
        ("p1#level=4", 4, "#level=0 to #level=3"),
        ("p1#2", 4, "#level=0"),
        ("p1#level=1@turn:2", 4, "#level=0"),
    ],
)
def test_a_wrong_reference_says_where_and_what_to_write(text: str, place: int, remedy: str) -> None:
    """The refusal names the text, the place in it and what to write instead."""
    with pytest.raises(InputError) as refused:
        parse(text)
    other_text = str(refused.value)
    assert repr(text) in other_text
    assert f"character {place}:" in other_text
    assert remedy in other_text.partition(";")[2]


@pytest.mark.parametrize(
    "fields",
    [
        {"page": ""},
        {"page": "p", "session": ""},
        {"page": "p", "namespace": "n"},
        {"page": "p", "turn": 1, "call": 1},
        {"page": "p", "turn": -1},
        {"page": "p", "call": True},
        {"page": "p", "position": 2**63},
        {"page": "p", "level": 4},
    ],
)
def test_what_could_not_be_read_back_cannot_be_made(fields: dict[str, Any]) -> None:
    """A reference that has no printed form is refused when it is made."""
    with pytest.raises(InputError):
        Address(**fields)


@given(st.integers(1, 2**63 - 1))
def test_page_names_are_positions(position: int) -> None:
    """A page's own name gives its position, with the p and without."""
    assert page_position(page_name(position)) == page_position(str(position)) == position


@pytest.mark.parametrize("name", ["p0", "0", "p017", "p-1", "msg_042", "p", "", "P17", "p1٣", f"p{2**63}"])
def test_other_names_have_no_position(name: str) -> None:
    """Only the names that pages get are positions."""
    assert page_position(name) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("p17", ("default", "planning", "p17")),
        ("17", ("default", "planning", "p17")),
        ("msg_042", ("default", "planning", "msg_042")),
        ("42", ("team", "billing", "42")),
        ("planning/p18", ("default", "planning", "p18")),
        ("team/billing/18", ("team", "billing", "p18")),
    ],
)
def test_a_tail_that_fits_one_page_finds_it(text: str, name: Name) -> None:
    """A unique tail resolves, by name, by number or by hint."""
    assert resolve(parse(text), KNOWN) == name


@pytest.mark.parametrize(
    ("text", "known", "other_text"),
    [
        ("msg_41", KNOWN, "the nearest is 'msg_042'"),
        ("planning/p99", KNOWN, "in session 'planning'; the nearest is 'p18'"),
        ("planing/p17", KNOWN, "no session 'planing'; the nearest is 'planning'"),
        ("default/biling/p18", KNOWN, "no session 'biling'; the nearest is 'billing'"),
        ("tema/billing/p18", KNOWN, "no namespace 'tema'; the nearest is 'team'"),
        ("p1", [], "there are no pages here"),
    ],
)
def test_an_unknown_page_names_the_nearest(text: str, known: list[Name], other_text: str) -> None:
    """What is unknown, page, session or namespace, is named with the nearest that is known."""
    with pytest.raises(UnknownError, match=other_text):
        resolve(parse(text), known)


def test_an_ambiguous_tail_lists_up_to_five() -> None:
    """A tail that fits several pages lists five in full, ready to be written, and counts the rest."""
    known = [("default", f"s {n}", "p1") for n in range(7)]
    with pytest.raises(UnknownError) as refused:
        resolve(parse("p1"), known)
    text = str(refused.value)
    assert "vm://default/s%200/p1" in text
    assert text.count("vm://") == 5
    assert "and 2 more" in text
    assert resolve(parse("vm://default/s%200/p1"), known) == known[0]
