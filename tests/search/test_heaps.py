"""What an index costs a process that follows it again and again: no more heaps than it needs."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from vmstore.search import index

CHILD = """
import ctypes, sys
import vmstore
from vmstore.search import index

index.BEHIND, index.HEAPS = 0, int(sys.argv[3])
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


def heaps(folder: Path, most: int) -> int:
    """How many heaps a process has that followed an index six times and may have so many."""
    told = folder / "heaps.xml"
    subprocess.run([sys.executable, "-c", CHILD, str(folder / "a.vms"), str(told), str(most)], check=True)
    return told.read_text().count("<heap nr=")


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="another allocator than glibc's")
def test_following_again_and_again_takes_two_heaps(tmp_path: Path) -> None:
    """The threads of each following share two heaps, where they would take more each time."""
    (tmp_path / "more").mkdir()
    assert heaps(tmp_path, index.HEAPS) == 2 < heaps(tmp_path / "more", 64)
