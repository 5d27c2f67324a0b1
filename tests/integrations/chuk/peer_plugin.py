"""Has the tests of the replaced package run over this one, and says what came of each.

pytest loads it before it collects any of them: `-p tests.integrations.chuk.peer_plugin`, with a file to write to in
the variable VMSTORE_PEER_OUTCOMES.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from vmstore.integrations.chuk import replace_package

PRIVATE = re.compile(r"\._[a-z]")
OUTCOMES = "VMSTORE_PEER_OUTCOMES"
outcomes: dict[str, list[Any]] = {}

sys.modules["tiktoken"] = None  # type: ignore[assignment]  # where it is there they count by it, and it downloads words
replace_package()


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Notes of each test whether its text touches a private attribute of anything."""
    for item in items:
        is_public = PRIVATE.search(inspect.getsource(item.function)) is None
        outcomes[name_of(item.nodeid)] = ["not run", is_public]


def pytest_runtest_logreport(report: Any) -> None:
    """Notes how a test ended."""
    if report.when == "call" or report.failed:
        outcomes[name_of(report.nodeid)][0] = report.outcome


def pytest_sessionfinish() -> None:
    """Writes all of it."""
    Path(os.environ[OUTCOMES]).write_text(json.dumps(outcomes), encoding="utf-8")


def name_of(node: str) -> str:
    """A test as the table of deviations names it: its file, class and function."""
    file, _, rest = node.partition("::")
    return f"{Path(file).stem}::{rest}"
