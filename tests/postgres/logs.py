"""Logs in PostgreSQL for tests: each folder has a database of its own."""

from __future__ import annotations

import secrets
from functools import cache
from pathlib import Path

from tests.postgres.server import server
from vmstore.log.postgres.cell_objects import CellObjects
from vmstore.log.postgres.connection import Connection
from vmstore.log.postgres.create import make
from vmstore.log.postgres.log import PostgresLog
from vmstore.log.postgres.tables import Statements, statements

NAMESPACE = "default"


@cache
def database() -> str:
    """One database for the logs of a test process, each a schema of its own."""
    return server().database()


@cache
def schema_of(folder: Path) -> Statements:
    """The tables of a folder's log."""
    return statements(f"s{secrets.token_hex(6)}")


def log_in(
    folder: Path, *, readonly: bool = False, me: str | None = None, wait_s: float = 10.0,
    objects: CellObjects | None = None,
) -> PostgresLog:  # fmt: skip
    """A handle on the log of a folder, which is made where it is not there."""
    sql, address = schema_of(folder), database()
    connection = Connection(address, address, wait_s)
    make(connection, sql, NAMESPACE, bytes(16))
    connection.close()
    return PostgresLog(
        address, address, NAMESPACE, sql, me=me or secrets.token_hex(4), readonly=readonly, wait_s=wait_s,
        objects=objects,
    )  # fmt: skip
