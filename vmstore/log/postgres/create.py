"""Makes the tables of a store and the rows of its namespaces, and says what is there."""

from __future__ import annotations

from typing import NamedTuple

import psycopg

from vmstore.cells.subject_keys import ROOT
from vmstore.errors import StoreError
from vmstore.log.postgres.connection import Connection
from vmstore.log.postgres.tables import VERSION, Statements

RACED = ("23505", "42P07", "42P06")  # somebody made it at the same moment
SETTINGS = {
    "fsync": ("on", "what is acknowledged would not survive a power cut"),
    "synchronous_commit": ("on", "what is acknowledged might not survive a crash"),
}
STRONGER = ("remote_apply",)


def version_of(connection: Connection, sql: Statements, *, older: bool = False) -> int | None:
    """The version of the tables; None where there are none. StoreError where it is newer, or unless allowed older."""
    try:
        version: int | None = connection.rows(sql.version, {})[0][0]
    except StoreError as error:
        if error.code == "no-store":
            return None
        raise
    if version is not None and version > VERSION:
        raise StoreError(
            f"{connection.address} has tables of version {version}, this vmstore reads version {VERSION}: install the "
            "version that made them, or export the sessions there and import them here",
            code="newer-format",
        )
    if version is not None and version < VERSION and not older:
        raise StoreError(
            f"{connection.address} has tables of version {version}, this vmstore reads version {VERSION}: open the "
            "store once with mode 'rw', as the role that owns the tables",
            code="older-format",
        )
    return version


def lacking(connection: Connection, sql: Statements) -> bool:
    """Whether tables are missing, or are of an older version."""
    return version_of(connection, sql, older=True) != VERSION


def names(connection: Connection, sql: Statements) -> list[str]:
    """The names of the namespaces; none where there are no tables."""
    if version_of(connection, sql) is None:
        return []
    return [str(row[0]) for row in connection.rows(sql.namespaces, {})]


class NamespaceRow(NamedTuple):
    """The uid of a namespace, the address of its long contents where they are no rows, and whether it is encrypted."""

    uid: bytes
    blobs: str | None
    encrypted: bool


def row_of(connection: Connection, sql: Statements, namespace: str) -> NamespaceRow | None:
    """The row of a namespace; None where there is none of that name."""
    rows = connection.rows(sql.place, {"namespace": namespace})
    return NamespaceRow(bytes(rows[0][0]), rows[0][1], rows[0][2]) if rows else None


def set_blobs(connection: Connection, sql: Statements, namespace: str, address: str) -> str | None:
    """Says where a namespace keeps its long contents, unless that is said; what is said then."""
    with connection.used() as db:
        db.execute(sql.set_blobs, {"namespace": namespace, "blobs": address})
    row = row_of(connection, sql, namespace)
    return None if row is None else row.blobs


def make(connection: Connection, sql: Statements, namespace: str, uid: bytes, wrapped: bytes | None = None) -> None:
    """Makes the tables and a namespace where they are missing, and brings older tables up to date.

    One with the secret `wrapped` is encrypted. Of several makers all go on with what is there then.
    """
    check_durable(connection)
    if lacking(connection, sql):
        for last in (False, True):
            try:
                with connection.held() as db, db.transaction():
                    for statement in sql.create:
                        db.execute(statement)
                    db.execute(sql.set_version)
                break
            except psycopg.Error as error:
                if last or error.sqlstate not in RACED:
                    raise connection.explained(error) from error
        version_of(connection, sql)
    with connection.used() as db, db.transaction():
        params = {"namespace": namespace, "uid": uid, "encrypted": wrapped is not None}
        if db.execute(sql.add_namespace, params).rowcount and wrapped is not None:
            db.execute(sql.add_key, {"namespace": namespace, "id": ROOT, "wrapped": wrapped})


def check_durable(connection: Connection) -> None:
    """Raises StoreError where the server acknowledges what it has not flushed."""
    with connection.used() as db:
        for name, (wanted, why) in SETTINGS.items():
            found = str(db.execute(f"SHOW {name}").fetchone()[0])
            if found != wanted and found not in STRONGER:
                raise StoreError(
                    f"{connection.address} has {name} = {found}, so {why}: set it to {wanted} for this database, "
                    "or open the store with mode 'r'",
                    code="not-durable",
                )
