"""Checks everything, on a machine that has only Python: `python3 tools/check.py`.

Makes `.venv`, installs vmstore for developers, then lints, checks format, types, house rules and
floors, and runs all tests. Stops at the first failure and names the command that repeats it.
Arguments after `--` go to pytest: `python3 tools/check.py -- -x -k fork`.

  tools/check.py                   everything, as CI does
  tools/check.py --fast            lint, format and the tests that take under a fifth of a second each
  tools/check.py --room vmql       the tests of one room
  tools/check.py --changed [REF]   the tests that the changes since REF touch (since HEAD if none is named)
  tools/check.py --nightly         everything, with the campaigns, and hypothesis trying 50 times as hard
  tools/check.py --time            runs all tests and records which are slow, in tests/slow.txt
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Sequence  # noqa: UP035  Python 3.8 has no other

from bootstrap import ROOT, RefusedError, entry, ready
from changes import changed_files, tests_of, touched

QUICK = (("lint", ("ruff", "check", ".")), ("format", ("ruff", "format", "--check", ".")))
STATIC = (
    *QUICK,
    ("types", ("mypy", "--strict", "vmstore")),
    ("house rules", ("python", "tools/tidy.py")),
    ("floors", ("lint-imports", "--no-cache", "--no-logo")),
)
# A worker that ends is not replaced: the test that ended it would run again and end the next. The files come in the
# order of tests/lanes.py, the dearest first; xdist sorts them by the number of their tests, the dearest maybe last.
TESTS = ("pytest", "-q", "-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "0")
# The step before has just found the checkout tidy.
TIDY_DONE = ("--deselect", "tests/test_house.py::test_the_checkout_is_tidy")
Step = "tuple[str, Sequence[str]]"


def main(arguments: Sequence[str]) -> int:
    """Runs every step of the lane up to the first that fails."""
    parser = argparse.ArgumentParser(
        prog="check.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    lane = parser.add_mutually_exclusive_group()
    lane.add_argument("--fast", action="store_true", help="lint, format and the fast tests")
    lane.add_argument("--room", metavar="NAME", help="the tests of one room")
    lane.add_argument("--changed", metavar="REF", nargs="?", const="HEAD", help="the tests that changes touch")
    lane.add_argument("--nightly", action="store_true", help="everything and the campaigns")
    lane.add_argument("--time", action="store_true", help="record which tests are slow")
    parser.add_argument("pytest", nargs="*", metavar="-- PYTEST_ARGUMENT", help="given to pytest")
    given = parser.parse_args(arguments)
    steps = steps_of(given)
    # The tests are last: their closing line is what people and CI read.
    folder = ready("dev")
    for name, command in steps:
        code = step(name, folder, [*command, *given.pytest] if name == "tests" else command)
        if code:
            return code
    return 0


def steps_of(given: argparse.Namespace) -> list[Step]:
    """The commands of the lane that the arguments choose."""
    if given.fast:
        return [*QUICK, ("tests", (*TESTS, "--lane", "fast"))]
    if given.room:
        return [*QUICK, ("tests", (*TESTS, *room(given.room)))]
    if given.changed:
        names = touched(ROOT, changed_files(ROOT, given.changed))
        if not names:
            print(f"no test is touched by what changed since {given.changed}")
        return [*STATIC, *([("tests", (*TESTS, *names))] if names else [])]
    if given.nightly:
        return [*STATIC, ("tests", (*TESTS, *TIDY_DONE, "--lane", "nightly"))]
    if given.time:
        return [("tests", (*TESTS, "--time"))]
    return [*STATIC, ("tests", (*TESTS, *TIDY_DONE))]


def room(name: str) -> list[str]:
    """The folders and files of tests/ that a room's name stands for."""
    tests = ROOT / "tests"
    found = [path for path in (tests / tests_of(name), tests / f"test_{name}.py") if path.exists()]
    if not found:
        rooms = [path.name for path in tests.iterdir() if path.is_dir() and any(path.glob("**/test_*.py"))]
        files = [path.stem.removeprefix("test_") for path in tests.glob("test_*.py")]
        raise RefusedError(f"no room {name!r}; there are {', '.join(sorted([*rooms, *files]))}")
    return [str(path.relative_to(ROOT)) for path in found]


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
