"""The memory log keeps the contract, in few lines."""

from __future__ import annotations

import inspect
from pathlib import Path

from vmstore.log import memory
from vmstore.log.port import Log
from vmstore.testing.log_contract import LogContract


class TestMemoryLog(LogContract):
    durable = False

    def make_log(self, folder: Path) -> Log:
        """A log with nothing behind it."""
        return memory.MemoryLog()


def test_it_is_small() -> None:
    """A log in memory fits in 130 lines, so the port is no wider than it must be."""
    assert len(inspect.getsource(memory).splitlines()) <= 130
