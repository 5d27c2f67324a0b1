"""Sessions of other agents, said again to a memory that manages itself, are decided again as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from vmstore.store.store import memory_store


@pytest.mark.parametrize(
    ("folder", "budget"), [("pi", 16_000), ("pi", 64_000), ("swe-agent", 16_000), ("claude-code", 16_000)]
)
def test_a_redriven_session_is_decided_again(data: Path, folder: str, budget: int) -> None:
    """No decision differs, no call is over its budget, and the numbers are those of the live session."""
    store = memory_store()
    names = [
        session.session
        for path in sorted((data / folder).iterdir())
        if path.suffix in (".jsonl", ".traj")
        for session in store.import_file(path).sessions
    ]
    assert names
    for name in names:
        live = store.admin.redrive(name, f"{name}-live", l0_tokens_max=budget)
        actual = live.debug.check()
        assert actual.ok, actual.difference
        recorded = live.debug.replay()
        assert recorded.measures == live.stats()
        assert recorded.measures.calls_over_budget == 0 and recorded.measures.l0_peak <= budget
        smaller = live.debug.replay(budget=budget // 2 if folder == "pi" else 12_000)
        assert smaller.measures.calls_over_budget == 0
        assert smaller.measures.references == recorded.measures.references
