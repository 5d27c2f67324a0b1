"""A sign of life on a terminal while an answer takes over a second: how long it is under way."""

from __future__ import annotations

import sys
import threading
import time

PATIENCE_S = 1.0
STEP_S = 0.25


class WaitingSign:
    """A line on stderr that appears after a second and goes with the first word of the answer; nothing in a pipe."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._over = threading.Event()
        self._painting = threading.Lock()
        self._painted = 0
        self._thread: threading.Thread | None = None

    def start(self) -> WaitingSign:
        """Begins to wait, where somebody watches."""
        if sys.stderr.isatty() and sys.stdout.isatty():
            self._thread = threading.Thread(target=self._paint, daemon=True)
            self._thread.start()
        return self

    def stop(self) -> None:
        """Takes the line away; any number of times."""
        if self._thread is None:
            return
        with self._painting:
            self._over.set()
            if self._painted:
                sys.stderr.write("\r" + " " * self._painted + "\r")
                sys.stderr.flush()
                self._painted = 0
        self._thread = None

    def _paint(self) -> None:
        began = time.monotonic()
        if self._over.wait(PATIENCE_S):
            return
        while True:
            with self._painting:
                if self._over.is_set():
                    return
                line = f"{self._label} ({time.monotonic() - began:.0f} s, Ctrl-C stops it)"
                sys.stderr.write("\r" + line)
                sys.stderr.flush()
                self._painted = len(line)
            if self._over.wait(STEP_S):
                return
