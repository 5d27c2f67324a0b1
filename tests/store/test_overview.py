"""Sessions for somebody who looks for one: newest first, what they cost, what is unknown, names by their beginning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.refusals import refused
from vmstore.errors import InputError, UnknownError
from vmstore.store.store import Store, memory_store
from vmstore.vmql.syntax.errors import QueryError


def record_at(store: Store, name: str, text: str, at_us: int, **options: Any) -> None:
    """A session in which somebody said a thing at a time."""
    store.record(
        name, {"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}, None, at_us=at_us, **options
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with three recorded sessions, and one whose file held no times."""
    made = memory_store()
    record_at(made, "trip-2", "Where is Kyoto?", 3_000_000)
    record_at(made, "trip-1", "Where is Nara?", 5_000_000)
    record_at(made, "meal", "What is tofu?", 4_000_000)
    file = tmp_path / "untimed.json"
    file.write_text(json.dumps([{"role": "user", "content": "When is it?"}, {"role": "assistant", "content": "Now."}]))
    made.import_file(file)
    return made


def test_the_newest_stand_first_and_unknown_times_last(store: Store) -> None:
    """A time of an import is not a session's: where the source held none it is unknown, in Python and in VMQL."""
    assert [row.session for row in store.catalog.overview()] == ["trip-1", "meal", "trip-2", "untimed"]
    assert [row.session for row in store.catalog.overview(order_by="oldest")] == ["trip-2", "meal", "trip-1", "untimed"]
    untimed = store.session("untimed").info()
    assert (untimed.began_at, untimed.last_at) == (None, None) and untimed.opened_at > 5_000_000
    rows = store.query("SESSIONS session, began_at, last_at WHERE last_at IS NULL").to_dicts()
    assert rows == [{"session": "untimed", "began_at": None, "last_at": None}]
    assert store.session("trip-2").info().last_at == 3_000_000


def test_sessions_are_chosen_by_words_model_time_and_number(store: Store) -> None:
    """Each choice leaves the sessions that have it, and what is no choice is refused with those there are."""
    assert [item.session for item in store.catalog.overview(matching="where NARA")] == ["trip-1"]
    assert [item.session for item in store.catalog.overview(since="1970-01-01T00:00:04Z")] == ["trip-1", "meal"]
    assert [item.session for item in store.catalog.overview(model="4o", limit=1)] == ["trip-1"]
    assert store.catalog.overview(model="claude") == []
    assert [overview.first_line for overview in store.catalog.overview(order_by="name")][:2] == [
        "What is tofu?",
        "Where is Nara?",
    ]
    (row,) = store.query("SESSIONS first_line IN SESSION meal").to_dicts()
    assert row == {"first_line": "What is tofu?"}
    store.session("meal").fork("dinner")
    record_at(store, "dinner", "And soup?", 6_000_000)
    (first,) = store.catalog.overview(matching="tofu", limit=1)
    assert (first.session, first.first_line) == ("dinner", "What is tofu?"), "a fork begins where its parent does"
    for wrong, code in (({"order_by": "size"}, "unknown-order"), ({"limit": -1}, "not-a-limit")):
        with refused(code, InputError):
            store.catalog.overview(**wrong)


def test_a_fork_begins_with_what_was_said_first_before_it(store: Store) -> None:
    """A fork is shown with the first line of the session it shares its past with."""
    store.session("meal").fork("meal-b", call=1)
    assert {row.session: row.first_line for row in store.catalog.overview()}["meal-b"] == "What is tofu?"


def test_one_gap_makes_no_session_derived(store: Store) -> None:
    """A session of which one call could not be recorded is partly recorded, and says how many were."""
    store.admin.record_gap("meal", "it was no request")
    info = store.session("meal").info()
    assert (info.fidelity, info.recorded, info.calls) == ("partly", 1, 2)
    rows = store.query("SESSIONS fidelity, recorded WHERE fidelity = partly").to_dicts()
    assert rows == [{"fidelity": "partly", "recorded": 1}]


def test_the_beginning_of_a_name_is_enough_where_a_person_asks(store: Store) -> None:
    """`find_session` and a name written in VMQL take a beginning or `-`; a program's names are whole."""
    assert store.catalog.find_session("me").name == "meal" and store.catalog.find_session("-").name == "trip-1"
    assert store.query("CALLS call IN SESSION 'me'").to_dicts() == [{"call": 1}]
    assert store.query("SESSIONS session IN SESSION '-'").to_dicts() == [{"session": "trip-1"}]
    with refused("which-session", UnknownError):
        store.catalog.find_session("trip")
    with refused("which-session", QueryError):
        store.query("CALLS call IN SESSION 'trip'")
    with refused("no-session", UnknownError):
        store.session("me")
    with refused("unknown-session", QueryError):
        store.query("CALLS call IN SESSION $s", s="me")
    record_at(store, "me", "I am short.", 1)
    assert store.catalog.find_session("me").name == "me", "a whole name goes before a beginning"


def test_the_first_line_of_an_erased_page_is_told_as_erased(store: Store) -> None:
    """What was erased stands in no overview."""
    page = store.session("meal").pages()[0].page
    store.trust.erase(page=page, in_session="meal")
    first_lines = {row.session: row.first_line for row in store.catalog.overview()}
    assert "tofu" not in str(first_lines) and "erased" in str(first_lines["meal"])
    assert "tofu" not in str(store.query("SESSIONS first_line").to_dicts())
