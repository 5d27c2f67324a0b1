"""The store loads no door."""

from __future__ import annotations

import subprocess
import sys

from tests.prose import CHECKOUT

DOORS = ("vmstore.integrations", "vmstore.proxy", "pydantic", "langgraph", "agents", "mcp")
LOADED = "import sys, vmstore; vmstore.memory_store(); print([name for name in sys.argv[1:] if name in sys.modules])"


def test_the_store_loads_no_door() -> None:
    """A program that imports vmstore and opens a store has loaded no integration, and nothing they stand on."""
    command = [sys.executable, "-c", LOADED, *DOORS]
    run = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
