"""Which lines of the engine no test executes: `python3 tools/lines.py`.

Runs the tests as `tools/check.py` does, processes they start included, and names every line of
`vmstore/log`, `cells`, `engine`, `views` and `columns` that none of them reached; exit code 1
then. Takes about twice the time of the tests. Arguments after `--` go to pytest.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path
from typing import Sequence  # noqa: UP035  Python 3.8 has no other

from bootstrap import ROOT, entry, ready

FLOORS = ("log", "cells", "engine", "views", "columns")
SETTINGS = """[run]
source = {source}
data_file = {folder}/reached
parallel = true
patch = subprocess, _exit
core = ctrace
[report]
show_missing = true
skip_covered = true
exclude_also =
    if TYPE_CHECKING:
    @overload
"""


def main(arguments: Sequence[str]) -> int:
    """Runs the tests under watch and says what was not reached."""
    parser = argparse.ArgumentParser(
        prog="lines.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pytest", nargs="*", metavar="-- PYTEST_ARGUMENT", help="given to pytest")
    input_pytest = parser.parse_args(arguments).pytest
    coverage = [str(ready("dev") / "coverage")]
    with tempfile.TemporaryDirectory(prefix="vmstore-lines-") as folder:
        settings = Path(folder) / "settings"
        settings.write_text(SETTINGS.format(folder=folder, source=",".join(f"vmstore.{floor}" for floor in FLOORS)))
        text = f"--rcfile={settings}"
        tests = subprocess.run([*coverage, "run", text, "-m", "pytest", "-q", *input_pytest], cwd=ROOT, check=False)
        subprocess.run([*coverage, "combine", "-q", text], cwd=ROOT, check=True)
        report = subprocess.run([*coverage, "report", text, "--fail-under=100"], cwd=ROOT, check=False)
    return tests.returncode or report.returncode


if __name__ == "__main__":
    entry(main)
