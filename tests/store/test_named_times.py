"""The times that were spoken of: as seen from when they were said, earliest first, and those of a time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import vmstore
from tests.refusals import refused
from vmstore.core.times import iso, microseconds
from vmstore.errors import InputError
from vmstore.store.session import Session

MAY, JUNE = (microseconds(datetime(2023, month, 25, 14, tzinfo=UTC)) for month in (5, 6))


def spoken(store: vmstore.Store) -> Session:
    """A session in which times are named in May and in June."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "The roses came yesterday."}]
    store.record("garden", {"model": "m", "messages": messages}, None, at_us=MAY)
    messages += [{"role": "user", "content": "They bloomed last month; next week I cut them."}]
    store.record("garden", {"model": "m", "messages": messages}, None, at_us=JUNE)
    return store.session("garden")


def days(answer: vmstore.NamedTimes) -> list[tuple[str, str, str, str]]:
    """Each time by its words, its first day, the day after its last, and its precision."""
    return [(time.words, iso(time.from_us)[:10], iso(time.to_us)[:10], time.precision) for time in answer.times]


def test_times_are_seen_from_when_they_were_said() -> None:
    """Each time is resolved against its own text's moment, whenever it is asked for."""
    with vmstore.memory_store() as store:
        assert days(spoken(store).memory.times()) == [
            ("last month", "2023-05-01", "2023-06-01", "month"),
            ("yesterday", "2023-05-24", "2023-05-25", "day"),
            ("next week", "2023-06-26", "2023-07-03", "week"),
        ]


def test_those_of_a_time_are_told() -> None:
    """A range is of the time spoken of, not of the time of writing."""
    with vmstore.memory_store() as store:
        memory = spoken(store).memory
        assert [time.words for time in memory.times(start="2023-05-24", end="2023-05-24").times] == [
            "last month",
            "yesterday",
        ]
        assert [time.words for time in memory.times(start="2023-07-01").times] == ["next week"]
        nothing = memory.times(start="2020-01-01", end="2020-02-01")
        assert nothing.times == [] and nothing.note


def test_a_moment_knows_no_later_times() -> None:
    """As of a call, only what was said by then names times."""
    with vmstore.memory_store() as store:
        assert [time.words for time in spoken(store).memory.times(call=1).times] == ["yesterday"]


def test_the_total_is_told_beside_a_few() -> None:
    """With a limit the earliest are given, and how many there are."""
    with vmstore.memory_store() as store:
        answer = spoken(store).memory.times(limit=1)
        assert [time.words for time in answer.times] == ["last month"] and answer.total_available == 3


def test_days_are_those_of_a_zone() -> None:
    """Yesterday begins where a clock of the zone says so."""
    with vmstore.memory_store() as store:
        times = spoken(store).memory.times(zone="Asia/Tokyo").times
        assert [iso(time.from_us)[:16] for time in times if time.words == "yesterday"] == ["2023-05-23T15:00"]


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, 1 << 40])
def test_another_limit_is_refused(limit: Any) -> None:
    """A limit that is no count is refused by its name."""
    with vmstore.memory_store() as store, refused("input", InputError, "limit"):
        spoken(store).memory.times(limit=limit)
