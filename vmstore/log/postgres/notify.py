"""A wake-up for those who follow a log: NOTIFY after a commit, LISTEN while one waits.

It is a hint and never the delivery: who follows looks at positions, and sooner when it is told. A NOTIFY locks its
queue for the whole server as it commits, so none stands in the transaction of an append: a thread of the handle sends
them on a connection of its own, one for all that was acknowledged in the last milliseconds.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any

import psycopg

from vmstore.core.system.waits import seconds
from vmstore.errors import VmstoreError
from vmstore.log.postgres.connection import CONNECT_S, KEEPALIVE, Connection

EVERY_S = 0.005
LOOK_S = 0.1  # who listens looks at the position all the same: a writer may not notify, a pooler may not pass it on
AGAIN_S = 5.0


def channel_of(uid: bytes) -> str:
    """The channel of a namespace."""
    return f"vmstore_{uid.hex()}"


class Notifier:
    """Notifies after commits, from a thread that is started by the first; what fails is left."""

    def __init__(self, conninfo: str, address: str, channel: str) -> None:
        self._connection = Connection(conninfo, address, 0.0)
        self._channel = channel
        self._news = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None

    def tell(self) -> None:
        """Says that something was committed; costs the caller nothing that it would wait for."""
        self._news.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._send, name="vmstore-notify", daemon=True)
            self._thread.start()

    def _send(self) -> None:
        while self._news.wait() and not self._closed:
            self._news.clear()
            with suppress(VmstoreError), self._connection.used() as db:
                db.execute("SELECT pg_notify(%s, '')", (self._channel,))
            time.sleep(EVERY_S)

    def close(self) -> None:
        """Ends the thread; what was told last may stay unsaid."""
        self._closed = True
        self._news.set()
        if self._thread is not None:
            self._thread.join(1.0)
        self._connection.close()


class Listener:
    """Waits for what is notified; where that cannot be had, for a moment."""

    def __init__(self, conninfo: str, channel: str) -> None:
        self._conninfo = conninfo
        self._channel = channel
        self._lock = threading.Lock()
        self._db: Any = None
        self._again_s = 0.0  # before that a server that would not listen is not asked again

    def wait(self, at_most_s: float, otherwise_s: float) -> None:
        """Waits until something is notified; for `otherwise_s` where nobody listens."""
        with self._lock:
            if self._db is None:
                if not self._listens():
                    time.sleep(min(at_most_s, otherwise_s))
                return  # to look: what was committed before it listened is notified no more
            try:
                for _ in self._db.notifies(timeout=min(at_most_s, LOOK_S), stop_after=1):
                    pass
            except psycopg.Error:
                self._drop()

    def _listens(self) -> bool:
        """Whether it listens now."""
        if seconds() < self._again_s:
            return False
        try:
            self._db = psycopg.connect(self._conninfo, autocommit=True, connect_timeout=CONNECT_S, **KEEPALIVE)
            self._db.execute(f'LISTEN "{self._channel}"')
        except psycopg.Error:
            self._drop()
            return False
        return True

    def _drop(self) -> None:
        db, self._db, self._again_s = self._db, None, seconds() + AGAIN_S
        if db is not None:
            with suppress(psycopg.Error):
                db.close()

    def close(self) -> None:
        """Closes the connection."""
        with self._lock:
            self._drop()
