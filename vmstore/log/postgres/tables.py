"""The tables of a log in PostgreSQL, and how they are made and known again.

    vmstore_format  version
    vmstore_head    namespace | uid ordinal cell, and the leases: holder until, destroyer destroys_until, erasing;
                    blobs, the object store of its long contents, and swept, how often strays were deleted there
    vmstore_commit  namespace ordinal | as a row of the SQLite log
    vmstore_key     namespace id      | wrapped, of an encrypted namespace
    vmstore_frame   namespace first   | as a row of the SQLite log; a long cell is a frame of its own, or an object

Every key begins with the namespace, which is the shard. Positions come from the row of the namespace in
`vmstore_head`, in the statement that inserts the commits: a sequence gives its numbers out before the
commit, so who follows it misses what commits late. No sequence, advisory lock, trigger or extension is
used, nor anything that a session of the server remembers, so that a pooler may stand between.
"""

from __future__ import annotations

from typing import NamedTuple

from vmstore.log.frame import ENCRYPTED, FILES
from vmstore.log.rows import COMMITS

VERSION = 3
OBJECTS = (FILES, FILES + ENCRYPTED)  # the forms of frames whose bytes lie in an object store
FRAMES = "first, count, form, sizes, salts, content"
COMMIT_TYPES = (
    "bigint",
    "bigint",
    "bigint",
    "bigint",
    "bigint",
    "bigint",
    "bigint",
    "bigint",
    "bytea",
    "bytea",
    "bytea",
)
FRAME_TYPES = ("bigint",) * 3 + ("bytea",) * 3

assert len(COMMIT_TYPES) == COMMITS.count(",") + 1, "each column of a commit has a type"
assert len(FRAME_TYPES) == FRAMES.count(",") + 1, "each column of a frame has a type"


def _unnest(columns: str, types: tuple[str, ...], name: str) -> str:
    arrays = ", ".join(f"%({name}{at}){'b' if kind == 'bytea' else 's'}::{kind}[]" for at, kind in enumerate(types))
    return f"unnest({arrays}) AS {name}({columns})"


class Statements(NamedTuple):
    """The SQL of a log, for the schema that its tables lie in."""

    create: tuple[str, ...]
    version: str
    set_version: str
    add_namespace: str
    namespaces: str
    standing: str
    lock: str
    append: str
    since: str
    head: str
    tail: str
    ordinal: str
    last_cell: str
    frames: str
    put_frame: str
    holder: str
    destroyer: str
    lease: str
    release: str
    destroy_lease: str
    destroy_release: str
    marked: str
    mark: str
    size: str
    vacuum: str
    place: str
    set_blobs: str
    objects: str
    object_sizes: str
    sweeping: str
    began: str
    encrypted: str
    key: str
    add_key: str
    drop_key: str
    keys: str
    put_key: str
    vacuum_keys: str


def statements(schema: str) -> Statements:
    """The SQL for the tables in a schema, a name quoted as an identifier; nothing for the first of the search path."""
    at = f"{schema}." if schema else ""
    head, commit, frame, form, key = (f"{at}vmstore_{name}" for name in ("head", "commit", "frame", "format", "key"))
    row = "namespace = %(namespace)s"
    return Statements(
        create=_create(schema, head, commit, frame, form, key),
        version=f"SELECT max(version) FROM {form}",
        set_version=f"INSERT INTO {form} VALUES ({VERSION}) ON CONFLICT DO NOTHING",
        add_namespace=(
            f"INSERT INTO {head}(namespace, uid, ordinal, cell, erasing, encrypted) "
            "VALUES (%(namespace)s, %(uid)s, 0, 0, false, %(encrypted)s) ON CONFLICT (namespace) DO NOTHING"
        ),
        namespaces=f"SELECT namespace FROM {head} ORDER BY namespace",
        standing=(  # while somebody else holds the lease, strays may be deleted: no number that an append may state
            f"SELECT ordinal, cell, CASE WHEN holder <> %(me)s AND held_until > clock_timestamp() THEN -1 "
            f"ELSE swept END, uid FROM {head} WHERE {row}"
        ),
        lock=(
            f"SELECT ordinal, cell, CASE WHEN held_until > clock_timestamp() THEN holder END, swept FROM {head} "
            f"WHERE {row} FOR UPDATE"
        ),
        append=_append(head, commit, frame),
        since=(
            f"SELECT ordinal, session, first + count - 1, hash FROM {commit} "
            f"WHERE {row} AND ordinal > %(after)s AND ordinal <= %(upto)s ORDER BY ordinal"
        ),
        head=(
            f"SELECT ordinal, first + count - 1, hash FROM {commit} "
            f"WHERE {row} AND session = %(session)s AND ordinal <= %(upto)s ORDER BY first DESC LIMIT 1"
        ),
        tail=(f"SELECT {COMMITS} FROM {commit} WHERE {row} AND ordinal > %(after)s ORDER BY ordinal LIMIT %(limit)s"),
        ordinal=f"SELECT ordinal FROM {head} WHERE {row}",
        last_cell=f"SELECT cell FROM {head} WHERE {row}",
        frames=f"""WITH wanted AS (
              SELECT DISTINCT (SELECT max(first) FROM {frame} WHERE {row} AND first <= n) AS first
              FROM unnest(%(numbers)s::bigint[]) AS n)
            SELECT first, count, form, sizes, salts, content FROM {frame}
            WHERE {row} AND first IN (SELECT first FROM wanted) ORDER BY first""",
        put_frame=(
            f"UPDATE {frame} SET form = %(form)s, sizes = %(sizes)s, salts = %(salts)s, content = %(content)s "
            f"WHERE {row} AND first = %(first)s"
        ),
        **_leases(head),
        marked=f"SELECT erasing FROM {head} WHERE {row}",
        mark=f"UPDATE {head} SET erasing = %(erasing)s WHERE {row}",
        size=_size(commit, frame),
        vacuum=f"VACUUM (FULL) {frame}",
        **_objects(head, frame),
        began=(
            f"SELECT salts, form FROM {frame} WHERE {row} AND first <= "
            f"(SELECT cell FROM {commit} WHERE {row} AND ordinal = %(session)s) ORDER BY first DESC LIMIT 1"
        ),
        encrypted=(
            f"SELECT first, count, form, sizes, salts, ''::bytea FROM {frame} WHERE {row} AND form >= {ENCRYPTED}"
        ),
        **_keys(head, key),
    )


def _objects(head: str, frame: str) -> dict[str, str]:
    """The statements about where long contents lie."""
    row = "namespace = %(namespace)s"
    return {
        "place": f"SELECT uid, blobs, encrypted FROM {head} WHERE {row}",
        "set_blobs": f"UPDATE {head} SET blobs = %(blobs)s WHERE {row} AND blobs IS NULL",
        "objects": f"SELECT {FRAMES} FROM {frame} WHERE {row} AND form IN {OBJECTS}",
        "object_sizes": f"SELECT sizes FROM {frame} WHERE {row} AND form IN {OBJECTS}",
        "sweeping": f"UPDATE {head} SET swept = swept + 1 WHERE {row}",
    }


def _keys(head: str, key: str) -> dict[str, str]:
    """The statements about wrapped keys."""
    row = "namespace = %(namespace)s"
    return {
        "key": f"SELECT wrapped FROM {key} WHERE {row} AND id = %(id)s",
        "add_key": (
            f"INSERT INTO {key} VALUES (%(namespace)s, %(id)s, %(wrapped)s) "
            "ON CONFLICT (namespace, id) DO NOTHING RETURNING id"
        ),
        "drop_key": f"UPDATE {key} SET wrapped = ''::bytea WHERE {row} AND id = %(id)s AND wrapped <> ''::bytea",
        "keys": f"SELECT id, wrapped FROM {key} WHERE {row} AND wrapped <> ''::bytea",
        "put_key": f"UPDATE {key} SET wrapped = %(wrapped)s WHERE {row} AND id = %(id)s",
        "vacuum_keys": f"VACUUM (FULL) {key}",
    }


def _create(schema: str, head: str, commit: str, frame: str, form: str, key: str) -> tuple[str, ...]:
    """The statements that make the tables, where they are missing."""
    return (
        *([f"CREATE SCHEMA IF NOT EXISTS {schema}"] if schema else []),
        f"CREATE TABLE IF NOT EXISTS {form}(version bigint PRIMARY KEY)",
        f"""CREATE TABLE IF NOT EXISTS {head}(
            namespace text PRIMARY KEY, uid bytea NOT NULL,
            ordinal bigint NOT NULL, cell bigint NOT NULL, erasing boolean NOT NULL,
            holder text, held_until timestamptz, destroyer text, destroys_until timestamptz,
            blobs text, swept bigint NOT NULL DEFAULT 0, encrypted boolean NOT NULL DEFAULT false)""",
        f"ALTER TABLE {head} ADD COLUMN IF NOT EXISTS blobs text",  # version 1 had neither of these, 2 no keys
        f"ALTER TABLE {head} ADD COLUMN IF NOT EXISTS swept bigint NOT NULL DEFAULT 0",
        f"ALTER TABLE {head} ADD COLUMN IF NOT EXISTS encrypted boolean NOT NULL DEFAULT false",
        f"""CREATE TABLE IF NOT EXISTS {key}(
            namespace text NOT NULL, id bytea NOT NULL, wrapped bytea NOT NULL, PRIMARY KEY (namespace, id))""",
        f"""CREATE TABLE IF NOT EXISTS {commit}(
            namespace text NOT NULL, ordinal bigint NOT NULL, session bigint NOT NULL,
            first bigint NOT NULL, count bigint NOT NULL, at bigint NOT NULL, lag bigint NOT NULL, request bigint,
            cell bigint, commitments bytea NOT NULL, body bytea NOT NULL, hash bytea NOT NULL,
            PRIMARY KEY (namespace, ordinal), UNIQUE (namespace, session, first))""",
        f"""CREATE TABLE IF NOT EXISTS {frame}(
            namespace text NOT NULL, first bigint NOT NULL, count bigint NOT NULL, form bigint NOT NULL,
            sizes bytea NOT NULL, salts bytea NOT NULL, content bytea NOT NULL,
            PRIMARY KEY (namespace, first))""",
    )


def _append(head: str, commit: str, frame: str) -> str:
    """Inserts commits and frames where the log still ends where they were decided, and moves its end."""
    return f"""WITH moved AS (
          UPDATE {head} SET ordinal = ordinal + %(commits)s, cell = cell + %(cells)s
          WHERE namespace = %(namespace)s AND ordinal = %(ordinal)s AND cell = %(cell)s
            AND (holder IS NULL OR holder = %(me)s OR held_until < clock_timestamp())
            AND (%(swept)s::bigint IS NULL OR swept = %(swept)s)
          RETURNING namespace),
        framed AS (
          INSERT INTO {frame}(namespace, {FRAMES})
          SELECT moved.namespace, f.* FROM moved, {_unnest(FRAMES, FRAME_TYPES, "f")})
        INSERT INTO {commit}(namespace, {COMMITS})
        SELECT moved.namespace, c.* FROM moved, {_unnest(COMMITS, COMMIT_TYPES, "c")}"""


def _size(commit: str, frame: str) -> str:
    """The bytes of a namespace's rows, about as they lie."""
    row = "namespace = %(namespace)s"
    return f"""SELECT coalesce((SELECT sum(
                octet_length(body) + octet_length(hash) + octet_length(commitments) + 72)
                FROM {commit} WHERE {row}), 0)
            + coalesce((SELECT sum(octet_length(content) + octet_length(sizes) + octet_length(salts) + 32)
                FROM {frame} WHERE {row}), 0)"""


def _leases(head: str) -> dict[str, str]:
    """The statements about the two leases of a namespace."""
    row = "namespace = %(namespace)s"
    return {
        "holder": f"SELECT CASE WHEN held_until > clock_timestamp() THEN holder END FROM {head} WHERE {row}",
        "destroyer": f"SELECT CASE WHEN destroys_until > clock_timestamp() THEN destroyer END FROM {head} WHERE {row}",
        "lease": _lease(head, "holder", "held_until"),
        "release": f"UPDATE {head} SET holder = NULL, held_until = NULL WHERE {row} AND holder = %(me)s",
        "destroy_lease": _lease(head, "destroyer", "destroys_until"),
        "destroy_release": (
            f"UPDATE {head} SET destroyer = NULL, destroys_until = NULL WHERE {row} AND destroyer = %(me)s"
        ),
    }


def _lease(head: str, holder: str, until: str) -> str:
    """Takes or renews a lease where it is free, mine, or over; who holds it, me where it was taken."""
    return f"""WITH taken AS (
          UPDATE {head} SET {holder} = %(me)s, {until} = clock_timestamp() + %(seconds)s * interval '1 second'
          WHERE namespace = %(namespace)s
            AND ({holder} IS NULL OR {holder} = %(me)s OR {until} < clock_timestamp())
          RETURNING {holder}, ordinal, cell)
        SELECT {holder}, ordinal, cell FROM taken
        UNION ALL
        SELECT {holder}, ordinal, cell FROM {head}
        WHERE namespace = %(namespace)s AND NOT EXISTS (SELECT 1 FROM taken)"""
