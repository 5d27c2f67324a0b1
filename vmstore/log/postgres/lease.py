"""A lease: a row says who holds it and until when, by the server's clock; it ends by itself with its holder."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

from vmstore.core.system.waits import seconds
from vmstore.errors import LockedError, VmstoreError
from vmstore.log.postgres.connection import PAUSE_S, PAUSE_S_MAX, Connection, pause_for

LEASE_S = 30
RENEW_S = 10


class Lease:
    """Held in a `with`, also within itself, by one thread of one handle at a time; renewed while it is held."""

    def __init__(
        self, connection: Connection, look: str, take: str, release: str, params: Mapping[str, Any],
        wait_s: float | None,
    ) -> None:  # fmt: skip
        self.depth = 0
        self._connection = connection
        self._look = look
        self._take = take
        self._release = release
        self._params = params
        self._wait_s = wait_s
        self._taken_s = 0.0  # when it was last asked for and given
        self._turn = threading.RLock()
        self._ended = threading.Event()

    def __enter__(self) -> None:
        self._turn.acquire()
        try:
            if not self.depth:
                self._wait(self._taken)
                self._ended = threading.Event()
                threading.Thread(target=self._renew, args=(self._ended,), name="vmstore-lease", daemon=True).start()
            self.depth += 1
        except BaseException:
            self._turn.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.depth -= 1
        try:
            if not self.depth:
                self._ended.set()
                with suppress(VmstoreError), self._connection.used() as db:  # else it ends by itself
                    db.execute(self._release, self._params)
        finally:
            self._turn.release()

    @contextmanager
    def over(self) -> Iterator[None]:
        """Waits until nobody holds it, and goes on without it: for who may only read."""
        self._wait(lambda: self.holder() or self._params["me"])
        yield

    def holder(self) -> str | None:
        """The name of its holder; None where it is free."""
        rows = self._connection.rows(self._look, self._params)
        return rows[0][0] if rows else None

    def holds(self) -> bool:
        """Whether it is held for some time yet, as far as this process knows."""
        return self.depth > 0 and seconds() - self._taken_s < LEASE_S - RENEW_S

    def _wait(self, take: Callable[[], str | None]) -> None:
        until, pause = None if self._wait_s is None else seconds() + self._wait_s, PAUSE_S / 2
        while (holder := take()) != self._params["me"]:
            if until is not None and seconds() > until:
                raise LockedError(
                    f"{self._connection.address} is held by {holder}, and did not come free within {self._wait_s:g} s: "
                    "nothing was written; wait until it ends, then try again"
                )
            pause_for(pause)
            pause = min(2 * pause, PAUSE_S_MAX / 4)

    def _taken(self) -> str | None:
        asked_s = seconds()
        rows = self._connection.rows(self._take, {**self._params, "seconds": LEASE_S})
        holder: str | None = rows[0][0] if rows else None
        if holder == self._params["me"]:
            self._taken_s = asked_s
        return holder

    def _renew(self, ended: threading.Event) -> None:
        while not ended.wait(RENEW_S):
            with suppress(VmstoreError):
                self._taken()
