"""Small file systems of their own, where the machine lets us make them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A disk of a given size at a folder; skips the test where only root could make one."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small disk needs root and `mount`")
    folder.mkdir()
    done = _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def remount(folder: Path, options: str) -> None:
    """Changes how a small disk is mounted: its size, or read-only."""
    done = _mount("-o", f"remount,{options}", str(folder))
    assert done.returncode == 0, done.stderr


def _mount(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
