"""Embeds what is written, beside its writers: a thread that looks every so often what is new."""

from __future__ import annotations

import threading
from typing import Protocol

from vmstore.core.system.logger import notices
from vmstore.errors import InputError, VmstoreError
from vmstore.log.port import Progress
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.reports import EmbeddingReport

PAUSES_MAX = 60  # intervals between two tries of an embedder that fails


class EmbeddingIndex(Protocol):
    """The index of a store as far as the worker asks it."""

    def embed(self, *, progress: Progress | None = None) -> EmbeddingReport:
        """Embeds what has no vector yet."""
        ...


class EmbeddingStore(Protocol):
    """A store as far as the worker asks it."""

    _ns: Namespace

    @property
    def index(self) -> EmbeddingIndex:
        """The index its search looks in."""
        ...


class StopRequestedError(Exception):
    """Leaves a run of the embedder between two batches; what is written by then stays."""


class EmbeddingWorker:
    """A thread that embeds what is new in a store every `interval_s` seconds, until it is stopped.

    No writer waits for it. Use it in a `with`, or stop it before the store is closed.
    An embedder that fails is asked again after ever longer pauses; `last` is what the last run did. `done` is how many
    texts the run under way has come to, of how many; it is passed to `progress` in the worker's thread too.
    """

    def __init__(self, store: EmbeddingStore, interval_s: float = 1.0, progress: Progress | None = None) -> None:
        if not isinstance(interval_s, int | float) or not 0 < interval_s <= 86_400:
            raise InputError(f"interval_s {interval_s!r:.40} is no number of seconds up to a day", code="not-a-limit")
        if store._ns.embedder is None:
            raise InputError("no embedder was handed in: set `store.embedder`; see specs/embeddings.md")
        self.last: EmbeddingReport | None = None
        self.error: str | None = None
        self.done = (0, 0)
        self._store, self._interval_s, self._progress = store, interval_s, progress
        self._stopped, self._woken = threading.Event(), threading.Event()
        self._idle = threading.Condition()
        self._asked = self._done = 0
        self._thread = threading.Thread(target=self._run, name="vmstore-embedder", daemon=True)
        self._thread.start()

    def __enter__(self) -> EmbeddingWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def wake(self, timeout_s: float | None = None) -> bool:
        """Has it look now, and waits until it has; False where that took longer than `timeout_s`."""
        with self._idle:
            self._asked += 1
            wanted = self._asked
            self._woken.set()
            return self._idle.wait_for(lambda: self._done >= wanted or not self._thread.is_alive(), timeout_s)

    def stop(self, timeout_s: float | None = None) -> None:
        """Ends it after the question that is under way; what has no vector then is embedded another time."""
        self._stopped.set()
        self._woken.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        seen, pauses = -1, 1
        while not self._stopped.is_set():
            with self._idle:
                asked = self._asked
            if asked > self._done or self._store._ns.log.ordinal != seen:
                pauses = 1 if self._look() else min(2 * pauses, PAUSES_MAX)
                seen = self._store._ns.log.ordinal if pauses == 1 else -1
            with self._idle:
                self._done = asked
                self._idle.notify_all()
            self._woken.wait(self._interval_s * pauses)
            self._woken.clear()

    def _look(self) -> bool:
        """Embeds what is new; whether the embedder did its part."""
        try:
            self.last = self._store.index.embed(progress=self._tell)
            self.error = self.last.stopped
        except StopRequestedError:
            return True
        except VmstoreError as error:
            self.error = str(error)
        if self.error is not None:
            notices().warning("nothing was embedded: %s", self.error)
        return self.error is None

    def _tell(self, done: int, total: int) -> None:
        """Keeps how far the run is, and leaves it where the worker is stopped."""
        self.done = done, total
        if self._progress is not None:
            try:
                self._progress(done, total)
            except Exception as error:  # a progress bar that fails is no reason to embed less
                notices().warning("the progress of embedding was not shown: %r", error)
        if self._stopped.is_set():
            raise StopRequestedError
