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


def test_a_condition_is_a_value_within_a_function(store: Store) -> None:
    """What holds is counted, averaged and chosen by: of a row, of a group, and where a null decides of no row."""
    rows = list(store.query("PAGES role, tokens, since_position"))
    users = [tokens for role, tokens, _ in rows if role == "user"]
    shares = "PAGES sum(role = user), avg(role = user AND tokens > 3), sum(iif(role = user, tokens, 0))"
    many = sum(tokens > 3 for tokens in users)
    since = sum(at > 9 for *_, at in rows if at is not None)
    assert list(store.query(f"{shares}, sum(since_position > 9)")) == [
        (len(users), many / len(rows), sum(users), since)
    ]
    sizes = Counter("long" if tokens > 3 else "short" for _, tokens, _ in rows)
    size = "iif(tokens > 3, 'long', 'short')"
    by_size = store.query(f"PAGES {size} AS size, count(*) BY {size} ORDER BY {size}").to_dicts()
    assert {row["size"]: row["count(*)"] for row in by_size} == sizes
    half = store.query("PAGES BY role HAVING avg(tokens > 3) > 0.5 AND iif(count(*) > 1, TRUE, FALSE)").to_dicts()
    assert [row["role"] for row in half] == ["user"]
    assert list(store.query("PAGES iif(role = user, tokens, NULL) AS t WHERE role = assistant LIMIT 1")) == [(None,)]


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
        ("PAGES iif(tokens > 3, 1, 0) BY role", "not-grouped", "tokens differs within a group"),
        ("PAGES iif(tokens, 1, 0)", "wrong-type", "iif takes a boolean, and tokens is an integer"),
        ("PAGES iif(pinned, tokens, 'none')", "wrong-type", "tokens is an integer and none a text"),
        ("PAGES count(role = user)", "not-a-value", "sum(role = user) counts the rows for which it holds"),
        ("PAGES page WHERE sum(role = user) > 1", "not-a-value", "WHERE chooses rows before they are summed"),
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
