"""Runs questions in a thread of their own, so that Ctrl-C reaches the one who waits for the answer."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Job:
    """A piece of work and, once it is done, what it gave or raised."""

    __slots__ = ("done", "error", "found", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.done = threading.Event()
        self.found: Any = None
        self.error: BaseException | None = None

    def do(self) -> None:
        """Does the work; whatever it raises is kept for the thread that waits."""
        try:
            self.found = self.work()
        except BaseException as error:
            self.error = error
        self.done.set()


class InterruptibleThread:
    """One thread that does one piece of work after the other: whatever a query holds is held by that thread."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="vmql", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], T], cancel: Callable[[], object]) -> T:
        """Does some work and waits for it; Ctrl-C cancels it, and is raised once it has ended."""
        job = Job(work)
        try:
            self._jobs.put(job)
            job.done.wait()
        except KeyboardInterrupt:
            cancel()
            job.done.wait()  # a second Ctrl-C leaves without waiting
            raise
        if job.error is not None:
            raise job.error
        found: T = job.found
        return found

    def close(self) -> None:
        """Lets the thread end after what it does now."""
        self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.do()
