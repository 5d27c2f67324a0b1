"""What a memory costs in time and bytes, measured where there is a clock and a log, and made up nowhere else."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

import vmstore
from vmstore.core.mutation import Create, Message, Turn, wire
from vmstore.core.page import IMPORTANCE
from vmstore.store.live.live_session import Live
from vmstore.vm.metrics.metrics import MINUTE_US, SEAL_BYTES, CommitTimes, Overhead

START = 1_795_301_701_000_000


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=40))
def test_latencies_are_those_of_a_sorted_list(took: list[int]) -> None:
    """The time that 95 of 100 faults keep is that of the obvious list, each from its fault to the next call."""
    pace, now = CommitTimes(), 0
    for item in took:
        pace.begin(now)
        pace.served()
        now += item
        pace.begin(now)
        pace.called()
    rank = next(n for n in range(1, len(took) + 1) if n * 100 >= 95 * len(took))
    assert pace.latency_ms(95) == sorted(took)[rank - 1] / 1_000


def test_nobody_waits_within_a_commit() -> None:
    """What was asked for and shown in one commit took no time that is known, and a clock that stands has no minute."""
    pace = CommitTimes()
    pace.begin(START)
    pace.tick()
    pace.served()
    pace.called()
    assert pace.latency_ms(95) is None and pace.a_minute(3) is None
    pace.begin(START + 2 * MINUTE_US)
    pace.tick()
    assert pace.a_minute(3) == 1.5


def test_a_sessions_clock_is_its_logs() -> None:
    """Evictions a minute and the latency of faults are by when things happened, for another process as well."""
    store = vmstore.memory_store()
    session = store.live_session("s", l0_tokens_max=1_500, reserve_faults_tokens=200)
    at = session.calls()[0].at if session.calls() else START + 10**12
    for turn in range(10):
        session.user("A note about the harbour. " * 30, at_us=at + turn * MINUTE_US)
        session.pack(at_us=at + turn * MINUTE_US)
        session.assistant("Noted.", at_us=at + turn * MINUTE_US)
    gone = next(page.page for page in session.pages(role="user") if page.tier)
    session.page_fault(gone, at_us=at + 10 * MINUTE_US)
    session.pack(at_us=at + 10 * MINUTE_US + 250_000)
    stats = session.stats()
    assert stats.fault_latency_p95_ms == 250.0 and stats.targets["fault_latency_p95_ms"] is True
    assert stats.evictions_a_minute is not None and stats.evictions_a_minute > 0
    store._ns.live.clear()
    again = store.session("s")
    assert isinstance(again, Live) and again.stats() == stats == again.debug.replay().measures
    assert session.debug.replay(policy="lru").measures.overhead is None


def test_overhead_is_what_is_not_content() -> None:
    """Each mutation weighs its bytes, and a seal for each cell it names; contents weigh what was accepted."""
    made = Create(0, 0, 1, 0, 0, 0, 1_000, 250, 0, (), 1, IMPORTANCE)
    items: list[Any] = [
        Turn(1),
        Message(1, 2, 0),
        made,
        msgspec.structs.replace(made, content=None, labels=None, size=0),
    ]
    weighed = Overhead()
    for mutation in items:
        weighed.note(mutation)
    assert weighed.contents == 1_000
    assert weighed.said == sum(len(wire(item)) for item in items) + SEAL_BYTES * (0 + 1 + 2 + 0)
