"""What an index costs a process that follows it again and again: no more heaps than it needs."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = """
import ctypes, sys, threading
import vmstore
from vmstore.search import index

index.BEHIND = 0
with vmstore.open(sys.argv[1]) as store:
    for n in range(6):
        store.record("s", {"model": "m", "messages": [{"role": "user", "content": f"Line {n} of all"}]}, None)
        assert store.search("line")
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[2].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


def heaps(folder: Path, **around: str) -> int:
    """How many heaps a process has that followed an index six times."""
    told = folder / "heaps.xml"
    there = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    subprocess.run([sys.executable, "-c", CHILD, str(folder / "a.vms"), str(told)], env={**there, **around}, check=True)
    return told.read_text().count("<heap nr=")


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="another allocator than glibc's")
def test_following_again_and_again_takes_two_heaps(tmp_path: Path) -> None:
    """The threads of each following share two heaps, unless the environment says how many there may be."""
    (tmp_path / "more").mkdir()
    assert heaps(tmp_path) <= 2 < heaps(tmp_path / "more", MALLOC_ARENA_MAX="16")
