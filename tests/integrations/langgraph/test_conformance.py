"""LangGraph's own conformance tests, with its SQLite saver beside ours in the same run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.checkpoint.conformance", reason="runs in the lane of tools/integrations.py")

from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

import vmstore
from vmstore.integrations.langgraph import VmstoreSaver

BASE = {"put": 17, "put_writes": 10, "get_tuple": 10, "list": 16, "delete_thread": 5}
EXTENDED = {"delete_for_runs": 7, "copy_thread": 8, "prune": 8}


def counts(factory: Any) -> dict[str, tuple[int, list[str]]]:
    """How many tests of each capability passed, and those that did not."""
    report = asyncio.run(validate(factory))
    return {
        name: (result.tests_passed, [str(failure) for failure in result.failures])
        for name, result in report.results.items()
        if result.detected
    }


def test_our_saver_passes_all_and_theirs_the_base(tmp_path: Path) -> None:
    """Ours passes the 58 of the base and the 23 extended ones, on files; LangGraph's SQLite saver passes the 58."""

    @checkpointer_test(name="vmstore")
    async def ours() -> AsyncIterator[Any]:
        with vmstore.open(tmp_path / "agent.vms") as store:
            yield VmstoreSaver(store)

    @checkpointer_test(name="sqlite")
    async def theirs() -> AsyncIterator[Any]:
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "theirs.sqlite")) as saver:
            yield saver

    assert sum(BASE.values()) == 58
    assert counts(theirs) == {name: (number, []) for name, number in BASE.items()}
    assert counts(ours) == {name: (number, []) for name, number in {**BASE, **EXTENDED}.items()}
    with vmstore.open(tmp_path / "agent.vms") as store:
        assert store.verify().ok
