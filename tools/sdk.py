"""Plays the packages that talk to models against a server of our own: `python3 tools/sdk.py`.

Makes `.venv-sdk` with litellm, LangChain, instructor, agents, google-genai and what they stand on,
and runs `tests/sdk` in it: each way to ask is recorded as the server received it. Without that
environment the tests play OpenAI's and Anthropic's packages alone. Arguments go to pytest.
"""

from __future__ import annotations

import subprocess
from typing import Sequence  # noqa: UP035  Python 3.8 has no other

from bootstrap import ROOT, entry, ready

# Without the configuration of the other tests, which need the developers' packages.
PYTEST = ("-q", "-p", "no:cacheprovider", "--confcutdir", "tests/sdk", "tests/sdk")


def main(arguments: Sequence[str]) -> int:
    """Runs the scenarios; gives pytest's exit code."""
    python = ready("sdk", venv=".venv-sdk") / "python"
    return subprocess.run([str(python), "-m", "pytest", *PYTEST, *arguments], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    entry(main)
