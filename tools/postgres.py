"""Runs the tests that need a server, of PostgreSQL or S3, or a Ray cluster: `python3 tools/postgres.py`.

Makes `.venv-postgres` with psycopg, obstore, Ray, and a PostgreSQL 18 and moto from pip, which run in folders of their
own, and runs `tests/postgres`, `objects`, `cold` and `workers` in it. VMSTORE_TEST_POSTGRES names another server, whose
role may make databases; tests that kill one take pip's all the same. Three primaries are killed beside their standby,
and as many as VMSTORE_FAILOVERS says (`VMSTORE_FAILOVERS=20 python3 tools/postgres.py -k outlives`). In the environment
of the other tests these are skipped. Arguments go to pytest.
"""

from __future__ import annotations

import subprocess
from typing import Sequence  # noqa: UP035  Python 3.8 has no other

from bootstrap import ROOT, entry, ready

# Without the configuration of the other tests, which need the developers' packages.
ROOMS = ("tests/postgres", "tests/objects", "tests/cold", "tests/workers")
PYTEST = (
    "-q",
    "--ignore=tests/cold/test_pi.py",
    "-n",
    "2",
    "--dist",
    "loadfile",
    "-p",
    "no:cacheprovider",
    "--confcutdir",
    "tests/postgres",
)


def main(arguments: Sequence[str]) -> int:
    """Runs the tests; gives pytest's exit code."""
    python = ready("postgres-tests", venv=".venv-postgres") / "python"
    command = [str(python), "-m", "pytest", *PYTEST, *ROOMS, *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    entry(main)
