"""What tests of bad input share: a small budget, long texts, and how it is seen that a session goes on."""

from __future__ import annotations

from typing import Any

from vmstore.store.live.live_session import Live
from vmstore.store.store import Store

FEW: dict[str, Any] = {"l0_tokens_max": 3_000, "reserve_faults_tokens": 300, "policy": "lru", "rules": "passive"}
LINE = "Trains leave at {} past noon. The hall has {} clocks, and each of them is late."
PROSE = "\n".join(LINE.format(n, n % 60) for n in range(160))


def goes_on(store: Store, session: Live) -> None:
    """The session takes a turn, its prompt is within the budget, and the log verifies."""
    session.user("Is anybody there?")
    packed = session.pack()
    assert packed.tokens <= packed.budget
    assert packed.text.rstrip().endswith("</VM:CONTEXT>") and "Is anybody there?" in packed.text
    session.assistant("Yes.")
    assert store.verify().ok


def kinds(store: Store) -> dict[str, int]:
    """How many mutations of each kind there are."""
    rows = store.query("MUTATIONS kind, count(*) BY kind", session="s").to_dicts()
    return {row["kind"]: row["count(*)"] for row in rows}


def call(session: Live, number: int) -> str:
    """The model calls a tool; the id of the call."""
    asked = {"name": "read", "arguments": "{}"}
    fields = {"id": f"c{number}", "type": "function", "function": asked}
    session.assistant({"role": "assistant", "content": None, "tool_calls": [fields]})
    return f"c{number}"
