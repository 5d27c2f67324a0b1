"""Times in queries: ISO 8601 and phrases, resolved once and told in the basis."""

from __future__ import annotations

import pytest

import vmstore
from tests.refusals import refused
from vmstore.core.clock import ManualClock
from vmstore.store.store import Store
from vmstore.vmql.planner import times
from vmstore.vmql.syntax.errors import QueryError

NOON = 1_795_348_800_000_000  # Sunday, 2026-11-22T12:00:00Z
HOUR = 3_600_000_000


@pytest.fixture
def store() -> Store:
    """A session with a call an hour, the last one at noon."""
    made = vmstore.memory_store(clock=ManualClock(NOON, 0))
    messages: list[dict[str, str]] = []
    for hour in (3, 2, 1, 0):
        messages.append({"role": "user", "content": f"{hour} hours before noon"})
        made.record("trip", {"messages": list(messages)}, None, at_us=NOON - hour * HOUR)
    return made


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("AS OF TIME '2026-11-22T10:00:00Z'", [1, 2]),
        ("AS OF TIME '2026-11-22 10:30:00+00:00'", [1, 2]),
        ("AS OF TIME '90 minutes ago'", [1, 2]),
        ("SINCE TIME '2026-11-22T10:00:00Z'", [3, 4]),
        ("SINCE TIME '1 year ago'", [1, 2, 3, 4]),
        ("UNTIL TIME '2 hours ago'", [1, 2]),
        ("BETWEEN TIME '2026-11-22T10:00:00Z' AND TIME '2026-11-22T11:00:00Z'", [2, 3]),
        ("ACROSS SESSIONS AS OF TIME '2 hours ago'", [1, 2]),
        ("ACROSS SESSIONS BETWEEN TIME '2 hours ago' AND TIME '1 hour ago'", [2, 3]),
        ("ACROSS SESSIONS SINCE TIME '2 hours ago'", [3, 4]),
        ("WHERE at > '2026-11-22T10:00:00Z'", [3, 4]),
        ("WHERE at >= '2 hours ago'", [2, 3, 4]),
    ],
)
def test_a_time_bounds_what_is_asked(store: Store, text: str, calls: list[int]) -> None:
    """AS OF and UNTIL include their moment, SINCE leaves it out, BETWEEN includes both."""
    assert [call for (call,) in store.query(f"CALLS call {text}")] == calls


def test_a_phrase_is_resolved_once_and_told(store: Store) -> None:
    """The basis says which time a phrase was taken for."""
    assert store.query("PAGES AS OF TIME '2 hours ago'").basis["as_of_time"] == "2026-11-22T10:00:00Z"


def test_a_phrase_without_its_library_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where dateparser is missing, ISO 8601 is understood and a phrase is refused with what would help."""
    monkeypatch.setattr(times, "_phrase", lambda text, now: None)
    assert store.query("PAGES AS OF TIME '2026-11-22T10:00:00Z'").basis["call"] == 2
    with refused("not-a-time", QueryError):
        store.query("PAGES AS OF TIME '2 hours ago'")
