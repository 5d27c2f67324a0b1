"""What recording costs: bytes in the log for what changed, rows for what the context holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.capture.words import LONG, Item, answer, model_text, request, system, user
from vmstore.store.session import Session
from vmstore.store.store import memory_store, open_store

TALK: list[Item] = [
    item for n in range(500) for item in (user(f"What about part {n}?"), model_text(f"Part {n} is done. " * 8))
]


def log_bytes(path: Path) -> int:
    """The size of a closed store's log, whatever stands beside the file included."""
    return sum(file.stat().st_size for file in (path / "default").glob("log.sqlite*"))


@pytest.mark.parametrize("shape", ["chat", "anthropic"])
def test_an_unchanged_call_costs_less_than_250_bytes(shape: str, store_path: Path) -> None:
    """With 1,000 pages in context, a hundred calls that change nothing grow the log by under 250 bytes each."""
    body = request(TALK, shape)
    with open_store(store_path) as store:
        store.record("s", body, answer(model_text("Done."), shape, tokens=40_000))
        assert len(store.session("s").context().pages) == 1000
    before = log_bytes(store_path)
    with open_store(store_path) as store:
        for _ in range(100):
            store.record("s", body)
    assert (log_bytes(store_path) - before) / 100 < 250


def test_an_unchanged_call_with_its_own_literals_costs_what_changed(store_path: Path) -> None:
    """A request's other fields are written where they changed, not with every call."""
    with open_store(store_path) as store:
        store.record("s", request(TALK, metadata={"about": LONG}))
    before = log_bytes(store_path)
    with open_store(store_path) as store:
        for _ in range(50):
            store.record("s", request(TALK, metadata={"about": LONG}))
    assert (log_bytes(store_path) - before) / 50 < 250


def test_a_growing_call_costs_what_it_adds(store_path: Path) -> None:
    """A hundred calls that each add two messages grow the log by those, whatever stood before."""
    added = sum(len(item[-1].encode()) for item in TALK[800:])
    with open_store(store_path) as store:
        store.record("s", request(TALK[:800]))
    before = log_bytes(store_path)
    with open_store(store_path) as store:
        for end in range(802, 1001, 2):
            store.record("s", request(TALK[:end]))
    assert log_bytes(store_path) - before < added * 1.1 + 100 * 1000


def contents(message: dict[str, Any]) -> list[bytes]:
    """The contents of one message of a pi file: texts, thoughts, commands' outputs and tool calls."""
    if message.get("role") == "bashExecution":
        return [str(message.get("output")).encode()]
    blocks = message.get("content")
    if isinstance(blocks, str):
        return [blocks.encode()]
    actual_contents = []
    for block in blocks or ():
        text = block.get(block["type"])
        if isinstance(text, str):
            actual_contents.append(text.encode())
        else:
            actual_contents.append(json.dumps(block, ensure_ascii=False, separators=(",", ":")).encode())
    return actual_contents


def test_the_pi_log_is_its_distinct_content_and_little_more(data: Path, store_path: Path) -> None:
    """Closed, the log of 484 calls is at most 1.1 times the distinct content plus 500 bytes a call."""
    file = data / "pi" / "before-compaction.jsonl"
    distinct: set[bytes] = set()
    for line in file.read_text().splitlines():
        record = json.loads(line)
        distinct.update(contents(record.get("message", {})))
        if record["type"] == "compaction":
            distinct.add(record["summary"].encode())
    size = sum(map(len, distinct))
    assert size > 700_000
    with open_store(store_path) as store:
        store.import_file(file)
    assert log_bytes(store_path) <= 1.1 * size + 500 * 484


# ---- the context at a call costs what it holds


def rows_touched(session: Session, store: Any, call: int) -> int:
    """How many steps of SQLite's machine a context with its messages takes, in hundreds."""
    counted = 0

    def tick() -> bool:
        nonlocal counted
        counted += 1
        return False

    store.admin.views.set_progress_handler(tick, 100)
    context = session.context(call=call)
    assert len(context.messages()) == len(context.pages)
    store.admin.views.set_progress_handler(None)
    return counted


def windows(calls: int, width: int) -> list[list[Item]]:
    """Requests of a window that slides over a talk."""
    talk = [item for n in range(calls + width) for item in (user(f"q {n}"), model_text(f"a {n}"))]
    return [[system("You plan."), *talk[2 * n : 2 * n + width]] for n in range(calls)]


def test_a_context_costs_by_its_pages_not_by_its_calls() -> None:
    """Twenty times the calls cost an old or new context less than three times; ten times the pages over four."""
    costs: dict[tuple[int, int], int] = {}
    for calls, width in ((30, 20), (600, 20), (30, 200)):
        with memory_store() as store:
            for items in windows(calls, width):
                store.record("s", request(items))
            session = store.session("s")
            session.context(call=1)
            costs[calls, width] = max(rows_touched(session, store, call) for call in (2, calls // 2, calls))
    assert costs[600, 20] < 3 * costs[30, 20]
    assert costs[30, 200] > 4 * costs[30, 20]
