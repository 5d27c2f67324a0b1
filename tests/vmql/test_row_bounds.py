"""What is asked by position or page, or of the last rows, decodes and opens what can be meant, and misses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import vmstore
from tests.vmql.test_differential import DECIDED, DEEDS, WORKED, Deed, written
from vmstore.shell.demo.demo import SHIPPED
from vmstore.vmql.functions import CellReader
from vmstore.vmql.relations import mutations

NAME, FORK = "planning-220", "try-b"
COLUMNS = ("position", "turn", "call", "kind", "page", "tokens")


@pytest.fixture(scope="module")
def store() -> Iterator[vmstore.Store]:
    """The session that ships, and a fork of it with a call of its own."""
    with vmstore.memory_store() as made:
        made.import_file(SHIPPED)
        made.session(NAME).fork(FORK, call=200)
        made.record(FORK, {"model": "m", "messages": [{"role": "user", "content": "And now?"}]}, None)
        yield made


def rows(store: vmstore.Store, clauses: str, session: str, **params: Any) -> list[tuple[Any, ...]]:
    """What MUTATIONS answers."""
    return list(store.query(f"MUTATIONS {', '.join(COLUMNS)} {clauses}", session=session, params=params))


CONDITIONS = {
    "position = 1000": lambda row: row[0] == 1000,
    "position < 3": lambda row: row[0] < 3,
    "position <= 3": lambda row: row[0] <= 3,
    "position > 1800": lambda row: row[0] > 1800,
    "position >= 1800 AND kind = create": lambda row: row[0] >= 1800 and row[3] == "create",
    "position BETWEEN 1700 AND 1900": lambda row: 1700 <= row[0] <= 1900,
    "position BETWEEN 1900 AND 1700": lambda row: False,
    "position IN (5, 1811, 7)": lambda row: row[0] in (5, 7, 1811),
    "position IN $some": lambda row: row[0] in (5, 7),
    "position = $place": lambda row: row[0] == 1500,
    "position = 5 OR position = 1500": lambda row: row[0] in (5, 1500),
    "NOT position = 5": lambda row: row[0] != 5,
    "position = turn": lambda row: row[0] == row[1],
    "page = p8": lambda row: row[4] == "p8",
    "page = $page AND kind != create": lambda row: row[4] == "p14" and row[3] != "create",
    "page = p10 AND position > 11": lambda row: row[4] == "p10" and row[0] > 11,
}


@pytest.mark.parametrize("session", [NAME, FORK])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_leaves_the_rows_that_fulfil_it(store: vmstore.Store, condition: str, session: str) -> None:
    """A condition on position or page gives the rows of all that fulfil it, each with its turn and call."""
    params = {"some": [5, 7], "place": 1500, "page": "p14"}
    wanted = [row for row in rows(store, "", session) if CONDITIONS[condition](row)]
    assert rows(store, f"WHERE {condition}", session, **params) == wanted
    assert rows(store, f"WHERE {condition} ORDER BY position DESC LIMIT 2", session, **params) == wanted[::-1][:2]
    assert rows(store, f"WHERE {condition} LIMIT 2", session, **params) == wanted[:2]


@pytest.mark.parametrize("session", [NAME, FORK])
@pytest.mark.parametrize("bounds", ["", "SINCE TURN 3", "UNTIL TURN 40", "BETWEEN TURN 3 AND TURN 9", "AS OF CALL 90"])
def test_the_first_and_the_last_are_those_of_all(store: vmstore.Store, bounds: str, session: str) -> None:
    """Ordered by position either way, a limited answer has the first, or the last, of the rows there are."""
    every = rows(store, bounds, session)
    assert rows(store, f"{bounds} ORDER BY position DESC LIMIT 3", session) == every[::-1][:3]
    assert rows(store, f"{bounds} ORDER BY position LIMIT 3", session) == every[:3]
    assert rows(store, f"{bounds} LIMIT 3", session) == every[:3]
    assert rows(store, f"{bounds} ORDER BY kind, position LIMIT 3", session) == sorted(every, key=_kind)[:3]


def _kind(row: tuple[Any, ...]) -> Any:
    return row[3], row[0]


def test_a_name_that_is_given_to_another_column_orders_by_that(store: vmstore.Store) -> None:
    """Where `position` is what another column is shown as, that is ordered by."""
    asked = "MUTATIONS kind AS position, turn ORDER BY position DESC LIMIT 1"
    (row,) = store.query(asked, session=NAME)
    assert row[0] == max(each[3] for each in rows(store, "", NAME))


def test_limited_answers_go_on_where_they_ended(store: vmstore.Store) -> None:
    """Taken page by page from the last, every mutation comes once."""
    taken: list[tuple[Any, ...]] = []
    asked, cursor = "MUTATIONS position ORDER BY position DESC LIMIT 700", None
    while True:
        answer = store.query(asked if cursor is None else f"{asked} AFTER $cursor", session=NAME, cursor=cursor)
        taken += answer
        if (cursor := answer.next) is None:
            break
    assert [row[0] for row in taken] == [row[0] for row in rows(store, "", NAME)][::-1]


def test_every_kind_is_found_by_its_page() -> None:
    """Of a session with every kind of mutation, each page's are those that a look at all of them finds."""
    story = [
        Deed(deed, a, a * 7 % 64, a * 5 % 64, a * 3 % 64) for a in range(9) for deed in (*DEEDS, *DECIDED, *WORKED)
    ]
    made = written([deed for deed in story if deed.what not in ("fork", "switch")])
    every = rows(made, "", "s0")
    assert len({row[3] for row in every if row[4]}) > 15
    for page in {row[4] for row in every if row[4]}:
        assert rows(made, f"WHERE page = {page}", "s0") == [row for row in every if row[4] == page]


def test_a_page_of_a_large_number_is_found() -> None:
    """A page whose number takes more than a byte has what was logged of it later."""
    with vmstore.memory_store() as made:
        messages = [{"role": "user", "content": f"Is {n} prime?"} for n in range(300)]
        made.record("s", {"model": "m", "messages": messages}, None)
        ((page,),) = made.query("PAGES last(page)")
        made.session("s").annotate(page, tags=["x"])
        assert [kind for (kind,) in made.query(f"MUTATIONS kind WHERE page = {page}")] == ["create", "annotate"]


@pytest.mark.parametrize(
    ("clauses", "most"),
    [
        ("WHERE position = 1500", 1),
        ("WHERE position BETWEEN 1500 AND 1510", 11),
        ("ORDER BY position DESC LIMIT 3", 4),
        ("WHERE position > 100 ORDER BY position LIMIT 3", 4),
        ("WHERE page = p1414", 300),
    ],
)
def test_what_cannot_be_meant_is_not_decoded(
    store: vmstore.Store, monkeypatch: pytest.MonkeyPatch, clauses: str, most: int
) -> None:
    """As many commits are decoded as may hold a row, of some five thousand mutations."""
    decode, count = mutations.decode, [0]

    def counted(body: bytes) -> Any:
        count[0] += 1
        return decode(body)

    monkeypatch.setattr(mutations, "decode", counted)
    assert rows(store, clauses, NAME)
    assert 0 < count[0] <= most


@pytest.mark.parametrize(
    "condition",
    [
        "tier_after = L2",
        "tier_after = 2",
        "tier_before = L2 AND tier_after = L0",
        "tier_before = $tier",
        "tier_before = L0 AND tier_after = L0",
        "tier_before = L2 AND tier_after = L2",
        "tier_after = tier_before",
        "tier_before = l1",
        "NOT tier_after = L2",
    ],
)
def test_moves_of_a_way_are_those_of_all(store: vmstore.Store, condition: str) -> None:
    """Moves by their tiers are those of all that fulfil the condition, with their levels, reasons and absences."""
    columns = "position, page, tier_before, tier_after, level_after, tokens, reason"
    every = list(store.query(f"MOVES {columns}", session=NAME))
    sides = {"L0": 0, "L2": 2, "l1": 1, "$tier": 0, "2": 2, "tier_before": None}

    def holds(row: tuple[Any, ...]) -> bool:
        parts = [part.split(" = ") for part in condition.removeprefix("NOT ").split(" AND ")]
        true = [row[2 + (side == "tier_after")] == (row[2] if sides[to] is None else sides[to]) for side, to in parts]
        return all(true) != condition.startswith("NOT")

    wanted = [row for row in every if holds(row)]
    assert list(store.query(f"MOVES {columns} WHERE {condition}", session=NAME, tier="L0")) == wanted


def test_how_long_a_page_was_out_needs_where_it_left(store: vmstore.Store) -> None:
    """Of moves into the prompt alone it is known for how many calls each page had been out."""
    with vmstore.memory_store() as made:
        for call in range(9):
            messages = [{"role": "user", "content": f"Is {n} prime?"} for n in range(call % 3, call % 3 + 4)]
            made.record("s", {"model": "m", "messages": messages}, None, at_us=1_000_000 * call)
        every = list(made.query("MOVES position, page, tier_after, away_calls"))
        came = [row for row in every if row[2] == 0 and row[3]]
        assert came and list(made.query("MOVES position, page, tier_after, away_calls WHERE tier_before = L2")) == [
            row for row in every if row[2] == 0
        ]


LONG = (
    ("PAGES page, text", "ORDER BY position DESC"),
    ("PAGES page, line, role ACROSS SESSIONS", "ORDER BY created_turn DESC, page DESC"),
    ("PAGES page, mime, upper(text) AS loud, length(line) AS n", "WHERE role != system ORDER BY n DESC"),
    ("MESSAGES message, line, text", "ORDER BY turn DESC, message DESC"),
    ("TOOLS tool, arguments, arguments.path AS path", "ORDER BY position DESC"),
    ("CALLS call, stop, error, model", "ORDER BY call DESC"),
)


@pytest.mark.parametrize(("asked", "order"), LONG)
def test_few_rows_open_few_contents(
    store: vmstore.Store, monkeypatch: pytest.MonkeyPatch, asked: str, order: str
) -> None:
    """Contents are opened for the rows that are shown, however many were sorted; they are those of the whole answer."""
    whole = list(store.query(f"{asked} {order}", session=FORK))
    opened: list[int | None] = []
    read = CellReader.read

    def counted(reader: CellReader, cell: int | None, commitment: bytes | None) -> bytes | None:
        opened.append(cell)
        return read(reader, cell, commitment)

    monkeypatch.setattr(CellReader, "read", counted)
    first = store.query(f"{asked} {order} LIMIT 5", session=FORK)
    shown = list(first)
    if "length" not in asked:  # what rows are ordered by is opened for all of them
        assert len(opened) <= 4 * 6
    follow = list(store.query(f"{asked} {order} LIMIT 3 AFTER $after", session=FORK, after=first.next))
    assert shown + follow == whole[:8]
