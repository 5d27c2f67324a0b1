"""Operations, groups that are chosen and statements within statements give what Python makes of the plain rows."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vmstore
from vmstore.store.store import Store
from vmstore.vmql.syntax import nodes as s
from vmstore.vmql.syntax.printer import show

COLUMNS = ("tokens", "bytes", "version", "position", "created_turn", "since_position")
HOUR_US = 3_600_000_000


@pytest.fixture(scope="module")
def store() -> Store:
    """Six calls of a session by two models, each an hour after the other, and a fork that goes on."""
    made = vmstore.memory_store()
    records: list[dict[str, Any]] = []
    for at in range(6):
        records = [*records, {"role": "user", "content": "Where is Kyoto? " * (at + 1)}]
        reply = {"role": "assistant", "content": "In Japan. " * (at + 1)}
        usage = {"prompt_tokens": 100 * at * at + 7, "completion_tokens": 10 + at}
        made.record(
            "trip",
            {"model": f"m{at % 2}", "messages": records if at != 4 else records[2:]},
            {"choices": [{"message": reply}], "usage": usage},
            at_us=1_700_000_000_000_000 + at * HOUR_US,
        )
        records = [*records, reply]
    fork = made.session("trip").fork("trip-b", call=3)
    fork.record({"model": "m2", "messages": [{"role": "user", "content": "And Nara?"}]}, None)
    return made


def rows(store: Store, text: str, **params: Any) -> list[tuple[Any, ...]]:
    """The rows of an answer about the trip."""
    return list(store.query(text, session="trip", params=params))


# ---- operations


def operations() -> st.SearchStrategy[Any]:
    """Trees of operations over columns and numbers, a column first."""
    column = st.sampled_from(COLUMNS).map(lambda name: s.Word(path=(name,)))
    number = st.one_of(st.integers(-9, 9), st.sampled_from((0.5, -2.25))).map(lambda value: s.Value(value=value))
    op: Any = st.sampled_from("+-*/")
    tree = st.recursive(
        st.one_of(column, number),
        lambda inner: st.builds(lambda op, a, b: s.Arithmetic(op=op, left=a, right=b), op, inner, inner),
        max_leaves=5,
    )
    return st.builds(lambda op, a, b: s.Arithmetic(op=op, left=a, right=b), op, column, tree)


def computed(expr: s.Expr, row: dict[str, Any]) -> Any:
    """What an expression comes to on a row; None where a part is null, and of a division by nothing."""
    match expr:
        case s.Value(value=value):
            return value
        case s.Word(path=(name,)):
            return row[name]
        case s.Arithmetic(op=op, left=left, right=right):
            first, other = computed(left, row), computed(right, row)
            if first is None or other is None or (op == "/" and other == 0):
                return None
            return SIGNS[op](first, other)
    raise AssertionError(expr)


SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


@given(operations(), st.integers(-50, 500))
def test_operations_are_those_of_numbers(store: Store, expr: s.Expr, bound: int) -> None:
    """Any operation over columns gives what Python computes of the row, shown, compared, ordered by and summed."""
    plain = [dict(zip(COLUMNS, row, strict=True)) for row in rows(store, f"PAGES {', '.join(COLUMNS)}")]
    wanted = [computed(expr, row) for row in plain]
    text = show(expr)
    assert [row[0] for row in rows(store, f"PAGES {text}")] == pytest.approx(wanted)
    actual_rows = rows(store, f"PAGES position WHERE {text} > $bound", bound=bound)
    near = [value is not None and abs(value - bound) < 1e-6 for value in wanted]
    if not any(near):
        more = [
            row["position"] for row, value in zip(plain, wanted, strict=True) if value is not None and value > bound
        ]
        assert [row[0] for row in actual_rows] == more
    ordered = [row[0] for row in rows(store, f"PAGES {text} AS n ORDER BY n")]
    assert ordered[: len(wanted) - wanted.count(None)] == pytest.approx(sorted(v for v in wanted if v is not None))
    known = [value for value in wanted if value is not None]
    (total,) = rows(store, f"PAGES sum({text}), count({text})")
    assert total == (pytest.approx(sum(known)) if known else None, len(known))


def test_a_difference_of_times_is_seconds(store: Store) -> None:
    """Times differ by seconds, from another column, a statement or a time that is handed in."""
    ats = rows(store, "CALLS at - (CALLS min(at)) AS since")
    assert [row[0] for row in ats] == [3600.0 * at for at in range(6)]
    assert rows(store, "CALLS call WHERE at - $then >= 7200", then="2023-11-14T22:13:20Z") == [(3,), (4,), (5,), (6,)]
    assert {row[0] for row in rows(store, "PAGES created_at - created_at")} == {0.0}


# ---- groups


def test_having_chooses_groups_by_their_sums_and_names(store: Store) -> None:
    """HAVING keeps the groups whose sums, keys or shown names fit, before ORDER BY and LIMIT."""
    sums: dict[str, list[int]] = defaultdict(list)
    for role, tokens in rows(store, "PAGES role, tokens"):
        sums[role].append(tokens)
    for bound in (10, 40, 70, 1000):
        wanted = [(role, sum(tokens)) for role, tokens in sorted(sums.items()) if sum(tokens) > bound]
        assert rows(store, "PAGES sum(tokens) AS t BY role HAVING t > $bound", bound=bound) == wanted
        assert rows(store, "PAGES sum(tokens) AS t BY role HAVING sum(tokens) > $bound", bound=bound) == wanted
        each_rows = rows(store, "PAGES sum(tokens) AS t BY role HAVING t > $bound ORDER BY t DESC LIMIT 1", bound=bound)
        assert each_rows == sorted(wanted, key=lambda row: -row[1])[:1]
    mean = {role: sum(tokens) / len(tokens) for role, tokens in sums.items()}
    assert dict(rows(store, "PAGES sum(tokens) / count(*) BY role")) == pytest.approx(mean)
    assert rows(store, "PAGES count(*) HAVING count(*) > 99") == []
    assert rows(store, "PAGES count(*) BY role HAVING role = user") == [("user", len(sums["user"]))]
    first = store.query("PAGES count(*) AS n BY tokens HAVING n >= 1 LIMIT 2", session="trip")
    assert len(list(first)) == 2
    more = store.query("PAGES count(*) AS n BY tokens HAVING n >= 1 LIMIT 20 AFTER $c", session="trip", c=first.next)
    assert len(list(more)) == len({tokens for _, tokens in rows(store, "PAGES role, tokens")}) - 2


def test_distinct_values_are_counted_once(store: Store) -> None:
    """count(DISTINCT x) counts each value once and no null, in one group and in many."""
    models = [row[0] for row in rows(store, "CALLS model")]
    assert rows(store, "CALLS count(DISTINCT model), count(model)") == [(len(set(models)), len(models))] == [(2, 6)]
    assert rows(store, "PAGES count(DISTINCT since_position)") == [
        (len({row[0] for row in rows(store, "PAGES since_position")} - {None}),)
    ]
    assert rows(store, "CALLS count(DISTINCT call) AS n BY hour(at) HAVING n = 1 ORDER BY hour(at) LIMIT 1") == [(0, 1)]


# ---- statements within statements


@pytest.mark.parametrize("moment", ["", "AS OF CALL 3", "AS OF CALL 5"])
def test_in_takes_the_column_of_a_statement(store: Store, moment: str) -> None:
    """IN and NOT IN a statement choose by its values, at the moment of the whole unless it says another."""
    every = rows(store, f"PAGES page, tokens {moment}")
    large = {page for page, tokens in every if tokens > 8}
    inner = "(PAGES page WHERE tokens > 8)"
    assert rows(store, f"PAGES page {moment} WHERE page IN {inner}") == [(p,) for p, _ in every if p in large] != []
    assert rows(store, f"PAGES page {moment} WHERE page NOT IN {inner}") == [(p,) for p, _ in every if p not in large]
    then = {page for (page,) in rows(store, "PAGES page AS OF CALL 2")}
    new = rows(store, f"PAGES page {moment} WHERE page NOT IN (PAGES page AS OF CALL 2)")
    assert new == [(page,) for page, _ in every if page not in then]
    assert rows(store, f"PAGES page {moment} WHERE since_position NOT IN (PAGES since_position)") == []


def test_a_statement_is_a_value(store: Store) -> None:
    """A statement of one value stands where a value does, on either side and within an operation; no row is null."""
    plain = rows(store, "CALLS call, tokens_reported")
    mean = sum(tokens for _, tokens in plain) / len(plain)
    above = [(call,) for call, tokens in plain if tokens > 2 * mean]
    assert rows(store, "CALLS call WHERE tokens_reported > 2 * (CALLS avg(tokens_reported))") == above != []
    assert rows(store, "CALLS call WHERE 2 * (CALLS avg(tokens_reported)) < tokens_reported") == above
    assert rows(store, "CALLS call WHERE (CALLS max(call)) = call") == [(6,)]
    assert rows(store, "CALLS call WHERE call > (CALLS call WHERE call = 77)") == []
    beside = "CALLS count(*), coalesce((CALLS max(call)), 0) AS last, count(*) * (CALLS max(call)) AS squared"
    assert rows(store, beside) == [(6, 6, 36)]
    share = "CALLS tokens_reported / (CALLS sum(tokens_reported)) AS share"
    assert sum(row[0] for row in rows(store, share)) == pytest.approx(1)
    assert rows(store, "PAGES count(*) BY role HAVING count(*) >= (PAGES count(*) WHERE role = user)") != []


def test_statements_within_search_and_stand_in_made_relations(store: Store) -> None:
    """Searches stand within, and statements within stand where rows are made: MUTATIONS, CONTEXT, HISTORY, SEARCH."""
    pages = {page for (page,) in rows(store, "SEARCH 'kyoto' page LIMIT 3")}
    assert {page for (page,) in rows(store, "PAGES page WHERE page IN (SEARCH 'kyoto' page LIMIT 3)")} == pages != set()
    large = {page for (page,) in rows(store, "PAGES page WHERE tokens > 12")}
    changes = rows(store, "MUTATIONS page WHERE kind = create AND page IN (PAGES page WHERE tokens > 12)")
    assert {page for (page,) in changes} == large
    shown = {page for (page,) in rows(store, "CONTEXT page AT CALL 4")}
    context = rows(store, "CONTEXT page AT CALL 4 WHERE page IN (PAGES page WHERE tokens > 12)")
    assert {page for (page,) in context} == shown & {
        p for (p,) in rows(store, "PAGES page AS OF CALL 4 WHERE tokens > 12")
    }
    hits = rows(store, "SEARCH 'kyoto' page WHERE page NOT IN (PAGES page WHERE tokens > 12)")
    assert hits and not {page for (page,) in hits} & large


def test_statements_within_are_asked_of_the_sessions_of_the_whole(store: Store) -> None:
    """Across sessions a statement within sees them all, and one that names its session sees that alone."""
    calls = list(store.query("CALLS session, call ACROSS SESSIONS WHERE call = (CALLS max(call))"))
    assert calls == [("trip", 6)]
    own = list(store.query("CALLS session, call ACROSS SESSIONS WHERE call IN (CALLS call IN SESSION trip-b)"))
    assert {call for _, call in own} == {1, 2, 3, 4}
    explained = list(store.query("EXPLAIN CALLS call ACROSS SESSIONS WHERE call = (CALLS max(call))"))
    assert any("call = (CALLS max(call))" in str(row) for row in explained)


def test_words_of_enumerations_that_name_a_relation_stay_words(store: Store) -> None:
    """What names a relation is a column or a word where one stands: calls, messages, search."""
    assert rows(store, "TURNS turn WHERE (calls > 0)") == rows(store, "TURNS turn WHERE calls > 0") != []
    assert rows(store, "MESSAGES count(*) WHERE slot IN (messages, tools)") == rows(store, "MESSAGES count(*)")
    assert rows(store, "MUTATIONS kind WHERE kind IN (search, pack)") == [("pack",)] * 6
    assert rows(store, "MUTATIONS kind WHERE kind = search") == []
