"""Runs the integrations against the frameworks they are for: `python3 tools/integrations.py`.

Makes `.venv-integrations` with LangGraph, OpenAI's agents, Pydantic AI and what they stand on, and runs
`tests/integrations` in it, with LangGraph's own conformance tests and the pages of specs/ about them. In the
environment of the other tests those need no framework run alone. Arguments go to pytest.
"""

from __future__ import annotations

import subprocess
from typing import Sequence  # noqa: UP035  Python 3.8 has no other

from bootstrap import ROOT, entry, ready

# Without the configuration of the other tests, which need the developers' packages.
ROOMS = tuple(
    f"tests/integrations/{room}" for room in ("langgraph", "agents", "pydantic_ai", "test_pages.py", "test_docs.py")
)
PYTEST = ("-q", "-n", "auto", "-p", "no:cacheprovider", "--confcutdir", "tests/integrations", *ROOMS)


def main(arguments: Sequence[str]) -> int:
    """Runs the tests; gives pytest's exit code."""
    python = ready("integrations", venv=".venv-integrations") / "python"
    return subprocess.run([str(python), "-m", "pytest", *PYTEST, *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    entry(main)
