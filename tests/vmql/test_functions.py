"""Functions of one row's values give what Python makes of the values that the row shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

import vmstore
from vmstore.store.store import Store

TEXTS = ("Where is Ångström?", "x", "", "ΣΊΣΥΦΟΣ rolls\nthe stone 12 times", "naïve " * 50)
START_US = 1_700_000_000_000_000
DAY_US = 86_400_000_000


@pytest.fixture(scope="module")
def store() -> Store:
    """A session of messages in several scripts, a day and five hours apart."""
    made = vmstore.memory_store()
    records: list[dict[str, Any]] = []
    for at, text in enumerate(TEXTS):
        records = [*records, {"role": "user" if at % 2 == 0 else "assistant", "content": text}]
        made.record("trip", {"messages": records}, None, at_us=START_US + at * (DAY_US + 5 * 3_600_000_000) + at)
    return made


def _moment(at: str) -> datetime:
    return datetime.fromisoformat(at).astimezone(UTC)


ROWS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "length(text)": ("text", len),
    "lower(text)": ("text", str.lower),
    "upper(text)": ("text", str.upper),
    "upper(role)": ("role", str.upper),
    "length(tags)": ("tags", len),
    "abs(tokens)": ("tokens", abs),
    "round(importance)": ("importance", lambda value: float(int(value + 0.5))),
    "coalesce(since_position, 0)": ("since_position", lambda value: value or 0),
    "coalesce(since_position, position)": ("since_position", lambda value: value),
    "day(created_at)": ("created_at", lambda at: _moment(at).strftime("%Y-%m-%d")),
    "month(created_at)": ("created_at", lambda at: _moment(at).strftime("%Y-%m")),
    "hour(created_at)": ("created_at", lambda at: _moment(at).hour),
    "weekday(created_at)": ("created_at", lambda at: _moment(at).isoweekday()),
    "regexp(text, '[0-9]+ t')": ("text", lambda text: bool(re.search("[0-9]+ t", text))),
}


@pytest.mark.parametrize("function", ROWS)
def test_a_function_gives_what_python_makes_of_the_value(store: Store, function: str) -> None:
    """Of every row a function gives what Python makes of the shown value, and nothing of what is not there."""
    column, made = ROWS[function]
    rows = list(store.query(f"PAGES {column} AS plain, {function} AS made"))
    assert len(rows) >= len(TEXTS) - 1
    for plain, item in rows:
        assert item == (made(plain) if plain is not None or "coalesce" in function else None), function


def test_functions_choose_order_and_sum_rows(store: Store) -> None:
    """A function stands in conditions, on either side, in ORDER BY and in sums, as a column does."""
    texts = [text for (text,) in store.query("PAGES text")]
    long = [text for (text,) in store.query("PAGES text WHERE length(text) > 5 ORDER BY length(text) DESC")]
    assert long == sorted((text for text in texts if len(text) > 5), key=len, reverse=True) != []
    assert list(store.query("PAGES text WHERE 5 < length(text)")) == [(text,) for text in texts if len(text) > 5]
    greek = store.query("PAGES text WHERE regexp(text, $pattern) AND NOT lower(text) LIKE '%x%'", pattern="Σ")
    assert [text for (text,) in greek] == [text for text in texts if "Σ" in text]
    (row,) = store.query("PAGES sum(length(text)), max(length(text)), count(*)")
    assert row == (sum(map(len, texts)), max(map(len, texts)), len(texts))
    by_role = Counter(role.upper() for (role,) in store.query("PAGES role"))
    assert {row[1]: row[2] for row in store.query("PAGES upper(role), count(*) BY role")} == by_role
    assert list(store.query("PAGES round(avg(tokens), 1) BY role")) != []


@pytest.mark.parametrize(
    ("statement", "code", "text"),
    [
        ("PAGES lenght(text)", "unknown-function", "did you mean length(…)?"),
        ("PAGES length(tokens)", "wrong-type", "length takes a text or a list, and tokens is an integer"),
        ("PAGES hour(tokens)", "wrong-type", "hour takes a time, and tokens is an integer"),
        ("PAGES length(text, 2)", "wrong-arguments", "length takes 1, not 2"),
        ("PAGES round(*)", "wrong-arguments", "round takes 1 to 2, not *"),
        ("PAGES coalesce(tokens, 'x')", "wrong-type", "tokens is an integer and x a text"),
        ("PAGES length(text) BY role", "not-grouped", "text differs within a group"),
        ("PAGES page WHERE length(text)", "not-a-condition", "length(text) is an integer, no condition"),
        ("PAGES page WHERE regexp(text, '(')", "wrong-pattern", "unmatched '('"),
        ("PAGES page WHERE regexp(text, '+')", "wrong-pattern", "without operand"),
        ("PAGES page WHERE regexp(text, 'a{1000000}')", "wrong-pattern", "too big"),
        ("PAGES page WHERE round(sum(tokens)) > 1", "not-a-value", "WHERE chooses rows before they are summed"),
    ],
)
def test_a_wrong_use_is_refused_with_what_is_right(store: Store, statement: str, code: str, text: str) -> None:
    """What a function cannot take is refused by name, before any row is read or as the pattern is."""
    with pytest.raises(vmstore.QueryError) as refused:
        list(store.query(statement))
    assert refused.value.code == code
    assert text in str(refused.value)
