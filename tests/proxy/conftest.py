"""The proxy is tested where its extra is installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

if importlib.util.find_spec("aiohttp") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a store is made."""
    return tmp_path / "a.vms"
