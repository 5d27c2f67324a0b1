"""A process that may open few files is told so by a store, with its limit, whatever it asks for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WORK = """
import resource, sys, vmstore
limit, path = int(sys.argv[1]), sys.argv[2]
from vmstore.store import store
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
request = {"model": "m", "messages": [{"role": "user", "content": "x" * 70_000}]}
try:
    with vmstore.open(path) as store:
        store.record("s", request)
        print(list(store.query("PAGES count(*)")), store.verify().ok, store.export(path + ".jsonl").sessions)
except vmstore.VmstoreError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("limit", [4, 6, 9, 12, 16, 20, 24, 32])
def test_few_descriptors_are_named(tmp_path: Path, limit: int) -> None:
    """Under each limit a new process records and asks, or is told the limit before anything of a store is there."""
    path = tmp_path / "a.vms"
    done = subprocess.run([sys.executable, "-c", WORK, str(limit), str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if path.exists():
        assert done.stdout.startswith("[(1,)] True ['s']")
    else:
        assert f"this process may have {limit} (RLIMIT_NOFILE)" in done.stdout and "ulimit -n" in done.stdout
        assert list(tmp_path.iterdir()) == []


def test_descriptors_that_go_later_are_named(tmp_path: Path) -> None:
    """Where the files run out after a store was opened, what loads a module for the first time names the limit."""
    hoard = "    with vmstore.open(path) as store:\n        held = []\n"
    hoard += "        try:\n            while True: held.append(open(path + '/default/log.sqlite'))\n"
    hoard += "        except OSError: pass\n"
    work = WORK.replace("    with vmstore.open(path) as store:\n", hoard)
    done = subprocess.run([sys.executable, "-c", work, "64", str(tmp_path / "a.vms")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("StoreError too many files are open: this process may have 64")
