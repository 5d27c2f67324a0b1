"""What nobody said before a call: found by one reading of its session."""

from __future__ import annotations

import pytest

import vmstore
from vmstore.store.work import calls


def test_all_that_a_failed_call_names_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody said is found among several names by one reading of what was said before, and none is read after."""
    function = {"name": "pay", "arguments": '{"card": "card_7334", "seat": "seat_12a", "trip": "trip_55x"}'}
    messages = [
        *({"role": ("user", "assistant")[n % 2], "content": f"Line {n}, of trip_55x."} for n in range(200)),
        {"role": "user", "content": "Pay."},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c", "content": "card_7334 is unknown"},
    ]
    reads: list[int] = []
    real = calls.read_cells
    monkeypatch.setattr(
        calls, "read_cells", lambda log, db, cells, absent: reads.append(len(cells)) or real(log, db, cells, absent)
    )
    with vmstore.memory_store() as store:
        store.record("s", {"model": "m", "messages": messages}, {"choices": [{"message": {"content": "No."}}]})
        session = store.session("s")
        (call,) = calls.past_calls(session)
        assert calls.UnsaidBefore(session)(call, ["card_7334", "seat_12a", "trip_55x"]) == ["card_7334", "seat_12a"]
        assert sum(reads) == 201
        reads.clear()
        assert calls.UnsaidBefore(session)(call, ["trip_55x"]) == [] and sum(reads) < 201
