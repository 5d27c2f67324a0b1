"""A store's debugger as the command serves it, and a browser before it: what tests, benches and pictures stand on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
STOPPED_S = 20


@contextmanager
def served(store: Path, *text: str) -> Iterator[str]:
    """The address of a store's debugger in a process of its own, with what else the command is told."""
    command = [sys.executable, "-m", "vmstore", "debug", str(store), *text, "--port", "0", "--json"]
    around = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=around, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()
            process.wait(timeout=STOPPED_S)


@contextmanager
def chromium(place: str) -> Iterator[Any]:
    """The browser at a place, without a screen; Playwright must be there."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = ["--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        launch = playwright.chromium.launch(executable_path=place, args=flags)
        try:
            yield launch
        finally:
            launch.close()
