"""Runs questions in a thread of their own, so that Ctrl-C reaches the one who waits for the answer."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """One thread that does one piece of work after the other: whatever a query holds is held by that thread."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], queue.SimpleQueue[Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="vmql", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[], T], cancel: Callable[[], object]) -> T:
        """Does some work and waits for it; Ctrl-C cancels it, and is raised once it has ended."""
        done: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        self._work.put((work, done))
        try:
            good, found = done.get()
        except KeyboardInterrupt:
            cancel()
            done.get()  # a second Ctrl-C leaves without waiting
            raise
        if good:
            return found  # type: ignore[no-any-return]
        raise found

    def close(self) -> None:
        """Lets the thread end after what it does now."""
        self._work.put(None)

    def _serve(self) -> None:
        while (asked := self._work.get()) is not None:
            work, done = asked
            try:
                found = (True, work())
            except BaseException as error:  # it is raised again where somebody waits
                found = (False, error)
            done.put(found)
