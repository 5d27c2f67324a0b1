"""Checks everything, on a machine that has only Python: `python3 tools/check.py`.

Makes `.venv`, installs vmstore for developers, then lints, checks format, types, house rules and
floors, runs the integrations with their frameworks, stores in PostgreSQL, and all tests. What fails
comes with the command that repeats it; tests run where nothing else failed.
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
# The frameworks that a store is built into, in an environment of their own beside the types.
INTEGRATIONS = ("integrations", ("python", "tools/integrations.py"))
# Stores in a database, against a server that pip installs.
POSTGRES = ("postgres", ("python", "tools/postgres.py"))
# A worker that ends is not replaced: the test that ended it would run again and end the next. The files come in the
# order of tests/lanes.py, the dearest first; xdist sorts them by the number of their tests, the dearest maybe last.
TESTS = ("pytest", "-q", "-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder", "--max-worker-restart", "0")
# The step before has just found the checkout tidy.
TIDY_DONE = ("--deselect", "tests/test_house.py::test_the_checkout_is_tidy")
Step = "tuple[str, Sequence[str]]"


def main(arguments: Sequence[str]) -> int:
    """Runs the steps of the lane: those that read the code at once, then the tests where these found nothing."""
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
    input_arguments = parser.parse_args(arguments)
    steps = steps_of(input_arguments)
    # The tests are last: their closing line is what people and CI read.
    folder = ready("dev")
    code = at_once([step for step in steps if step[0] != "tests"], folder)
    for name, command in steps:
        if not code and name == "tests":
            code = step(name, folder, [*command, *input_arguments.pytest])
    return code


def steps_of(arguments: argparse.Namespace) -> list[Step]:
    """The commands of the lane that the arguments choose."""
    if arguments.fast:
        return [*QUICK, ("tests", (*TESTS, "--lane", "fast"))]
    if arguments.room:
        return [*QUICK, ("tests", (*TESTS, *room(arguments.room)))]
    if arguments.changed:
        names = touched(ROOT, changed_files(ROOT, arguments.changed))
        if not names:
            print(f"no test is touched by what changed since {arguments.changed}")
        return [*STATIC, *([("tests", (*TESTS, *names))] if names else [])]
    if arguments.nightly:
        return [*STATIC, INTEGRATIONS, POSTGRES, ("tests", (*TESTS, *TIDY_DONE, "--lane", "nightly"))]
    if arguments.time:
        return [("tests", (*TESTS, "--time"))]
    return [*STATIC, INTEGRATIONS, POSTGRES, ("tests", (*TESTS, *TIDY_DONE))]


def room(name: str) -> list[str]:
    """The folders and files of tests/ that a room's name stands for."""
    tests = ROOT / "tests"
    actual_tests = [path for path in (tests / tests_of(name), tests / f"test_{name}.py") if path.exists()]
    if not actual_tests:
        rooms = [path.name for path in tests.iterdir() if path.is_dir() and any(path.glob("**/test_*.py"))]
        files = [path.stem.removeprefix("test_") for path in tests.glob("test_*.py")]
        raise RefusedError(f"no room {name!r}; there are {', '.join(sorted([*rooms, *files]))}")
    return [str(path.relative_to(ROOT)) for path in actual_tests]


def at_once(steps: Sequence[Step], folder: Path) -> int:
    """Runs commands beside each other and shows in order what each printed; gives the code of the first that failed.

    The types take as long as all the others together, so a second core has those for nothing.
    """
    begun = []
    for name, command in steps:
        full = [str(folder / command[0]), *command[1:]]
        process = subprocess.Popen(full, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        begun.append((name, shown(folder, command), process))
    code = 0
    for name, line, process in begun:
        print(f"== {name}: {line}\n{process.communicate()[0].rstrip()}", flush=True)
        if process.returncode:
            print(f"check.py: {name} failed; repeat it with: {line}", file=sys.stderr)
            code = code or (process.returncode if process.returncode > 0 else 1)
    return code


def shown(folder: Path, command: Sequence[str]) -> str:
    """A command as somebody would type it in the checkout."""
    return shlex.join([str(folder.relative_to(ROOT) / command[0]), *command[1:]])


def step(name: str, folder: Path, command: Sequence[str]) -> int:
    """Runs one command of the environment, timed; gives its exit code."""
    line = shown(folder, command)
    print(f"== {name}: {line}", flush=True)
    started = time.perf_counter()
    code = subprocess.run([str(folder / command[0]), *command[1:]], cwd=ROOT, check=False).returncode
    seconds = time.perf_counter() - started
    if code:
        # On stderr, so that pytest's closing line stays the last of stdout.
        print(f"check.py: {name} failed after {seconds:.1f} s; repeat it with: {line}", file=sys.stderr)
    return code if code >= 0 else 1  # a step killed by a signal has a negative code


if __name__ == "__main__":
    entry(main)
