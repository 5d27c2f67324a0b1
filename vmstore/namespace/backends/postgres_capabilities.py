"""Capabilities of a store in PostgreSQL: with this role on this server, and where something is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from vmstore.core.clock import Clock
from vmstore.errors import StoreError, VmstoreError
from vmstore.log.postgres.connection import Connection
from vmstore.log.postgres.create import check_durable, version_of
from vmstore.log.postgres.tables import Statements
from vmstore.namespace.reports import Capability

SERVER_MIN = 14_00_00
SKEW_MAX_US = 60_000_000
READS = {"vmstore_format": "SELECT", "vmstore_head": "SELECT", "vmstore_commit": "SELECT", "vmstore_frame": "SELECT"}
WRITES = {"vmstore_head": "INSERT, UPDATE", "vmstore_commit": "INSERT", "vmstore_frame": "INSERT"}
GRANT = "grant what specs/postgres.md says under Least privilege"


class _Asked(NamedTuple):
    """A store that is asked: a connection, its statements, its schema and what stands before a table's name."""

    connection: Connection
    sql: Statements
    schema: str
    at: str


def capabilities(
    connection: Connection, sql: Statements, schema: str, clock: Clock, blobs: str | None
) -> list[Capability]:
    """The table of a store, `blobs` where its address has long contents lie; what cannot be asked has its reason."""
    backend = _Asked(connection, sql, schema, f'"{schema}".' if schema else "")
    asked = [_server, _flush, _replication, _skew, _tables, _rights, _isolation, _size, _encryption]
    return [capability for ask in asked for capability in _answered(ask, backend, clock)] + _ours(blobs)


def _answered(ask: Callable[[_Asked, Clock], Iterator[Capability]], backend: _Asked, clock: Clock) -> list[Capability]:
    try:
        return list(ask(backend, clock))
    except VmstoreError as error:
        if error.code in ("no-store", "older-format", "newer-format"):  # which `schema` tells
            return []
        if error.code != "no-right":
            raise
        return [Capability(ask.__name__.removeprefix("_"), False, str(error), GRANT)]


def _server(backend: _Asked, clock: Clock) -> Iterator[Capability]:
    sql = "SELECT current_setting('server_version'), current_setting('server_version_num')::bigint, current_user::text"
    version, number, role = backend.connection.rows(sql, {})[0]
    old = number < SERVER_MIN
    yield Capability("server", not old, f"PostgreSQL {version}", "use PostgreSQL 14 or later" if old else None)
    yield Capability("role", True, str(role))


def _flush(backend: _Asked, clock: Clock) -> Iterator[Capability]:
    names = ("fsync", "synchronous_commit", "full_page_writes")
    found = backend.connection.rows(f"SELECT {', '.join(f'''current_setting('{name}')''' for name in names)}", {})[0]
    what = ", ".join(f"{name} = {value}" for name, value in zip(names, found, strict=True))
    try:
        check_durable(backend.connection)
    except StoreError as error:
        if error.code != "not-durable":
            raise
        yield Capability("durable flush", False, what, str(error))
    else:
        yield Capability("durable flush", True, what)


def _replication(backend: _Asked, clock: Clock) -> Iterator[Capability]:
    sql = """SELECT pg_is_in_recovery(), current_setting('synchronous_standby_names'), count(*),
        count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')), count(sync_state) FROM pg_stat_replication"""
    standby, wanted, standbys, synchronous, seen = backend.connection.rows(sql, {})[0]
    if standby:
        yield Capability("replication", False, "this is a standby, which is only read; name the primary to write")
    elif wanted and seen == standbys and not synchronous:
        yield Capability(
            "replication",
            False,
            f"synchronous_standby_names = {wanted}, and no such standby is connected, so no commit is acknowledged",
            "start the standby, or take its name out",
        )
    elif wanted:
        yield Capability("replication", True, f"synchronous ({wanted}): a promoted standby has all that was told")
    elif standbys:
        yield Capability("replication", True, f"asynchronous, {standbys} connected: a promoted one may lack the last")
    else:
        yield Capability("replication", False, "no standby is connected")


def _skew(backend: _Asked, clock: Clock) -> Iterator[Capability]:
    """How far the server's clock is from this host's: leases end by the first, commits are dated by the second."""
    sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    backend.connection.rows(sql, {})  # so that no connecting is measured
    before = clock.now()
    there = int(backend.connection.rows(sql, {})[0][0])
    after = clock.now()
    off = there - (before + after) // 2
    side = "ahead" if off > 0 else "behind"
    what = f"the server is {abs(off) / 1e6:.3f} s {side}, within {(after - before) / 1e6:.3f} s"
    wrong = abs(off) > SKEW_MAX_US
    yield Capability(
        "clock",
        not wrong,
        what,
        "set both by one source of time: moments of what hosts write are not in order" if wrong else None,
    )


def _tables(backend: _Asked, clock: Clock) -> Iterator[Capability]:
    try:
        version = version_of(backend.connection, backend.sql)
    except StoreError as error:
        if error.code not in ("newer-format", "older-format"):
            raise
        yield Capability("schema", False, str(error), "install the vmstore that made them, or migrate with that one")
        return
    if version is None:
        yield Capability("schema", False, "there are no tables yet", "open the store once with mode 'rw'")
    else:
        yield Capability("schema", True, f"version {version}{f' in {backend.schema}' if backend.schema else ''}")


def _rights(backend: _Asked, clock: Clock) -> Iterator[Capability]:
    def lacking(rights: dict[str, str]) -> list[str]:
        wanted = [(table, right) for table, listed in rights.items() for right in listed.split(", ")]
        sql = ", ".join(f"has_table_privilege('{backend.at}{table}', '{right}')" for table, right in wanted)
        row = backend.connection.rows(f"SELECT {sql}", {})[0]
        return [f"{right} on {table}" for (table, right), may in zip(wanted, row, strict=True) if not may]

    reads, writes = lacking(READS), lacking(WRITES)
    every = sum(listed.count(",") + 1 for listed in WRITES.values())
    yield Capability("reads", not reads, f"no {', '.join(reads)}" if reads else "yes", GRANT if reads else None)
    partly = 0 < len(writes) < every
    yield Capability("writes", not writes, f"no {', '.join(writes)}" if writes else "yes", GRANT if partly else None)
    sql = f"""SELECT bool_and(pg_has_role(relowner, 'USAGE')) FROM pg_class
        WHERE oid IN (to_regclass('{backend.at}vmstore_frame'), to_regclass('{backend.at}vmstore_head'))"""
    owns = bool(backend.connection.rows(sql, {})[0][0])
    yield Capability("erases", owns, "yes" if owns else "no: that takes the role that owns the tables")


def _isolation(backend: _Asked, clock: Clock) -> Iterator[Capability]:
    tables = ", ".join(f"to_regclass('{backend.at}{table}')" for table in WRITES)
    rows = backend.connection.rows(f"SELECT bool_and(relrowsecurity) FROM pg_class WHERE oid IN ({tables})", {})
    on = bool(rows[0][0])
    yield Capability("rows of one role", on, "row-level security is on" if on else "off; specs/postgres.md says how")


def _size(backend: _Asked, clock: Clock) -> Iterator[Capability]:
    tables = " + ".join(f"coalesce(pg_total_relation_size(to_regclass('{backend.at}{table}')), 0)" for table in READS)
    yield Capability("bytes", True, f"{int(backend.connection.rows(f'SELECT {tables}', {})[0][0]):,}")


def _encryption(backend: _Asked, clock: Clock) -> Iterator[Capability]:
    version_of(backend.connection, backend.sql)  # older tables do not say
    sql = f"SELECT namespace FROM {backend.at}vmstore_head WHERE encrypted ORDER BY namespace"
    names = [str(row[0]) for row in backend.connection.rows(sql, {})]
    what = f"of {', '.join(names)}" if names else "off; a namespace that is made with a key has it"
    yield Capability("encryption", bool(names), what)


def _ours(blobs: str | None) -> list[Capability]:
    rows = "rows of their own, up to 256 MiB; in an object store with blobs= in the address"
    return [
        Capability("group commit", True, "threads of a process share a flush"),
        Capability("long contents", True, rows if blobs is None else "over 256 KiB in the object store of blobs="),
        Capability("archives", False, "no: the database keeps what is old"),
        Capability("cold tier", True, "`vmstore publish`; contents stay in the database too"),
        Capability("backup", False, "by PostgreSQL's own tools, or `vmstore migrate` into a folder"),
    ]
