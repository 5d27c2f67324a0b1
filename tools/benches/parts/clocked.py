"""Work that says which process did it and how much CPU that process has taken since it began."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class ClockedAnswer(NamedTuple):
    """An answer, the process that gave it, and its seconds of CPU so far, those of its start among them."""

    answer: Any
    process: int
    cpu_s: float


class ClockedWork:
    """Some work, on the clock of the process that does it."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self._work = work

    def __call__(self, task: Any) -> ClockedAnswer:
        return ClockedAnswer(self._work(task), os.getpid(), time.process_time())
