"""The pages about frameworks say what happens, in the environment that has them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.prose import CHECKOUT, run_page

FRAMEWORKS = {
    "langgraph.md": "langgraph.graph",
    "agents.md": "agents",
    "pydantic_ai.md": "pydantic_ai",
    "chuk.md": "pydantic",
}


def is_there(module: str) -> bool:
    """Whether a module could be imported."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("page", FRAMEWORKS)
def test_a_page_is_what_happens(page: str, tmp_path: Path) -> None:
    """Every block of a page about a framework runs with it, and prints what the page shows."""
    if not is_there(FRAMEWORKS[page]):
        pytest.skip(f"no {FRAMEWORKS[page]} here: python3 tools/integrations.py has it")
    run_page(CHECKOUT / "specs" / page, tmp_path)
