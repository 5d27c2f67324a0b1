"""A connection to PostgreSQL: opened when it is needed, and again when the server was away; errors with remedies."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from vmstore.core.system import after_fork
from vmstore.core.system.waits import ReleasedLoans, seconds
from vmstore.errors import CorruptError, LockedError, ReadOnlyError, StoreError

PAUSE_S, PAUSE_S_MAX = 0.01, 0.25
CONNECT_S = 10
CONNECT_S_MIN = 2  # the least that libpq waits
# What the server says of a connection that it ended, or does not take yet; and where it will not take one at all.
ENDED = ("57P01", "57P02", "57P03", "57P05", "25P03")
REFUSED = re.compile(r"does not exist|authentication|pg_hba\.conf|not permitted to log in|permission denied|password")
AGAIN = ("40001", "40P01")  # what the server asks to be tried again: serialization failure, deadlock
# How soon a server is given up that a network cut off: of one that is only waited for, and of one that was sent
# something, which TCP would else send again for a quarter of an hour.
KEEPALIVE: dict[str, Any] = {
    "keepalives": 1, "keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000,
}  # fmt: skip

Row = Sequence[Any]
Params = Mapping[str, Any]


def pause_for(pause_s: float) -> None:
    """Waits a little, while other threads have what this one holds that questions need."""
    given = ReleasedLoans()
    try:
        time.sleep(pause_s)
    finally:
        given.take_back()


class Connection:
    """A connection for one thread at a time; `wait_s` is how long a server that is away is waited for."""

    def __init__(self, conninfo: str, address: str, wait_s: float | None) -> None:
        self.address = address
        self.wait_s = wait_s
        self._conninfo = conninfo
        self._lock = threading.RLock()
        self._db: Any = None
        self.closed = False
        self._inherited = False
        after_fork.inherits(self)

    @contextmanager
    def held(self) -> Iterator[Any]:
        """The psycopg connection, which commits each statement; errors of the server are raised as they are."""
        with self._lock:
            try:
                yield self._opened()
            except BaseException:  # whether a transaction is open there is not known
                self.drop()
                raise

    @contextmanager
    def used(self) -> Iterator[Any]:
        """The same, where errors of the server are translated."""
        with self.translated(), self.held() as db:
            yield db

    def rows(self, sql: str, params: Params) -> list[Row]:
        """The rows of one statement that only reads; asked again where the server was away or asks for it."""
        until = None if self.wait_s is None else seconds() + self.wait_s
        pause = PAUSE_S
        with self._lock:
            while True:
                try:
                    return list(self._opened().cursor(binary=True).execute(sql, params).fetchall())
                except psycopg.Error as error:
                    if lost := self.is_lost(error):
                        self.drop()  # before it is told, or the next who asks finds a connection that is closed
                    if not (lost or error.sqlstate in AGAIN) or (until is not None and seconds() > until):
                        raise self.explained(error) from error
                pause_for(pause)
                pause = min(2 * pause, PAUSE_S_MAX)

    def rewrite(self, vacuum: str) -> None:
        """Rewrites a table, so that no file of it holds old rows; ReadOnlyError where the role does not own it."""
        said: list[str] = []

        def note(diagnostic: Any) -> None:
            said.append(str(diagnostic.message_primary))

        with self.used() as db:
            db.add_notice_handler(note)
            try:
                db.execute(vacuum)
            finally:
                db.remove_notice_handler(note)
        if said:
            raise ReadOnlyError(
                f"{self.address} did not rewrite its table ({said[0]}), so what was erased may stay in its files: run "
                "`vmstore erase --finish` as the role that owns the tables",
                code="no-right",
            )

    def _opened(self) -> Any:
        if self._inherited:
            raise StoreError(f"{self.address} was opened by the process this one was forked from; open it here")
        if self.closed:
            raise StoreError(f"{self.address} is closed; open it again", code="closed")
        if self._db is None:
            self._db = psycopg.connect(
                self._conninfo, autocommit=True, prepare_threshold=None, connect_timeout=CONNECT_S, **KEEPALIVE
            )
        return self._db

    def is_lost(self, error: psycopg.Error) -> bool:
        """Whether an error says that the server was away, or ended this connection."""
        if isinstance(error, psycopg.InterfaceError):
            return True
        state = error.sqlstate or ("08000" if isinstance(error, psycopg.OperationalError) else "")
        if state in ENDED or (state[:2] == "08" and not REFUSED.search(str(error))):
            return True
        return self._db is not None and bool(self._db.closed) and not REFUSED.search(str(error))

    def drop(self) -> None:
        """Gives up the connection, whose state is not known; the next use opens another."""
        with self._lock:
            db, self._db = self._db, None
            if db is not None:
                with suppress(psycopg.Error):
                    db.close()

    def close(self) -> None:
        """Closes it; closing twice does nothing."""
        with self._lock:
            self.closed = True
            self.drop()

    def forked(self) -> None:
        """Is of no use in a forked process, which shares the socket of its parent."""
        after_fork.keep((self._db,))
        self._db, self._inherited, self._lock = None, True, threading.RLock()

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raises errors of ours for those of the server."""
        try:
            yield
        except psycopg.Error as error:
            raise self.explained(error) from error

    def explained(self, error: psycopg.Error) -> Exception:
        """The error of ours for one of the server's."""
        state, what = error.sqlstate or "", " ".join(str(error).split())
        if state == "42501":
            return ReadOnlyError(
                f"{self.address}: the role lacks a right ({what}); grant it as specs/postgres.md says, or name another",
                code="no-right",
            )
        if state == "25006":
            return ReadOnlyError(
                f"{self.address} is a standby, which is only read ({what}); name the primary", code="standby"
            )
        if state in ("55P03", "57014"):
            return LockedError(f"{self.address} is held by another writer ({what}); wait until it ends, then try again")
        if state in ("42P01", "3F000"):
            return StoreError(
                f"there is no store at {self.address} ({what}); open it once with mode 'rw' to make it", code="no-store"
            )
        if state == "3D000" or (not state and "does not exist" in what and "database" in what):
            return StoreError(
                f"{self.address} names a database that is not there ({what}); create it, or name another",
                code="no-database",
            )
        if state == "53100":
            return StoreError(
                f"{self.address}: its disk is full ({what}); make room there, then try again", code="full"
            )
        if state[:2] == "28" or (not state and REFUSED.search(what)):
            return StoreError(
                f"{self.address} lets this role not in ({what}); name another role or password", code="not-let-in"
            )
        if state[:2] in ("XX", "58"):
            return CorruptError(f"{self.address} is damaged ({what}); restore the database from a backup")
        if self.is_lost(error) or not state:
            return StoreError(
                f"{self.address} does not answer ({what}); see that the server runs and can be reached, then try again",
                code="unreachable",
            )
        return StoreError(f"{self.address} refuses a statement ({state}: {what}); see its log", code="database")
