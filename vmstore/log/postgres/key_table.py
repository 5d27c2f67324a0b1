"""The wrapped keys of an encrypted namespace, in a table of its database."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import psycopg

from vmstore.errors import StoreError
from vmstore.log.postgres.connection import Connection
from vmstore.log.postgres.tables import Statements


class KeyTable:
    """The rows of one namespace. The log tells when somebody else may have dropped one, and drops them itself."""

    def __init__(self, connection: Connection, sql: Statements, namespace: str) -> None:
        self._connection = connection
        self._sql = sql
        self._namespace = namespace

    @property
    def place(self) -> str:
        """The address of the database."""
        return f"{self._connection.address} (keys of namespace {self._namespace!r})"

    def row(self, name: bytes) -> bytes | None:
        """The wrapped key of an id."""
        rows = self._connection.rows(self._sql.key, {"namespace": self._namespace, "id": name})
        return bytes(rows[0][0]) if rows else None

    def add(self, name: bytes, wrapped: bytes) -> None:
        """Adds a key where there is none of the id; asked again it changes nothing."""
        self._connection.rows(self._sql.add_key, {"namespace": self._namespace, "id": name, "wrapped": wrapped})

    def drop(self, name: bytes) -> bool:
        """Empties a row."""
        with self._connection.used() as db:
            params = {"namespace": self._namespace, "id": name}
            return bool(db.execute(self._sql.drop_key, params).rowcount)

    def changed(self) -> bool:
        """False: the log has keys forgotten where it learns of a drop, which an append that missed it states."""
        return False

    def count(self) -> int:
        """How many rows are not empty."""
        return len(self._connection.rows(self._sql.keys, {"namespace": self._namespace}))

    def rewrap(self, again: Callable[[bytes, bytes], bytes]) -> int:
        """Puts another wrapped key in the place of each, all or none; how many."""
        with self._connection.used() as db, db.transaction():
            rows = db.execute(f"{self._sql.keys} FOR UPDATE", {"namespace": self._namespace}).fetchall()
            for name, wrapped in rows:
                fresh = {"namespace": self._namespace, "id": name, "wrapped": again(bytes(name), bytes(wrapped))}
                db.execute(self._sql.put_key, fresh)
        return len(rows)

    def close(self) -> None:
        """Closes the connection."""
        with suppress(psycopg.Error, StoreError):
            self._connection.close()
