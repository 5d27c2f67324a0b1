"""Checks everything, on a machine that has only Python: `python3 tools/check.py`.

Makes `.venv`, installs vmstore for developers, then lints, checks format, types, house rules and
floors, and runs all tests. Stops at the first failure and names the command that repeats it.
Arguments after `--` go to pytest: `python3 tools/check.py -- -x -k fork`.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Sequence  # noqa: UP035  Python 3.8 has no other

from bootstrap import ROOT, entry, ready

# The tests are last: their closing line is what people and CI read.
STEPS = (
    ("lint", ("ruff", "check", ".")),
    ("format", ("ruff", "format", "--check", ".")),
    ("types", ("mypy", "--strict", "vmstore")),
    ("house rules", ("python", "tools/tidy.py")),
    ("floors", ("lint-imports", "--no-cache", "--no-logo")),
    # A worker that ends is not replaced: the test that ended it would run again and end the next.
    ("tests", ("pytest", "-q", "-n", "auto", "--dist", "loadfile", "--max-worker-restart", "0")),
)


def main(arguments: Sequence[str]) -> int:
    """Runs every step up to the first that fails."""
    parser = argparse.ArgumentParser(
        prog="check.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pytest", nargs="*", metavar="-- PYTEST_ARGUMENT", help="given to pytest")
    given = parser.parse_args(arguments).pytest
    folder = ready("dev")
    for name, command in STEPS:
        code = step(name, folder, [*command, *given] if name == "tests" else command)
        if code:
            return code
    return 0


def step(name: str, folder: Path, command: Sequence[str]) -> int:
    """Runs one command of the environment, timed; gives its exit code."""
    line = shlex.join([str(folder.relative_to(ROOT) / command[0]), *command[1:]])
    print(f"== {name}: {line}", flush=True)
    started = time.perf_counter()
    code = subprocess.run([str(folder / command[0]), *command[1:]], cwd=ROOT, check=False).returncode
    seconds = time.perf_counter() - started
    if code:
        # On stderr, so that pytest's closing line stays the last of stdout.
        print(f"check.py: {name} failed after {seconds:.1f} s; repeat it with: {line}", file=sys.stderr)
    elif name != "tests":
        print(f"   {seconds:.1f} s", flush=True)
    return code if code >= 0 else 1  # a step killed by a signal has a negative code


if __name__ == "__main__":
    entry(main)
