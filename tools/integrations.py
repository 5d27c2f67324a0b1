"""Runs the integrations against the frameworks they are for: `python3 tools/integrations.py [--peer-tests FOLDER]`.

Makes `.venv-integrations` with LangGraph, OpenAI's agents, Pydantic AI and what they stand on, and runs
`tests/integrations` in it, with LangGraph's own conformance tests, the tests of the package that
`vmstore.integrations.chuk` replaces, and the pages of specs/ about them. In the environment of the other tests those
need no framework run alone. Other arguments go to pytest.

The replaced package's tests are not in this repository: they come in its source distribution, which pip downloads, or
from a folder that is named.
"""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path
from typing import Sequence  # noqa: UP035  Python 3.8 has no other

from bootstrap import ROOT, RefusedError, entry, ready

# Without the configuration of the other tests, which need the developers' packages.
ROOMS = tuple(
    f"tests/integrations/{room}"
    for room in (
        "langgraph",
        "agents",
        "pydantic_ai",
        "chuk",
        "wheel",
        "test_doors.py",
        "test_pages.py",
        "test_docs.py",
    )
)
PEER = "chuk-ai-session-manager==0.11.2"
PEER_FLAG, PEER_VARIABLE = "--peer-tests", "VMSTORE_PEER_TESTS"
PYTEST = (
    "-q",
    "-n",
    "auto",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:asyncio",
    "--confcutdir",
    "tests/integrations",
    *ROOMS,
)


def main(arguments: Sequence[str]) -> int:
    """Runs the tests; gives pytest's exit code."""
    folder, rest = named(list(arguments))
    python = ready("integrations", venv=".venv-integrations") / "python"
    tests = downloaded(python) if folder is None else Path(folder).resolve()
    environment = {**os.environ, PEER_VARIABLE: str(tests)}
    command = [str(python), "-m", "pytest", *PYTEST, *rest]
    return subprocess.run(command, cwd=ROOT, check=False, env=environment).returncode


def named(arguments: list[str]) -> tuple[str | None, list[str]]:
    """The folder with the replaced package's tests, where one is named, and the other arguments."""
    if PEER_FLAG not in arguments:
        return None, arguments
    at = arguments.index(PEER_FLAG)
    if at + 1 == len(arguments):
        raise RefusedError(f"{PEER_FLAG} names the folder with the tests of {PEER}; name one, or leave it out")
    return arguments[at + 1], arguments[:at] + arguments[at + 2 :]


def downloaded(python: Path) -> Path:
    """The tests in the replaced package's source distribution, downloaded once."""
    folder = ROOT / ".venv-integrations" / "peer"
    tests = next(iter(folder.glob("*/tests")), None)
    if tests is None:
        pip = [str(python), "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", PEER]
        if subprocess.run([*pip, "--dest", str(folder)], check=False).returncode:
            raise RefusedError(f"pip cannot download {PEER}; name a folder with its tests: {PEER_FLAG} FOLDER")
        with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
            archive.extractall(folder, filter="data")
        tests = next(folder.glob("*/tests"))
    return tests


if __name__ == "__main__":
    entry(main)
